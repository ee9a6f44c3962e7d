"""Simulated critical values for tables of independent records, for sizes at which chi-square is not valid yet.

    1 .. some thousand records        an order statistic over paths that grow one record at a time
    more records                      three moments: exact means, variances from paths of one column (see _cumulants.py)
    once both are indistinguishable   the chi-square distribution

The published rule changes to chi-square at 2 records per cell. That works for a small table (10 values x 5 targets: the
mean of the statistic then always stays within 0.11 of its standard deviation). At 100 x 1000 equally likely cells the mean
is 14% above, thirty standard deviations: every request would be denied. The default changes at the published size only if
that is harmless, and otherwise once the two critical values are equal: a step down there would freeze a release forever.

The randomness only computes thresholds, from a seed that is a hash of the inputs; it does not protect anyone.

Reference:
    Bezzi et al. 2012, Section 6.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.risk._cumulants import Cumulants, column_cumulants, spaced, total_cumulants, total_mean
from tidegate.risk._paths import alias_table, grow_paths
from tidegate.risk.cache import content_key, load_or_compute
from tidegate.risk.critical import check_significance, chi_square_critical

Shares = Sequence[float] | Sequence[Fraction] | NDArray[Any]
Progress = Callable[[int, int], None]

VERSION = 1
PATHS = 20_000
STEPS = 100_000_000
"""Largest number of records drawn for one table: one or two seconds on a laptop."""
BLOCK = 1_000
NEAR = 0.2
"""Standard deviations between the two means up to which the published change is used: at a significance of 0.2 the test
then has a true level between 0.15 and 0.26."""
SAME = 0.01
"""Standard deviations that are indistinguishable: 20,000 paths estimate a critical value no better."""
DENSE, RATIO = 256, 1.03
TIE = 1e-9
"""Statistics with a smaller relative difference count as equal: they were summed in another order."""


@dataclass(frozen=True, eq=False)
class CriticalTable:
    """Critical values of G (or of one target's g) by number of records; `beyond` applies after the last size.

    Between two listed sizes the value is interpolated linearly. The curve is concave, so the line is conservative; using
    the smaller neighbor instead would freeze a large sparse table, where the statistic and its critical value rise together
    with every record. A statistic that equals a value up to rounding has reached it: compare with a relative margin of 1e-9.
    """

    sizes: Ints
    values: Floats
    beyond: float

    def __post_init__(self) -> None:
        for name, kind in (("sizes", np.int64), ("values", np.float64)):
            frozen = np.array(getattr(self, name), kind)
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def at(self, number: int) -> float:
        """Return the critical value for a number of records; infinite for none, which reveal nothing."""
        if number < 1:
            return math.inf
        if not self.sizes.size or number > self.sizes[-1]:
            return self.beyond
        return float(np.interp(number, self.sizes, self.values))

    def dense(self, upto: int) -> Floats:
        """Return the critical values for 0 .. upto records as an array, for compiled loops."""
        numbers = np.arange(upto + 1)
        if not self.sizes.size:
            out = np.full(upto + 1, self.beyond)
        else:
            out = np.where(numbers > self.sizes[-1], self.beyond, np.interp(numbers, self.sizes, self.values))
        out[0] = math.inf
        return np.asarray(out, np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values, to the last digit."""
        return {"sizes": self.sizes.tolist(), "values": self.values.tolist(), "beyond": self.beyond}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Return the table that `to_dict` wrote."""
        sizes, values = np.array(content["sizes"], np.int64), np.array(content["values"], np.float64)
        return cls(sizes, values, float(content["beyond"]))

    @property
    def fingerprint(self) -> str:
        """Equal for equal tables."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CriticalTable) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def target_table(
    baseline: Shares,
    significance: float | Fraction,
    *,
    paths: int = PATHS,
    published: bool = False,
    progress: Progress | None = None,
) -> CriticalTable:
    """Return critical values of one target's g by the target's number of records, with values from the baseline.

    Guarantee:
        At each listed size a target whose values follow the baseline reaches the value with probability
        `significance`, up to the error of `paths` samples.

    Needs:
        Positive probabilities that add up to 1.
    """
    return total_table(baseline, [1.0], significance, paths=paths, published=published, progress=progress)


def total_table(
    baseline: Shares,
    weights: Shares,
    significance: float | Fraction,
    *,
    paths: int = PATHS,
    published: bool = False,
    progress: Progress | None = None,
) -> CriticalTable:
    """Return critical values of G, the sum over all targets, by the total number of records; targets follow `weights`.

    Guarantee:
        At each listed size a table whose values do not depend on the target reaches the value with probability
        `significance`, up to the error of `paths` samples; beyond some thousand records, of three moments.

    Needs:
        Positive probabilities and positive weights that add up to 1 each. `published` changes to the chi-square
        distribution at 2 records per cell for every table.
    """
    shares, parts = _check_shares(baseline, "baseline", 2), _check_shares(weights, "weights", 1)
    level = check_significance(significance)
    chance = content_key(version=VERSION, baseline=shares.tolist(), weights=parts.tolist(), paths=paths)
    plan = _Plan(shares, parts, level, paths, int(chance[:16], 16), progress)  # all levels use the same paths
    key = content_key(what="critical values of G", paths=chance, significance=level, published=published)
    return CriticalTable.from_dict(load_or_compute(key, lambda: plan.table(published=published).to_dict()))


