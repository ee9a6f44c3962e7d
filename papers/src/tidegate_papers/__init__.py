"""The papers' tables and figures, computed again through Tidegate's public functions, and what only the papers need.

identifiability/ (Lee & Clifton 2012), release/ (Bezzi et al. 2012), randomization/ (Evfimievski 2002) and pmse/ (Snoke &
Slavkovic 2018) reproduce one paper each; the printed numbers are in the JSON file of the same name. item.py compares a
published number with ours, report.py renders items and figures as a page, and command.py is `tidegate reproduce`.

baselines/ has the models of the pMSE paper, loaded by name (`model="bppd/1"`). simulation/ draws whole collections in
memory. valuation/ computes what private information is worth and adds the command `tidegate risk value`.
"""

from tidegate_papers.item import Item, Published, Result, compare, summary

__all__ = ["Item", "Published", "Result", "compare", "summary"]
