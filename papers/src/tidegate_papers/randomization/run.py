"""The paper, item by item: numbers and categories, and sets of items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidegate_papers.item import Found, Item, compare
from tidegate_papers.randomization import breaches, classification, curves, itemsets
from tidegate_papers.randomization import samples as shops
from tidegate_papers.randomization.paper import PUBLISHED

BASKETS = 2_500_000  # the fewest million that let triples of long baskets be told from chance


@dataclass(frozen=True)
class Reproduction:
    """The items, what the figures show, and the public files that were not there."""

    items: tuple[Item, ...]
    curves: tuple[curves.Curve, ...] = ()
    accuracies: tuple[classification.Accuracies, ...] = ()
    recoveries: tuple[itemsets.Recovery, ...] = ()
    left_out: tuple[str, ...] = ()

    def __add__(self, other: Reproduction) -> Reproduction:
        """Both, items in the paper's order."""
        order = {item.id: place for place, item in enumerate(PUBLISHED)}
        return Reproduction(
            tuple(sorted(self.items + other.items, key=lambda item: order[item.id])),
            self.curves + other.curves,
            self.accuracies + other.accuracies,
            self.recoveries + other.recoveries,
            self.left_out + other.left_out,
        )


def reproduce(*, full: bool = False, progress: classification.Progress | None = None) -> Reproduction:
    """Values: privacy numbers, reconstruction curves, accuracies at 100% privacy; `full`: at 25% to 200%."""
    drawn = curves.curves()
    levels = classification.LEVELS if full else (1.0,)
    accuracies = classification.simulate(levels, progress=progress)
    found: dict[str, Found] = {
        **curves.section_2(drawn),
        **classification.section_2(accuracies),
        **breaches.section_4(),
    }
    return Reproduction(_compared(found), tuple(drawn), tuple(accuracies))


def reproduce_sets(
    files: Mapping[str, Path],
    *,
    full: bool = False,
    baskets: int | None = None,
    progress: itemsets.Progress | None = None,
) -> Reproduction:
    """Sets: the example, breach levels and recovery, of generated baskets and of those files of `shops.FILES` that are given.

    `full`: 5,000,000 baskets in place of 2,500,000, and operators under an epsilon of 6 as well.
    """
    many = baskets or (itemsets.CLIENTS if full else BASKETS)
    samples = [partial(shops.generated, many)]
    for name, path in files.items():
        samples.append(partial(shops.from_file, name, path, many, level=itemsets.LEVEL))
    return sets_told(itemsets.recover_all(samples, limited=full, progress=progress), files)


def sets_told(done: Sequence[itemsets.Recovery], files: Collection[str]) -> Reproduction:
    """The items of recoveries that were done, with the example; files that are not among these were left out."""
    found = {**breaches.example(), **breaches.section_3(done), **itemsets.section_3(done)}
    missing = tuple(file for name, file in shops.FILES.items() if name not in files)
    return Reproduction(_compared(found), recoveries=tuple(done), left_out=missing)


def _compared(found: Mapping[str, Found]) -> tuple[Item, ...]:
    return tuple(compare(item, found[item.id]) for item in PUBLISHED if item.id in found)
