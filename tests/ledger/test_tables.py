"""Everything that decides is covered: each column of each table is changed behind the ledger's back, and `verify` reports it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from ledger.full_ledger import write_everything

from tidegate.errors import LedgerUnavailable
from tidegate.ledger import Ledger
from tidegate.ledger.schema import metadata

SERVICE = "jobs of the service; charges, releases and counts do not follow from them"
EXCEPTIONS = {
    "tidegate_signins": "sessions of some hours; each has an entry, and changes of the times of one decide nothing else",
    "tidegate_links": "links of 15 minutes; their creation and their use have entries",
    "tidegate_token_uses": "the day of the last use, for information only",
    "tidegate_jobs": SERVICE,
    "tidegate_library": "saved questions and dashboards; answers are read from the entries that they name, never from here",
    "tidegate_replies": SERVICE,
    "tidegate_limits": SERVICE,
    "tidegate_leases": "which process continues a synthesis; it changes no number, and a line is written once in any case",
    "tidegate_source_states": "used only for the note that the source of a stored answer has changed",
    "tidegate_known_sources": "used only to refuse a second account over a source; it changes no account",
    "tidegate_waiting": "reports that are not counted yet: an entry for each would reveal when it arrived",
}
COLUMNS = [
    (table.name, column.name) for table in metadata.sorted_tables for column in table.c if table.name not in EXCEPTIONS
]


@pytest.fixture(scope="module")
def full_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everything")
    write_everything(str(folder / "a.ledger"), folder / "reports")
    return folder / "a.ledger"


@contextlib.contextmanager
def copy_of(full_ledger: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    path = full_ledger.with_name(f"{uuid4().hex}.ledger")
    shutil.copy(full_ledger, path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    try:
        yield path, connection
    finally:
        connection.close()
        path.unlink()


def problems(path: Path) -> list[str]:
    with contextlib.closing(Ledger(str(path), read_only=True)) as ledger:
        return ledger.verify().problems


def test_untouched_ledger_has_rows_in_every_table_and_no_problems(full_ledger: Path) -> None:
    with copy_of(full_ledger) as (path, sql):
        for table in set(metadata.tables) - {
            "tidegate_known_sources",
            "tidegate_limits",
        }:  # of policy files; on Postgres
            assert sql.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table
        assert {state for (state,) in sql.execute("SELECT state FROM tidegate_requests")} == {
            "released",
            "waiting",
            "withdrawn",
            "withheld",
        }
        assert problems(path) == []


@pytest.mark.one_in(13)
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_changed_column_is_reported(full_ledger: Path, table: str, column: str) -> None:
    """Change the first, a middle and the last row; for requests, one of each state."""
    with copy_of(full_ledger) as (path, sql):
        keys = [f'"{key.name}"' for key in metadata.tables[table].primary_key]
        rows = sql.execute(f"SELECT {', '.join(keys)} FROM {table} ORDER BY {', '.join(keys)}").fetchall()
        chosen = {rows[0], rows[len(rows) // 2], rows[-1]}
        if table == "tidegate_requests":
            chosen = {_request(sql, keys, state, column) for state in ("released", "waiting", "withdrawn", "withheld")}
        where = " AND ".join(f"{key} = ?" for key in keys)
        for row in chosen:
            (old,) = sql.execute(f'SELECT "{column}" FROM {table} WHERE {where}', row).fetchone()
            now = _other(old, column)
            sql.execute(f'UPDATE {table} SET "{column}" = ? WHERE {where}', (now, *row))
            assert problems(path), (row, old, now)
            back = tuple(now if key == f'"{column}"' else value for key, value in zip(keys, row, strict=True))
            sql.execute(f'UPDATE {table} SET "{column}" = ? WHERE {where}', (old, *back))
        assert problems(path) == []


def _request(sql: sqlite3.Connection, keys: list[str], state: str, column: str) -> tuple[str, int]:
    """Return a request of a state. For a released record's nonce, return one that waited: otherwise the nonce hides nothing."""
    waited = column == "nonce" and state == "released"
    more = "AND entry > (SELECT min(entry) FROM tidegate_requests b WHERE b.number > a.number)" if waited else ""
    query = f"SELECT {', '.join(keys)} FROM tidegate_requests a WHERE state = ? {more} ORDER BY number LIMIT 1"
    return tuple(sql.execute(query, (state,)).fetchone())


