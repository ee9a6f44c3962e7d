"""One Postgres database for all tests of the ledger, and a record with every kind of entry to tamper with."""

from __future__ import annotations

from typing import Any

import pytest
from ledger.tampering import Record, write
from support.databases import create_database, empty_database

from tidegate.ledger import export_lines


@pytest.fixture(scope="session")
def one_database(postgres_server: Any) -> str:
    return create_database(postgres_server, "ledgers")


@pytest.fixture
def postgres_url(one_database: str) -> str:
    return empty_database(one_database)


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    path = tmp_path_factory.mktemp("record") / "people.ledger"
    ledger = write(str(path))
    lines = "".join(f"{line}\n" for line in export_lines(ledger)).encode()
    record = Record(path, tuple(ledger.entries()), ledger.payloads(), lines)
    ledger.close()
    return record
