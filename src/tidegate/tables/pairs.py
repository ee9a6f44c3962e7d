"""Counts of all pairs of columns in one query, and rows as codes.

Every column becomes the number of its cell inside the engine (missing has one, or -1 if the row is left out), so that
NULL in the result can only mean "not in this grouping set".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.errors import TooManyCells
from tidegate.policy import Gap
from tidegate.tables.axes import MOST_CELLS, Axis, scatter
from tidegate.tables.codes import NO_GAP, in_cells, with_codes
from tidegate.tables.guard import ask_engine
from tidegate.tables.mappings import DROPPED
from tidegate.tables.table import Table

Pair = tuple[int, int]

HAVE_GROUPING_SETS = {"duckdb", "postgres", "spark", "pyspark"}
SETS_AT_ONCE = 256  # Postgres accepts 4,096; fewer keep the plan small
MOST_CELLS_OF_ALL = 2**27  # 1 GB of counts


def refuse_too_many_pairs(lengths: Mapping[str, int]) -> None:
    """Raise TooManyCells if the counts of all pairs would not fit into memory. `lengths`: the cells of each column."""
    pairs = [length * other_length for length, other_length in combinations(lengths.values(), 2)]
    if sum(pairs) > MOST_CELLS_OF_ALL or max(pairs, default=0) > MOST_CELLS:
        longest = max(lengths, key=lambda name: lengths[name])
        raise TooManyCells(
            f"All pairs of {len(lengths)} columns have {sum(pairs):,} cells, more than the limit of {MOST_CELLS_OF_ALL:,} "
            f"({MOST_CELLS:,} for one pair).",
            f'Declare fewer cells for the long columns; the longest is "{longest}" with {lengths[longest]:,}.',
        )


def refuse_too_many(axes: Sequence[Axis]) -> None:
    """Raise TooManyCells if the counts of all pairs of axes would not fit into memory, without reading a row."""
    refuse_too_many_pairs({axis.name: axis.length for axis in axes})


def count_pairs(table: Table, axes: Sequence[Axis]) -> dict[Pair, Ints]:
    """Return the number of rows in each cell of every two axes i < j, including empty cells."""
    refuse_too_many(axes)
    return dict(count_some_pairs(table, axes, list(combinations(range(len(axes)), 2))))


def count_some_pairs(
    table: Table, axes: Sequence[Axis], pairs: Sequence[Pair], *, at_once: int = SETS_AT_ONCE
) -> Iterator[tuple[Pair, Ints]]:
    """Yield some pairs of axes with their counts, including empty cells; `at_once` of them are in memory."""
    if table.engine not in HAVE_GROUPING_SETS:
        yield from (((i, j), np.asarray(table.count([axes[i], axes[j]]), np.int64)) for i, j in pairs)
        return
    coded = _encode_rows(table, axes)
    for chunk in _parts(pairs, at_once):
        yield from _count_groups(table, coded, axes, chunk).items()


def rows_as_codes(table: Table, axes: Sequence[Axis], *, at_once: int = 65_536) -> Ints:
    """Return the cell of every counted row on each axis (DROPPED if it has none), in arbitrary order: rows by axes."""
    columns = read_columns(table, axes, at_once=at_once)
    return np.stack(columns, axis=1).astype(np.int64) if columns else np.zeros((0, 0), np.int64)


def read_columns(table: Table, axes: Sequence[Axis], *, at_once: int = 65_536) -> list[NDArray[Any]]:
    """Return `rows_as_codes` axis by axis, each in the smallest type that holds its cells."""
    coded = _encode_rows(table, axes)
    kinds = [cell_type(axis.length) for axis in axes]

    def read() -> list[NDArray[Any]]:
        parts: list[list[NDArray[Any]]] = [[np.zeros(0, kind)] for kind in kinds]
        for batch in coded.to_pyarrow_batches(chunk_size=at_once):
            for n, kind in enumerate(kinds):
                parts[n].append(batch.column(f"c{n}").to_numpy(zero_copy_only=False).astype(kind))
        return [np.concatenate(part) for part in parts]

    with table.turn:
        return ask_engine(read, what="reading codes")


def cell_type(cells: int) -> np.dtype[Any]:
    """Return the smallest type of whole numbers that holds the cells of an axis, and DROPPED."""
    return np.dtype(next(kind for kind in (np.int16, np.int32, np.int64) if cells <= np.iinfo(kind).max))


def _encode_rows(table: Table, axes: Sequence[Axis]) -> Any:
    """Return the cells of the counted rows and no other column."""
    names = {f"tidegate_axis_{n}": (axis.name, axis.attribute) for n, axis in enumerate(axes)}
    rows = with_codes(table.counted, names, table.boundary)
    return rows.select(
        **{f"c{n}": _cell(rows[name], axis) for n, (name, axis) in enumerate(zip(names, axes, strict=True))}
    )


def _cell(code: Any, axis: Axis) -> Any:
    """Return the number of a row's cell; it is never NULL."""
    firsts = axis.firsts
    cell = in_cells(code, firsts, range(len(firsts))) if firsts else code
    if isinstance(axis.attribute, Gap):
        cell = ibis.cases((code == NO_GAP, ibis.literal(DROPPED, "int64")), else_=cell)
    return cell.fill_null(axis.missing_cell)


def _count_groups(table: Table, coded: Any, axes: Sequence[Axis], pairs: Sequence[Pair]) -> dict[Pair, Ints]:
    """Count some pairs in one query; in each row of its result two columns have a value."""
    backend = coded.get_backend()
    names = [f"c{n}" for n in sorted({axis_index for pair in pairs for axis_index in pair})]
    sets = ", ".join(f"(c{i}, c{j})" for i, j in pairs)
    inner = backend.compile(coded)  # quoted by Ibis; the text added here contains no user input
    query = f"SELECT {', '.join(names)}, COUNT(*) AS n FROM ({inner}) AS coded GROUP BY GROUPING SETS ({sets})"  # noqa: S608
    schema = ibis.schema(dict.fromkeys([*names, "n"], "int64"))
    with table.turn:
        return ask_engine(
            lambda: _scatter_pairs(backend.sql(query, schema=schema).to_pyarrow(), axes, pairs), what="counting pairs"
        )


def _scatter_pairs(groups: pa.Table, axes: Sequence[Axis], pairs: Sequence[Pair]) -> dict[Pair, Ints]:
    present, values = {}, {}
    for axis_index in sorted({axis_index for pair in pairs for axis_index in pair}):
        column = groups[f"c{axis_index}"].combine_chunks()
        present[axis_index] = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), bool)
        codes = np.asarray(pc.fill_null(column, DROPPED).to_numpy(zero_copy_only=False), np.int64)
        values[axis_index] = np.where((codes >= 0) & (codes < axes[axis_index].length), codes, DROPPED)
    amounts = np.asarray(groups["n"].to_numpy(), np.int64)
    counts = {}
    for i, j in pairs:
        here = np.flatnonzero(present[i] & present[j])
        shape = (axes[i].length, axes[j].length)
        counts[i, j] = scatter(shape, [values[i][here], values[j][here]], amounts[here])
    return counts


def _parts(pairs: Sequence[Pair], size: int) -> Iterator[list[Pair]]:
    remaining = iter(pairs)
    for _ in range(math.ceil(len(pairs) / size)):
        yield list(islice(remaining, size))
