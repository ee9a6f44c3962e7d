"""Decision trees from randomized records.

classifier.py   RandomizedTreeClassifier: fit reports, predict values         survey_tree.py  the tree of a survey
strategies.py   randomized, global, by-class, local, as published             joint.py       several attributes at once
selection.py    the best strategy, chosen from reports alone
grow.py         Gini tree over intervals, pruned by description length        training.py    records, channels, classes
columns.py      intervals and channels of a column, sets as single values
"""

from tidegate.collect.trees.classifier import STRATEGIES, RandomizedTreeClassifier
from tidegate.collect.trees.columns import Column, atoms_column, column_of, noisy_column, plain_column
from tidegate.collect.trees.grow import Tree

__all__ = [
    "STRATEGIES",
    "Column",
    "RandomizedTreeClassifier",
    "Tree",
    "atoms_column",
    "column_of",
    "noisy_column",
    "plain_column",
]
