"""Baskets to recover itemsets from: generated, or drawn with replacement from those of a public file.

For a file the 500 most frequent items are used. Items that are more probable than the breach level in baskets of some size
cannot be protected at that level by any operator: they are left out and named. Baskets of more than 10 items are left out
as well, as in the paper; the others are drawn with replacement, since the claims are about millions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate_papers.randomization.basket_data import Shop, by_size, generate
from tidegate_papers.simulation.baskets import Baskets
from tidegate_papers.simulation.true_supports import read_baskets

ITEMS, LARGEST, SEED = 500, 10, 2002
FILES = {"T10I4D100K": "T10I4D100K.dat", "retail": "retail.dat"}
HOW_TO_GET = (
    "T10I4D100K.dat and retail.dat are those of the FIMI repository (fimi.uantwerpen.be/data); name their folder in "
    "TIDEGATE_DATA."
)


@dataclass(frozen=True)
class Sample:
    """Baskets of 1 to 10 of about 500 items, and what was left out to get them."""

    name: str
    baskets: Baskets
    items: int
    words: str

    @property
    def shares(self) -> dict[int, Fraction]:
        """The shares of the sizes."""
        counts = np.bincount(self.baskets.sizes)
        return {size: Fraction(int(counts[size]), len(self.baskets)) for size in np.flatnonzero(counts).tolist()}


def generated(count: int) -> Sample:
    """Return generated baskets; empty ones are left out."""
    baskets = generate(Shop(), count, seed=1)
    return Sample("generated", select(baskets, np.flatnonzero(baskets.sizes)), Shop().items, f"{count:,} generated")


def from_file(name: str, path: Path, count: int, *, level: Fraction) -> Sample:
    """Draw baskets from a file's short ones."""
    read = read_baskets(path)
    frequent = np.argsort(-np.bincount(read.baskets.items), kind="stable")[:ITEMS]
    likely = _likely(among(read.baskets, frequent), level)
    items = np.delete(frequent, likely)
    short = among(read.baskets, items)
    eligible = np.flatnonzero((short.sizes >= 1) & (short.sizes <= LARGEST))
    drawn = np.random.Generator(np.random.PCG64(SEED)).choice(eligible, count)
    names = ", ".join(map(str, read.names[frequent[likely]].tolist()))
    words = f"{count:,} drawn from the {eligible.size:,} of {len(read.baskets):,} that have 1 to {LARGEST} of {items.size} items"
    return Sample(name, select(short, drawn), items.size, words + (f", items {names} exempted" if names else ""))


def _likely(baskets: Baskets, level: Fraction) -> list[int]:
    """Return the items that are more probable than the level in baskets of some size."""
    items: set[int] = set()
    for size, some in by_size(baskets).items():
        if 1 <= size <= LARGEST:
            items |= set(np.flatnonzero(np.bincount(some.items) > float(level) * len(some)).tolist())
    return sorted(items)


def among(baskets: Baskets, items: NDArray[Any]) -> Baskets:
    """Return the same baskets with these items alone, whose codes are their indexes."""
    index_of = np.full(int(baskets.items.max(initial=0)) + 1, -1, np.int64)
    index_of[items] = np.arange(items.size)
    codes = index_of[baskets.items]
    owner = np.repeat(np.arange(len(baskets)), baskets.sizes)[codes >= 0]
    sizes = np.bincount(owner, minlength=len(baskets))
    return Baskets(np.concatenate([[0], np.cumsum(sizes)]), codes[codes >= 0].astype(np.int32))


def select(baskets: Baskets, indexes: NDArray[Any]) -> Baskets:
    """Return the baskets at these indexes, in this order."""
    sizes = baskets.sizes[indexes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    return Baskets(starts, baskets.items[np.repeat(baskets.starts[indexes], sizes) + inside])
