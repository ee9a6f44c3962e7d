"""Columns that another column determines, rule privately: then only the largest count of each line matters.

As a table of a pair, such a relation would be lost in its noise; as a map, a line needs only a few deviations of rows.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.meter import Meter
from tidegate.synthesize.model import Progress, Rows

MOST_MAPS, MOST_CELLS, LARGEST_TABLE = 10, 1_000, 60_000
TABLE_SHARE = 4  # one table gets at most this part of the search's parts
MOST_FAILURES = 4  # tests that may fail before the search ends
COMMON = 0.8  # a value with this share of the rows can be guessed without a map
UNSEEN, LEAST_LINE = (
    0.3,
    2.5,
)  # share of rows in lines that are lost in noise; such a line has fewer deviations than this
CHOICE_ERROR, TEST_DEVIATION = 0.02, 0.005  # in shares of the rows
HOLDS, EXACT = 0.97, 0.995  # shares of the rows


@dataclass(frozen=True, eq=False)
class Map:
    """Column `column` is `values[cell]` for every cell of column `by`, except in a share `error` of the rows."""

    column: int
    by: int
    values: Ints
    error: float


@dataclass(frozen=True, eq=False)
class _Search:
    """The ordered pairs that could be maps, and the rows of each first column in lines that its table cannot show."""

    pairs: list[tuple[int, int]]
    unseen: dict[int, int]
    parts: dict[int, int]


def find_maps(
    margins: list[Margin],
    rows: Rows,
    meter: Meter,
    parts: int,
    n: int,
    progress: Progress,
    *,
    copied: Set[int] = frozenset(),
) -> tuple[list[Map], int]:
    """Return the maps, and the parts that are left. Columns in `copied` are determined by no other.

    The score of a pair is how many rows a function explains: it changes by at most 1 when one row changes.
    """
    shares, columns = [margin.shares() for margin in margins], [margin.column for margin in margins]
    search = _prepare(margins, shares, meter, parts, n, copied)
    choice = meter.parts_for_choice(CHOICE_ERROR * n, len(search.pairs))
    test = meter.parts_for_scalar(TEST_DEVIATION * n)
    maps: list[Map] = []
    left, pairs = parts, search.pairs
    if not pairs or 3 * (choice + test) > parts:
        return maps, left
    explained: dict[tuple[int, int], int] = {}

    def explain(pair: tuple[int, int]) -> int:
        if not explained:
            counts = rows.explained(columns, search.pairs).tolist()
            explained.update(zip(search.pairs, counts, strict=True))
        return explained[pair]

    def scores(among: list[tuple[int, int]]) -> Ints:
        return np.array([explain(pair) - n - search.unseen[pair[0]] for pair in among], np.int64)

    def count_table(left_column: Column, right_column: Column) -> Ints:
        return rows.pair(left_column, right_column).ravel()

    failures = 0
    while pairs and len(maps) < MOST_MAPS and failures < MOST_FAILURES:
        progress("maps", len(maps), MOST_MAPS)
        if left < choice + test:
            break
        chosen = meter.choice(
            f"choice of map {len(maps) + failures + 1}",
            choice,
            partial(scores, pairs),
            sensitivity=1,
        )
        by, column = pair = pairs[chosen]
        explained_rows = meter.scalar(
            f"test of {columns[by].name} to {columns[column].name}",
            test,
            partial(explain, pair),
        )
        left -= choice + test
        base = n * float(shares[column].max())
        if explained_rows < HOLDS * n or explained_rows - base < (n - base) / 2 or left < search.parts[by]:
            failures += 1
            pairs = [other for other in pairs if other != pair]
            continue
        noisy = meter.counts(
            f"map of {columns[by].name} to {columns[column].name}",
            search.parts[by],
            partial(count_table, columns[by], columns[column]),
        )
        left -= search.parts[by]
        values = np.argmax(noisy.reshape(columns[by].cells, columns[column].cells), axis=1).astype(np.int64)
        maps.append(Map(column, by, values, 0.0 if explained_rows >= EXACT * n else 1 - explained_rows / n))
        pairs = [other for other in pairs if other[1] != column and not _closes_cycle(maps, other)]
    return maps, left


def _prepare(
    margins: list[Margin], shares: list[Floats], meter: Meter, parts: int, n: int, copied: Set[int]
) -> _Search:
    pairs, unseen, costs = [], {}, {}
    for index, margin in enumerate(margins):
        cells = margin.column.cells
        costs[index] = min(meter.parts_for_counts(n / (16 * max(cells, 1))), parts // TABLE_SHARE)
        counts = n * shares[index]
        lost = counts < LEAST_LINE * meter.deviation(max(costs[index], 1))
        unseen[index] = round(float(counts[lost].sum()))
    for i, j in permutations(range(len(margins)), 2):
        left, right = margins[i].column.cells, margins[j].column.cells
        if (
            left >= right > 1
            and j not in copied
            and left <= MOST_CELLS
            and left * right <= LARGEST_TABLE
            and shares[j].max() < COMMON
            and unseen[i] < UNSEEN * n
            and costs[i] > 0
        ):
            pairs.append((i, j))
    return _Search(pairs, unseen, costs)


def _closes_cycle(maps: list[Map], pair: tuple[int, int]) -> bool:
    """Return whether a map by pair[0] of pair[1] would make a column depend on itself."""
    sources = {rule.column: rule.by for rule in maps}
    column = pair[0]
    while column in sources:
        column = sources[column]
        if column == pair[1]:
            return True
    return column == pair[1]


def in_order(maps: list[Map]) -> list[Map]:
    """Return the maps so that each comes after the one of the column that it uses."""
    waiting, done = list(maps), []
    targets = {rule.column for rule in maps}
    while waiting:
        ready = [rule for rule in waiting if rule.by not in targets]
        done += ready
        targets -= {rule.column for rule in ready}
        waiting = [rule for rule in waiting if rule not in ready]
    return done
