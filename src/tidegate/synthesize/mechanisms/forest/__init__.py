"""Forest and extra pairs: the default model of real mixed tables, learnt from counts of one and of two columns.

plan.py      what is public: shares, rounds, sizes       measuring.py  every private number, through the diary
spikes.py    frequent single codes                       margins.py    one column's distribution, refreshed
smoothing.py plausible counts of long columns
groups.py    coarser cells, by the margins               choosing.py   which pair at which resolution, by its misfit
pairs.py     a measured pair, shrunk to what is known    forest.py     rounds that join columns
pool.py      rows drawn from the forest                  extra.py      rounds that add pairs, the pool raked to all
drawing.py   rows out of the pool                        model.py      the story
"""

from tidegate.synthesize.mechanisms.forest.model import Forest

__all__ = ["Forest"]
