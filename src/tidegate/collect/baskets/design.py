"""The best operator for baskets: least variance of the supports of interest, under a breach level and a local loss.

Evfimievski, Srikant, Agrawal and Gehrke 2002 choose among cut-and-paste operators and leave the best select-a-size operator
open. It is searched for each size of baskets (`search.py`) and rounded to the grid that clients draw from so that its limits hold
exactly (`exact_plan`). The best cut-and-paste operators under the same limits are its baselines.

Pooled over sizes, the variance of a support is the mean of the sizes' variances by their shares, so that each size can be designed separately.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from tidegate.collect.baskets import search, transitions
from tidegate.collect.baskets.baselines import Baseline, best_cut_and_paste
from tidegate.collect.baskets.recovery import support_variance
from tidegate.collect.baskets.search import Limits, exact_plan
from tidegate.errors import Infeasible, Unsupported
from tidegate.exact import say
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.risk import baskets

Progress = Callable[[int, int], None]
MINED = 3  # itemsets of up to this many items are of interest
LARGEST = 20
COUNTED = 4  # larger itemsets get the maximum supports of four items, an upper bound
# A profile of short baskets, of 2.4 items on average: the default.
SHORT = {1: 500, 2: 180, 3: 100, 4: 70, 5: 50, 6: 30, 7: 25, 8: 20, 9: 15, 10: 10}  # of 1,000


def short_baskets() -> dict[int, Fraction]:
    """Return the default shares of baskets of 1 .. 10 items."""
    return {size: Fraction(share, 1000) for size, share in SHORT.items()}


def usual_maximum(size: int) -> tuple[Fraction, ...]:
    """Return the default maximum supports of 0 .. size items in baskets of this size.

    The likeliest item is in 4.5% of the baskets of one item, more as the square root of the size; every further item halves it.
    """
    top = min(Fraction(1), Fraction(round(45 * math.sqrt(size)), 1000))
    return (Fraction(1), *(top / 2**further for further in range(size)))


@dataclass(frozen=True)
class Wishes:
    """The limits and the purpose of a design.

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
            raise Unsupported("A design needs a limit.", "Set a breach level, an epsilon, or both.")
        if self.breach is not None and not 0 < self.breach < 1:
            raise Unsupported("The breach level must be a probability above 0 and below 1.")
        if self.epsilon is not None and self.epsilon <= 0:
            raise Unsupported("The largest local loss must be above 0.")
        if not 0 < self.min_support < 1 or self.clients < 1:
            raise Unsupported(
                "The minimum support must be a share above 0 and below 1, and the number of clients 1 or more."
            )
        if not self.sizes or min(self.sizes) < 1 or max(self.sizes) > LARGEST or max(self.sizes) > self.items:
            raise Unsupported(
                f"A design covers baskets of 1 to {min(LARGEST, self.items)} items.", "Leave larger sizes out."
            )
        if min(self.sizes.values()) < 0 or sum(self.sizes.values()) <= 0:
            raise Unsupported("The shares of sizes must be 0 or more, and not all 0.")

    @property
    def interest(self) -> tuple[Fraction, ...]:
        """The itemsets to recover: three items at the minimum support, two at 2.5 times it, one at 10 times it."""
        least = self.min_support
        return (Fraction(1), min(10 * least, Fraction(1)), min(least * 5 / 2, Fraction(1)), least)

    def share(self, size: int) -> Fraction:
        return self.sizes[size] / sum(self.sizes.values())

    def targets(self, size: int) -> list[tuple[Fraction, ...]]:
        """Return partial supports of the itemsets of 1 .. 3 items to recover from baskets of this size."""
        return [baskets.challenging(self.interest[: k + 1]) for k in range(1, min(MINED, size) + 1)]

    def limits(self, size: int) -> Limits:
        maximum = self.maximum.get(size, usual_maximum(size))
        return Limits(self.breach, baskets.from_maximum(baskets.extend_maximum(maximum, size)), self.epsilon)

    def goal(self, size: int) -> search.Goal:
        limits, targets = self.limits(size), self.targets(size)
        return search.Goal(
            size,
            1.0 if self.breach is None else float(self.breach),
            [] if self.breach is None else [[float(share) for share in row] for row in limits.supports],
            [[float(share) for share in target] for target in targets],
            [float(weight) for weight in self.weights[: len(targets)]],
            math.inf if self.epsilon is None else math.exp(float(self.epsilon)),
        )


@dataclass(frozen=True)
class Designed:
    """The plan for one size, its standard errors for 1 .. 3 items (times the square root of the baskets), and its risk.

    same_limits, breach_alone   the best cut-and-paste under the same limits, and under the breach level alone, or None
    """

    plan: SizePlan
    share: Fraction
    deviations: tuple[float, ...]
    risk: baskets.BasketRisk
    same_limits: Baseline | None
    breach_alone: Baseline | None


