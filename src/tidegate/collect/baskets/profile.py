"""What a design must know of baskets, from a sample of true ones: their sizes and the maximum supports by size.

The sample must be public, or of persons who gave it for this purpose: a design made from it tells its maximum supports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from tidegate.errors import Unsupported
from tidegate.risk import baskets as risk

COUNTED = 4  # maximum supports of more items are taken for as large as those of four, which they are not above


@dataclass(frozen=True)
class Profile:
    """Shares of sizes, maximum supports of 0 .. m items by size m, and the items left out because they exceed the level."""

    sizes: dict[int, Fraction]
    maximum: dict[int, tuple[Fraction, ...]]
    exempted: dict[int, tuple[str, ...]]
    longer: Fraction  # the share of baskets that are longer than the largest size


def profile_of(transactions: Iterable[Sequence[str]], *, level: Fraction | None, largest: int) -> Profile:
    """The profile of all baskets of 1 .. largest items."""
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
        size: risk.exempted(_shares(group), level=level) if level is not None else () for size, group in kept.items()
    }
    return Profile(
        {size: Fraction(len(group), total) for size, group in kept.items()},
        {size: _maximum(group, set(exempted[size])) for size, group in kept.items()},
        {size: names for size, names in exempted.items() if names},
        1 - Fraction(sum(map(len, kept.values())), total),
    )


def _shares(group: Sequence[tuple[str, ...]]) -> dict[str, Fraction]:
    counts = Counter(item for basket in group for item in basket)
    return {item: Fraction(count, len(group)) for item, count in counts.items()}


def _maximum(group: Sequence[tuple[str, ...]], without: set[str]) -> tuple[Fraction, ...]:
    size = len(group[0])
    others = [tuple(item for item in basket if item not in without) for basket in group]
    found = [Fraction(1)]
    for items in range(1, min(size, COUNTED) + 1):
        counts = Counter(chosen for basket in others for chosen in combinations(basket, items))
        found.append(Fraction(max(counts.values(), default=0), len(group)))
    return risk.completed(found, size)
