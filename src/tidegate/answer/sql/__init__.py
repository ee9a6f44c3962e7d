"""SQL as analysts write it, in three layers.

text.py         text to trees                      compiler.py    queries, subqueries, WITH
views.py        sources, names, joins              cores.py       aggregated SELECTs over rows
measures.py     aggregates as statistics           conditions.py  WHERE and FILTER
statement.py    the rest, on released numbers      cells.py       tables of cells

Cores are measured and charged. Scalar expressions run on the public universe (`tables/universe.py`). Everything above an
aggregate is free: it runs on released numbers in a locked-down database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tidegate.answer.request import Query
from tidegate.answer.sql.cells import Numbers, leaves_out_cells
from tidegate.answer.sql.compiler import Compiler
from tidegate.answer.sql.result import SqlResult
from tidegate.answer.sql.statement import NOTES, Statement
from tidegate.answer.sql.text import read_statements
from tidegate.answer.sql.trees import check_released
from tidegate.errors import TidegateError, Unsupported
from tidegate.policy import Policy
from tidegate.tables.universe import LatestResults, version_of

MOST_CELLS = 10_000
LOG = logging.getLogger("tidegate.answer")
_plans = LatestResults(200)

__all__ = ["SqlPlan", "SqlResult", "parse_sql", "plan_sql"]


@dataclass(frozen=True)
class SqlPlan:
    """The statements of a text, and the queries that they need, each once."""

    text: str
    statements: tuple[Statement, ...]
    queries: tuple[Query, ...]

    @property
    def plain(self) -> bool:
        """Whether the statements show nothing but groups and statistics: the answers themselves are the result."""
        return all(statement.plain for statement in self.statements)

    def finish(self, numbers: Callable[[Query], Numbers]) -> tuple[SqlResult, ...]:
        """Return the tables of the statements from the released answers; none if the answers are the result."""
        return () if self.plain else tuple(statement.finish(numbers) for statement in self.statements)


def plan_sql(text: str, policy: Policy, *, cells: int = MOST_CELLS) -> SqlPlan:
    """Return the plan of one SELECT, or of several that are separated by semicolons. Reads no row.

    Planning takes 2 ms or more, so the latest plans are cached by text and policy.

    Args:
        cells: The largest number of cells of a GROUP BY.
    """
    plan: SqlPlan = _plans.get((version_of(policy), text, cells), lambda: _plan(text, policy, cells))
    return plan


def _plan(text: str, policy: Policy, cells: int) -> SqlPlan:
    statements, problem = [], False
    try:
        for tree in read_statements(text, next(iter(policy.tables), policy.dataset.name)):
            compiler = Compiler(policy, most_cells=cells)
            compiled = compiler.compile(tree)
            check_released(compiled)
            notes = tuple(NOTES[note] for note in sorted(compiler.notes))
            plain = _is_plain(compiled, compiler) and (_has_histogram(compiler) or not _renames(tree))
            statement = Statement(compiled, tuple(compiler.cores), notes, plain)
            if not plain:  # nothing of a plain one runs on released numbers
                statement.rehearse()
            statements.append(statement)
    except (TidegateError, RecursionError) as error:
        if isinstance(error, TidegateError):
            raise
        statements = []
    except Exception as error:  # of the parser: no row was read, so that it is public
        LOG.error("SQL could not be planned: %s", type(error).__name__)
        problem = True
    if problem:
        raise Unsupported("The SQL cannot be read.", "Write it in a simpler form, and report it if it is valid SQL.")
    if not statements:
        raise Unsupported("The SQL is nested too deeply.", "Use fewer parentheses and subqueries.")
    queries = tuple(dict.fromkeys(query for statement in statements for query in statement.queries()))
    if any(query.statistic == "histogram" for query in queries) and not all(part.plain for part in statements):
        raise Unsupported(
            "HISTOGRAM cannot be combined with statements that compute.", "Ask for it in a request of its own."
        )
    return SqlPlan(text, tuple(statements), queries)


def parse_sql(text: str, policy: Policy) -> tuple[Query, ...]:
    """Return the queries of one SELECT, or of several that are separated by semicolons, in their order."""
    return plan_sql(text, policy).queries


def _has_histogram(compiler: Compiler) -> bool:
    return any(slot.measure.query.statistic == "histogram" for core in compiler.cores for slot in core.slots)


def _renames(tree: Any) -> bool:
    """Return whether a SELECT names columns with AS."""
    items = tree.expressions if isinstance(tree, exp.Select) else []
    return any(isinstance(item, exp.Alias) and item.alias != item.this.name for item in items)


def _is_plain(tree: Any, compiler: Compiler) -> bool:
    """Return whether a tree only lists the groups and the measures of one core, in all cells."""
    if not isinstance(tree, exp.Select) or len(compiler.cores) != 1 or len(compiler.cores[0].sets) != 1:
        return False
    core = compiler.cores[0]
    others = [value for name, value in tree.args.items() if name not in ("expressions", "from_")]
    source = tree.args.get("from_")
    if any(others) or source is None or source.this.name != core.name:
        return False
    plain = all(
        slot.public is None and slot.measure.part == "value" and slot.measure.factor == 1 for slot in core.slots
    )
    if not _has_histogram(compiler):  # its answer is the result
        plain = plain and not any(leaves_out_cells(core, position) for position in core.sets[0])
    columns = [item.this.name for item in tree.expressions if isinstance(item.this, exp.Column)]
    measures = [name for name in columns if name.startswith("m")]
    return plain and len(columns) == len(tree.expressions) and len(set(measures)) == len(measures)