def _check_shares(shares: Shares, name: str, least: int) -> Floats:
    numbers = np.array([float(share) for share in shares])
    if numbers.size < least or not (numbers > 0).all() or abs(math.fsum(numbers) - 1) > 1e-9:
        raise Unsupported(
            f"The {name} must be at least {least} positive numbers that add up to 1.",
            "Leave out a value that cannot occur; a value that can occur needs a probability above 0.",
            size=int(numbers.size),
            total=math.fsum(numbers),
        )
    return numbers


@dataclass(frozen=True)
class _Plan:
    """The computation of one table."""

    baseline: Floats
    weights: Floats
    level: float
    paths: int
    seed: int
    progress: Progress | None = None

    def table(self, *, published: bool) -> CriticalTable:
        usual = 2 * self.baseline.size * self.weights.size
        last = usual if published else self.change(usual)
        direct = min(last, self.longest)
        near, far = spaced(1, direct, dense=DENSE, ratio=RATIO), spaced(direct + 1, last, dense=0, ratio=RATIO)
        total = self.paths * (2 if far.size else 1)
        grown = self.grow(near, self.weights, self.seed, total=total)
        values = np.array([critical_order_statistic(row, self.level) for row in grown])
        if far.size:
            values = np.append(values, self.cumulants(far).quantile(self.level))
        return CriticalTable(np.append(near, far), values, chi_square_critical(self.freedom, self.level))

    @property
    def freedom(self) -> int:
        return (self.baseline.size - 1) * self.weights.size

    @property
    def longest(self) -> int:
        """The largest number of records in a path."""
        return int(max(STEPS // self.paths, 1))

    def change(self, usual: int) -> int:
        """Return the size after which the chi-square distribution is used."""
        sizes = spaced(usual, self._settled(usual), dense=0, ratio=RATIO)
        column = column_cumulants(self._column_sizes(int(sizes[-1])), self.baseline)
        gaps = (total_mean(sizes, self.weights, column) - self.freedom) / math.sqrt(2 * self.freedom)
        if gaps[0] <= SAME and np.abs(gaps).max() <= NEAR:
            return usual
        return int(sizes[min(np.flatnonzero(np.abs(gaps) > SAME)[-1] + 1, sizes.size - 1)])

    def _settled(self, usual: int) -> int:
        """Return a size beyond which the mean only converges: every cell has records, the first-order term is small."""
        first_order = (1 / self.baseline).sum() * (1 / self.weights).sum() / 6
        enough = 20 / (self.baseline.min() * self.weights.min())
        return int(np.ceil(max(usual, enough, first_order / (SAME / 2 * math.sqrt(2 * self.freedom)))))

    def cumulants(self, sizes: Ints) -> Cumulants:
        """Return the cumulants of G at sizes that paths of whole tables cannot reach."""
        columns = np.union1d(self._column_sizes(int(sizes[-1])), sizes if self.weights.size == 1 else [])
        sampled = spaced(1, min(int(columns[-1]), self.longest), dense=DENSE // 4, ratio=RATIO)
        grown = self.grow(sampled, np.ones(1), self.seed ^ 1, before=self.paths, total=2 * self.paths)
        return total_cumulants(sizes, self.weights, column_cumulants(columns, self.baseline, (sampled, grown)))

    def _column_sizes(self, last: int) -> Ints:
        """Return the numbers of records that one target can have among `last`."""
        mean = last * float(self.weights.max())
        most = last if self.weights.size == 1 else math.ceil(mean + 10 * math.sqrt(mean) + 40)
        return spaced(1, most, dense=DENSE, ratio=1 + (RATIO - 1) / 2)

    def grow(self, sizes: Ints, weights: Floats, seed: int, *, before: int = 0, total: int = 0) -> Floats:
        """Return an array (sizes, paths), computed block by block; `before` of `total` paths were grown before these."""
        drawn = (*alias_table(self.baseline), *alias_table(weights), -np.log(self.baseline))
        out = np.empty((sizes.size, self.paths))
        for first in range(0, self.paths, BLOCK):
            stop = min(first + BLOCK, self.paths)
            out[:, first:stop] = grow_paths(sizes, first, stop, np.uint64(seed), *drawn)
            if self.progress:
                self.progress(before + stop, total)
        return out


def critical_order_statistic(sample: Floats, significance: float | Fraction) -> float:
    """Return the smallest value of the sample that at least 1 - significance of it do not exceed; no interpolation.

    Small tables have few values, and all that reach the critical value are denied. If those are more than twice the
    significance (among equally likely values, the first record always would be), the next value is used, or one just above
    the largest.
    """
    level = Fraction(significance).limit_denominator(10**12)
    rank = math.ceil((1 - level) * sample.size)
    value = float(np.partition(sample, rank - 1)[rank - 1])
    margin = TIE * max(value, 1)
    if np.count_nonzero(sample >= value - margin) <= 2 * level * sample.size:
        return value
    above = sample[sample > value + margin]
    return float(above.min()) if above.size else value + 1000 * margin
