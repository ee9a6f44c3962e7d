"""Simulated observers who try to name the sensitive group from the released records alone.

Each observer scores every group of a data set; a higher score means more suspicion. The area under the ROC curve (AUC) is the
share of ordinary groups, of the same data set or of one without a sensitive group, that a sensitive group outscores: 1 is
always, 1/2 is random guessing. Far below 1/2 reveals as much as far above. `area` adds a confidence interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.audit.releases.worlds import Controlled, Everything, ObservedRelease, World, draw_pair, observe_release
from tidegate.policy import Concealment
from tidegate.release.gate import Gate
from tidegate.release.plan import Plan, make_plan
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.exposure import kullback_leibler

Observer = Callable[[ObservedRelease], Floats]
WORLDS, RECORDS, CONFIDENCE, SEED = 200, 2_000, 0.95, 7
EARLY = 30  # records of a group that are released before its test has much evidence
NO_CONTROL = "none"


@runtime_checkable
class Desk(Protocol):
    """A control whose owner can name groups in private, and which can refuse to open."""

    def show(self, plan: Plan, profile: Floats, world: World) -> ObservedRelease | None:
        """Return what an observer sees of a world when all of it is requested; None if the desk does not open."""
        ...


@dataclass(frozen=True)
class Observation:
    """The success of one observer against one control."""

    test: str
    significance: Fraction | None
    observer: str
    auc: float
    low: float
    high: float
    released: float

    @property
    def betrayed(self) -> bool:
        """Whether the interval excludes a random guess."""
        return not self.low <= 0.5 <= self.high

    def to_dict(self) -> dict[str, Any]:
        level = None if self.significance is None else float(self.significance)
        return {**self.__dict__, "significance": level, "betrayed": self.betrayed}


# Observers. A group without records has no score (nan), unless that reveals it.


def likelihood_ratio(seen: ObservedRelease) -> Floats:
    """Score by ln of how much likelier the group's values are under the true profile than under the baseline."""
    return _scored(seen, seen.by_target(seen.evidence))


def kullback_leibler_p_value(seen: ObservedRelease) -> Floats:
    """Score by the p-value against the baseline: the smallest is the one with the largest 2 n ln2 KL."""
    distances = kullback_leibler(seen.counts, seen.plan.floats)
    return np.asarray(distances * seen.counts.sum(axis=0))


def significant(seen: ObservedRelease) -> Floats:
    """Accuse only groups that are significant at the level of the promise (chi-square), as in the paper."""
    level = float(seen.plan.promise.significance)
    critical = chi_square_critical(seen.plan.values - 1, level)
    statistic = 2 * np.log(2) * np.nan_to_num(kullback_leibler_p_value(seen))
    return np.asarray((statistic >= critical).astype(float))


def convinced(seen: ObservedRelease) -> Floats:
    """Accuse only groups that are more likely sensitive than not, with a prior of one sensitive group."""
    prior = 1 / seen.plan.targets
    return np.asarray((seen.by_target(seen.evidence) > np.log((1 - prior) / prior)).astype(float))


def target_shares(seen: ObservedRelease) -> Floats:
    """Score by the share of the group's records that is waiting, for observers who know the sizes of groups."""
    return np.asarray(1 - seen.counts.sum(axis=0) / seen.sizes)


def early_records(seen: ObservedRelease) -> Floats:
    """Score by the likelihood ratio of the first records of each group, released before a test has much evidence."""
    first = np.concatenate([np.flatnonzero(seen.targets == y)[:EARLY] for y in range(seen.plan.targets)])
    is_early = np.zeros(seen.targets.size, bool)
    is_early[first] = True
    return _scored(seen, seen.by_target(np.where(is_early, seen.evidence, 0.0)))


def drying_up(seen: ObservedRelease) -> Floats:
    """Order: score by how early the group's records were released on average; later ones are waiting."""
    places = np.arange(seen.targets.size) / max(seen.targets.size, 1)
    return -_mean(seen, places, np.ones(seen.targets.size, bool))


