"""Forest and extra pairs: the default model for mixed tables, learned from counts of one and of two columns.

model.py     the procedure, from the rows to a pool     plan.py       public plan: shares, rounds, sizes
noise.py     every private number, through the diary    margins.py    one column's distribution, updated by pairs
groups.py    coarser cells, chosen by the margins       selection.py  which pair at which resolution, by its misfit
pairs.py     a measured pair, shrunk toward the model   rounds.py     one round; rounds that join columns
pool.py      rows drawn from the forest, resampled      raking.py     rounds that add pairs; raking of the pool
"""

from tidegate.synthesize.mechanisms.forest.model import Forest

__all__ = ["Forest"]
