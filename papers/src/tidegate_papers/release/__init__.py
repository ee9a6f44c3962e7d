"""Bezzi et al. 2012, controlling the release of records: `reproduce` computes every item of the paper."""

from tidegate_papers.release.run import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
