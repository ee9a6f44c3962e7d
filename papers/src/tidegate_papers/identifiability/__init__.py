"""Lee & Clifton 2012, Differential Identifiability: `reproduce` computes every item of the paper."""

from tidegate_papers.identifiability.adult import HOW_TO_GET
from tidegate_papers.identifiability.run import Reproduction, reproduce

__all__ = ["HOW_TO_GET", "Reproduction", "reproduce"]
