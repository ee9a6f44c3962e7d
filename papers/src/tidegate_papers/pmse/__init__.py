"""Snoke & Slavkovic 2018, the pMSE mechanism: `reproduce` computes every item of the paper."""

from tidegate_papers.pmse.run import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
