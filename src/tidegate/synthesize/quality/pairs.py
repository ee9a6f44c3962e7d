"""Columns in pairs: the total variation of their joint table, and the strength of their association in each table."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.policy import Numeric
from tidegate.risk.pmse import total_variation
from tidegate.synthesize.quality.codes import ABSENT, CodedTable
from tidegate.synthesize.quality.columns import by_chance

MOST_BINS = 16  # of a column in a pair, without the one for missing


@dataclass(frozen=True)
class Pair:
    """Two columns. `association` is Cramér's V (original, synthetic); `correlation` is the rank correlation of two numbers.

    `measured` says whether the model has counted the pair; None if its summary is not known.
    """

    columns: tuple[str, str]
    distance: float | None
    expected: float | None
    association: tuple[float, float]
    correlation: tuple[float, float] | None
    measured: bool | None = None

    @property
    def change(self) -> float:
        """How much stronger the association is in the synthetic table."""
        return self.association[1] - self.association[0]

    def to_dict(self) -> dict[str, Any]:
        both = self.correlation
        return {
            "columns": list(self.columns),
            "total_variation": self.distance,
            "expected_by_chance": self.expected,
            "measured": self.measured,
            "cramers_v": {"original": self.association[0], "synthetic": self.association[1]},
            "rank_correlation": None if both is None else {"original": both[0], "synthetic": both[1]},
        }


def pairs_of(
    original: CodedTable, synthetic: Sequence[CodedTable], measured: Collection[frozenset[str]] | None = None
) -> tuple[Pair, ...]:
    """Compare every two columns, on at most 16 bins each. `measured` are the pairs that the model has counted."""
    tables = [original, *synthetic]
    columns = [_Column(name, original, tables) for name in original.names]
    return tuple(_pair(left, right, measured) for left, right in combinations(columns, 2))


def bin_codes(codes: Ints, reference: Ints, *, size: int, ordered: bool, most: int = MOST_BINS) -> Ints:
    """Return the bin of each code. For the data holder only: bins depend on the original's codes, the `reference`.

    Ordered codes are divided at the quantiles of the original. Otherwise its most frequent codes have a bin each, and all
    others share the last one. Missing is a bin of its own, `most`.
    """
    values, amounts = np.unique(reference[(reference >= 0) & (reference < size)], return_counts=True)
    if ordered:
        middle = (np.cumsum(amounts) - amounts / 2) / max(int(amounts.sum()), 1)
        groups = np.floor(middle * most) if len(values) > most else np.arange(len(values))
        starts = values[np.flatnonzero(np.diff(groups, prepend=-1))]
        bins = np.maximum(np.searchsorted(starts, codes, side="right") - 1, 0)
    else:
        few = len(values) < most
        frequent = np.sort(values if few else values[np.argsort(-amounts, kind="stable")[: most - 1]])
        index = np.searchsorted(frequent, codes)
        is_listed = np.append(frequent, ABSENT)[index] == codes
        bins = np.where(is_listed, index, most - 1)
    return np.where(codes < 0, ABSENT, np.where(codes >= size, most, bins))


def cramers_v(table: Any) -> float:
    """Return the association from 0 to 1 of a table of counts, corrected for chance (so that sizes do not matter).

    Reference:
        Bergsma 2013, "A bias-correction for Cramér's V and Tschuprow's T", J. Korean Statistical Society 42.
    """
    filled = np.asarray(table, np.float64)
    filled = filled[filled.sum(axis=1) > 0][:, filled.sum(axis=0) > 0]
    total, (rows, columns) = filled.sum(), filled.shape
    if total < 2 or min(rows, columns) < 2:
        return 0.0
    even = np.outer(filled.sum(axis=1), filled.sum(axis=0)) / total
    phi = float(((filled - even) ** 2 / even).sum()) / total
    by_chance_alone = (rows - 1) * (columns - 1) / (total - 1)
    smaller = min(size - (size - 1) ** 2 / (total - 1) for size in (rows, columns))
    return min(1.0, math.sqrt(max(0.0, phi - by_chance_alone) / (smaller - 1))) if smaller > 1 else 0.0


def rank_correlation(left: Ints, right: Ints) -> float:
    """Return Spearman's correlation of small whole numbers; 0 if one of them does not vary."""
    a, b = _ranks(left), _ranks(right)
    if a.size < 2 or a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.clip(((a - a.mean()) * (b - b.mean())).mean() / (a.std() * b.std()), -1, 1))


def _ranks(codes: Ints) -> Floats:
    amounts = np.bincount(codes)
    return (np.cumsum(amounts) - (amounts - 1) / 2)[codes]


class _Column:
    """One column of all tables, the original first: its bins, and for numbers their dense ranks (-1: no number)."""

    def __init__(self, name: str, original: CodedTable, tables: Sequence[CodedTable]) -> None:
        attribute = original.attributes[name]
        self.name = name
        self.is_number = isinstance(attribute, Numeric)
        reference = original.column(name)
        self.bins = [
            bin_codes(table.column(name), reference, size=attribute.size, ordered=self.is_number) for table in tables
        ]
        self.ranks = [_dense(table.column(name), attribute.size) for table in tables] if self.is_number else []


def _dense(codes: Ints, size: int) -> Ints:
    is_number = (codes >= 0) & (codes < size)
    dense = np.full(len(codes), -1)
    dense[is_number] = np.unique(codes[is_number], return_inverse=True)[1].reshape(-1)
    return dense


def _pair(left: _Column, right: _Column, measured: Collection[frozenset[str]] | None) -> Pair:
    original, *synthetic = (_table(a, b) for a, b in zip(left.bins, right.bins, strict=True))
    empty = not original.sum() or not all(table.sum() for table in synthetic)
    distances = [] if empty else [total_variation(table.ravel(), original.ravel()) for table in synthetic]
    correlations = [_correlation(a, b) for a, b in zip(left.ranks, right.ranks, strict=False)]
    return Pair(
        (left.name, right.name),
        None if empty else float(np.mean(distances)),
        None if empty else by_chance(original, synthetic[0]),
        (cramers_v(original), float(np.mean([cramers_v(table) for table in synthetic]))),
        (correlations[0], float(np.mean(correlations[1:]))) if correlations else None,
        None if measured is None else frozenset((left.name, right.name)) in measured,
    )


def _table(left: Ints, right: Ints) -> Ints:
    both, side = (left >= 0) & (right >= 0), MOST_BINS + 1
    return np.bincount(left[both] * side + right[both], minlength=side * side).reshape(side, side)


def _correlation(left: Ints, right: Ints) -> float:
    both = (left >= 0) & (right >= 0)
    return rank_correlation(left[both], right[both])
