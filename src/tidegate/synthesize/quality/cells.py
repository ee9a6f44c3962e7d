"""The cells on which columns are compared: public ones for each column by itself, a few groups of them for pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Ints
from tidegate.exact import say
from tidegate.policy import Attribute, Category, Numeric
from tidegate.synthesize.quality.codes import ABSENT

MOST_CELLS = 64  # of a column without bins in the policy
MOST_GROUPS = 12  # of a column in a pair: 144 cells per pair keep random differences small
OTHER = "other"


@dataclass(frozen=True)
class Cells:
    """A column's codes divided into cells of neighboring codes, with one more cell for missing if that is a value.

    `starts` are the first codes of the cells. They are public: they come from the policy, or from the facts of the model.
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

    def cell_of(self, codes: Ints) -> Ints:
        """Return the cell of each code; ABSENT stays."""
        firsts = (*self.starts, self.attribute.size) if self.missing else self.starts
        return np.where(codes == ABSENT, ABSENT, np.searchsorted(np.asarray(firsts), codes, side="right") - 1)

    def labels(self) -> list[str]:
        """Return a label for each cell."""
        labels = [_label(self.attribute, first, end) for first, end in zip(self.starts, self._ends, strict=True)]
        return [*labels, "missing"] if self.missing else labels

    @property
    def _ends(self) -> tuple[int, ...]:
        return (*self.starts[1:], self.attribute.size)


def cells_of(attributes: Mapping[str, Attribute], starts: Mapping[str, Sequence[int]] | None = None) -> list[Cells]:
    """Return the cells of each column: those in `starts`, else the policy's."""
    chosen = starts or {}
    return [
        Cells(name, attribute, tuple(map(int, chosen[name])) if name in chosen else public_starts(attribute))
        for name, attribute in attributes.items()
    ]


def public_starts(attribute: Attribute, most: int = MOST_CELLS) -> tuple[int, ...]:
    """Return where cells start: the policy's bins, each value of a short column, else `most` cells of equal width."""
    if isinstance(attribute, Numeric) and attribute.cuts:
        return attribute.bin_starts()
    if isinstance(attribute, Category) or attribute.size <= most:
        return tuple(range(attribute.size))
    return tuple(number * attribute.size // most for number in range(most))


def counts(places: Ints, size: int) -> Ints:
    """Return the number of rows in each cell."""
    return np.bincount(places[places >= 0], minlength=size)


def group_cells(cells: Cells, original: Ints, most: int = MOST_GROUPS) -> Ints:
    """Return the group of each cell for pairs of columns. For the data holder only: it depends on the original rows.

    Neighboring cells of about equal mass form a group if the column is ordered. Otherwise the most frequent cells are groups, and
    all others share one. Missing is always its own group.
    """
    plain = original[: len(cells.starts)]
    groups = _runs(plain, most) if cells.ordered else _frequent(plain, most)
    return np.append(groups, groups.max() + 1) if cells.missing else groups


def _runs(mass: Ints, most: int) -> Ints:
    if len(mass) <= most:
        return np.arange(len(mass))
    middle = (np.cumsum(mass) - mass / 2) / max(int(mass.sum()), 1)
    _, groups = np.unique(np.floor(middle * most), return_inverse=True)
    return np.asarray(groups, np.int64)


def _frequent(mass: Ints, most: int) -> Ints:
    if len(mass) <= most:
        return np.arange(len(mass))
    groups = np.full(len(mass), most - 1)
    groups[np.argsort(-mass, kind="stable")[: most - 1]] = np.arange(most - 1)
    return groups


def _label(attribute: Attribute, first: int, end: int) -> str:
    if isinstance(attribute, Category):
        return str(attribute.values[first]) if end == first + 1 else f"{attribute.values[first]} …"
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no cells")
    low, high = say(attribute.value(first), 6), say(attribute.value(end - 1), 6)
    return low if end == first + 1 else f"{low} to {high}"
