"""The mechanisms, one file each. Each states its event and its error without data, runs, and reads stored results.

counts.py      number of rows, histograms        discrete Laplace
sums.py        sums, means, variances            discrete Laplace on centered moments
ranks.py       quantiles, lowest, highest        exponential mechanism over the public grid
regression.py  linear regressions                K-norm noise on sums of products, or discrete Laplace
"""

from __future__ import annotations

from tidegate.answer.mechanisms.counts import Counts
from tidegate.answer.mechanisms.mechanism import Mechanism
from tidegate.answer.mechanisms.ranks import Ranks
from tidegate.answer.mechanisms.regression import Regressions
from tidegate.answer.mechanisms.sums import Sums
from tidegate.answer.request import Query

MECHANISMS: dict[str, Mechanism] = {
    **dict.fromkeys(("count", "histogram"), Counts()),
    **dict.fromkeys(("sum", "mean", "variance", "std"), Sums()),
    **dict.fromkeys(("quantile", "min", "max"), Ranks()),
    "regression": Regressions(),
}


def mechanism_for(query: Query) -> Mechanism:
    """Return the mechanism that answers a query."""
    return MECHANISMS[query.statistic]


__all__ = ["MECHANISMS", "Mechanism", "mechanism_for"]