def changed_values(seen: ObservedRelease) -> Floats:
    """Order: score by how much less the second half of the group's records resembles the profile than the first half."""
    rank = _rank_in_group(seen)
    half = seen.counts.sum(axis=0)[seen.targets] / 2
    return _mean(seen, seen.evidence, rank < half) - _mean(seen, seen.evidence, rank >= half)


def bursts(seen: ObservedRelease) -> Floats:
    """Timing: score by the share of the group's records released right after another one, so that they had been waiting."""
    waited = np.diff(seen.moments, prepend=-1) == 0
    return _mean(seen, waited.astype(float), np.ones(waited.size, bool))


def values_in_bursts(seen: ObservedRelease) -> Floats:
    """Timing: score by how much the records that had been waiting resemble the profile."""
    return _mean(seen, seen.evidence, np.diff(seen.moments, prepend=-1) == 0)


def runs(seen: ObservedRelease) -> Floats:
    """Order: score by how often a record of the group is followed by another one of it, beyond the group's share."""
    follows = seen.targets[1:] == seen.targets[:-1]
    before = replace(seen, targets=seen.targets[:-1], values=seen.values[:-1])
    return _mean(before, follows.astype(float), np.ones(follows.size, bool)) - _part(seen)


OBSERVERS: dict[str, Observer] = {
    "likelihood ratio": likelihood_ratio,
    "smallest KL p-value": kullback_leibler_p_value,
    "significant": significant,
    "convinced": convinced,
    "shares of groups": target_shares,
    "early records": early_records,
    "drying up": drying_up,
    "changed values": changed_values,
    "bursts": bursts,
    "values in bursts": values_in_bursts,
    "runs": runs,
}


# The audit


def observe(
    plan: Plan,
    profile: Sequence[float] | Sequence[Fraction] | Floats,
    *,
    worlds: int = WORLDS,
    records: int = RECORDS,
    observers: Mapping[str, Observer] = OBSERVERS,
    control: Controlled | Desk = Gate,
    same_data_set: bool = False,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    name: str = "",
) -> list[Observation]:
    """Run every observer against one plan, over pairs of data sets: one with a sensitive group, one without.

    Args:
        profile: The distribution of values in a sensitive group, as weights.
        worlds: The number of pairs of data sets; the same for every plan with these values, targets and seed.
        records: The number of records in a data set. All of them are requested, in a random order.
        control: Decides requests. `Everything` shows what observers can see without control; a faulty control must be
            detected. Data sets for which a `Desk` does not open are left out; there is no result if it never opens.
        same_data_set: Compare the sensitive group with the ordinary groups of its own data set only.

    Guarantee:
        Each interval contains its AUC with probability at least `confidence`, one by one and not all at once.
    """
    weights = np.array([float(weight) for weight in profile])
    shape = weights / weights.sum()
    shares: dict[str, list[float]] = {observer: [] for observer in observers}
    released, opened = 0.0, 0
    for index in range(worlds):
        pair = draw_pair(plan, shape, records, np.random.default_rng([seed, index]))
        views = [_show(plan, shape, world, control) for world in (pair[:1] if same_data_set else pair)]
        if any(view is None for view in views):
            continue
        seen, *calm = [view for view in views if view is not None]
        opened += 1
        released += seen.targets.size / pair[0].cells.size
        for observer, score in observers.items():
            scores = score(seen)
            ordinary = np.concatenate([np.delete(scores, pair[0].sensitive), *map(score, calm)])
            shares[observer].append(outscored_share(float(scores[pair[0].sensitive]), ordinary))
    free = control is Everything
    test = name or (NO_CONTROL if free else " and ".join(plan.promise.tests))
    level = None if free or isinstance(control, Desk) else plan.promise.significance
    return [
        Observation(test, level, observer, *area(values, confidence=confidence), released / opened)
        for observer, values in shares.items()
        if values
    ]


def _show(plan: Plan, profile: Floats, world: World, control: Controlled | Desk) -> ObservedRelease | None:
    if isinstance(control, Desk):
        return control.show(plan, profile, world)
    return observe_release(plan, profile, world, control)


