"""The procedure of a quality report: encode the rows, separate them, compare columns, pairs and one regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.errors import Unsupported
from tidegate.policy import Attribute
from tidegate.synthesize.quality.cells import cells_of
from tidegate.synthesize.quality.codes import CodedTable, columns_of, comparable, encode
from tidegate.synthesize.quality.combine import Rule, rule_for
from tidegate.synthesize.quality.formula import default_formula, parse
from tidegate.synthesize.quality.logistic import logistic_separation
from tidegate.synthesize.quality.margins import margin
from tidegate.synthesize.quality.pairs import pairs_of
from tidegate.synthesize.quality.regression import regress
from tidegate.synthesize.quality.result import Quality
from tidegate.synthesize.quality.separation import (
    AT_MOST,
    SHUFFLES,
    Rows,
    Separation,
    rows_to_compare,
    tree_separation,
)


def quality_of(
    original: Any,
    synthetic: Any,
    *,
    attributes: Mapping[str, Attribute],
    name: str = "",
    formula: str = "",
    target: str = "",
    rule: Rule = "auto",
    cells: Mapping[str, Sequence[int]] | None = None,
    pairwise: bool = True,
    shuffles: int = SHUFFLES,
    at_most: int = AT_MOST,
) -> Quality:
    """Compare synthetic tables with the original. FOR THE DATA HOLDER ONLY: computed from true rows and not paid for.

    Args:
        original: An Arrow, pandas or polars table, or a table of an engine.
        synthetic: One such table or several.
        attributes: The policy's attributes.
        formula: A regression ("income ~ age + sex") to compare by its coefficients. Without one, `target` or the last
            column of two values is the outcome.
        rule: How to combine several tables (see combine.py).
        cells: Public cells of columns, instead of the policy's: the first code of each, as in `Column.starts`.
        at_most: The largest number of rows of each table for classifiers.
    """
    tables = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not tables:
        raise Unsupported("There is no synthetic table to compare.", "Pass a table or a list of tables.")
    rule_for(len(tables), rule)
    shared, left_out = _shared(original, tables, attributes)
    chosen = parse(formula, shared) if formula else default_formula(shared, target)
    original_codes, synthetic_codes = encode(original, shared), [encode(table, shared) for table in tables]
    if not original_codes.rows or not all(table.rows for table in synthetic_codes):
        raise Unsupported("A table without rows cannot be compared.", "Check the source of the tables.")
    columns = cells_of(shared, cells)
    rows = rows_to_compare(original_codes, synthetic_codes, at_most=at_most)
    return Quality(
        name=name,
        rows=original_codes.rows,
        synthetic_rows=tuple(table.rows for table in synthetic_codes),
        columns=tuple(shared),
        left_out=left_out,
        separations=_separations(rows, pairwise=pairwise, shuffles=shuffles),
        margins=tuple(margin(column, original_codes, synthetic_codes) for column in columns),
        pairs=pairs_of(columns, original_codes, synthetic_codes),
        regression=None if chosen is None else regress(chosen, original_codes, synthetic_codes, rule=rule),
        notes=tuple(_notes(original_codes, synthetic_codes, rows)),
    )


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


def _separations(rows: Rows, *, pairwise: bool, shuffles: int) -> tuple[Separation, ...]:
    if rows.empty:
        return ()
    separations = [tree_separation(rows.original, rows.synthetic, shuffles=shuffles)]
    separations.append(logistic_separation(rows.original, rows.synthetic))
    if pairwise and len(rows.original.names) > 1:
        separations.append(logistic_separation(rows.original, rows.synthetic, pairs=True))
    return tuple(separations)


def _notes(original: CodedTable, synthetic: Sequence[CodedTable], rows: Rows) -> list[str]:
    """Return one sentence for everything that was left out or sampled."""
    notes = []
    for table, whole, lost in zip(
        (rows.original, *rows.synthetic), (original, *synthetic), rows.incomplete, strict=True
    ):
        which = "the original" if whole is original else "a synthetic table"
        if lost:
            notes.append(
                f"Trees and logistic regressions leave out {lost:,} rows of {which} without a value somewhere."
            )
        if table.rows < whole.rows - lost:
            notes.append(
                f"Trees and logistic regressions use {table.rows:,} of the {whole.rows - lost:,} rows of {which}."
            )
    if rows.without:
        notes.append(f"Trees and logistic regressions leave out {', '.join(rows.without)}: too few rows have a value.")
    if rows.empty:
        notes.append("Trees and regressions were not run: no row has a value in every column.")
    return list(dict.fromkeys(notes))
