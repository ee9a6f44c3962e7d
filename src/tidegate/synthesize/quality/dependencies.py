"""Columns that another column determines in the original, the rows that break the dependency, and a line for the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.errors import TidegateError
from tidegate.policy import Attribute, Category, Moment, Numeric
from tidegate.policy.synthesis import MOST_FOLLOWED, Follows, followed_texts
from tidegate.policy.toml import write_follows
from tidegate.synthesize.quality.codes import CodedTable

HOLDS = 0.99  # of the original rows
ROWS_PER_VALUE = 5  # of the left column, on average: a column of almost unique values determines everything
MOST_COUNTED = 4_000_000  # pairs of values that are counted in one array


@dataclass(frozen=True)
class Dependency:
    """`column` follows from `by`: in the share `holds` of the original rows, and not in the share `broken` of synthetic rows.

    `line` is the line of [synthesis] that declares it, or empty: then `why` says why there is none. `unseen` are the values
    of `by` that the original does not have; the line gives them the most frequent value of `column`.
    """

    column: str
    by: str
    holds: float
    broken: float | None
    line: str
    why: str = ""
    unseen: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "unseen": list(self.unseen)}


def dependencies_of(original: CodedTable, synthetic: Sequence[CodedTable]) -> tuple[Dependency, ...]:
    """Return every column that a function of another column explains in at least 99% of the original rows.

    Rows without a value in the left column are not counted. The function must explain at least half of the rows that the most
    frequent value of the right column leaves, so that a column with one dominant value does not follow from everything.
    """
    columns = {name: _Column(original.column(name)) for name in original.names}
    maps = []
    for left, right in combinations(original.names, 2):
        for by, column in ((left, right), (right, left)):
            function = _function(columns[by], columns[column])
            if function is not None:
                maps.append((function[1], by, column, function[0]))
    maps.sort(key=lambda entry: (-entry[0], len(columns[entry[1]].values)))  # short lines first
    lines: dict[str, str] = {}
    return tuple(
        _dependency(original, synthetic, columns[by], column, by, codes, holds, lines)
        for holds, by, column, codes in maps
    )


class _Column:
    """The codes of a column in the original, as indexes of the values that occur. Missing is a value; absent rows are -1."""

    def __init__(self, codes: Ints) -> None:
        self.values, indexes, amounts = np.unique(codes, return_inverse=True, return_counts=True)
        self.indexes = indexes.reshape(-1)
        if self.values[0] < 0:
            self.values, amounts, self.indexes = self.values[1:], amounts[1:], self.indexes - 1
        self.descending = np.sort(amounts)[::-1]


def _function(left: _Column, right: _Column) -> tuple[Ints, float] | None:
    """Return the most frequent right code for each left value, and the share of rows that it explains; None if too few."""
    sizes = len(left.values), len(right.values)
    rows = int(left.descending.sum())
    if min(sizes) < 2 or ROWS_PER_VALUE * sizes[0] > rows or right.descending[: sizes[0]].sum() < HOLDS * rows:
        return None
    both = (left.indexes >= 0) & (right.indexes >= 0)
    flat = left.indexes[both] * sizes[1] + right.indexes[both]
    if sizes[0] * sizes[1] <= MOST_COUNTED:
        counts = np.bincount(flat, minlength=sizes[0] * sizes[1]).reshape(sizes)
        best, largest = counts.argmax(axis=1), counts.max(axis=1)
        base, whole = int(counts.sum(axis=0).max()), int(counts.sum())
    else:
        pairs, amounts = np.unique(flat, return_counts=True)
        order = np.lexsort((-amounts, pairs // sizes[1]))
        lines, first = np.unique((pairs // sizes[1])[order], return_index=True)
        best, largest = np.zeros(sizes[0], np.int64), np.zeros(sizes[0], np.int64)
        best[lines], largest[lines] = (pairs % sizes[1])[order][first], amounts[order][first]
        base, whole = int(np.bincount(right.indexes[both]).max(initial=0)), int(amounts.sum())
    missed = whole - int(largest.sum())
    if not whole or missed > (1 - HOLDS) * whole or 2 * missed > whole - base or base == whole:
        return None
    return right.values[best], 1 - missed / whole


def _dependency(
    original: CodedTable,
    synthetic: Sequence[CodedTable],
    left: _Column,
    column: str,
    by: str,
    codes: Ints,
    holds: float,
    lines: dict[str, str],
) -> Dependency:
    known = left.values < original.attributes[by].size  # a missing value has no line
    values, codes = left.values[known], codes[known]
    shares = [_broken(table.column(by), table.column(column), values, codes) for table in synthetic]
    broken = [share for share in shares if share is not None]
    attributes = original.attributes
    why = _obstacle(attributes, column, by, codes, lines)
    line, why, unseen = ("", why, ()) if why else _line(attributes, column, by, values, codes, original)
    if line:
        lines[column] = by
    return Dependency(column, by, holds, float(np.mean(broken)) if broken else None, line, why, unseen)


def _broken(by: Ints, column: Ints, values: Ints, codes: Ints) -> float | None:
    """Return the share of rows with another value, among rows whose left value occurs in the original."""
    index = np.minimum(np.searchsorted(values, by), len(values) - 1)
    known = (values[index] == by) & (column >= 0)
    return float((codes[index] != column)[known].mean()) if known.any() else None


def _obstacle(attributes: Any, column: str, by: str, codes: Ints, lines: dict[str, str]) -> str:
    """Return why the policy cannot have this line beside the others, or an empty text."""
    size = attributes[by].size
    if size > MOST_FOLLOWED:
        return f'"{by}" has {size:,} possible values; a line lists each of them, and at most {MOST_FOLLOWED} fit.'
    if not followed_texts(attributes[by]):
        return f'"{by}" is neither a category nor whole numbers, which a line requires.'
    if (codes >= attributes[column].size).any():
        return f'"{column}" is missing for a value of "{by}", which a line cannot say.'
    if column in lines:
        return f'"{column}" already follows "{lines[column]}" by a line above.'
    if by in lines:
        return f'"{by}" itself follows "{lines[by]}" by a line above.'
    if column in lines.values():
        return f'Another column follows "{column}" by a line above.'
    return ""


def _line(
    attributes: Any, column: str, by: str, values: Ints, codes: Ints, original: CodedTable
) -> tuple[str, str, tuple[str, ...]]:
    texts = followed_texts(attributes[by])
    listed, amounts = np.unique(original.present(column), return_counts=True)
    right = np.full(len(texts), listed[amounts.argmax()])
    right[values] = codes
    is_seen = np.zeros(len(texts), bool)
    is_seen[values] = True
    unseen = tuple(text for text, seen in zip(texts, is_seen, strict=True) if not seen)
    follows = Follows(
        by, {text: _value(attributes[column], int(code)) for text, code in zip(texts, right, strict=True)}
    )
    problem = ""
    try:
        follows.check(column, attributes[column], attributes[by])
    except TidegateError as error:
        problem = error.what
    return ("", problem, ()) if problem else (write_follows(column, follows), "", unseen)


def _value(attribute: Attribute, code: int) -> Any:
    if isinstance(attribute, Category):
        return attribute.values[code]
    if isinstance(attribute, Moment):
        return attribute.label(code).isoformat()
    return attribute.value(code) if isinstance(attribute, Numeric) else None
