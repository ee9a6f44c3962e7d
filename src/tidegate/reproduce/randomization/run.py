"""The paper, item by item: numbers and categories. (Sets of items have a place of their own.)"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.reproduce.item import Found, Item, compare
from tidegate.reproduce.randomization import classification, curves, privacy
from tidegate.reproduce.randomization.paper import PUBLISHED


@dataclass(frozen=True)
class Reproduction:
    """The items, and what the figures show."""

    items: tuple[Item, ...]
    curves: tuple[curves.Curve, ...]
    accuracies: tuple[classification.Accuracies, ...]


def reproduce(*, full: bool = False, progress: classification.Progress | None = None) -> Reproduction:
    """Privacy numbers, reconstruction curves, accuracies at 100% privacy; `full`: at 25% to 200%."""
    drawn = curves.curves()
    levels = classification.LEVELS if full else (1.0,)
    accuracies = classification.simulate(levels, progress=progress)
    found: dict[str, Found] = {
        **curves.section_2(drawn),
        **classification.section_2(accuracies),
        **privacy.section_4(),
    }
    items = tuple(compare(item, found[item.id]) for item in PUBLISHED if item.id in found)
    return Reproduction(items, tuple(drawn), tuple(accuracies))
