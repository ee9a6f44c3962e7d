"""Bezzi et al. 2012, controlling the release of records.

paper.py         what the paper prints               examples.py        Examples 3.2 to 5.13
percentages.py   Figures 2, 6, 8, 9 and 11           approximations.py  Figures 5, 7 and 10, Section 6
sequences.py     random requests, and who gets out   evolution.py       Figures 12 to 15
figure_16.py     how many records leave              figure_19.py       who is safe under another test
saying.py        Figure 18, sentences of Section 7.2 drawing.py         the figures as pictures
run.py           all of it, item by item
"""

from tidegate_papers.release.run import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
