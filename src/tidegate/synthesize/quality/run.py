"""The procedure of a quality report: encode the rows, compare columns, pairs, dependencies and uses, separate the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tidegate.errors import Unsupported
from tidegate.policy import Attribute
from tidegate.synthesize.model import Progress, Summary
from tidegate.synthesize.quality.codes import CodedTable, columns_of, comparable, encode
from tidegate.synthesize.quality.columns import cells_of, margin
from tidegate.synthesize.quality.combine import Rule, rule_for
from tidegate.synthesize.quality.dependencies import dependencies_of
from tidegate.synthesize.quality.formula import default_formula, parse
from tidegate.synthesize.quality.pairs import pairs_of
from tidegate.synthesize.quality.regression import regress
from tidegate.synthesize.quality.result import Quality
from tidegate.synthesize.quality.separation import AT_MOST, Rows, rows_to_compare, separate
from tidegate.synthesize.quality.utility import compare_queries, predict


def quality_of(
    original: Any,
    synthetic: Any,
    *,
    attributes: Mapping[str, Attribute],
    name: str = "",
    formula: str = "",
    target: str = "",
    rule: Rule = "auto",
    summary: Summary | None = None,
    cells: Mapping[str, Sequence[int]] | None = None,
    at_most: int = AT_MOST,
    progress: Progress | None = None,
) -> Quality:
    """Compare synthetic tables with the original. FOR THE DATA HOLDER ONLY: computed from true rows and not paid for.

    Args:
        original: An Arrow, pandas or polars table, or a table of an engine.
        synthetic: One such table or several.
        attributes: The policy's attributes.
        formula: A regression ("income ~ age + sex") to compare by its coefficients. Without one, `target` or the last
            column of two values is the outcome.
        target: The column that learners predict, from synthetic and from original rows. Without one, the last column.
        rule: How to combine several tables (see combine.py).
        summary: What is public about the model: the cells that it learned, the pairs that it counted, and its banner.
        cells: Public cells of columns without learned ones, instead of the policy's: the first code of each.
        at_most: The largest number of rows of each table for learners.
    """
    tables = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not tables:
        raise Unsupported("There is no synthetic table to compare.", "Pass a table or a list of tables.")
    rule_for(len(tables), rule)
    shared, left_out = _shared(original, tables, attributes)
    by_target = default_formula(shared, target)
    chosen = parse(formula, shared) if formula else by_target
    show = progress or (lambda stage, done, of: None)
    show("reading", 0, 1)
    original_codes, synthetic_codes = encode(original, shared), [encode(table, shared) for table in tables]
    if not original_codes.rows or not all(table.rows for table in synthetic_codes):
        raise Unsupported("A table without rows cannot be compared.", "Check the source of the tables.")
    both = (original_codes, synthetic_codes)
    columns = cells_of(shared, {**(cells or {}), **(summary.cells if summary else {})})
    rows = rows_to_compare(*both, at_most=at_most)
    show("columns", 0, 1)
    margins = tuple(margin(column, *both) for column in columns)
    show("pairs of columns", 0, 1)
    pairs = pairs_of(*both, None if summary is None else _measured(summary))
    show("dependencies", 0, 1)
    dependencies = dependencies_of(*both)
    separations = () if rows.empty else separate(rows, progress=partial(show, "separating tables"))
    outcome = target or next(reversed(shared))
    prediction = predict(*both, outcome, at_most=at_most, progress=partial(show, f"predicting {outcome}"))
    show("range queries", 0, 1)
    return Quality(
        name=name,
        banner=summary.banner if summary else "",
        rows=original_codes.rows,
        synthetic_rows=tuple(table.rows for table in synthetic_codes),
        columns=tuple(shared),
        left_out=left_out,
        margins=margins,
        pairs=pairs,
        dependencies=dependencies,
        separations=separations,
        prediction=prediction,
        queries=compare_queries(*both),
        regression=None if chosen is None else regress(chosen, *both, rule=rule),
        notes=tuple(_notes(*both, rows)),
    )


def _measured(summary: Summary) -> set[frozenset[str]]:
    """Return the pairs of columns that the model has counted, as a table or as a map."""
    pairs = {frozenset((pair.left, pair.right)) for pair in summary.pairs}
    return pairs | {frozenset((pair.column, pair.by)) for pair in summary.maps}


def _shared(
    original: Any, tables: Sequence[Any], attributes: Mapping[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, str]]:
    """Return the columns that every table has and that can be compared, and why others cannot."""
    columns = [set(columns_of(table)) for table in (original, *tables)]
    countable = comparable(attributes)
    left_out = {name: "a key or a set" for name in attributes if name not in countable}
    left_out |= {name: "not in the original table" for name in countable if name not in columns[0]}
    left_out |= {
        n: "not in a synthetic table"
        for n in countable
        if n in columns[0] and not all(n in names for names in columns[1:])
    }
    shared = {name: attribute for name, attribute in countable.items() if name not in left_out}
    if not shared:
        raise Unsupported(
            "The tables have no column in common that the policy describes.",
            f"The policy describes {', '.join(countable) or 'only keys and sets'}.",
        )
    return shared, left_out


def _notes(original: CodedTable, synthetic: Sequence[CodedTable], rows: Rows) -> list[str]:
    """Return one sentence for everything that was left out or sampled."""
    notes = []
    for table, whole, lost in zip(
        (rows.original, *rows.synthetic), (original, *synthetic), rows.incomplete, strict=True
    ):
        which = "the original" if whole is original else "a synthetic table"
        if lost:
            notes.append(f"Classifiers leave out {lost:,} rows of {which} without a value somewhere.")
        if table.rows < whole.rows - lost:
            notes.append(f"Classifiers use {table.rows:,} of the {whole.rows - lost:,} rows of {which}.")
    if rows.without:
        notes.append(f"Classifiers leave out {', '.join(rows.without)}: too few rows have a value.")
    if rows.empty:
        notes.append("Classifiers were not run: no row has a value in every column.")
    return list(dict.fromkeys(notes))
