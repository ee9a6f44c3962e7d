"""The forest: the model of Tidegate for all tables, learned from counts of one and of two columns.

model.py      the procedure, from the rows to a fitted model   plan.py       public plan: shares, rounds, sizes
meter.py      every private number, through the diary          cells.py      cells of wide columns, found from the rows
margins.py    one column's distribution, updated by pairs      maps.py       columns that another one determines
groups.py     coarser cells, chosen by the margins             selection.py  which pair at which resolution, by its misfit
pairs.py      a measured pair, shrunk toward the model         rounds.py     one round; rounds that join columns
raking.py     rounds that add pairs; raking of a pool          pool.py       pools of rows, drawn from whole numbers
weights.py    the stored model, and draws from it              first.py      reader of old diaries, with first_pool.py
"""

from tidegate.synthesize.mechanisms.forest.model import Forest

__all__ = ["Forest"]
