"""The cells on which columns are compared: public ones for each column by itself, a few groups of them for pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Ints
from tidegate.exact import say
from tidegate.policy import Attribute, Category, Numeric
from tidegate.synthesize.quality.codes import ABSENT

MOST_CELLS = 64  # of a column whose policy gives no bins
MOST_GROUPS = 12  # of a column in a pair: 144 cells a pair, so that chance alone stays small
OTHER = "other"


@dataclass(frozen=True)
class Cells:
    """A column's universe cut into cells of neighbouring codes, and one more for missing where that is a value.

    `starts`: the first code of each cell. Public: it comes from the policy, or from the facts that the model was given.
    """

    name: str
    attribute: Attribute
    starts: tuple[int, ...]

    @property
    def missing(self) -> bool:
        return getattr(self.attribute, "missing", "dropped") == "value"

    @property
    def count(self) -> int:
        return len(self.starts) + self.missing

    @property
    def ordered(self) -> bool:
        return isinstance(self.attribute, Numeric)

    def places(self, codes: Ints) -> Ints:
        """The cell of each code; ABSENT stays."""
        firsts = (*self.starts, self.attribute.size) if self.missing else self.starts
        return np.where(codes == ABSENT, ABSENT, np.searchsorted(np.asarray(firsts), codes, side="right") - 1)

    def labels(self) -> list[str]:
        """What each cell is called, for people."""
        found = [_label(self.attribute, first, end) for first, end in zip(self.starts, self._ends, strict=True)]
        return [*found, "missing"] if self.missing else found

    @property
    def _ends(self) -> tuple[int, ...]:
        return (*self.starts[1:], self.attribute.size)


def cells_of(attributes: Mapping[str, Attribute], given: Mapping[str, Sequence[int]] | None = None) -> list[Cells]:
    """The cells of each column: those given, else the policy's."""
    chosen = given or {}
    return [
        Cells(name, attribute, tuple(map(int, chosen[name])) if name in chosen else public_starts(attribute))
        for name, attribute in attributes.items()
    ]


def public_starts(attribute: Attribute, most: int = MOST_CELLS) -> tuple[int, ...]:
    """Where cells start: the policy's bins, each value of a short universe, else `most` cells of equal width."""
    if isinstance(attribute, Numeric) and attribute.cuts:
        return attribute.bin_starts()
    if isinstance(attribute, Category) or attribute.size <= most:
        return tuple(range(attribute.size))
    return tuple(number * attribute.size // most for number in range(most))


def counts(places: Ints, size: int) -> Ints:
    """How many rows lie in each cell."""
    return np.bincount(places[places >= 0], minlength=size)


def grouped(cells: Cells, original: Ints, most: int = MOST_GROUPS) -> Ints:
    """For each cell its group in pairs: neighbours of about equal mass where they are ordered, else the most frequent and
    one for all others. Missing stays a group of its own. Chosen by the original rows: this is for who holds them."""
    plain = original[: len(cells.starts)]
    found = _runs(plain, most) if cells.ordered else _frequent(plain, most)
    return np.append(found, found.max() + 1) if cells.missing else found


def _runs(mass: Ints, most: int) -> Ints:
    if len(mass) <= most:
        return np.arange(len(mass))
    middle = (np.cumsum(mass) - mass / 2) / max(int(mass.sum()), 1)
    _, found = np.unique(np.floor(middle * most), return_inverse=True)
    return np.asarray(found, np.int64)


def _frequent(mass: Ints, most: int) -> Ints:
    if len(mass) <= most:
        return np.arange(len(mass))
    found = np.full(len(mass), most - 1)
    found[np.argsort(-mass, kind="stable")[: most - 1]] = np.arange(most - 1)
    return found


def _label(attribute: Attribute, first: int, end: int) -> str:
    if isinstance(attribute, Category):
        return str(attribute.values[first]) if end == first + 1 else f"{attribute.values[first]} …"
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no cells")
    low, high = say(attribute.value(first), 6), say(attribute.value(end - 1), 6)
    return low if end == first + 1 else f"{low} to {high}"
