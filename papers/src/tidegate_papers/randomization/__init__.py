"""Evfimievski 2002, randomization in privacy preserving data mining: `reproduce` computes values, `reproduce_sets` baskets."""

from tidegate_papers.randomization.run import Reproduction, reproduce, reproduce_sets
from tidegate_papers.randomization.samples import FILES, HOW_TO_GET

__all__ = ["FILES", "HOW_TO_GET", "Reproduction", "reproduce", "reproduce_sets"]
