"""The learned model: distributions, tables and maps as whole numbers. Everything is drawn from these, now and in later versions.

It contains nothing private: it is a function of the diary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.arrays import Floats, Ints, Ints32, Positions
from tidegate.errors import Unsupported
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import exchange_rows, rake_weights
from tidegate.synthesize.mechanisms.forest.maps import Map
from tidegate.synthesize.mechanisms.forest.pool import GroupTable, Stream, draw_pool
from tidegate.synthesize.mechanisms.forest.raking import LEAST_FACTOR, MOST_FACTOR
from tidegate.synthesize.model import Condition, Summary

VERSION = 1
CHUNK, LEAST_POOL = 100_000, 60_000
GIVEN_CHUNK, TRIES = 25_000, 8  # rows with given codes at once; continuations of each
SWEEPS = 12
OFFERS = 2  # attempted exchanges per drawn row
ERRORS = 2**32  # errors of maps are stored in parts of this
RAREST = 1e-4  # smallest share of rows of a conditional draw
ANYTHING: Condition = {}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted forest: for each column whole weights of its cells; tables that join columns; tables to agree with; maps."""

    columns: tuple[Column, ...]
    shares: tuple[Ints, ...]
    trees: tuple[GroupTable, ...]
    targets: tuple[GroupTable, ...]
    maps: tuple[Map, ...]
    summary: Summary

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Return artificial rows: codes of each column (`size` for missing), rows by columns."""
        chunks = list(self.chunks(rows, seed=seed))
        return np.concatenate(chunks) if chunks else np.zeros((0, len(self.columns)), np.int64)

    def chunks(self, rows: int, *, seed: int, where: Condition = ANYTHING) -> Iterator[Ints]:
        """Yield artificial rows in parts of constant size; with `where`, every row has one of the listed codes in each column.

        Raises:
            Unsupported: Less than one row in 10,000 of the model fits `where`.
        """
        if where:
            yield from self._conditional_chunks(rows, seed, where)
            return
        for number, start in enumerate(range(0, rows, CHUNK)):
            count, stream = min(CHUNK, rows - start), Stream(f"forest/2 {seed} {number}")
            pool = self._pool(count, stream)
            chosen = pool.exchange(pool.sample(count, stream), stream)
            cells = pool.cells[:, chosen[stream.permuted(count)]]
            yield self._codes(cells, stream)

    def draw_given(self, fixed_codes: Mapping[int, Ints], *, seed: int) -> Ints:
        """Return one artificial row for each combination of given codes: the other columns are drawn to fit them.

        For every row, several continuations are drawn along the forest and weighted so that all of them together agree with
        the counted tables; one of them is chosen by its weight.
        """
        size = len(next(iter(fixed_codes.values())))
        parts = []
        for number, start in enumerate(range(0, size, GIVEN_CHUNK)):
            inside = {index: codes[start : start + GIVEN_CHUNK] for index, codes in fixed_codes.items()}
            parts.append(self._continue(inside, Stream(f"forest/2 {seed} given {number}")))
        return np.concatenate(parts) if parts else np.zeros((0, len(self.columns)), np.int64)

    def _continue(self, fixed_codes: Mapping[int, Ints], stream: Stream) -> Ints:
        rows = len(next(iter(fixed_codes.values())))
        fixed = {
            index: np.repeat(self.columns[index].cell_of(codes), TRIES).astype(np.int32)
            for index, codes in fixed_codes.items()
        }
        cells = draw_pool(self.shares, self.trees, rows * TRIES, stream, fixed=fixed)
        skipped = {rule.column for rule in self.maps} | set(fixed_codes)
        free = [n for n in range(len(self.columns)) if n not in skipped]
        goals = [*(table.weights for table in self.targets), *(self.shares[n] for n in free)]
        goals += [table.weights for table in self.trees]
        weights = _rake(self._places(cells, free), goals, SWEEPS).reshape(rows, TRIES)
        marks = stream.below(np.full(rows, 2**32)) / 2**32
        ends = np.cumsum(weights, axis=1)
        chosen = np.minimum((ends <= marks[:, None] * ends[:, -1:]).sum(axis=1), TRIES - 1)
        cells = cells[:, np.arange(rows) * TRIES + chosen]
        self._attach_maps(cells, stream)
        codes = self._codes(cells, stream)
        for index, values in fixed_codes.items():
            codes[:, index] = values
        return codes

    def share(self, where: Condition) -> float:
        """Return the share of the model's rows that fit a condition, from one pool."""
        stream = Stream("forest/2 share")
        pool = self._pool(LEAST_POOL, stream)
        return float(np.cumsum(pool.weights * self._fitting(pool.cells, where))[-1] / np.cumsum(pool.weights)[-1])

    def _conditional_chunks(self, rows: int, seed: int, where: Condition) -> Iterator[Ints]:
        """Weight every row of a pool by the share of its codes that fit, and draw codes among those."""
        number = 0
        while rows > 0:
            stream = Stream(f"forest/2 {seed} where {number}")
            pool = self._pool(CHUNK, stream)
            weights = pool.weights * self._fitting(pool.cells, where)
            # at most the expected number of fitting rows of this pool, so that no row of it is drawn many times
            share = float(np.cumsum(weights)[-1] / np.cumsum(pool.weights)[-1])
            if number == 0 and share < RAREST:
                raise Unsupported(
                    f"The model has less than 1 row in 10,000 that fits the condition (share {share:.2g}).",
                    "Use a wider condition, or draw all rows and select from them.",
                )
            expected = share * CHUNK
            count = min(rows, max(1, int(expected)))
            if expected > 0:
                chosen = _systematic(weights, count, stream)
                yield self._codes(pool.cells[:, chosen[stream.permuted(count)]], stream, where)
                rows -= count
            number += 1

    def _pool(self, rows: int, stream: Stream) -> _Pool:
        size = max(2 * rows, LEAST_POOL)
        cells = draw_pool(self.shares, self.trees, size, stream)
        mapped = {rule.column for rule in self.maps}
        free = [n for n in range(len(self.columns)) if n not in mapped]
        places = self._places(cells, free)
        goals = [*(table.weights for table in self.targets), *(self.shares[n] for n in free)]
        weights = _rake(places, goals, SWEEPS if self.targets else 0)
        self._attach_maps(cells, stream)
        return _Pool(cells, weights, places)

    def _places(self, cells: Ints32, free: list[int]) -> Ints32:
        """Return the cell of each row of a pool in each target, in each margin of `free`, and in each tree."""
        places = np.empty((len(self.targets) + len(free) + len(self.trees), cells.shape[1]), np.int32)
        for number, table in enumerate(self.targets):
            places[number] = table.places(cells)
        places[len(self.targets) : len(self.targets) + len(free)] = cells[free]
        for number, table in enumerate(self.trees, start=len(self.targets) + len(free)):
            places[number] = table.places(cells)
        return places

    def _attach_maps(self, cells: Ints32, stream: Stream) -> None:
        """Replace the cells of mapped columns, which were drawn from their margins, by the maps' values, except for errors."""
        for rule in self.maps:
            errors = round(rule.error * ERRORS)
            keep = (stream.raw(cells.shape[1]) >> np.uint64(32)).astype(np.int64) < errors
            cells[rule.column] = np.where(keep, cells[rule.column], rule.values[cells[rule.by]])

    def _fitting(self, cells: Ints32, where: Condition) -> Floats:
        """Return, for each row of a pool, the share of the codes in its cells that fit."""
        out = np.ones(cells.shape[1])
        for index, codes in where.items():
            firsts, ends = np.array(self.columns[index].firsts), np.array(self.columns[index].ends)
            listed = np.unique(codes)
            fitting = np.searchsorted(listed, ends) - np.searchsorted(
                listed, firsts
            )  # codes outside the column fit nowhere
            out *= (fitting / (ends - firsts))[cells[index]]
        return out

    def _codes(self, cells: Ints32, stream: Stream, where: Condition = ANYTHING) -> Ints:
        drawn = [self._column_codes(n, cells[n], stream, where.get(n)) for n in range(len(self.columns))]
        return np.column_stack(drawn)

    def _column_codes(self, index: int, cells: Ints32, stream: Stream, codes: Ints | None) -> Ints:
        """Draw a code inside each cell, all that fit equally likely."""
        column = self.columns[index]
        firsts, ends = np.array(column.firsts), np.array(column.ends)
        if codes is None:
            return np.asarray(firsts[cells] + stream.below((ends - firsts)[cells]))
        listed = np.unique(codes)
        begins = np.searchsorted(listed, firsts)
        counts = np.searchsorted(listed, ends) - begins
        return np.asarray(listed[begins[cells] + stream.below(counts[cells])])

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON values: whole numbers and text only, apart from the summary."""
        return {
            "version": VERSION,
            "columns": [_column_to_dict(column) for column in self.columns],
            "shares": [share.tolist() for share in self.shares],
            "trees": [_table_to_dict(table) for table in self.trees],
            "targets": [_table_to_dict(table) for table in self.targets],
            "maps": [
                {"column": m.column, "by": m.by, "values": m.values.tolist(), "errors": round(m.error * ERRORS)}
                for m in self.maps
            ],
            "summary": self.summary.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Fitted:
        """Return the model that `to_dict` wrote.

        Raises:
            ValueError: Another version wrote it, or it is damaged.
        """
        if content["version"] != VERSION:
            raise ValueError("The model was written by another version.")
        fitted = cls(
            tuple(_column_from_dict(column) for column in content["columns"]),
            tuple(np.array(share, np.int64) for share in content["shares"]),
            tuple(_table_from_dict(table) for table in content["trees"]),
            tuple(_table_from_dict(table) for table in content["targets"]),
            tuple(
                Map(m["column"], m["by"], np.array(m["values"], np.int64), m["errors"] / ERRORS)
                for m in content["maps"]
            ),
            Summary.from_dict(content["summary"]),
        )
        fitted._check()
        return fitted

    def _check(self) -> None:
        cells = [column.cells for column in self.columns]
        sound = [share.size == count and share.min() >= 0 for share, count in zip(self.shares, cells, strict=True)]
        for table in (*self.trees, *self.targets):
            sound += [table.rows.size == cells[table.left], table.columns.size == cells[table.right]]
            sound += [min(table.rows.min(), table.columns.min(), table.weights.min()) >= 0]
            sound += [table.weights.size == table.shape[0] * table.shape[1], table.weights.sum() > 0]
        for rule in self.maps:
            sound += [rule.values.size == cells[rule.by], rule.values.min() >= 0]
            sound += [rule.values.max() < cells[rule.column], 0 <= rule.error <= 1]
        if not all(sound):
            raise ValueError("The parts of the model do not fit together.")


@dataclass(frozen=True, eq=False)
class _Pool:
    """Weighted rows of cells, and the cell of each row in every table to agree with: (tables, rows)."""

    cells: Ints32
    weights: Floats
    places: Ints32

    def sample(self, rows: int, stream: Stream) -> Positions:
        """Return each row of the pool as often as its weight requires, to within one."""
        return _systematic(self.weights, rows, stream)

    def exchange(self, chosen: Positions, stream: Stream) -> Positions:
        """Exchange rows until margins and counted pairs are nearly those of the whole pool: independent rows would miss them."""
        ends = np.cumsum(self.places.max(axis=1) + 1)
        places = self.places + np.append(0, ends[:-1]).astype(np.int32)[:, None]
        size = int(ends[-1])
        expected = np.zeros(size)
        for table in places:
            expected += np.bincount(table, self.weights, size)
        expected *= chosen.size / np.cumsum(self.weights)[-1]
        over = np.bincount(places[:, chosen].ravel(), minlength=size) - expected
        count = OFFERS * chosen.size
        offers = self.sample(count, stream)[stream.permuted(count)]
        slots = stream.below(np.full(count, chosen.size, np.int64))
        return np.asarray(exchange_rows(chosen, places, over, 1 / (expected + 1), slots, offers))


def _rake(places: Ints32, goals: list[Ints], sweeps: int) -> Floats:
    """Return weights of the rows of a pool with which its counts are near the goals."""
    size = places.shape[1]
    scaled = [goal * (size / goal.sum()) for goal in goals]
    weights = np.ones(size)
    for _ in range(sweeps):
        for number, goal in enumerate(scaled):
            weights = rake_weights(places[number], goal, weights, LEAST_FACTOR, MOST_FACTOR)
    return weights


def _systematic(weights: Floats, rows: int, stream: Stream) -> Positions:
    total = np.cumsum(weights)
    at = (np.arange(rows) + stream.fraction()) / max(rows, 1) * total[-1]
    return np.asarray(np.minimum(np.searchsorted(total, at, side="right"), total.size - 1))


def _column_to_dict(column: Column) -> dict[str, Any]:
    named = {"name": column.name, "size": column.size, "ordered": column.ordered, "missing": column.missing}
    every = len(column.starts) == column.size
    return named if every else {**named, "starts": list(column.starts)}


def _column_from_dict(content: Mapping[str, Any]) -> Column:
    starts = tuple(content.get("starts", range(content["size"])))
    return Column(content["name"], content["size"], starts, ordered=content["ordered"], missing=content["missing"])


def _table_to_dict(table: GroupTable) -> dict[str, Any]:
    labels = {"rows": table.rows.tolist(), "columns": table.columns.tolist()}
    return {"left": table.left, "right": table.right, **labels, "weights": table.weights.ravel().tolist()}


def _table_from_dict(content: Mapping[str, Any]) -> GroupTable:
    rows, columns, weights = (np.array(content[name], np.int64) for name in ("rows", "columns", "weights"))
    return GroupTable(content["left"], content["right"], rows, columns, weights)
