"""Simulation of whole collections in memory, for reproductions, claims and benchmarks."""

from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.true_supports import TrueSupports, read_baskets
from tidegate_papers.simulation.values import BulkBits, count_many, sample_many

__all__ = ["Baskets", "BulkBits", "TrueSupports", "count_many", "randomize_baskets", "read_baskets", "sample_many"]