def _other(value: object, column: str) -> object:
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\1"
    if isinstance(value, int | float):
        return 1 - value if column == "folds" else value + 100_000
    if column == "state":
        return "waiting" if value != "waiting" else "released"
    if column == "spent" and value == "0.1":
        return "0.05"
    return 7 if value is None else f"{value}0"


@pytest.mark.long  # the same columns on SQLite
def test_changed_column_is_reported_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    """Every fifth column, in the middle row of its table. Whether a nonce hides anything depends on the row."""
    write_everything(postgres_url, tmp_path / "reports")
    with contextlib.closing(Ledger(postgres_url, read_only=True)) as ledger, psycopg.connect(postgres_url) as sql:
        assert ledger.verify().problems == []
        for table, column in [names for names in COLUMNS if names[1] != "nonce"][::5]:
            keys = [f'"{key.name}"' for key in metadata.tables[table].primary_key]
            query = f'SELECT {", ".join(keys)}, "{column}" FROM {table} ORDER BY {", ".join(keys)}'
            rows = sql.execute(query).fetchall()
            *row, old = rows[len(rows) // 2]
            now = _other(old, column)
            where = " AND ".join(f"{key} = %s" for key in keys)
            sql.execute(f'UPDATE {table} SET "{column}" = %s WHERE {where}', (now, *row))
            sql.commit()
            assert ledger.verify().problems, (table, column)
            back = [now if key == f'"{column}"' else value for key, value in zip(keys, row, strict=True)]
            sql.execute(f'UPDATE {table} SET "{column}" = %s WHERE {where}', (old, *back))
            sql.commit()
        assert ledger.verify().problems == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("table", [name for name in metadata.tables if name not in EXCEPTIONS])
def test_deleted_row_is_reported(full_ledger: Path, table: str) -> None:
    with copy_of(full_ledger) as (path, sql):
        keys = ", ".join(f'"{key.name}"' for key in metadata.tables[table].primary_key)
        sql.execute(f"DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1)")
        assert problems(path)


def test_swapped_secret_and_freed_report_ids_are_reported(full_ledger: Path) -> None:
    """With another secret, every record could be released again; a deleted id could be counted again."""
    with copy_of(full_ledger) as (path, sql):
        sql.execute("UPDATE tidegate_secrets SET value = ? WHERE account = 'soldiers'", ("0" * 64,))
        assert problems(path) == ["The secret of soldiers is not the one that the entries commit to."]
    with copy_of(full_ledger) as (path, sql):
        sql.execute("DELETE FROM tidegate_report_ids")
        assert any("The report ids of the collection" in problem for problem in problems(path))


def test_damaged_index_is_reported(full_ledger: Path) -> None:
    """A row that is missing from its index would be charged again, although rows and entries look right."""
    with copy_of(full_ledger) as (path, sql):
        sql.execute("PRAGMA writable_schema = ON")
        (page,) = sql.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tidegate_entries_question'").fetchone()
        (other,) = sql.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tidegate_requests_place'").fetchone()
        sql.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'tidegate_entries_question'", (other,))
        sql.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'tidegate_requests_place'", (page,))
        sql.close()
        assert any("The database file is damaged" in problem for problem in problems(path))


def test_every_table_that_is_not_covered_has_a_reason() -> None:
    assert set(EXCEPTIONS) < set(metadata.tables)
    assert all(EXCEPTIONS.values())


def test_read_only_verify_refuses_an_unknown_schema(full_ledger: Path) -> None:
    with copy_of(full_ledger) as (path, sql):
        sql.execute("UPDATE tidegate_version SET version_num = '0001'")
        with pytest.raises(LedgerUnavailable, match="schema"):
            problems(path)
