"""The best operator for baskets: least variance of the supports of interest, under a breach level and a local loss.

Evfimievski, Srikant, Agrawal and Gehrke 2002 choose among cut-and-paste operators and leave the best select-a-size operator
open. Here it is searched for each size of baskets (`search.py`) and brought to the grid that clients draw from so that its limits hold
exactly (`exact_plan`). The best cut-and-paste operators under the same limits are found beside it.

Pooled over sizes, the variance of a support is the mean of the sizes' variances by their shares, so that each size may be designed by itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from tidegate.collect.baskets import search, transitions
from tidegate.collect.baskets.baselines import Rival, best_cut_and_paste
from tidegate.collect.baskets.recovery import support_variance
from tidegate.collect.baskets.search import Limits, exact_plan
from tidegate.errors import Infeasible, Unsupported
from tidegate.exact import say
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.risk import baskets

Progress = Callable[[int, int], None]
MINED = 3  # itemsets of up to so many items are of interest
LARGEST = 20
COUNTED = 4  # maximum supports of more items are taken for as large as those of four, which they are not above
# A profile of short baskets, of 2.4 items on average: used where none is given.
SHORT = {1: 500, 2: 180, 3: 100, 4: 70, 5: 50, 6: 30, 7: 25, 8: 20, 9: 15, 10: 10}  # of 1,000


def short_baskets() -> dict[int, Fraction]:
    """The shares of baskets of 1 .. 10 items where nothing else is known."""
    return {size: Fraction(share, 1000) for size, share in SHORT.items()}


def usual_maximum(size: int) -> tuple[Fraction, ...]:
    """Maximum supports of 0 .. size items in baskets of this size, where nothing else is known.

    The likeliest item is in 4.5% of the baskets of one item, more as the square root of the size; every further item halves it.
    """
    top = min(Fraction(1), Fraction(round(45 * math.sqrt(size)), 1000))
    return (Fraction(1), *(top / 2**further for further in range(size)))


@dataclass(frozen=True)
class Wishes:
    """What a design must keep and what it is for.

    breach       no look makes an item more probable than this; None: no such limit
    epsilon      the largest local loss between any two baskets of one size; None: no such limit
    sizes        the shares of baskets by their size
    maximum      the maximum supports of 0 .. m items in baskets of each size m
    weights      how much the variances of 1, 2, 3 items count
    """

    items: int
    clients: int
    min_support: Fraction
    breach: Fraction | None = None
    epsilon: Fraction | None = None
    sizes: Mapping[int, Fraction] = field(default_factory=short_baskets)
    maximum: Mapping[int, Sequence[Fraction]] = field(default_factory=dict)
    weights: Sequence[Fraction] = (Fraction(1), Fraction(1), Fraction(1))

    def __post_init__(self) -> None:
        if self.breach is None and self.epsilon is None:
            raise Unsupported("a design needs a limit.", "Give a breach level, an epsilon, or both.")
        if self.breach is not None and not 0 < self.breach < 1:
            raise Unsupported("a breach level is a probability above 0 and below 1.")
        if self.epsilon is not None and self.epsilon <= 0:
            raise Unsupported("the largest local loss must be above 0.")
        if not 0 < self.min_support < 1 or self.clients < 1:
            raise Unsupported("the least support is a share above 0 and below 1, of at least one client.")
        if not self.sizes or min(self.sizes) < 1 or max(self.sizes) > LARGEST or max(self.sizes) > self.items:
            raise Unsupported(
                f"baskets of 1 to {min(LARGEST, self.items)} items can be designed for.", "Cut longer baskets down."
            )
        if min(self.sizes.values()) < 0 or sum(self.sizes.values()) <= 0:
            raise Unsupported("the shares of sizes are 0 or more, not all 0.")

    @property
    def interest(self) -> tuple[Fraction, ...]:
        """The itemsets to recover: three items at the least support, two at 2.5 times it, one at 10 times it."""
        least = self.min_support
        return (Fraction(1), min(10 * least, Fraction(1)), min(least * 5 / 2, Fraction(1)), least)

    def share(self, size: int) -> Fraction:
        return self.sizes[size] / sum(self.sizes.values())

    def targets(self, size: int) -> list[tuple[Fraction, ...]]:
        """Partial supports of the itemsets to recover from baskets of this size, of 1 .. 3 items."""
        return [baskets.challenging(self.interest[: k + 1]) for k in range(1, min(MINED, size) + 1)]

    def limits(self, size: int) -> Limits:
        given = self.maximum.get(size, usual_maximum(size))
        return Limits(self.breach, baskets.from_maximum(baskets.extend_maximum(given, size)), self.epsilon)

    def goal(self, size: int) -> search.Goal:
        limits, targets = self.limits(size), self.targets(size)
        return search.Goal(
            size,
            1.0 if self.breach is None else float(self.breach),
            [] if self.breach is None else [[float(one) for one in row] for row in limits.supports],
            [[float(one) for one in target] for target in targets],
            [float(weight) for weight in self.weights[: len(targets)]],
            math.inf if self.epsilon is None else math.exp(float(self.epsilon)),
        )


@dataclass(frozen=True)
class Designed:
    """The plan for one size, its deviations for 1 .. 3 items (times the square root of the baskets), and its risk.

    rivals   the best cut-and-paste under the same limits, and under the breach level alone; None: there is none
    """

    plan: SizePlan
    share: Fraction
    deviations: tuple[float, ...]
    risk: baskets.BasketRisk
    same_limits: Rival | None
    breach_alone: Rival | None


@dataclass(frozen=True)
class Design:
    """An operator for all sizes, and what it will recover."""

    wishes: Wishes
    sizes: tuple[Designed, ...]

    @property
    def operator(self) -> SetOperator:
        return SetOperator(self.wishes.items, {one.plan.size: one.plan for one in self.sizes})

    def sigma(self, items: int) -> float:
        """The standard deviation of a recovered support of so many items, from all clients."""
        return self._pooled(items, [one.deviations for one in self.sizes])

    def rival_sigma(self, items: int, *, same_limits: bool = True) -> float:
        """The same from cut-and-paste; infinite where some size has none that keeps the limits."""
        rivals = [one.same_limits if same_limits else one.breach_alone for one in self.sizes]
        return self._pooled(items, [(math.inf,) * MINED if one is None else one.deviations for one in rivals])

    def _pooled(self, items: int, deviations: Sequence[Sequence[float]]) -> float:
        pairs = [
            (float(one.share), all_k[items - 1])
            for one, all_k in zip(self.sizes, deviations, strict=True)
            if one.plan.size >= items
        ]
        return math.sqrt(sum(share * deviation**2 for share, deviation in pairs) / self.wishes.clients)


def design(wishes: Wishes, *, progress: Progress | None = None) -> Design:
    """The operator of least variance that keeps the limits, size by size.

    Guarantee  Every plan keeps the breach level and epsilon exactly: verified in rational arithmetic for the probabilities drawn.
    Needs      Maximum supports that are true upper bounds; the breach level speaks of itemsets within them.
    """
    found = []
    for number, size in enumerate(sorted(wishes.sizes)):
        if progress is not None:
            progress(number, len(wishes.sizes))
        found.append(_designed(wishes, size))
    if progress is not None:
        progress(len(found), len(found))
    return Design(wishes, tuple(found))


def _designed(wishes: Wishes, size: int) -> Designed:
    limits, goal = wishes.limits(size), wishes.goal(size)
    _refuse_likely(wishes, size, limits)
    best = search.search(goal)
    if best is None:
        raise _impossible(size)
    plan = exact_plan([float(one) for one in best.keep], Fraction(best.insert), limits)
    risk = baskets.basket_risk(plan.keep, plan.insert, level=_level(wishes), supports=limits.supports)
    alone = None if wishes.breach is None else best_cut_and_paste(goal, unlimited_loss=True)
    return Designed(plan, wishes.share(size), deviations(plan, wishes), risk, best_cut_and_paste(goal), alone)


def deviations(plan: SizePlan, wishes: Wishes) -> tuple[float, ...]:
    """The standard deviations of recovered supports of 1 .. 3 items, times the square root of the number of baskets."""
    targets = wishes.targets(plan.size)
    phi = transitions.moments(plan.keep, len(targets))
    return tuple(math.sqrt(support_variance(phi, plan.insert, target)) for target in targets)


def _level(wishes: Wishes) -> Fraction:
    return Fraction(1) if wishes.breach is None else wishes.breach


def _refuse_likely(wishes: Wishes, size: int, limits: Limits) -> None:
    """A breach level below what is known beforehand cannot be kept by any operator."""
    if limits.level is None:
        return
    before = max(baskets.prior(partial) for partial in limits.supports[1:])
    if before >= limits.level:
        raise Infeasible(
            f"in baskets of {size} items something is {say(float(before))} probable before any report: "
            f"no operator keeps it below {say(float(limits.level))}.",
            "Exempt the items above the level and give the maximum supports of the others.",
            size=size,
        )


def _impossible(size: int) -> Infeasible:
    return Infeasible(
        f"no plan for baskets of {size} items keeps the limits.",
        "Allow a larger epsilon or a higher breach level.",
        size=size,
    )


@dataclass(frozen=True)
class Profile:
    """Shares of sizes, maximum supports of 0 .. m items by size m, and the items left out because they exceed the level."""

    sizes: dict[int, Fraction]
    maximum: dict[int, tuple[Fraction, ...]]
    exempted: dict[int, tuple[str, ...]]
    longer: Fraction  # the share of baskets that are longer than the largest size


def profile_of(transactions: Iterable[Sequence[str]], *, level: Fraction | None, largest: int) -> Profile:
    """The profile of all baskets of 1 .. largest items, from a sample of true ones.

    Needs  The sample is public, or of persons who gave it for this purpose: a design made from it tells its maximum supports.
    """
    by_size: dict[int, list[tuple[str, ...]]] = {}
    for basket in transactions:
        items = tuple(sorted(set(basket)))
        by_size.setdefault(len(items), []).append(items)
    by_size.pop(0, None)
    total = sum(map(len, by_size.values()))
    kept = {size: group for size, group in sorted(by_size.items()) if size <= largest}
    if not kept:
        raise Unsupported(f"no basket of 1 to {largest} items was given.")
    exempted = {
        size: baskets.exempted(_shares(group), level=level) if level is not None else () for size, group in kept.items()
    }
    return Profile(
        {size: Fraction(len(group), total) for size, group in kept.items()},
        {size: _maximum_supports(group, set(exempted[size])) for size, group in kept.items()},
        {size: names for size, names in exempted.items() if names},
        1 - Fraction(sum(map(len, kept.values())), total),
    )


def _shares(group: Sequence[tuple[str, ...]]) -> dict[str, Fraction]:
    counts = Counter(item for basket in group for item in basket)
    return {item: Fraction(count, len(group)) for item, count in counts.items()}


def _maximum_supports(group: Sequence[tuple[str, ...]], without: set[str]) -> tuple[Fraction, ...]:
    size = len(group[0])
    others = [tuple(item for item in basket if item not in without) for basket in group]
    found = [Fraction(1)]
    for items in range(1, min(size, COUNTED) + 1):
        counts = Counter(chosen for basket in others for chosen in combinations(basket, items))
        found.append(Fraction(max(counts.values(), default=0), len(group)))
    return baskets.extend_maximum(found, size)
