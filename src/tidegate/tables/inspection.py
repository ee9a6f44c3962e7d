"""Exact figures from private rows that the owner of a table should know before others query it.

Nothing here is noisy, charged or recorded. It is for the owner only: no verb calls it, and of the service's routes only the
check of a draft and of a policy, which are for owners and store nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tidegate.errors import did_you_mean
from tidegate.exact import plain
from tidegate.frames import Frames, Row, arrow_table
from tidegate.policy import Attribute, Category, Decimal, EachPerson, Numeric, Policy
from tidegate.tables.csv_reader import Malformed
from tidegate.tables.engines import duckdb
from tidegate.tables.guard import ask_engine
from tidegate.tables.positions import is_coded
from tidegate.tables.table import CODED, Table

WARNING = "NOT FOR PUBLICATION: exact figures from private data"
MOST_LABELS = 10
SHORTEST_HINT = 4  # codes of two or three letters resemble each other by chance
MOST_OFF = 2  # a number of records that is off by a larger factor is a problem
MOST_OUTSIDE = 0.01  # a larger fraction of rows outside the universe is a problem


@dataclass(frozen=True)
class Label:
    """A value that the policy does not list, and the listed value that it probably stands for."""

    value: Any
    rows: int
    nearest: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "rows": self.rows, "nearest": self.nearest or None}


@dataclass(frozen=True)
class Column:
    """One declared column. `problems` lists what would make answers about it wrong."""

    name: str
    type: str
    rows: int
    missing: int
    distinct: int
    outside: dict[str, int] = field(default_factory=dict)
    unlisted: tuple[Label, ...] = ()
    absent: tuple[Any, ...] = ()  # listed values that no row has

    @property
    def problems(self) -> list[str]:
        problems = []
        outside = sum(count for side, count in self.outside.items() if side != "other")  # which have their own value
        unreadable = self.outside.get("unreadable", 0)
        is_problem = self.rows and outside > MOST_OUTSIDE * self.rows
        if is_problem and outside > unreadable:
            share = (outside - unreadable) / self.rows
            problems.append(f"{share:.1%} of the rows are outside the values that the policy declares.")
        if is_problem and unreadable:
            share = unreadable / self.rows
            problems.append(
                f"{share:.1%} of the rows have a value that cannot be read. It counts as missing. "
                "Numbers are read as 1234.5, dates as 2024-12-31, times as 18:30."
            )
        if self.absent:
            problems.append(f"No row has {', '.join(repr(value) for value in self.absent)}, which the policy lists.")
        return problems

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.name,
            "type": self.type,
            "missing": self.missing,
            "distinct": self.distinct,
            "outside": self.outside,
            "unlisted": [label.to_dict() for label in self.unlisted],
            "absent": list(self.absent),
            "problems": self.problems,
        }


@dataclass(frozen=True)
class Persons:
    """The persons in a table whose unit is a person."""

    key: str
    at_most: int
    persons: int
    without_key: int
    above: int
    rows_lost: int

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class Inspection(Frames):
    """A table compared with its policy."""

    rows: int
    declared: int | None
    columns: tuple[Column, ...]
    persons: Persons | None = None
    malformed: Malformed | None = None  # of a CSV file
    records: int | None = None  # about how many rows the policy declares

    @property
    def problems(self) -> list[str]:
        """Everything that would make answers wrong, as sentences."""
        counted, unit = (self.persons.persons, "persons") if self.persons else (self.rows, "rows")
        problems = []
        if self.declared is not None and self.declared != counted:
            problems.append(f"The policy declares {self.declared:,} {unit}, but the source has {counted:,}.")
        if self.records is not None and not self.rows <= MOST_OFF * self.records <= MOST_OFF**2 * self.rows:
            problems.append(
                f"The policy declares about {self.records:,} rows (`records`), but the source has {self.rows:,}: expected errors are wrong."
            )
        return problems + [
            f'Column "{column.name}": {problem}' for column in self.columns for problem in column.problems
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "warning": WARNING,
            "rows": self.rows,
            "declared": self.declared,
            "persons": self.persons.to_dict() if self.persons else None,
            "malformed": self.malformed.to_dict() if self.malformed else None,
            "columns": [column.to_dict() for column in self.columns],
            "problems": self.problems,
        }

    def to_arrow(self) -> pa.Table:
        """Return one row per declared column. Exact: for the owner only."""
        return arrow_table(self._columns(), {"below": int, "above": int, "unlisted": int})

    def _columns(self) -> list[Row]:
        return [
            {
                "column": column.name,
                "type": column.type,
                "missing": column.missing,
                "distinct": column.distinct,
                **{side: column.outside.get(side) for side in ("below", "above")},
                "unlisted": column.outside.get("unlisted", column.outside.get("other")),
                "problems": " ".join(column.problems) or None,
            }
            for column in self.columns
        ]

    def _repr_html_(self) -> str:
        from tidegate.html.notebook import show, table_of

        headers = {name: name for name in ("column", "type", "missing", "distinct", "below", "above", "unlisted")}
        view = {"title": WARNING, "caption": f"{self.rows:,} rows compared with the policy."}
        tables = [table_of(self._columns(), headers)]
        return show({**view, "tables": tables, "notes": self.problems or ["The data matches the policy."]})


def inspect(table: Table) -> Inspection:
    """Compare a table with its policy, row by row, in the engine. Exact: for the owner only."""
    source, policy = table.source, table.policy
    rows = int(_fetch_row(table, source.aggregate(n=source.count()))["n"])
    snapshots = duckdb.snapshots_of(source) if table.engine == "duckdb" else ()
    malformed = snapshots[0].malformed if snapshots else None
    columns = [_column(table, name, attribute, rows) for name, attribute in policy.attributes.items()]
    if malformed:
        columns = [_with_unreadable(column, malformed.values.get(column.name, 0)) for column in columns]
    dataset = policy.dataset
    return Inspection(rows, dataset.rows, tuple(columns), _persons(table, policy), malformed, dataset.records)


def _with_unreadable(column: Column, values: int) -> Column:
    """Return a column of a CSV file: a text that does not have the declared type is outside, not missing."""
    return replace(column, missing=column.missing - values, outside={**column.outside, "unreadable": values})


def _column(table: Table, name: str, attribute: Attribute, rows: int) -> Column:
    column = table.source[name]
    kind = str(column.type())
    is_number = isinstance(attribute, Decimal) or not is_coded(attribute)  # the codes of a decimal are clamped already
    if isinstance(attribute, Numeric) and is_number and column.type().is_numeric():
        return _number(table, name, attribute, rows, kind)
    counts = _fetch_row(table, table.source.aggregate(there=column.count(), distinct=column.nunique()))
    counts_by_name: dict[str, Any] = {"missing": rows - int(counts["there"]), "distinct": int(counts["distinct"])}
    if isinstance(attribute, Numeric):
        coded = table.coded(name)
        inside = int(_fetch_row(table, coded.aggregate(n=coded[CODED].count()))["n"])
        filled = rows if getattr(attribute, "missing", "") == "lowest" else int(counts["there"])
        return Column(name, kind, rows, **counts_by_name, outside={"outside": filled - inside})
    if not isinstance(attribute, Category):
        return Column(name, kind, rows, **counts_by_name)
    coded = table.coded(name)
    other = attribute.outside == "other"
    unlisted = coded.filter((coded[CODED] == len(attribute.listed)) if other else coded[CODED].isnull())
    unlisted = unlisted.filter(unlisted[name].notnull())
    outside = int(_fetch_row(table, unlisted.aggregate(n=unlisted.count()))["n"])
    present = coded.filter(coded[CODED].notnull()).group_by(CODED).aggregate(n=lambda rows: rows.count())
    with table.turn:
        present_codes = set(ask_engine(present.to_pyarrow, what="checking the data")[CODED].to_pylist())
    absent = tuple(value for code, value in enumerate(attribute.listed) if code not in present_codes)
    labels = _unlisted(table, name, attribute, unlisted)
    sides = {"other" if other else "unlisted": outside}
    return Column(name, kind, rows, **counts_by_name, outside=sides, unlisted=labels, absent=absent)


def _number(table: Table, name: str, attribute: Numeric, rows: int, kind: str) -> Column:
    column = table.source[name]
    missing = column.isnull() | (column.isnan() if column.type().is_floating() else False)
    low, high = _bound(attribute.low), _bound(attribute.high)
    counts = _fetch_row(
        table,
        table.source.aggregate(
            missing=missing.sum(),
            below=(~missing & (column < low)).sum(),
            above=(~missing & (column > high)).sum(),
            distinct=column.nunique(),
        ),
    )
    outside = {side: int(counts[side] or 0) for side in ("below", "above")}
    return Column(name, kind, rows, int(counts["missing"] or 0), int(counts["distinct"]), outside)


def _bound(value: Any) -> Any:
    number = plain(value)
    return int(number) if number == int(number) else float(number)


def _unlisted(table: Table, name: str, attribute: Category, unlisted: Any) -> tuple[Label, ...]:
    """Return the most frequent values that are not listed."""
    groups = unlisted.group_by(value=unlisted[name]).aggregate(n=lambda rows: rows.count())
    top = groups.order_by([groups.n.desc(), groups.value]).limit(MOST_LABELS)
    with table.turn:
        frequent_values = ask_engine(top.to_pyarrow, what="looking for unlisted values").to_pylist()
    known = [str(value) for value in attribute.listed]
    labels = [(_shown(row["value"]), int(row["n"])) for row in frequent_values]
    return tuple(Label(label, rows, _nearest(label, known)) for label, rows in labels)


def _shown(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _nearest(value: str, known: list[str]) -> str:
    folded = {name.strip().casefold(): name for name in known}
    if value.strip().casefold() in folded:
        return folded[value.strip().casefold()]
    if len(value.strip()) < SHORTEST_HINT:
        return ""
    advice = did_you_mean(value, known)
    return advice.split('"')[1] if advice.startswith("Did you mean") else ""


def _persons(table: Table, policy: Policy) -> Persons | None:
    unit = policy.dataset.unit
    if not isinstance(unit, EachPerson):
        return None
    key = table.source[unit.key]
    rows = table.source.filter(key.notnull()).group_by(key).aggregate(n=lambda t: t.count())
    above = rows.n > unit.at_most
    measures = {"persons": rows.count(), "above": above.sum(), "lost": above.ifelse(rows.n - unit.at_most, 0).sum()}
    counts = _fetch_row(table, rows.aggregate(**measures))
    without = int(_fetch_row(table, table.source.aggregate(n=key.isnull().sum()))["n"] or 0)
    persons, above_most, lost = (int(counts[name] or 0) for name in ("persons", "above", "lost"))
    return Persons(unit.key, unit.at_most, persons, without, above_most, lost)


def _fetch_row(table: Table, expression: Any) -> dict[str, Any]:
    with table.turn:
        row: dict[str, Any] = ask_engine(expression.to_pyarrow, what="checking the data").to_pylist()[0]
    return row
