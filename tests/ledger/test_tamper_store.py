"""Tampering inside the database: other types, no constraints, no primary key; and the same on Postgres."""

from __future__ import annotations

from typing import Any

import pytest
from ledger.tampering import FIELDS, TEXTS, Record, write
from sqlalchemy import text

from tidegate.errors import TidegateError
from tidegate.ledger import verify

TRICKS = {
    "a blob": "CAST({column} AS BLOB)",
    "nothing": "NULL",
    "an integer": "0",
    "a real": "0.5",
    "a boolean": "TRUE",
    "a number as it was": "CAST({column} AS NUMERIC)",
    "text as it was, and a nul": "{column} || char(0)",
    "an empty blob": "x''",
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("column", TEXTS)
def test_field_that_is_not_text_is_detected(record: Record, column: str, trick: str) -> None:
    for number in (1, 2, 3, 14):
        with record.open_copy(loose=True) as copy:
            change = TRICKS[trick].format(column=column)
            copy.run(f"UPDATE tidegate_entries SET {column} = {change} WHERE number = ?", number)
            assert not copy.holds


def test_blob_in_a_text_column_is_detected(record: Record) -> None:
    for column in TEXTS:
        with record.open_copy() as copy:
            copy.run(f"UPDATE tidegate_entries SET {column} = CAST({column} AS BLOB) WHERE number = 2")
            assert not copy.holds


@pytest.mark.parametrize("trick", TRICKS)
def test_stored_result_that_is_not_text_is_detected(record: Record, trick: str) -> None:
    for number in record.payloads:
        with record.open_copy(loose=True) as copy:
            change = TRICKS[trick].format(column="payload")
            copy.run(f"UPDATE tidegate_results SET payload = {change} WHERE number = ?", number)
            assert not copy.holds


@pytest.mark.parametrize(
    ("table", "trick"),
    [
        ("tidegate_entries", "CAST(number AS BLOB)"),
        ("tidegate_entries", "CAST(number AS TEXT)"),
        ("tidegate_entries", "CAST(number AS REAL)"),
        ("tidegate_entries", "NULL"),
        ("tidegate_entries", "number + 0.5"),
        ("tidegate_results", "CAST(number AS BLOB)"),
        ("tidegate_results", "CAST(number AS TEXT)"),
        ("tidegate_results", "CAST(number AS REAL)"),
        ("tidegate_results", "NULL"),
    ],
)
def test_number_that_is_not_an_integer_is_detected(record: Record, table: str, trick: str) -> None:
    with record.open_copy(loose=True) as copy:
        copy.run(f"UPDATE {table} SET number = {trick} WHERE number = 3")
        assert not copy.holds


@pytest.mark.parametrize("column", TEXTS)
def test_invalid_text_never_verifies(record: Record, column: str) -> None:
    with record.open_copy() as copy:
        copy.run(f"UPDATE tidegate_entries SET {column} = CAST(x'ff' AS TEXT) WHERE number = 2")
        with pytest.raises(TidegateError):
            copy.holds


def test_duplicate_entry_number_is_detected(record: Record) -> None:
    for number in (1, 2, 3, 14):
        with record.open_copy(loose=True) as copy:
            copy.run("INSERT INTO tidegate_entries SELECT * FROM tidegate_entries WHERE number = ?", number)
            assert not copy.holds


def test_second_result_under_one_number_is_detected(record: Record) -> None:
    with record.open_copy(loose=True) as copy:
        copy.run("INSERT INTO tidegate_results VALUES (3, 'forged')")
        copy.run("INSERT INTO tidegate_results SELECT * FROM tidegate_results WHERE number = 3 LIMIT 1")
        assert not copy.holds


@pytest.mark.parametrize("payload", [12, 1.5, b"12", ["12"]], ids=str)
def test_result_that_is_not_text_is_reported_as_changed(record: Record, payload: Any) -> None:
    assert verify(record.entries, record.payloads).holds
    problems = verify(record.entries, {**record.payloads, 3: payload}).problems
    assert problems == ["Entry 3: its stored result was changed."]


# Postgres -----------------------------------------------------------------------------------------------------------

POSTGRES = {
    **{
        f"{column} of a charge": f"UPDATE tidegate_entries SET {column} = {column} || '0' WHERE number = 2"
        for column in TEXTS
    },
    "a number": "UPDATE tidegate_entries SET number = 99 WHERE number = 4",
    "a total": "UPDATE tidegate_entries SET spent = '0' WHERE number = 12",
    "a result": "UPDATE tidegate_results SET payload = replace(payload, '12', '13') WHERE number = 3",
    "a result's number": "UPDATE tidegate_results SET number = 4 WHERE number = 3",
    "an entry taken out": "DELETE FROM tidegate_entries WHERE number = 4",
    "the first entry taken out": "DELETE FROM tidegate_entries WHERE number = 1",
    "a result taken out": "DELETE FROM tidegate_results WHERE number = 7",
    "two results swapped": "UPDATE tidegate_results SET number = 7 + 3 - number + 100 WHERE number IN (3, 7);"
    "UPDATE tidegate_results SET number = number - 100 WHERE number > 100",
    "two entries swapped": "UPDATE tidegate_entries SET number = 104 WHERE number = 2;"
    "UPDATE tidegate_entries SET number = 2 WHERE number = 4;"
    "UPDATE tidegate_entries SET number = 4 WHERE number = 104",
    "an entry copied to the end": "INSERT INTO tidegate_entries SELECT 15, at, account, kind, policy, 'again',"
    " question, amount, spent, ceiling, body, (SELECT hash FROM tidegate_entries WHERE number = 14), hash"
    " FROM tidegate_entries WHERE number = 12",
}


def test_changes_in_postgres_are_detected(postgres_url: str) -> None:
    ledger = write(postgres_url)
    assert verify(ledger.entries(), ledger.payloads()).holds
    assert set(FIELDS) == {"number", *TEXTS}
    undetected = []
    with ledger.store.engine.connect() as forger:
        for table in ("entries", "results"):
            forger.execute(text(f"CREATE TABLE copy_of_{table} AS SELECT * FROM tidegate_{table}"))
        forger.commit()
        for name, change in POSTGRES.items():
            forger.execute(text(change))
            forger.commit()
            if verify(ledger.entries(), ledger.payloads()).holds:
                undetected.append(name)
            for table in ("entries", "results"):
                forger.execute(text(f"DELETE FROM tidegate_{table}"))
                forger.execute(text(f"INSERT INTO tidegate_{table} SELECT * FROM copy_of_{table}"))
            forger.commit()
    assert undetected == []
    assert verify(ledger.entries(), ledger.payloads()).holds
    ledger.close()
