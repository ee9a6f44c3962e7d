"""The private rows of a query on linked tables, and their description as one table.

Guarantee:
    Rows join on the person key alone, many-to-one: after one row per person is chosen in the one-side, every joined row of a
    person comes from that person's own rows. Then at most k of them count. So replacing a person replaces at most k rows by
    at most k others: counts move by at most 2k in L1. Reference columns are functions of a row's own code: stability 1.

Reference:
    McSherry (2009); Johnson, Near and Song (2018); Wilson et al. (2020).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.policy.references import countable_columns, key_texts
from tidegate.policy.tables import MANY_TO_MANY, private_tables, resolve_column, table_of

if TYPE_CHECKING:
    from tidegate.policy.policy import Policy


@dataclass(frozen=True)
class RowSource:
    """The private rows of a query: those of `table`, or joined to those of `joined` on the person key.

    `outer` keeps the rows of `table` without a partner (LEFT JOIN). An inner join has the many-side as `table`.
    """

    table: str
    joined: str = ""
    outer: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table, self.joined) if self.joined else (self.table,)

    def __str__(self) -> str:
        """Return the text that identifies the rows in a ledger: ``visits left join patients``."""
        return f"{self.table} {'left ' if self.outer else ''}join {self.joined}" if self.joined else self.table


def reference_codes(policy: Policy, name: str) -> tuple[str, tuple[int | None, ...]]:
    """Return the foreign key of a reference column, and the column's code for every code of that key.

    The code is None if the key has no match or the value is missing.
    """
    column = resolve_column(policy, name)
    table = policy.tables.get(table_of(column))
    if table is None or not table.reference:
        raise Unsupported(f'"{name}" is not a column of a reference table.')
    if table.content is None:
        raise Unsupported(f'The content of the reference table "{table.name}" is not loaded.', "Read the policy file.")
    columns = list(countable_columns(table.columns))
    if column not in columns:
        raise Unsupported(f'"{name}" has no values to group or compare.', "Use the foreign key instead.")
    index, foreign = columns.index(column), foreign_key(policy, table.name)
    rows = [table.content.get(key) if key is not None else None for key in key_texts(policy.attributes[foreign])]
    return foreign, tuple(None if codes is None else codes[index] for codes in rows)


def reference_matches(policy: Policy, table: str) -> tuple[str, tuple[bool, ...]]:
    """Return the foreign key of a reference table, and which of its codes have a row there (an inner join drops the others)."""
    foreign, content = foreign_key(policy, table), policy.tables[table].content or {}
    return foreign, tuple(key in content for key in key_texts(policy.attributes[foreign]))


def describe_links(policy: Policy) -> dict[str, str]:
    """Return every table and relation with a sentence on the rows of a person that count."""
    if not policy.tables:
        return {}
    unit: Any = policy.dataset.unit
    bound = f"at most {unit.at_most:,} {'row' if unit.at_most == 1 else 'rows'} of a person"
    sentences = {}
    for name, table in policy.tables.items():
        if table.reference:
            foreign, matches = reference_matches(policy, name)
            without = matches.count(False)
            rest = f"; {without:,} of the {len(matches):,} values of {foreign} have no row" if without else ""
            sentences[name] = (
                f"A public reference table of {len(table.content or ()):,} rows, found by {foreign}{rest}."
            )
        elif table.rows_per_person == 1:
            sentences[name] = "One row per person. If a person has more, one of them counts."
        else:
            sentences[name] = f"Several rows per person; {bound} count."
    for foreign, target in policy.relations.items():
        if not policy.tables[table_of(target)].reference:
            single = policy.tables[table_of(foreign)].rows_per_person == 1
            counted = "at most 1 row of a person" if single else bound
            sentences[f"{table_of(foreign)} join {table_of(target)}"] = (
                f"Joined on the person key ({foreign} = {target}); {counted} count, chosen before any condition."
            )
    return sentences


def foreign_key(policy: Policy, table: str) -> str:
    """Return the column that is related to a reference table."""
    return next(foreign for foreign, target in policy.relations.items() if table_of(target) == table)


def row_source(policy: Policy, table: str, joined: str = "", *, outer: bool = False) -> RowSource:
    """Return the canonical rows of `table`, or of `table [LEFT] JOIN joined` on the person key.

    Raises:
        Unsupported: The tables cannot be joined with a bounded number of rows per person.
    """
    for name in (table, joined) if joined else (table,):
        if name not in policy.tables:
            raise UnknownColumn(
                f'The policy "{policy.dataset.name}" has no table "{name}".',
                did_you_mean(name, policy.tables),
                column=name,
            )
        if policy.tables[name].reference:
            raise Unsupported(
                f'"{name}" is a public reference table, so a query is not about its rows.',
                "Start from a private table; the columns of the reference table can be used with it.",
            )
    if not joined:
        return RowSource(table)
    if table == joined:
        raise Unsupported(
            f'The table "{table}" cannot be joined to itself. {MANY_TO_MANY}', "Query the table once, with a condition."
        )
    key = policy.dataset.unit.key  # type: ignore[union-attr]
    for events, single in ((table, joined), (joined, table)):
        if policy.relations.get(f"{events}.{key}") == f"{single}.{key}":
            return RowSource(table, joined, True) if outer else RowSource(events, single)
    raise Unsupported(
        f'No relation links "{table}" and "{joined}" to one row per person. {MANY_TO_MANY}',
        f'Query each table alone, or add "{table}.{key}" = "{joined}.{key}" to [relations] if "{joined}" has one row per person.',
    )


def read_row_source(policy: Policy, text: str) -> RowSource:
    """Return the rows of a text that `str(RowSource)` wrote, or of the name of a table."""
    table, _, joined = text.partition(" join ")
    outer = table.endswith(" left")
    return row_source(policy, table.removesuffix(" left"), joined, outer=outer)


def rows_for(policy: Policy, columns: Iterable[str]) -> RowSource:
    """Return the rows of a query by its columns: one private table, or an event table joined to the person table."""
    tables: dict[str, None] = {}
    for name in columns:
        table = table_of(resolve_column(policy, name))
        reference = policy.tables[table].reference
        tables[table_of(foreign_key(policy, table)) if reference else table] = None
    if not tables:
        private = list(private_tables(policy))
        if len(private) == 1:
            return RowSource(private[0])
        raise Unsupported(
            "The query names no column, so its table is not known.",
            f'Name it, for example count().of("{private[-1]}"); the tables are {", ".join(private)}.',
        )
    if len(tables) > 2:
        raise Unsupported(
            f"The query uses columns of {len(tables)} private tables ({', '.join(tables)}).",
            "Use columns of one event table and of the person table.",
        )
    return row_source(policy, *tables)


def _optional(attribute: Any) -> Any:
    """Return the column of a row that can be absent: an absent row has no value, not the lowest one."""
    return replace(attribute, missing="dropped") if getattr(attribute, "missing", "") == "lowest" else attribute


def flat_policy(policy: Policy, rows: RowSource) -> Policy:
    """Return the policy of some rows as one table, for mechanisms. Charges belong to the whole policy.

    Protected columns that these rows do not have are left out.
    """
    columns = {name: of for table in rows.tables for name, of in policy.tables[table].columns.items()}
    if rows.outer:
        columns |= {name: _optional(of) for name, of in policy.tables[rows.joined].columns.items()}
    single = all(policy.tables[table].rows_per_person == 1 for table in rows.tables)
    unit: Any = policy.dataset.unit
    unit = replace(unit, key=f"{rows.table}.{unit.key}", at_most=1 if single else unit.at_most)
    promise = policy.identification
    if promise is not None and promise.worlds == "values":
        protect = tuple(name for name in promise.protect if name in columns)
        prior = {name: values for name, values in promise.prior.items() if name in columns}
        within = {name: width for name, width in promise.within.items() if name in columns}
        promise = replace(promise, protect=protect, prior=prior, within=within) if protect else None
    records = next((policy.tables[table].records for table in rows.tables if policy.tables[table].records), None)
    dataset = replace(policy.dataset, unit=unit, records=records)
    parts: dict[str, Any] = {"dataset": dataset, "attributes": columns, "identification": promise}
    parts["synthesis"] = policy.synthesis.restricted(columns)
    return replace(policy, **parts, tables={}, relations={}, references=_references(policy, columns))


@dataclass(frozen=True)
class ReferenceColumn:
    """A column of a reference table: a function of the foreign key's code. A code is None without a match."""

    foreign: str
    attribute: Any
    codes: tuple[int | None, ...]
    digest: str  # of the table's content


def _references(policy: Policy, columns: dict[str, Any]) -> dict[str, ReferenceColumn]:
    """Return the reference columns that follow from some columns. A key has the foreign key's own values."""
    references = {}
    for foreign, target in policy.relations.items():
        table = policy.tables[table_of(target)]
        if foreign not in columns or not table.reference or table.content is None:
            continue
        _, matches = reference_matches(policy, table.name)
        own = tuple(code if is_there else None for code, is_there in enumerate(matches))
        references[target] = ReferenceColumn(foreign, columns[foreign], own, table.digest)
        for name, attribute in countable_columns(table.columns).items():
            if name != target:
                references[name] = ReferenceColumn(foreign, attribute, reference_codes(policy, name)[1], table.digest)
    return references
