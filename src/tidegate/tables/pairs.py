"""All pairs of columns counted in one job, and rows as codes, without moving a row that need not move.

Every column becomes the number of its cell inside the engine (missing has one, or -1 where the row is left out), so that
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

from tidegate.arrays import Ints
from tidegate.errors import TooManyCells
from tidegate.tables.axes import DROPPED, Axis, scatter
from tidegate.tables.codes import in_cells, with_codes
from tidegate.tables.guard import ask_engine
from tidegate.tables.table import MOST_CELLS, Table

Pair = tuple[int, int]

HAVE_GROUPING_SETS = {"duckdb", "postgres", "spark", "pyspark"}
SETS_AT_ONCE = 256  # Postgres takes 4,096; fewer keep the plan small
MOST_CELLS_OF_ALL = 2**27  # a gigabyte of counts


def refuse_too_many_pairs(lengths: Mapping[str, int]) -> None:
    """Raise TooManyCells where the counts of all pairs could not be held. `lengths`: the cells of each column. Public."""
    pairs = [one * other for one, other in combinations(lengths.values(), 2)]
    if sum(pairs) > MOST_CELLS_OF_ALL or max(pairs, default=0) > MOST_CELLS:
        longest = max(lengths, key=lambda name: lengths[name])
        raise TooManyCells(
            f"all pairs of {len(lengths)} columns have {sum(pairs):,} cells; {MOST_CELLS_OF_ALL:,} can be held "
            f"({MOST_CELLS:,} for one pair).",
            f'Give the long columns fewer cells; the longest is "{longest}" with {lengths[longest]:,}.',
        )


def refuse_too_many(axes: Sequence[Axis]) -> None:
    """Raise TooManyCells where the counts of all pairs of axes could not be held. Reads no row."""
    refuse_too_many_pairs({axis.name: axis.length for axis in axes})


def count_pairs(table: Table, axes: Sequence[Axis]) -> dict[Pair, Ints]:
    """For every two axes i < j the rows in each cell of one by the other, empty cells too."""
    refuse_too_many(axes)
    pairs = list(combinations(range(len(axes)), 2))
    if table.engine not in HAVE_GROUPING_SETS:
        return {(i, j): np.asarray(table.count([axes[i], axes[j]]), np.int64) for i, j in pairs}
    coded = _coded(table, axes)
    found: dict[Pair, Ints] = {}
    for some in _parts(pairs, SETS_AT_ONCE):
        found |= _grouped(table, coded, axes, some)
    return found


def rows_as_codes(table: Table, axes: Sequence[Axis], *, at_once: int = 65_536) -> Ints:
    """Every counted row's cell on each axis (DROPPED where it has none), in an order that means nothing: rows by axes."""
    coded = _coded(table, axes)
    names = [f"c{n}" for n in range(len(axes))]
    with table.turn:
        reader = ask_engine(lambda: coded.to_pyarrow_batches(chunk_size=at_once), what="reading codes")
        batches = ask_engine(lambda: [_matrix(batch, names) for batch in reader], what="reading codes")
    return np.concatenate(batches) if batches else np.zeros((0, len(axes)), np.int64)


def _matrix(batch: pa.RecordBatch, names: list[str]) -> Ints:
    columns = [np.asarray(batch.column(name).to_numpy(zero_copy_only=False), np.int64) for name in names]
    return np.stack(columns, axis=1)


def _coded(table: Table, axes: Sequence[Axis]) -> Any:
    """The counted rows with nothing but their cells."""
    names = {f"tidegate_axis_{n}": (axis.name, axis.attribute) for n, axis in enumerate(axes)}
    rows = with_codes(table.counted, names, table.boundary)
    return rows.select(
        **{f"c{n}": _cell(rows[name], axis) for n, (name, axis) in enumerate(zip(names, axes, strict=True))}
    )


def _cell(code: Any, axis: Axis) -> Any:
    """The number of a row's cell as a whole number that is never NULL."""
    firsts = axis.firsts
    return (in_cells(code, firsts, range(len(firsts))) if firsts else code).fill_null(axis.missing_place)


def _grouped(table: Table, coded: Any, axes: Sequence[Axis], pairs: Sequence[Pair]) -> dict[Pair, Ints]:
    """One query: the counts of some pairs; in each row of the result two columns have a value."""
    backend = coded.get_backend()
    names = [f"c{n}" for n in sorted({place for pair in pairs for place in pair})]
    sets = ", ".join(f"(c{i}, c{j})" for i, j in pairs)
    inner = backend.compile(coded)  # quoted by Ibis; what is added here holds nobody's text
    told = f"SELECT {', '.join(names)}, COUNT(*) AS n FROM ({inner}) AS coded GROUP BY GROUPING SETS ({sets})"  # noqa: S608
    schema = ibis.schema(dict.fromkeys([*names, "n"], "int64"))
    with table.turn:
        return ask_engine(
            lambda: _scattered(backend.sql(told, schema=schema).to_pyarrow(), axes, pairs), what="counting pairs"
        )


def _scattered(found: pa.Table, axes: Sequence[Axis], pairs: Sequence[Pair]) -> dict[Pair, Ints]:
    present, values = {}, {}
    for place in sorted({place for pair in pairs for place in pair}):
        column = found[f"c{place}"].combine_chunks()
        present[place] = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), bool)
        codes = np.asarray(pc.fill_null(column, DROPPED).to_numpy(zero_copy_only=False), np.int64)
        values[place] = np.where((codes >= 0) & (codes < axes[place].length), codes, DROPPED)
    amounts = np.asarray(found["n"].to_numpy(), np.int64)
    made = {}
    for i, j in pairs:
        here = np.flatnonzero(present[i] & present[j])
        shape = (axes[i].length, axes[j].length)
        made[i, j] = scatter(shape, [values[i][here], values[j][here]], amounts[here])
    return made


def _parts(pairs: Sequence[Pair], size: int) -> Iterator[list[Pair]]:
    going = iter(pairs)
    for _ in range(math.ceil(len(pairs) / size)):
        yield list(islice(going, size))
