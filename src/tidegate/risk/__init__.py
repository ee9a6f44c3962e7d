"""Measures, one per file: pure functions from counts or arrays to numbers.

identification.py   what an informed adversary concludes from a response: the posterior of every possible world
tightness.py        the least noise that keeps a rho for a known universe, and what that gives away
interval.py         how wide a range holds a randomized value        entropy.py   how many values seem equally likely
breach.py           what the unlikely can become after a report      local.py     the local loss of a channel
exposure.py         how far released counts are from the public baseline: mutual information, Kullback-Leibler distance,
                    Pearson's statistic over merged bins, Dixon's coefficient
critical.py         how far chance alone leads: the chi-square distribution
dixon.py            the same for Dixon's coefficient, any number of targets
simulated.py        the same where chi-square is not valid yet; tables are kept on disk (kept.py)
pmse.py             how well synthetic rows can be told apart, and how far one row moves that
cart.py             the same by greedy trees: a measure only, never a score of a mechanism

From critical.py on they are imported from their own files: some load scipy and numba, which not every user of a measure needs.
"""

from tidegate.risk.exposure import (
    divergence,
    dixon_coefficient,
    fit_baseline,
    kullback_leibler,
    merge_sparse_bins,
    mutual_information,
    pearson,
)
from tidegate.risk.identification import equation_15, posterior, worst_risk
from tidegate.risk.tightness import likeliest_run, tight_scale, window_scale

__all__ = [
    "divergence",
    "dixon_coefficient",
    "equation_15",
    "fit_baseline",
    "kullback_leibler",
    "likeliest_run",
    "merge_sparse_bins",
    "mutual_information",
    "pearson",
    "posterior",
    "tight_scale",
    "window_scale",
    "worst_risk",
]
