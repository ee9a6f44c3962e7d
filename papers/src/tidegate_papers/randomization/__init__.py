"""Evfimievski 2002, randomization in privacy preserving data mining.

paper.py            what the paper prints                  privacy.py   Section 4: intervals, entropy, a breach
classification.py   Section 2: trees of randomized records curves.py    Section 2: reconstructed distributions
breaches.py         Section 3: the example, breach levels  itemsets.py  Section 3: recovered itemsets
shops.py            the baskets of Section 3               run.py       all of it, item by item
drawing.py, sets_drawing.py   the figures as pictures
"""

from tidegate_papers.randomization.run import Reproduction, reproduce, reproduce_sets
from tidegate_papers.randomization.samples import FILES, HOW_TO_GET

__all__ = ["FILES", "HOW_TO_GET", "Reproduction", "reproduce", "reproduce_sets"]
