"""Most tests create ledgers from remembered statements: such a ledger equals one that was migrated."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.shortcuts import MIGRATE, full_migrations, migrate_from_memory  # noqa: F401  a fixture

from tidegate.ledger import Ledger, store


def schema(path: Path) -> list[str]:
    """Return every statement that rebuilds the file, except its entries."""
    connection = sqlite3.connect(path)
    statements = [line for line in connection.iterdump() if not line.startswith("INSERT") or "tidegate_version" in line]
    connection.close()
    return statements


def test_ledger_from_remembered_statements_equals_a_migrated_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store._migrate is MIGRATE, "the tests of this file migrate"
    Ledger(str(tmp_path / "migrated.ledger"))
    monkeypatch.setattr(store, "_migrate", migrate_from_memory)
    for name in ("first", "second"):
        ledger = Ledger(str(tmp_path / f"{name}.ledger"))
        ledger.verify().refuse()
        assert schema(tmp_path / f"{name}.ledger") == schema(tmp_path / "migrated.ledger")
