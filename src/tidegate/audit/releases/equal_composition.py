"""Equal composition on simulated data sets, and observers who know the rule, the mix, all requests and all refusals.

Quotas and shares are those of the product, in exact fractions; samples and choices are drawn by numpy instead of a keyed
hash. Randomness only simulates data sets and keys here; it protects no one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.audit.releases.observers import Observer, likelihood_ratio
from tidegate.audit.releases.worlds import NOBODY, ObservedRelease, World
from tidegate.policy.hiding import Hiding
from tidegate.release.plan import Plan
from tidegate.release.selection import Mix, Quotas, quotas_of, reduced_share

MOST_EVIDENCE = 50.0  # of one cell, in nats


@dataclass(frozen=True)
class HidingView(ObservedRelease):
    """What an observer sees under a hiding promise.

    Args:
        requests: The group of every request in order, refused ones included.
        mix: The share of every hidden group that is released with each value.
        hidden: The hidden set, once for each selection.
        at_most: The largest part of a cell that is released.
    """

    requests: Ints
    mix: Floats
    hidden: tuple[tuple[int, ...], ...]
    at_most: float


class EqualComposition:
    """The rule of hiding promises for simulated data sets. `opened` lists for each of them whether its desk opened.

    The generator that stands for the key follows from the seed and the data set, so the same data set gives the same choice.
    """

    def __init__(self, promise: Hiding, *, seed: int = 0) -> None:
        self.promise, self._seed = promise, seed
        self.opened: list[bool] = []

    def show(self, plan: Plan, profile: Floats, world: World) -> HidingView | None:
        counts = np.bincount(world.cells, minlength=plan.targets * plan.values).reshape(plan.targets, plan.values)
        random = np.random.default_rng([self._seed, zlib.crc32(world.cells.tobytes())])
        hidden = self.hide(counts.sum(axis=1), world.sensitive, random)
        quotas = self.open(counts, hidden[0], random)
        self.opened.append(quotas is not None)
        if quotas is None:
            return None
        numbers = np.flatnonzero(self.choose(world.cells, counts, quotas, random))
        targets, values = np.divmod(world.cells[numbers], plan.values)
        seen = (plan, profile, values, targets, numbers, counts.sum(axis=1))
        mix = np.array([float(share) for share in quotas.mix])
        return HidingView(*seen, world.cells // plan.values, mix, hidden, float(self.promise.at_most))

    def hide(self, sizes: Ints, sensitive: int, random: np.random.Generator) -> tuple[tuple[int, ...], ...]:
        """Return the hidden set. In a data set without a sensitive group, the owner names any."""
        if self.promise.among == "all":
            return (tuple(range(sizes.size)),)
        large = np.flatnonzero(sizes >= self.promise.smallest)
        named = int(random.choice(large)) if sensitive == NOBODY else sensitive
        decoys = random.choice(large[large != named], self.promise.among - 1, replace=False)
        return (tuple(sorted([named, *map(int, decoys)])),)

    def open(self, counts: Ints, hidden: Sequence[int], random: np.random.Generator) -> Quotas | None:
        """Return the quotas of a table of counts (groups, values); None if the desk does not open."""
        promise, sizes = self.promise, [int(size) for size in counts.sum(axis=1)]
        mix = self.mix_of(counts, hidden, random) if isinstance(promise.mix, str) else promise.mix
        quotas = quotas_of(mix, sizes, hidden, promise.smallest)
        rows = [group for group, row in enumerate(quotas.by_group) if row is not None]
        required = np.array([quotas.by_group[group] for group in rows], np.int64)
        is_short = required * promise.at_most.denominator > counts[rows] * promise.at_most.numerator
        return None if is_short.any() or not quotas.share else quotas

    def mix_of(self, counts: Ints, hidden: Sequence[int], random: np.random.Generator) -> Mix:
        """Return the mix of a table from samples of equal size."""
        promise, sizes = self.promise, counts.sum(axis=1)
        large = [group for group in hidden if sizes[group] >= promise.smallest]
        if not large:
            return (Fraction(0),) * int(counts.shape[1])
        size = int(min(sizes[group] for group in large))
        lowest = np.min([random.multivariate_hypergeometric(counts[group], size) for group in large], axis=0)
        return tuple(promise.at_most * reduced_share(int(count), size, promise.margin) for count in lowest)

    def choose(self, cells: Ints, counts: Ints, quotas: Quotas, random: np.random.Generator) -> NDArray[np.bool_]:
        """Return which records can be released: a uniform choice in every cell."""
        return rank_in_cell(cells, random.random(cells.size)) < quota_table(quotas, counts).ravel()[cells]


def rank_in_cell(cells: Ints, order: Floats | Ints) -> Ints:
    """Return for each record how many of its cell come before it in an order."""
    sorted_records = np.lexsort((order, cells))
    starts = np.cumsum(np.bincount(cells)) - np.bincount(cells)
    rank = np.empty(cells.size, np.int64)
    rank[sorted_records] = np.arange(cells.size) - starts[cells[sorted_records]]
    return rank


def quota_table(quotas: Quotas, counts: Ints) -> Ints:
    """Return the number of records that can be released, (groups, values)."""
    return np.array([row if quota is None else quota for quota, row in zip(quotas.by_group, counts, strict=True)])


# Observers who know the rule


def hidden_set(seen: ObservedRelease) -> Floats:
    """Suspect the groups that are hidden in every selection; between those, the one whose values resemble the profile."""
    times = np.array([sum(group in hidden for hidden in _view(seen).hidden) for group in range(seen.plan.targets)])
    return np.asarray(times * 1e9 + np.clip(np.nan_to_num(likelihood_ratio(seen)), -1e8, 1e8))


def filled_quotas(seen: ObservedRelease) -> Floats:
    """Score by how early values of the profile are released among all requests of the group, refused ones included."""
    view = _view(seen)
    positions = rank_in_cell(view.requests, np.arange(view.requests.size)) / view.sizes[view.requests]
    return view.by_target((0.5 - positions[view.moments]) * _evidence(view)[view.values])


def smallest_shares(seen: ObservedRelease) -> Floats:
    """Score by the values for which the mix is a whole number of the group's records: there the group set the minimum."""
    view = _view(seen)
    counts = view.sizes[:, None] * view.mix / view.at_most
    is_whole = (np.abs(counts - np.round(counts)) < 1e-6) & (view.mix > 0)
    return np.asarray(-(is_whole * _evidence(view)).sum(axis=1))


