"""The measurements of the design study (a prototype with floating-point noise), to compare ours with: within 20% is the goal.

Columns are those of `evaluation.MEASURES`. The study's 45 columns were another draw of the same kind of table, so that its row
shows an order of magnitude only.
"""

from __future__ import annotations

from benchmarks.synthesis.evaluation import MEASURES

BARS = """
adult 0.25 pure .0167 .0634 .0247 .0719 .1270 .054 .0080 .792 -
adult 0.25 z .0083 .0392 .0118 .0427 .0832 .048 .0045 .867 -
adult 1 pure .0062 .0363 .0109 .0411 .0816 .043 .0042 .866 -
adult 1 z .0045 .0256 .0046 .0247 .0546 .027 .0018 .899 -
adult 4 pure .0040 .0260 .0042 .0247 .0544 .021 .0020 .899 -
adult 4 z .0024 .0131 .0019 .0158 .0401 .020 .0011 .906 -
adult-bounds 1 z .0047 .0261 .0054 .0259 .0559 .027 .0019 .900 .01
diamonds 0.25 pure .0554 .1583 .0559 .2005 .3659 .202 .0094 .986 -
diamonds 0.25 z .0149 .1106 .0244 .1262 .2640 .090 .0045 .988 -
diamonds 1 pure .0161 .1034 .0257 .1128 .2250 .072 .0042 .988 -
diamonds 1 z .0076 .0784 .0086 .0715 .1668 .079 .0018 .990 -
diamonds 4 z .0045 .0662 .0031 .0515 .1428 .062 .0010 .993 -
spending 0.25 z .0499 .1394 .0424 .0983 .1639 .082 .0120 .966 -
spending 1 pure .0695 .1517 .0370 .0973 .1588 .098 .0111 .914 -
spending 1 z .0137 .0685 .0157 .0484 .1033 .057 .0052 .989 -
spending 4 z .0059 .0378 .0071 .0329 .0818 .036 .0023 .992 -
randhie 1 pure .0468 .1231 .0397 .0862 .1323 .056 .0100 .605 -
randhie 1 z .0078 .0467 .0120 .0345 .0634 .036 .0047 .635 -
fair 0.25 z .0329 .0646 .0497 .1168 .1900 .116 .0229 .694 -
fair 1 pure .0226 .0558 .0255 .0888 .1585 .112 .0118 .593 -
fair 1 z .0107 .0324 .0145 .0624 .1227 .080 .0083 .681 -
columns45 0.25 z .0556 .1633 .0371 .0949 .2635 .034 .0079 .483 .42
columns45 1 z .0281 .1158 .0156 .0463 .1545 .017 .0033 .675 .04
columns45 4 z .0078 .0914 .0057 .0345 .1283 .012 .0017 .698 .01
"""


def bar(table: str, epsilon: float, mode: str) -> dict[str, float]:
    """Return the study's measures of one row; empty if it has none."""
    for line in BARS.strip().splitlines():
        name, number, kind, *values = line.split()
        if (name, float(number), kind) == (table, epsilon, mode):
            pairs = zip(MEASURES, values, strict=True)
            return {measure: float(value) for measure, value in pairs if value != "-"}
    return {}
