"""The mechanisms, one file each. Each states its event and its error without data, runs, and reads stored results.

counts.py      number of rows, histograms        discrete Laplace
sums.py        sums, means, variances            discrete Laplace on centered moments
ranks.py       quantiles, lowest, highest        exponential mechanism over the public grid
regression.py  linear regressions                K-norm noise on sums of products, or discrete Laplace
estimates.py   counts from a shared measurement  intervals of sums of noises

Under the average guarantee, discrete Gaussian noise replaces Laplace and K-norm noise.
"""

from __future__ import annotations

from typing import Any

from tidegate.answer.mechanisms.counts import Counts, Distinct, Persons
from tidegate.answer.mechanisms.estimates import read_estimates
from tidegate.answer.mechanisms.mechanism import Mechanism, Reading
from tidegate.answer.mechanisms.ranks import Ranks
from tidegate.answer.mechanisms.regression import Regressions
from tidegate.answer.mechanisms.sums import Sums
from tidegate.answer.request import Query
from tidegate.policy import Policy

MECHANISMS: dict[str, Mechanism] = {
    **dict.fromkeys(("count", "histogram"), Counts()),
    "persons": Persons(),
    "distinct": Distinct(),
    **dict.fromkeys(("sum", "mean", "variance", "std"), Sums()),
    **dict.fromkeys(("quantile", "min", "max"), Ranks()),
    "regression": Regressions(),
}


def read_stored(query: Query, policy: Policy, event: Any, stored: Any, *, confidence: float) -> Reading:
    """Return the reading of a stored result: of noisy integers, or of estimates from several queries together."""
    if "estimates" in stored:
        return read_estimates(policy, stored, confidence=confidence)
    return mechanism_for(query).read(query, policy, event, stored, confidence=confidence)


def mechanism_for(query: Query) -> Mechanism:
    """Return the mechanism that answers a query."""
    return MECHANISMS[query.statistic]


__all__ = ["MECHANISMS", "Mechanism", "mechanism_for", "read_stored"]
