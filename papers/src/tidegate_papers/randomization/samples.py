"""Baskets to recover itemsets from: of the generator, or drawn again and again from those of a public file.

Of a file the 500 most frequent items are asked about. Items that are more probable than the breach level in baskets of some
size cannot be held to it by any operator: they are left out, and named. Baskets of more than 10 items are left out as
well, as in the paper; the others are drawn with replacement, since the claims are about millions.
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
    """Baskets of 1 to 10 of some 500 items, and what was left out to get them."""

    name: str
    baskets: Baskets
    items: int
    words: str

    @property
    def shares(self) -> dict[int, Fraction]:
        """The shares of the sizes."""
        many = np.bincount(self.baskets.sizes)
        return {size: Fraction(int(many[size]), len(self.baskets)) for size in np.flatnonzero(many).tolist()}


def generated(many: int) -> Sample:
    """Baskets of the generator; those that came out empty are left out."""
    made = generate(Shop(), many, seed=1)
    return Sample("generated", chosen(made, np.flatnonzero(made.sizes)), Shop().items, f"{many:,} generated")


def from_file(name: str, path: Path, many: int, *, level: Fraction) -> Sample:
    """So many baskets drawn from a file's short ones."""
    read = read_baskets(path)
    frequent = np.argsort(-np.bincount(read.baskets.items), kind="stable")[:ITEMS]
    likely = _likely(among(read.baskets, frequent), level)
    asked = np.delete(frequent, likely)
    short = among(read.baskets, asked)
    kept = np.flatnonzero((short.sizes >= 1) & (short.sizes <= LARGEST))
    drawn = np.random.Generator(np.random.PCG64(SEED)).choice(kept, many)
    names = ", ".join(map(str, read.names[frequent[likely]].tolist()))
    words = (
        f"{many:,} drawn from the {kept.size:,} of {len(read.baskets):,} that have 1 to {LARGEST} of {asked.size} items"
    )
    return Sample(name, chosen(short, drawn), asked.size, words + (f", items {names} exempted" if names else ""))


def _likely(baskets: Baskets, level: Fraction) -> list[int]:
    """The items that are more probable than the level in baskets of some size."""
    found: set[int] = set()
    for size, some in by_size(baskets).items():
        if 1 <= size <= LARGEST:
            found |= set(np.flatnonzero(np.bincount(some.items) > float(level) * len(some)).tolist())
    return sorted(found)


def among(baskets: Baskets, items: NDArray[Any]) -> Baskets:
    """The same baskets with these items alone, whose codes are their places."""
    place = np.full(int(baskets.items.max(initial=0)) + 1, -1, np.int64)
    place[items] = np.arange(items.size)
    codes = place[baskets.items]
    owner = np.repeat(np.arange(len(baskets)), baskets.sizes)[codes >= 0]
    sizes = np.bincount(owner, minlength=len(baskets))
    return Baskets(np.concatenate([[0], np.cumsum(sizes)]), codes[codes >= 0].astype(np.int32))


def chosen(baskets: Baskets, places: NDArray[Any]) -> Baskets:
    """The baskets at these places, in this order."""
    sizes = baskets.sizes[places]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    return Baskets(starts, baskets.items[np.repeat(baskets.starts[places], sizes) + inside])
