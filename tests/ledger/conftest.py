"""One record of every kind of entry, written once; tests change copies of it."""

from __future__ import annotations

import pytest
from ledger.tampering import Record, write

from tidegate.ledger import export_lines


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    path = tmp_path_factory.mktemp("record") / "people.ledger"
    ledger = write(str(path))
    lines = "".join(f"{line}\n" for line in export_lines(ledger)).encode()
    found = Record(path, tuple(ledger.entries()), ledger.payloads(), lines)
    ledger.close()
    return found
