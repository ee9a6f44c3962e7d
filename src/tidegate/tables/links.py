"""Linked tables as one table: the rows of a `RowSource`, joined on the person key inside the engine.

Guarantee:
    In the one-side, one row per person is chosen by the keyed hash of `bound_rows`; NULL keys are left out. Keys are compared
    in the form of the engine's boundary (text as bytes), the same form that groups a person's rows. So each joined row
    depends on the rows of one person alone, and `Table.counted` keeps at most k of them before any condition: replacing
    a person moves counts by at most 2k in L1. A person without events is one row of `patients LEFT JOIN visits`, and k >= 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ibis

from tidegate.errors import SourceMissing, SourceUnreadable, did_you_mean
from tidegate.policy import EachPerson, Integer, Policy, RowSource, Shapes
from tidegate.policy.row_source import reference_matches
from tidegate.policy.tables import private_tables, table_of
from tidegate.tables.boundary import KEY_TEXT
from tidegate.tables.engines import duckdb
from tidegate.tables.guard import ask_engine
from tidegate.tables.persons import bound_rows
from tidegate.tables.source import SourceNames, SourceState, open_table, source_address, source_names, source_state
from tidegate.tables.table import CODED, Table


def open_linked(
    policy: Policy,
    rows: RowSource,
    sources: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    snapshots: Path | None = None,
) -> Table:
    """Open the rows of a query on linked tables, with dotted column names. No row is read, except from CSV files.

    Args:
        sources: Tables that replace the policy's own: paths, URLs, or tables in memory, by name.
        folder: The folder from which relative paths start.
        snapshots: The private folder for snapshots of CSV files.
    """
    with duckdb.one_connection():
        tables = {name: open_part(policy, name, sources, folder=folder, snapshots=snapshots) for name in rows.tables}
    flat, engine = policy.flat(rows), tables[rows.table].engine
    if not rows.joined:
        source = tables[rows.table].source
        return Table(source.select(**_dotted(policy, rows.table, source)), flat, engine)
    _check_connection(policy, tables)
    sides = {name: _side(policy, name, tables[name]) for name in rows.tables}
    key: Any = policy.dataset.unit
    left, right = sides[rows.table], sides[rows.joined].drop(f"{KEY_TEXT}.{rows.joined}")
    keys = [left[f"{rows.table}.{key.key}"], right[f"{rows.joined}.{key.key}"]]
    _check_keys(rows, *(column.type() for column in keys))
    joined = left.join(right, [keys[0] == keys[1]], how="left" if rows.outer else "inner")
    columns = joined.rename({KEY_TEXT: f"{KEY_TEXT}.{rows.table}"})
    return Table(tables[rows.table].boundary.as_view(columns), flat, engine, is_prepared=True)


def open_with_counts(
    policy: Policy,
    parent: str,
    numbers: Mapping[str, str],
    sources: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    snapshots: Path | None = None,
) -> Table:
    """Open the person table with the number of each person's rows in other tables, at most k: new column -> table.

    Guarantee:
        The number is a function of one person's rows, and a person has one row: replacing a person replaces one row.
    """
    with duckdb.one_connection():
        names = (parent, *numbers.values())
        tables = {name: open_part(policy, name, sources, folder=folder, snapshots=snapshots) for name in names}
    if numbers:
        _check_connection(policy, tables)
    unit: Any = policy.dataset.unit
    rows, attributes = _side(policy, parent, tables[parent]), dict(policy.flat(RowSource(parent)).attributes)
    for column, child in numbers.items():
        most = policy.flat(RowSource(child)).dataset.unit.rows_per_person
        events = tables[child].prepared
        _check_keys(RowSource(child, parent), events[unit.key].type(), rows[f"{parent}.{unit.key}"].type())
        present = events.filter(events[unit.key].notnull()).select(**{f"{child}.{unit.key}": events[unit.key]})
        counts = present.group_by(f"{child}.{unit.key}").aggregate(**{column: present.count()})
        joined = rows.left_join(counts, rows[f"{parent}.{unit.key}"] == counts[f"{child}.{unit.key}"])
        number = ibis.least(joined[column].fill_null(0), ibis.literal(most, "int64")).cast("int64")
        rows = tables[parent].boundary.as_view(joined.mutate(**{column: number}).drop(f"{child}.{unit.key}"))
        attributes[column] = Integer(0, most)
    flat = replace(policy.flat(RowSource(parent)), attributes=attributes)
    prepared = rows.rename({KEY_TEXT: f"{KEY_TEXT}.{parent}"})
    return Table(prepared, flat, tables[parent].engine, is_prepared=True)


def open_part(
    policy: Policy,
    name: str,
    sources: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    snapshots: Path | None = None,
) -> Table:
    """Open one private table of a linked policy with its own column names."""
    return open_table(_part(policy, name), _source(policy, name, sources), folder=folder, snapshots=snapshots)


def open_parts(
    policy: Policy,
    sources: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    snapshots: Path | None = None,
) -> dict[str, Table]:
    """Open every private table by its own column names. The public number of persons is that of one-row tables."""
    parts = {}
    for name, table in private_tables(policy).items():
        rows = policy.dataset.rows if table.rows_per_person == 1 else None
        part = _part(policy, name)
        part, source = replace(part, dataset=replace(part.dataset, rows=rows)), _source(policy, name, sources)
        parts[name] = open_table(part, source, folder=folder, snapshots=snapshots)
    return parts


def count_unmatched(policy: Policy, open_rows: Callable[[RowSource], Table]) -> dict[str, int]:
    """Count the rows whose key a related table does not have, by relation. Exact: for the owner only."""
    counts = {}
    for foreign, target in policy.relations.items():
        source, related = table_of(foreign), table_of(target)
        if policy.tables[related].reference:
            table = open_rows(RowSource(source))
            coded = table.coded(foreign)
            missed = [code for code, has_row in enumerate(reference_matches(policy, related)[1]) if not has_row]
            rows = coded.filter(coded[CODED].isin(missed)) if missed else coded.limit(0)
        else:
            table = open_rows(RowSource(source, related, outer=True))
            joined = table.prepared
            rows = joined.filter(joined[foreign].notnull() & joined[target].isnull())
        with table.turn:
            counts[f"{foreign} = {target}"] = int(ask_engine(rows.count().to_pyarrow, what="checking the data").as_py())
    return counts


def related_rows(policy: Policy) -> list[RowSource]:
    """Return the rows of every private table, and of every related pair of them."""
    private = private_tables(policy)
    pairs = [RowSource(table_of(foreign), table_of(target)) for foreign, target in policy.relations.items()]
    return [*(RowSource(name) for name in private), *(pair for pair in pairs if pair.joined in private)]


def linked_state(
    policy: Policy, sources: Mapping[str, Any] | None, *, folder: Path | None = None
) -> SourceState | None:
    """Return the state of all private tables together; None if changes of one of them cannot be detected."""
    states = [
        source_state(
            _part(policy, name),
            _source(policy, name, sources),
            lambda name=name: open_part(policy, name, sources, folder=folder),  # type: ignore[misc]
            folder=folder,
        )
        for name in private_tables(policy)
    ]
    known = [state for state in states if state is not None]
    if len(known) < len(states):
        return None

    def digest() -> str:
        return hashlib.sha256("\n".join(state.digest() for state in known).encode()).hexdigest()

    stamp = "\n\n".join(state.stamp for state in known)
    return SourceState(stamp, digest, is_exact=all(state.is_exact for state in known))


def linked_address(policy: Policy, sources: Mapping[str, Any] | None, *, folder: Path | None = None) -> str:
    """Return the addresses of all private tables; empty if one is in memory."""
    parts = [
        source_address(_part(policy, name), _source(policy, name, sources), folder=folder)
        for name in private_tables(policy)
    ]
    return "\n".join(parts) if all(parts) else ""


def linked_names(policy: Policy, sources: Mapping[str, Any] | None, *, folder: Path | None = None) -> SourceNames:
    """Return the names of all private tables, their common address first; none if one is in memory."""
    address = linked_address(policy, sources, folder=folder)
    if not address:
        return SourceNames()
    own, shorter = [address], list[str]()
    for name in private_tables(policy):
        part, source = _part(policy, name), _source(policy, name, sources)
        names = source_names(part, source, partial(open_table, part, source, folder=folder), folder=folder)
        own += names.own
        shorter += names.shorter
    return SourceNames(tuple(dict.fromkeys(own)), tuple(dict.fromkeys(shorter)))


def _part(policy: Policy, name: str) -> Policy:
    """Return the policy of one private table, with its own column names. The choice of rows stays the same."""
    table, unit = policy.tables[name], policy.flat(RowSource(name)).dataset.unit
    if isinstance(unit, EachPerson):
        unit = replace(unit, key=unit.key.partition(".")[2], choice=unit.choice or policy.dataset.name)
    dataset = replace(policy.dataset, name=f"{policy.dataset.name}.{name}"[:63], source=table.source, unit=unit)
    parts: dict[str, Any] = {"attributes": table.attributes, "identification": None, "synthesis": Shapes()}
    return replace(policy, dataset=dataset, **parts, tables={}, relations={})


def _source(policy: Policy, name: str, sources: Mapping[str, Any] | None) -> Any:
    if sources is not None and not isinstance(sources, Mapping):
        raise SourceMissing(
            f'The policy "{policy.dataset.name}" has several tables, so one source is not enough.',
            f"Pass a table for each name: table={{{', '.join(f'{known!r}: ...' for known in private_tables(policy))}}}.",
        )
    for known in sources or {}:
        if known not in private_tables(policy):
            is_public = known in policy.tables
            raise SourceMissing(
                f'The policy "{policy.dataset.name}" has no private table "{known}".',
                "The content of a reference table is part of the policy: name its file in [tables]."
                if is_public
                else did_you_mean(known, private_tables(policy)),
            )
    source = (sources or {}).get(name)
    if source is None and not policy.tables[name].source:
        raise SourceMissing(
            f'The policy "{policy.dataset.name}" names no source for the table "{name}".',
            f'Write {name} = {{ source = "{name}.parquet" }} in [tables], or pass a table.',
        )
    return source


def _dotted(policy: Policy, name: str, columns: Any) -> dict[str, Any]:
    return {f"{name}.{column}": columns[column] for column in policy.tables[name].attributes}


def _side(policy: Policy, name: str, table: Table) -> Any:
    """Return the prepared columns of a table with dotted names; one row per person if that is declared."""
    columns = table.prepared
    if policy.tables[name].rows_per_person == 1:
        columns = bound_rows(columns, table.policy, table.boundary, with_key_text=True)
    side = columns.select(**_dotted(policy, name, columns), **{f"{KEY_TEXT}.{name}": columns[KEY_TEXT]})
    return table.boundary.as_view(side)


def _check_connection(policy: Policy, tables: Mapping[str, Table]) -> None:
    """Refuse tables that no single engine connection can see."""
    first, *others = tables.values()
    backend = first.source.get_backend()
    for table in others:
        other = table.source.get_backend()
        same = other is backend or (other.name == backend.name != "duckdb" and _database(other) == _database(backend))
        if not same:
            raise SourceUnreadable(
                f"The tables {', '.join(tables)} are in different databases or on different engines, so they cannot be joined.",
                "Copy them to one database, or to Parquet files.",
            )


def _database(backend: Any) -> Any:
    """Return the identity of a backend's database."""
    if backend.name == "postgres":
        info = backend.con.info
        return info.host, info.port, info.dbname, info.user
    return backend.con if backend.name == "sqlite" else getattr(backend, "_session", None)


def _check_keys(rows: RowSource, left: Any, right: Any) -> None:
    """Refuse person keys whose types do not compare value by value."""
    whole = (left.is_signed_integer() and right.is_signed_integer()) or (
        left.is_unsigned_integer() and right.is_unsigned_integer()
    )
    if not whole and left.copy(nullable=True) != right.copy(nullable=True):
        raise SourceUnreadable(
            f"The person keys of {rows.table} and {rows.joined} have different types ({left} and {right}).",
            "Give both columns the same type at the source.",
        )
