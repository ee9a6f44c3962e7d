"""Evfimievski 2002, randomization in privacy preserving data mining.

paper.py            what the paper prints                  privacy.py   Section 4: intervals, entropy, a breach
classification.py   Section 2: trees of randomized records curves.py    Section 2: reconstructed distributions
drawing.py          the figures as pictures                run.py       all of it, item by item
"""

from tidegate.reproduce.randomization.run import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
