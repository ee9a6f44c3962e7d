"""The papers' tables and figures, computed again through Tidegate's public functions, and what only the papers need.

item.py              a published number beside ours, and its status
report.py            items and figures as one HTML page
command.py           the command `tidegate reproduce`
identifiability/     Lee & Clifton 2012; the numbers that the paper prints are in identifiability.json
release/             Bezzi et al. 2012; release.json
randomization/       Evfimievski 2002, values, trees and baskets; randomization.json
pmse/                Snoke & Slavkovic 2018; pmse.json
baselines/           the models that it compares with: `model="bppd/1"` and others, loaded by name
valuation/           what private information is worth: Shapley's value, the core, the command `tidegate risk value`
"""

from tidegate_papers.item import Found, Item, Published, compare, summary

__all__ = ["Found", "Item", "Published", "compare", "summary"]
