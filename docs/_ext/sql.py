"""The SQL reference: the directive ``tidegate-sql`` lists aggregates with their price, and functions, from the grammar itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


@dataclass(frozen=True)
class Aggregate:
    """A row of the reference: forms, an example that the tests plan, the statistic, and how far one unit moves it."""

    forms: str
    example: str
    statistic: str
    one_cell: str
    cells: str


AGGREGATES = (
    Aggregate("`COUNT(*)`, `COUNT(1)`, `COUNT(x)`, `COUNT_IF(c)`", "COUNT(age)", "count", "k", "2k"),
    Aggregate("`COUNT(DISTINCT person key)`", "COUNT(DISTINCT person)", "persons", "1, of all rows", "2 min(k, cells)"),
    Aggregate("`COUNT(DISTINCT x)`", "COUNT(DISTINCT age)", "distinct", "k", "2k"),
    Aggregate(
        "`SUM(x)`",
        "SUM(age)",
        "sum",
        "k times the largest size of x, or its range if that is larger",
        "2k times the largest size",
    ),
    Aggregate("`AVG(x)`", "AVG(age)", "mean", "a sum and, unless it is public, a count", "the same over cells"),
    Aggregate(
        "`VARIANCE`, `VAR_SAMP`, `VAR_POP (x)`",
        "VAR_POP(age)",
        "variance",
        "a count, a sum and a sum of squares",
        "the same over cells",
    ),
    Aggregate(
        "`STDDEV`, `STDDEV_SAMP`, `STDDEV_POP`, `STD (x)`", "STDDEV(age)", "std", "as the variance", "as the variance"
    ),
    Aggregate("`MIN(x)`, `MAX(x)`", "MAX(age)", "max", "k ranks", "k ranks in two cells"),
    Aggregate(
        "`MEDIAN(x)`, `QUANTILE`, `QUANTILE_CONT`, `QUANTILE_DISC`, `APPROX_QUANTILE (x, 0.9)`, `PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)`",
        "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)",
        "quantile",
        "k ranks",
        "k ranks in two cells",
    ),
    Aggregate(
        "`REGR_SLOPE`, `REGR_INTERCEPT`, `COVAR_SAMP`, `COVAR_POP (y, x)`",
        "REGR_SLOPE(age, pay)",
        "regression",
        "a box of five sums",
        "not possible",
    ),
    Aggregate("`CORR`, `REGR_R2 (y, x)`", "CORR(age, pay)", "regression", "the box, and a variance", "not possible"),
    Aggregate("`HISTOGRAM(column)`", "HISTOGRAM(age)", "histogram", "2k", "2k"),
)
CLAUSES = (
    (
        "WITH name AS (...), subqueries in FROM",
        "with aggregates: released numbers; without: merged into the outer query",
    ),
    ("JOIN, LEFT JOIN ... ON | USING", "declared relations of linked tables only ([policy.md](../policy.md))"),
    ("WHERE, FILTER (WHERE ...)", "any expression of the functions below; no subqueries"),
    ("GROUP BY", "columns, expressions, positions, aliases, ALL, ROLLUP, CUBE, GROUPING SETS (each set is charged)"),
    ("HAVING, QUALIFY, ORDER BY, LIMIT, OFFSET, DISTINCT, windows, UNION", "free: they run on released numbers"),
)


def function_names() -> list[str]:
    """Return the names of the functions of a value."""
    from tidegate.tables.expressions import FUNCTIONS, NAMED

    names = {function.sql_name() for function in FUNCTIONS if hasattr(function, "sql_name")}
    return sorted({*names, *(name.upper() for name in NAMED)} - {"TS_OR_DS_TO_DATE", "IF", "CASE"} | {"CASE", "IF"})


def sql_page() -> str:
    """Return the tables of the reference as Markdown."""
    rows = "".join(f"| {row.forms} | {row.one_cell} | {row.cells} |\n" for row in AGGREGATES)
    clauses = "".join(f"| {clause} | {meaning} |\n" for clause, meaning in CLAUSES)
    return (
        f"\n## Aggregates and what they cost\n\n| aggregate | one unit moves it by (one number) | over cells |\n|---|---|---|\n{rows}"
        f"\n## Clauses\n\n| clause | meaning |\n|---|---|\n{clauses}"
        f"\n## Functions of a value\n\n{', '.join(f'`{name}`' for name in function_names())}.\n"
    )


class SqlReference(SphinxDirective):
    """Write the tables into the page."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(sql_page(), allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("tidegate-sql", SqlReference)
    return {"parallel_read_safe": True}
