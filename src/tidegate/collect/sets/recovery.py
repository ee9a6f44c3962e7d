"""True supports from randomized reports: unbiased, with their variances, over baskets of several sizes.

Reports come as counts by how many items of the itemset they show (`seen`, 0 .. k), one array for each group of baskets that
followed one plan. Several itemsets are handled at once: counts are arrays (..., k + 1). `partial_counts` makes them from what
ANDs of bitsets count.

Guarantee  Given the true baskets, the expectation of `estimate` is the true support and that of `variance` its variance. Baskets
           smaller than the itemset cannot hold it: they add exactly 0 to the support, and count in the total.
           Baskets that were cut to `fixed` items count as what was left of them: see brackets.py.
Needs      Plans that leave something to see of k items together; else it is refused (`transitions.singular`).
Reference  Evfimievski, Srikant, Agrawal, Gehrke 2002, Statements 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidegate.arrays import Floats
from tidegate.collect.sets import transitions
from tidegate.errors import Unsupported
from tidegate.policy.setplans import SetOperator


@dataclass(frozen=True)
class Supports:
    """Estimated shares of baskets that hold an itemset, raw: unbiased, so that they may lie below 0 or above 1."""

    estimate: Floats
    variance: Floats

    @property
    def standard_error(self) -> Floats:
        """The square root of the variance (of an estimated variance below 0: 0)."""
        return np.asarray(np.sqrt(np.maximum(self.variance, 0)))

    @property
    def shown(self) -> Floats:
        """The estimates as shares from 0 to 1: for display only, no longer unbiased."""
        return np.clip(self.estimate, 0, 1)


@dataclass(frozen=True)
class Partials:
    """Shares of baskets that hold exactly 0 .. k of the items, with the covariance of their estimates."""

    estimate: Floats  # (k + 1,)
    covariance: Floats  # (k + 1, k + 1)


def channel(operator: SetOperator, size: int, items: int) -> tuple[tuple[Any, ...], Fraction]:
    """The moments and the insertion of the plan that baskets of this size follow: exact, up to so many items."""
    if operator.flip is not None:  # the same for every size, also where the size is not known
        return transitions.flip_moments(operator.flip[0], items), operator.flip[1]
    plan = operator.plan(size)
    return transitions.moments(plan.keep, items), plan.insert


def partial_counts(subsets: ArrayLike) -> Floats:
    """Counts of reports that show exactly 0 .. k of the items, from counts of reports that show subsets.

    `subsets` (..., k + 1): the number of reports, then for i = 1 .. k the counts of all i-subsets added up.
    """
    sums = np.asarray(subsets, dtype=np.float64)
    return sums @ _exactly(sums.shape[-1] - 1).T


def _exactly(items: int) -> Floats:
    """Inclusion and exclusion: row j holds the (-1)^(i - j) C(i, j)."""
    return np.array([[(-1.0) ** (i - j) * comb(i, j) for i in range(items + 1)] for j in range(items + 1)])


def recover(operator: SetOperator, counts: Mapping[int, ArrayLike], *, total: int | None = None) -> Supports:
    """The supports of itemsets of k items over all baskets, from counts (..., k + 1) by the baskets' sizes.

    `total` is the number of all baskets, where some sizes were not counted because they cannot hold k items. A flip tells
    no size: give all its reports under any one size.
    """
    arrays = {size: np.asarray(array, dtype=np.float64) for size, array in counts.items()}
    items = _itemset_size(arrays)
    whole = _whole(arrays) if total is None else total
    shape = next(iter(arrays.values())).shape[:-1]
    estimate, variance = np.zeros(shape), np.zeros(shape)
    for size, array in arrays.items():
        if operator.flip is None and _planned(operator, size) < items:
            continue  # exactly zero: nothing to estimate, nothing to invert
        weights = _weights(operator, size, items)
        estimate += array @ weights
        variance += array @ (weights**2 - weights)
    return Supports(estimate / whole, variance / whole**2)


def recover_subsets(operator: SetOperator, subsets: Mapping[int, ArrayLike], *, total: int | None = None) -> Supports:
    """As `recover`, from counts of subsets (see `partial_counts`) by the baskets' sizes."""
    return recover(operator, {size: partial_counts(array) for size, array in subsets.items()}, total=total)


