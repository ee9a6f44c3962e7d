"""Columns one by one, on public cells: how many rows would have to change, shares of notable values, and quartiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.exact import say
from tidegate.policy import Attribute, Category, Moment, Numeric
from tidegate.risk.pmse import total_variation
from tidegate.synthesize.quality.codes import ABSENT, CodedTable

MOST_CELLS = 64  # of a column without bins in the policy
QUARTILES = (0.25, 0.5, 0.75)


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


@dataclass(frozen=True)
class ValueShare:
    """The share of rows with one value: the lowest or the highest of the original, or zero."""

    kind: Literal["lowest", "zero", "highest"]
    value: str
    original: float
    synthetic: float


@dataclass(frozen=True)
class Margin:
    """One column: shares of its cells in both tables (the mean of several synthetic ones), and their distance.

    `distance` is the total variation, `expected` the value that chance alone gives between two samples of these sizes. Both are
    None if one of the tables has no value in this column. Numbers and dates also have `values` and `quartiles` (original,
    synthetic).
    """

    column: str
    labels: tuple[str, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float | None
    expected: float | None
    missing: tuple[float, float]
    ordered: bool = False
    values: tuple[ValueShare, ...] = ()
    quartiles: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        shares = zip(self.labels, self.original, self.synthetic, strict=True)
        return {
            "column": self.column,
            "total_variation": self.distance,
            "expected_by_chance": self.expected,
            "missing": {"original": self.missing[0], "synthetic": self.missing[1]},
            "values": [vars(value) for value in self.values],
            "quartiles": [{"original": a, "synthetic": b} for a, b in self.quartiles],
            "cells": [{"label": label, "original": a, "synthetic": b} for label, a, b in shares],
        }


def margin(cells: Cells, original: CodedTable, synthetic: Sequence[CodedTable]) -> Margin:
    """Compare one column."""
    original_counts = counts(cells.cell_of(original.column(cells.name)), cells.count)
    synthetic_counts = [counts(cells.cell_of(table.column(cells.name)), cells.count) for table in synthetic]
    empty = not original_counts.sum() or not all(table.sum() for table in synthetic_counts)
    distance = (
        None if empty else float(np.mean([total_variation(table, original_counts) for table in synthetic_counts]))
    )
    absent = float(np.mean([table.absent(cells.name) for table in synthetic]))
    values, quartiles = _landmarks(cells, original, synthetic)
    return Margin(
        cells.name,
        tuple(cells.labels()),
        tuple(shares(original_counts).tolist()),
        tuple(np.mean([shares(table) for table in synthetic_counts], axis=0).tolist()),
        distance,
        None if empty else by_chance(original_counts, synthetic_counts[0]),
        (original.absent(cells.name), absent),
        cells.ordered,
        values,
        quartiles,
    )


def _landmarks(
    cells: Cells, original: CodedTable, synthetic: Sequence[CodedTable]
) -> tuple[tuple[ValueShare, ...], tuple[tuple[str, str], ...]]:
    """Return the shares of the lowest value, zero and the highest value among rows with a value, and the quartiles."""
    attribute = cells.attribute
    true, *others = (table.present(cells.name) for table in (original, *synthetic))
    if not isinstance(attribute, Numeric) or not true.size or not all(codes.size for codes in others):
        return (), ()
    kinds: dict[Literal["lowest", "zero", "highest"], int] = {"lowest": int(true.min())}
    zero = -attribute.low / attribute.width
    if not isinstance(attribute, Moment) and zero.denominator == 1 and 0 <= zero < attribute.size:
        kinds["zero"] = int(zero)
    kinds["highest"] = int(true.max())
    values = tuple(
        ValueShare(
            kind,
            text_of(attribute, code),
            float((true == code).mean()),
            float(np.mean([(codes == code).mean() for codes in others])),
        )
        for kind, code in kinds.items()
    )
    ends = [np.quantile(codes, QUARTILES, method="inverted_cdf") for codes in (true, np.concatenate(others))]
    return values, tuple((text_of(attribute, int(a)), text_of(attribute, int(b))) for a, b in zip(*ends, strict=True))


def shares(amounts: Any) -> Floats:
    """Return counts as shares of their sum; zeros if there are none."""
    return np.asarray(amounts, np.float64) / max(int(np.sum(amounts)), 1)


def by_chance(left: Any, right: Any) -> float:
    """Return the mean total variation between two samples of the pooled distribution, of the sizes of `left` and `right`.

    Each cell's difference is approximately normal, and E|normal| = sd sqrt(2 / pi).
    """
    n, m = int(np.sum(left)), int(np.sum(right))
    pooled = (np.asarray(left, np.float64) + right) / (n + m)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return float(spread.sum() * math.sqrt(2 / math.pi) / 2)


def text_of(attribute: Attribute, code: int) -> str:
    """Return the value of a code as text."""
    if isinstance(attribute, Category):
        return str(attribute.values[code])
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no cells")
    return str(attribute.label(code)) if isinstance(attribute, Moment) else say(attribute.value(code), 6)


def _label(attribute: Attribute, first: int, end: int) -> str:
    low = text_of(attribute, first)
    if end == first + 1:
        return low
    return f"{low} …" if isinstance(attribute, Category) else f"{low} to {text_of(attribute, end - 1)}"