def survey(
    promises: Iterable[Concealment], profile: Sequence[float] | Sequence[Fraction] | Floats, **more: Any
) -> list[Observation]:
    """Run `observe` for many promises over the same data sets, after the same observers without any control.

    Needs:
        Promises with a baseline and shares of the same values and targets.
    """
    plans = [make_plan(promise, promise.baseline, promise.shares) for promise in promises]
    observations = observe(plans[0], profile, **{**more, "control": Everything})
    for plan in plans:
        observations += observe(plan, profile, **more)
    return observations


def as_text(observations: Sequence[Observation]) -> str:
    """Format a table: a line for each control, a column for each observer; * if the interval excludes a random guess."""
    observers = list(dict.fromkeys(observation.observer for observation in observations))
    lines: dict[tuple[str, str], list[str]] = {}
    for observation in observations:
        level = "" if observation.significance is None else f"{float(observation.significance):.0%}"
        row = lines.setdefault((observation.test, level), [observation.test, level, f"{observation.released:.0%}"])
        row.append(
            f"{observation.auc:.2f} ({observation.low:.2f}-{observation.high:.2f}){'*' if observation.betrayed else ' '}"
        )
    rows = [["control", "level", "released", *observers], *lines.values()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _scored(seen: ObservedRelease, scores: Floats) -> Floats:
    return np.where(seen.counts.sum(axis=0) > 0, scores, np.nan)


def _mean(seen: ObservedRelease, amounts: Floats, selected: NDArray[np.bool_]) -> Floats:
    """Return the mean of amounts over the selected records of each target; nan if there is none."""
    number = seen.by_target(selected.astype(float))
    total = seen.by_target(np.where(selected, amounts, 0.0))
    return np.asarray(np.divide(total, number, out=np.full(number.size, np.nan), where=number > 0))


def _rank_in_group(seen: ObservedRelease) -> NDArray[np.int64]:
    """Return for each record how many of its group were released before."""
    rank = np.empty(seen.targets.size, np.int64)
    for y in range(seen.plan.targets):
        own = np.flatnonzero(seen.targets == y)
        rank[own] = np.arange(own.size)
    return rank


def _part(seen: ObservedRelease) -> Floats:
    return np.asarray(seen.counts.sum(axis=0) / max(seen.targets.size, 1))


def outscored_share(sensitive: float, ordinary: Floats) -> float:
    """Return the share of ordinary groups that a sensitive one outscores; a tie counts half, and nan ties with all."""
    if math.isnan(sensitive):
        return 0.5
    above = np.where(np.isnan(ordinary) | (ordinary == sensitive), 0.5, ordinary < sensitive)
    return float(above.mean())


def area(shares: Sequence[float], *, confidence: float) -> tuple[float, float, float]:
    """Return the mean of independent shares, which is the area under the curve, and a confidence interval.

    Guarantee:
        The interval misses the true area with probability at most 1 - confidence, for any number of shares:
        Hoeffding's inequality in its Kullback-Leibler form, for independent numbers between 0 and 1. No normal
        approximation; about twice as wide as one, and never empty at an area of 0 or 1.

    Reference:
        Hoeffding 1963, Theorem 1, equation (2.1).
    """
    mean = math.fsum(shares) / len(shares)
    reach = math.log(2 / (1 - confidence)) / len(shares)
    low = _edge(lambda area: relative_entropy(mean, area) > reach, outside=0.0, inside=mean)
    high = _edge(lambda area: relative_entropy(mean, area) > reach, outside=1.0, inside=mean)
    return mean, low, high


def relative_entropy(seen: float, true: float) -> float:
    """Return the KL divergence of two Bernoulli distributions, in nats."""
    parts = ((seen, true), (1 - seen, 1 - true))
    return math.fsum(a * math.log(a / b) if b else math.inf for a, b in parts if a)


def _edge(excluded: Callable[[float], bool], *, outside: float, inside: float) -> float:
    """Return the end of the interval on one side by bisection, rounded outward."""
    if not excluded(outside):
        return outside
    for _ in range(50):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if excluded(middle) else (outside, middle)
    return outside
