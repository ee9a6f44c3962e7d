"""Simulation of whole collections in memory: what the reproductions, the claims and the benchmarks draw.

values.py          `sample_many(operator, codes, bits)`: reports of many values; `count_many`
baskets.py         `randomize_baskets`: reports of many baskets
true_supports.py   supports of true baskets, which the randomized ones are compared with
"""

from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.true_supports import TrueSupports, read_baskets
from tidegate_papers.simulation.values import BulkBits, count_many, sample_many

__all__ = ["Baskets", "BulkBits", "TrueSupports", "count_many", "randomize_baskets", "read_baskets", "sample_many"]
