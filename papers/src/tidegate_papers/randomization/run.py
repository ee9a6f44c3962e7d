"""All items of the paper: numbers and categories, and sets of items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidegate_papers.item import Item, Result, compare
from tidegate_papers.randomization import breaches, classification, curves, itemsets
from tidegate_papers.randomization import samples as shops
from tidegate_papers.randomization.paper import PUBLISHED

BASKETS = 2_500_000  # enough to distinguish triples of long baskets from chance


@dataclass(frozen=True)
class Reproduction:
    """The items, the data of the figures, and the public files that were missing."""

    items: tuple[Item, ...]
    curves: tuple[curves.Curve, ...] = ()
    accuracies: tuple[classification.Accuracies, ...] = ()
    recoveries: tuple[itemsets.Recovery, ...] = ()
    left_out: tuple[str, ...] = ()

    def __add__(self, other: Reproduction) -> Reproduction:
        """Combine two reproductions, with items in the paper's order."""
        order = {item.id: index for index, item in enumerate(PUBLISHED)}
        return Reproduction(
            tuple(sorted(self.items + other.items, key=lambda item: order[item.id])),
            self.curves + other.curves,
            self.accuracies + other.accuracies,
            self.recoveries + other.recoveries,
            self.left_out + other.left_out,
        )


def reproduce(*, full: bool = False, progress: classification.Progress | None = None) -> Reproduction:
    """Compute values: privacy numbers, reconstruction curves, accuracies at 100% privacy, or with `full` at 25% to 200%."""
    drawn = curves.curves()
    levels = classification.LEVELS if full else (1.0,)
    accuracies = classification.simulate(levels, progress=progress)
    results: dict[str, Result] = {
        **curves.section_2(drawn),
        **classification.section_2(accuracies),
        **breaches.section_4(),
    }
    return Reproduction(_compared(results), tuple(drawn), tuple(accuracies))


def reproduce_sets(
    files: Mapping[str, Path],
    *,
    full: bool = False,
    baskets: int | None = None,
    progress: itemsets.Progress | None = None,
) -> Reproduction:
    """Compute sets: the example, breach levels and recovery, of generated baskets and of the given `shops.FILES`.

    With `full`, 5,000,000 baskets instead of 2,500,000, and also operators under an epsilon of 6.
    """
    count = baskets or (itemsets.CLIENTS if full else BASKETS)
    samples = [partial(shops.generated, count)]
    for name, path in files.items():
        samples.append(partial(shops.from_file, name, path, count, level=itemsets.LEVEL))
    return collect_sets(itemsets.recover_all(samples, limited=full, progress=progress), files)


def collect_sets(done: Sequence[itemsets.Recovery], files: Collection[str]) -> Reproduction:
    """Return the items of finished recoveries, with the example; other files count as left out."""
    results = {**breaches.example(), **breaches.section_3(done), **itemsets.section_3(done)}
    missing = tuple(file for name, file in shops.FILES.items() if name not in files)
    return Reproduction(_compared(results), recoveries=tuple(done), left_out=missing)


def _compared(results: Mapping[str, Result]) -> tuple[Item, ...]:
    return tuple(compare(item, results[item.id]) for item in PUBLISHED if item.id in results)
