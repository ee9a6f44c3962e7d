"""The papers' tables and figures, recomputed through the public functions.

item.py              a published number beside ours, and whether it is the same
worlds.py            the possible worlds of an adversary, and the statistics asked of them
page.py              items and figures as one HTML page
identifiability/     Lee & Clifton 2012; the numbers that the paper prints are in identifiability.json
release/             Bezzi et al. 2012; the numbers that the paper prints are in release.json
soldiers.py          the table of that paper
randomization/       Evfimievski 2002, numbers and trees; what the paper prints is in randomization.json
quest.py             people for its trees
pmse/                Snoke & Slavkovic 2018; what the paper prints is in pmse.json
"""

from tidegate.reproduce.item import Found, Item, Published, compare, summary

__all__ = ["Found", "Item", "Published", "compare", "summary"]