def _planned(operator: SetOperator, size: int) -> int:
    return size if operator.fixed is None else operator.fixed


def _weights(operator: SetOperator, size: int, items: int) -> Floats:
    phi, insert = channel(operator, size, items)
    return np.array([float(one) for one in transitions.support_weights(phi, insert, items)])


def _itemset_size(arrays: Mapping[int, Floats]) -> int:
    lengths = {array.shape[-1] for array in arrays.values()}
    if len(lengths) != 1 or min(lengths) < 2:
        raise Unsupported(
            "for an itemset of k items every size needs k + 1 counts: of reports that show 0 .. k of them."
        )
    return int(lengths.pop()) - 1


def _whole(arrays: Mapping[int, Floats]) -> float:
    whole = sum(np.max(array.sum(axis=-1)) for array in arrays.values())
    if whole <= 0:
        raise Unsupported("no report was counted; a support needs at least one.")
    return float(whole)


def recover_partials(operator: SetOperator, size: int, counts: ArrayLike) -> Partials:
    """All partial supports of one itemset in the baskets of one size, and the unbiased estimate of their covariance."""
    array = np.asarray(counts, dtype=np.float64)
    phi, insert = channel(operator, size, array.size - 1)
    inverse = np.array([[float(one) for one in row] for row in transitions.inverse(phi, insert, array.size - 1)])
    estimate = inverse @ (array / array.sum())
    return Partials(estimate, covariance(phi, insert, estimate) / array.sum())


def covariance(phi: Sequence[Any], insert: Any, partials: ArrayLike) -> Floats:
    """N times the covariance of the estimated partial supports: sum over l of s_l Q (diag(P_l) - P_l P_l') Q'."""
    shares = np.asarray(partials, dtype=np.float64)
    items = shares.size - 1
    seen = transitions.matrix(phi, insert, items)
    inverse = np.array([[float(one) for one in row] for row in transitions.inverse(phi, insert, items)])
    spread = np.diag(seen @ shares) - (seen * shares) @ seen.T
    return np.asarray(inverse @ spread @ inverse.T)


def support_variance(phi: Sequence[Any], insert: Any, partials: Sequence[Any]) -> Any:
    """N times the variance of an estimated support, given the true partial supports: exact where they are.

    sum over l of s_l v^(k - l) d_l / c_k^2 - s_k, where v = insert (1 - insert) is what an item that is not there adds and
    d_l = E prod (y_a - insert)^2 over l items that are.
    """
    items = len(partials) - 1
    left = transitions.visible_contrast(phi, insert, items)
    second = sum(
        share * (insert * (1 - insert)) ** (items - present) * squares(phi, insert, present)
        for present, share in enumerate(partials)
    )
    return second / left**2 - partials[-1]


def squares(phi: Sequence[Any], insert: Any, present: int) -> Any:
    """d_l: the expected product of (y_a - insert)^2 over `present` items of the basket."""
    return sum(
        comb(present, i) * phi[i] * (1 - 2 * insert) ** i * insert ** (2 * (present - i)) for i in range(present + 1)
    )


def project(supports: Mapping[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """Estimates for display: from 0 to 1, and no itemset above one of its subsets.

    Each is the middle between the highest of its supersets and the lowest of its subsets, itself included, which is an isotonic
    regression in the largest deviation: no monotone values are closer to the estimates at the worst place.
    """
    clipped = {items: min(1.0, max(0.0, value)) for items, value in supports.items()}
    above, below = dict(clipped), dict(clipped)
    for items in sorted(clipped, key=len, reverse=True):
        for subset in _known_subsets(items, clipped):
            above[subset] = max(above[subset], above[items])
    for items in sorted(clipped, key=len):
        below[items] = min([below[items], *(below[subset] for subset in _known_subsets(items, clipped))])
    return {items: (above[items] + below[items]) / 2 for items in supports}


def _known_subsets(items: tuple[int, ...], known: Mapping[tuple[int, ...], float]) -> list[tuple[int, ...]]:
    """All smaller subsets that were estimated: those in between may be missing."""
    return [part for size in range(1, len(items)) for part in combinations(items, size) if part in known]
