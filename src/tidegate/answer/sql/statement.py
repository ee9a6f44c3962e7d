"""One SELECT: its cores, and the rest of it, which is rehearsed before the charge and run on released numbers after it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from tidegate.answer.request import Query
from tidegate.answer.sql.cells import RANKS, ROW, Numbers, core_table, inventor, is_plain_number
from tidegate.answer.sql.cores import Core
from tidegate.answer.sql.result import SqlResult, simple_types, unique_names
from tidegate.errors import Unsupported
from tidegate.extras import late
from tidegate.tables.expressions import write
from tidegate.tables.scratch import ScratchFailed, scratch

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = late("pyarrow")

INVENTED = 3
REDRAWN, MOST_REDRAWN = 100, 1_000  # repetitions, and rows of a result
NOTES = {
    "chosen": "Cells were chosen by noisy values, so that the largest are probably too high and the smallest too low."
}


@dataclass(frozen=True)
class Statement:
    """One SELECT: cores, and the tree that runs on their tables. A plain one shows groups and measures as they are."""

    tree: Any
    cores: tuple[Core, ...]
    notes: tuple[str, ...]
    plain: bool

    def queries(self) -> Iterator[Query]:
        for core in self.cores:
            for slot in core.slots:
                if slot.public is None:
                    for queries in slot.queries:
                        yield from queries

    def rehearse(self) -> None:
        """Run the tree on tables without cells, and on invented numbers. Whatever fails has a public reason.

        Raises:
            Unsupported: No invention works.
        """
        if any(query.statistic == "histogram" for query in self.queries()):
            if not self.plain:
                raise Unsupported("HISTOGRAM cannot be combined with other columns.", "Use GROUP BY with COUNT(*).")
            return
        random = np.random.default_rng(0)
        for attempt in range(INVENTED):
            tables = {core.name: core_table(core, inventor(core.policy, random)) for core in self.cores}
            if not attempt and not self._works({name: table.slice(0, 0) for name, table in tables.items()}):
                break
            if self._works(tables):
                return
        raise Unsupported(
            "The part of the query that works on released numbers cannot be computed.",
            "Check names, types and functions in SELECT, HAVING and ORDER BY: text is written 'north'.",
        )

    def _works(self, tables: dict[str, pa.Table]) -> bool:
        try:
            scratch().run(write(self.tree), tables)
        except ScratchFailed:
            return False
        return True

    def finish(self, numbers: Callable[[Query], Numbers]) -> SqlResult:
        """Return the result. A failure of arithmetic on released numbers delivers the cells with a note."""
        tables = {core.name: core_table(core, numbers) for core in self.cores}
        tree, bare = self._with_intervals()
        try:
            result = scratch().run(write(tree), tables, seconds=10)
        except (ScratchFailed, Unsupported):
            cells = next(iter(tables.values())).drop_columns([ROW])
            note = "The arithmetic of the query failed on the released numbers; these are the numbers themselves."
            return SqlResult(cells, notes=(note,))
        count = len(result.column_names) - 2 * len(bare) - self._has_rows
        shown, intervals = unique_names(simple_types(result.select(list(range(count))))), {}
        for index, column in enumerate(bare):
            ends = [np.array(result.column(count + 2 * index + end).to_pylist()) for end in range(2)]
            intervals[shown.column_names[column]] = (ends[0], ends[1])
        rows = result.column(len(result.column_names) - 1).to_pylist() if self._has_rows else [0] * result.num_rows
        intervals |= self._computed_intervals(shown, bare, rows, numbers)
        return SqlResult(shown, intervals, self.notes)

    @property
    def _has_rows(self) -> bool:
        """Whether every row of the result is one cell of the core, in any order."""
        start = self.tree.args.get("from_") if isinstance(self.tree, exp.Select) else None
        direct = start is not None and start.this.name in {core.name for core in self.cores}
        return direct and not self.tree.args.get("distinct") and not self.tree.args.get("joins")

    def _computed_intervals(
        self, shown: pa.Table, bare: list[int], rows: list[int], numbers: Callable[[Query], Numbers]
    ) -> dict[str, tuple[Any, Any]]:
        """Return 95% intervals of numbers that were computed: the noise is drawn again around the released numbers, and
        the query is run again. Not for rows that were chosen by noisy values, nor for quantiles."""
        columns = [
            index
            for index, field in enumerate(shown.schema)
            if index not in bare and (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
        ]
        matched = self._has_rows or shown.num_rows == 1
        queries = list(dict.fromkeys(self.queries()))
        if (
            not columns
            or not queries
            or not shown.num_rows
            or self.notes
            or not matched
            or shown.num_rows > MOST_REDRAWN
        ):
            return {}
        answers = {query: numbers(query) for query in queries}
        if any(query.statistic in RANKS or "estimates" in answers[query].stored for query in queries):
            return {}
        random = np.random.default_rng(1)  # a fixed seed: read twice, it says the same

        def again() -> Iterator[dict[str, pa.Table]]:
            for _ in range(REDRAWN):
                numbers_again = {query: answer.redrawn(random) for query, answer in answers.items()}
                yield {core.name: core_table(core, numbers_again.__getitem__) for core in self.cores}

        try:
            results = scratch().run_each(write(self._with_row_numbers(self.tree.copy())), again(), seconds=10)
        except (ScratchFailed, Unsupported):
            return {}
        drawn = [_by_row(result, columns, rows, numbered=self._has_rows) for result in results]
        values = np.array([_floats(shown.column(index)) for index in columns])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a row without a number, such as the first of a LAG
            ends = np.nanpercentile(2 * values - np.array(drawn), [2.5, 97.5], axis=0)
        return {
            shown.column_names[index]: (np.fmin(low, value), np.fmax(high, value))
            for index, low, high, value in zip(columns, *ends, values, strict=True)
            if np.ptp(np.array(drawn)[:, columns.index(index)], axis=0).any()  # a group's label does not vary
        }

    def _with_row_numbers(self, tree: Any) -> Any:
        if self._has_rows:
            tree.append("expressions", exp.alias_(exp.column(ROW, table=tree.args["from_"].this.name), f"_{ROW}"))
        return tree

    def _with_intervals(self) -> tuple[Any, list[int]]:
        """Return the tree with noisy numbers clipped to their public range, and two columns for the interval of each."""
        start = self.tree.args.get("from_") if isinstance(self.tree, exp.Select) else None
        if not self._has_rows or start is None:
            return self.tree, []
        tree, bare = self.tree.copy(), []
        for index, item in enumerate(list(tree.expressions)):
            column = item.this
            measured = isinstance(column, exp.Column) and column.name.startswith("m")
            if measured and column.table == start.this.name and self._has_interval(column.table, column.name):
                bare.append(index)
                item.set("this", exp.column(f"{column.name}_value", table=column.table))
        for index in bare:
            name = self.tree.expressions[index].this.name
            for end in ("low", "high"):
                tree.append(
                    "expressions", exp.alias_(exp.column(f"{name}_{end}", table=start.this.name), f"_{name}_{end}")
                )
        return self._with_row_numbers(tree), bare

    def _has_interval(self, table: str, name: str) -> bool:
        core = next(core for core in self.cores if core.name == table)
        return is_plain_number(core.slots[int(name[1:])])


def _floats(column: pa.ChunkedArray) -> Any:
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def _by_row(result: pa.Table, columns: list[int], rows: list[int], *, numbered: bool) -> Any:
    """Return some columns of a result in the order of rows; NaN for a row that it does not have."""
    simple = simple_types(result)
    values = np.array([_floats(simple.column(index)) for index in columns])
    if not numbered:
        return values
    position = {row: index for index, row in enumerate(simple.column(len(simple.column_names) - 1).to_pylist())}
    chosen = [position.get(row, -1) for row in rows]
    return np.where(np.array(chosen) >= 0, values[:, chosen], np.nan)
