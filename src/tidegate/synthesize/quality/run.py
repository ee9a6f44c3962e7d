"""The story of a quality report: code the rows, tell them apart, compare columns, pairs and one regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.errors import Unsupported
from tidegate.policy import Attribute
from tidegate.synthesize.quality.cells import cells_of
from tidegate.synthesize.quality.codes import Coded, coded, columns_of, comparable
from tidegate.synthesize.quality.combine import Rule, rule_for
from tidegate.synthesize.quality.formula import parse, usual
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
    rows_to_tell_apart,
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
    """Compare synthetic tables with the original. FOR THE DATA HOLDER: computed from true rows and not paid for.

    `original` and each of `synthetic` (one table or several) are Arrow, pandas or polars tables, or tables of an engine.
    `attributes` are the policy's. `cells` gives columns other public cells than the policy's: the first code of each, as
    `Column.starts` has them. `formula` ("income ~ age + sex") is compared by its coefficients; without one, `target` or
    the last column of two values is the outcome. `rule` combines several tables (see combining.py). Classifiers see at
    most `at_most` rows of each table.
    """
    tables = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not tables:
        raise Unsupported("There is no synthetic table to compare.", "Pass a table or a list of tables.")
    rule_for(len(tables), rule)
    shared, left_out = _shared(original, tables, attributes)
    chosen = parse(formula, shared) if formula else usual(shared, target)
    truth, made = coded(original, shared), [coded(table, shared) for table in tables]
    if not truth.rows or not all(table.rows for table in made):
        raise Unsupported("A table without rows cannot be compared.", "Check the source of the tables.")
    parts = cells_of(shared, cells)
    seen = rows_to_tell_apart(truth, made, at_most=at_most)
    return Quality(
        name=name,
        rows=truth.rows,
        made=tuple(table.rows for table in made),
        columns=tuple(shared),
        left_out=left_out,
        separations=_separations(seen, pairwise=pairwise, shuffles=shuffles),
        margins=tuple(margin(one, truth, made) for one in parts),
        pairs=pairs_of(parts, truth, made),
        regression=None if chosen is None else regress(chosen, truth, made, rule=rule),
        notes=tuple(_notes(truth, made, seen)),
    )


def _shared(
    original: Any, tables: Sequence[Any], attributes: Mapping[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, str]]:
    """The columns that every table has and that can be compared, and why others are not."""
    held = [set(columns_of(table)) for table in (original, *tables)]
    wanted = comparable(attributes)
    left_out = {name: "a key or a set" for name in attributes if name not in wanted}
    left_out |= {name: "not in the original table" for name in wanted if name not in held[0]}
    left_out |= {
        n: "not in a synthetic table" for n in wanted if n in held[0] and not all(n in one for one in held[1:])
    }
    shared = {name: attribute for name, attribute in wanted.items() if name not in left_out}
    if not shared:
        raise Unsupported(
            "The tables have no column in common that the policy describes.",
            f"The policy describes {', '.join(wanted) or 'only keys and sets'}.",
        )
    return shared, left_out


def _separations(seen: Rows, *, pairwise: bool, shuffles: int) -> tuple[Separation, ...]:
    if seen.empty:
        return ()
    found = [tree_separation(seen.original, seen.synthetic, shuffles=shuffles)]
    found.append(logistic_separation(seen.original, seen.synthetic))
    if pairwise and len(seen.original.names) > 1:
        found.append(logistic_separation(seen.original, seen.synthetic, pairs=True))
    return tuple(found)


def _notes(truth: Coded, made: Sequence[Coded], seen: Rows) -> list[str]:
    """What was left out or sampled, in sentences."""
    told = []
    for table, whole, lost in zip((seen.original, *seen.synthetic), (truth, *made), seen.incomplete, strict=True):
        which = "the original" if whole is truth else "a synthetic table"
        if lost:
            told.append(f"Trees and logistic regressions leave out {lost:,} rows of {which} without a value somewhere.")
        if table.rows < whole.rows - lost:
            told.append(
                f"Trees and logistic regressions see {table.rows:,} of the {whole.rows - lost:,} rows of {which}."
            )
    if seen.without:
        told.append(f"Trees and logistic regressions leave out {', '.join(seen.without)}: too few rows have a value.")
    if seen.empty:
        told.append("Trees and regressions were not run: no row has a value in every column.")
    return list(dict.fromkeys(told))