def variance_of_coins(seen: ObservedRelease) -> Floats:
    """Score by ln of the likelihood ratio if every record was released by a coin with its group's own shares.

    A mixture of binomials over the hidden counts, cell by cell: the mean of a released count is the same for all groups,
    its variance is not.
    """
    view = _view(seen)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, view.sizes.max() + 1)))])
    counts, scores = view.counts, np.zeros(view.plan.targets)
    for group, size in enumerate(view.sizes.tolist()):
        for value in np.flatnonzero(view.mix):
            released, mix = int(counts[value, group]), float(view.mix[value])
            sensitive, ordinary = (
                _log_mixture(released, size, float(share[value]), mix, logarithms)
                for share in (view.profile, view.plan.floats)
            )
            scores[group] += np.clip(sensitive - ordinary, -MOST_EVIDENCE, MOST_EVIDENCE)
    return scores


RULE_AWARE: dict[str, Observer] = {
    "hidden set": hidden_set,
    "filled quotas": filled_quotas,
    "smallest shares": smallest_shares,
    "variance of coins": variance_of_coins,
}


def _view(seen: ObservedRelease) -> HidingView:
    if not isinstance(seen, HidingView):
        raise TypeError("This observer needs a release under a hiding promise.")
    return seen


def _evidence(view: HidingView) -> Floats:
    """Return ln(profile / baseline) of every value, within limits."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(view.profile / view.plan.floats), -MOST_EVIDENCE, MOST_EVIDENCE)


def _log_mixture(released: int, size: int, share: float, mix: float, logarithms: Floats) -> float:
    """Return ln P(released) if N is binomial (size, share) and each of N records leaves with probability min(1, mix size / N).

    Sums over all N within 12 standard deviations. `logarithms` are those of the factorials.
    """
    center, reach = size * share, 12 * (size * share) ** 0.5 + 12
    first = max(released, 1, int(center - reach))
    count = np.arange(first, min(size, max(first + 1, int(center + reach))) + 1)
    heads = np.clip(mix * size / count, 1e-300, 1 - 1e-12)
    share = min(max(share, 1e-300), 1 - 1e-12)
    drawn = logarithms[size] - logarithms[count] - logarithms[size - count]
    drawn = drawn + count * np.log(share) + (size - count) * np.log1p(-share)
    tossed = logarithms[count] - logarithms[released] - logarithms[count - released]
    tossed = tossed + released * np.log(heads) + (count - released) * np.log1p(-heads)
    return float(np.logaddexp.reduce(drawn + tossed))
