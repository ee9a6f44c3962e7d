"""Privacy measures, one per file: pure functions from counts or arrays to numbers.

identification.py   conclusions of an informed adversary from a response: the posterior of every possible world
tightness.py        the least noise that keeps a rho for a known universe, and what that reveals
interval.py         the width of a range that contains a randomized value with a certain confidence
entropy.py          the number of values that seem equally likely
local.py            the local loss of a channel, and privacy breaches
exposure.py         distances of released counts from the public baseline: mutual information, Kullback-Leibler
                    distance, Pearson's statistic over merged bins, Dixon's coefficient
critical.py         critical values of the chi-square distribution
dixon.py            critical values of Dixon's coefficient for any number of targets
simulation.py       simulated critical values if chi-square is not valid yet; tables are cached on disk (cache.py)
pmse.py             how well synthetic rows can be distinguished, and the effect of one row on that
cart.py             the same by greedy trees: a measure only, never a score of a mechanism

Measures from critical.py on are imported from their own files: some load scipy and numba, which most users do not need.
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