@dataclass(frozen=True)
class Design:
    """An operator for all sizes, and the errors of what it recovers."""

    wishes: Wishes
    sizes: tuple[Designed, ...]

    @property
    def operator(self) -> SetOperator:
        return SetOperator(self.wishes.items, {size.plan.size: size.plan for size in self.sizes})

    def sigma(self, items: int) -> float:
        """Return the standard error of a recovered support of this many items, from all clients."""
        return self._pooled(items, [size.deviations for size in self.sizes])

    def rival_sigma(self, items: int, *, same_limits: bool = True) -> float:
        """Return the same for cut-and-paste; infinite if it cannot keep the limits for some size."""
        baselines = [size.same_limits if same_limits else size.breach_alone for size in self.sizes]
        return self._pooled(items, [(math.inf,) * MINED if size is None else size.deviations for size in baselines])

    def _pooled(self, items: int, deviations: Sequence[Sequence[float]]) -> float:
        pairs = [
            (float(size.share), all_k[items - 1])
            for size, all_k in zip(self.sizes, deviations, strict=True)
            if size.plan.size >= items
        ]
        return math.sqrt(sum(share * deviation**2 for share, deviation in pairs) / self.wishes.clients)


def design(wishes: Wishes, *, progress: Progress | None = None) -> Design:
    """Design the operator with the least variance that keeps the limits, size by size.

    Guarantee:
        Every plan keeps the breach level and epsilon exactly, verified in rational arithmetic for the drawn probabilities.

    Needs:
        Maximum supports that are true upper bounds; the breach level covers itemsets within them.
    """
    sizes = []
    for number, size in enumerate(sorted(wishes.sizes)):
        if progress is not None:
            progress(number, len(wishes.sizes))
        sizes.append(_designed(wishes, size))
    if progress is not None:
        progress(len(sizes), len(sizes))
    return Design(wishes, tuple(sizes))


def _designed(wishes: Wishes, size: int) -> Designed:
    limits, goal = wishes.limits(size), wishes.goal(size)
    _refuse_likely(wishes, size, limits)
    best = search.search(goal)
    if best is None:
        raise _impossible(size)
    plan = exact_plan([float(chance) for chance in best.keep], Fraction(best.insert), limits)
    risk = baskets.basket_risk(plan.keep, plan.insert, level=_level(wishes), supports=limits.supports)
    alone = None if wishes.breach is None else best_cut_and_paste(goal, unlimited_loss=True)
    return Designed(plan, wishes.share(size), deviations(plan, wishes), risk, best_cut_and_paste(goal), alone)


def deviations(plan: SizePlan, wishes: Wishes) -> tuple[float, ...]:
    """Return the standard errors of recovered supports of 1 .. 3 items, times the square root of the number of baskets."""
    targets = wishes.targets(plan.size)
    phi = transitions.moments(plan.keep, len(targets))
    return tuple(math.sqrt(support_variance(phi, plan.insert, target)) for target in targets)


def _level(wishes: Wishes) -> Fraction:
    return Fraction(1) if wishes.breach is None else wishes.breach


def _refuse_likely(wishes: Wishes, size: int, limits: Limits) -> None:
    """Refuse a breach level below what is known before any report: no operator can keep it."""
    if limits.level is None:
        return
    before = max(baskets.prior(partial) for partial in limits.supports[1:])
    if before >= limits.level:
        raise Infeasible(
            f"In baskets of {size} items, an itemset has probability {say(float(before))} before any report: "
            f"no operator keeps it below {say(float(limits.level))}.",
            "Exempt the items above the level and state the maximum supports of the others.",
            size=size,
        )


def _impossible(size: int) -> Infeasible:
    return Infeasible(
        f"No plan for baskets of {size} items keeps the limits.",
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
    """Return the profile of all baskets of 1 .. largest items, from a sample of true baskets.

    Needs:
        The sample is public, or its persons agreed to this use: a design reveals its maximum supports.
    """
    by_size: dict[int, list[tuple[str, ...]]] = {}
    for basket in transactions:
        items = tuple(sorted(set(basket)))
        by_size.setdefault(len(items), []).append(items)
    by_size.pop(0, None)
    total = sum(map(len, by_size.values()))
    groups = {size: group for size, group in sorted(by_size.items()) if size <= largest}
    if not groups:
        raise Unsupported(f"The sample has no basket of 1 to {largest} items.")
    exempted = {
        size: baskets.exempted(_shares(group), level=level) if level is not None else ()
        for size, group in groups.items()
    }
    return Profile(
        {size: Fraction(len(group), total) for size, group in groups.items()},
        {size: _maximum_supports(group, set(exempted[size])) for size, group in groups.items()},
        {size: names for size, names in exempted.items() if names},
        1 - Fraction(sum(map(len, groups.values())), total),
    )


def _shares(group: Sequence[tuple[str, ...]]) -> dict[str, Fraction]:
    counts = Counter(item for basket in group for item in basket)
    return {item: Fraction(count, len(group)) for item, count in counts.items()}


def _maximum_supports(group: Sequence[tuple[str, ...]], without: set[str]) -> tuple[Fraction, ...]:
    size = len(group[0])
    others = [tuple(item for item in basket if item not in without) for basket in group]
    maximum = [Fraction(1)]
    for items in range(1, min(size, COUNTED) + 1):
        counts = Counter(chosen for basket in others for chosen in combinations(basket, items))
        maximum.append(Fraction(max(counts.values(), default=0), len(group)))
    return baskets.extend_maximum(maximum, size)
