"""One Postgres database for all tests of the ledger, and a record of every kind of entry, of which tests change copies."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from ledger.tampering import Record, write

from tidegate.ledger import export_lines


@pytest.fixture(scope="session")
def one_database(postgres_server: Any) -> str:
    postgres_server.psql("CREATE DATABASE ledgers;")
    return str(postgres_server.get_uri()).replace("/postgres?", "/ledgers?")


@pytest.fixture
def postgres_url(one_database: str) -> str:
    """A database that is empty again: a new one for each of so many tests takes a second to make and two to remove."""
    with psycopg.connect(one_database, autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = 'ledgers' AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return one_database


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    path = tmp_path_factory.mktemp("record") / "people.ledger"
    ledger = write(str(path))
    lines = "".join(f"{line}\n" for line in export_lines(ledger)).encode()
    found = Record(path, tuple(ledger.entries()), ledger.payloads(), lines)
    ledger.close()
    return found
