"""Forest and extra pairs: the default model of real mixed tables, learnt from counts of one and of two columns.

model.py     the procedure, from the rows to a pool      plan.py       what is public: shares, rounds, sizes
noise.py     every private number, through the diary     margins.py    one column's distribution, refreshed
groups.py    coarser cells, by the margins               selection.py  which pair at which resolution, by its misfit
pairs.py     a measured pair, shrunk to what is known    rounds.py     one round; rounds that join columns
pool.py      rows drawn from the forest, and out of it   raking.py     rounds that add pairs, the pool raked to all
"""

from tidegate.synthesize.mechanisms.forest.model import Forest

__all__ = ["Forest"]
