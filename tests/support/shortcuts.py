"""What every test shares: one-time work (migrations of a new ledger, certificates of a client), commands, a fixed randomness.

Older and other ledgers, the files that import `full_migrations`, and all child processes run the migrations each time.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import httpx._transports.default as transports
import numpy as np
import pandas  # noqa: F401  a command keeps Arrow from loading it, and tests run commands in their own process
import pytest

from tidegate.cli import main
from tidegate.ledger import store
from tidegate.noise import SecureBits
from tidegate.operators.exact_draws import SystemBytes

MIGRATE = store._migrate
THINNED = pytest.StashKey[bool]()  # of a test that `one_in` has been applied to


@pytest.fixture(scope="session", autouse=True)
def remembered_migrations() -> Iterator[None]:
    """Create a new SQLite ledger from the statements that the migrations led to: 10 ms of CPU instead of 35 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_migrate", migrate_from_memory)
        yield


@pytest.fixture(scope="module", autouse=True)
def full_migrations() -> Iterator[None]:
    """Migrate every ledger, in the file that imports this fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_migrate", MIGRATE)
        yield


def migrate_from_memory(connection: Any, shown: str) -> None:
    """Run the statements of the first new SQLite ledger of this process; migrate any other ledger as always."""
    if connection.dialect.name != "sqlite" or tables_of(connection):
        MIGRATE(connection, shown)
    elif STATEMENTS:
        for statement in STATEMENTS:
            connection.exec_driver_sql(statement)
    else:
        MIGRATE(connection, shown)
        (revision,) = connection.exec_driver_sql("SELECT version_num FROM tidegate_version").scalars()
        STATEMENTS.extend([*tables_of(connection), f"INSERT INTO tidegate_version VALUES ('{revision}')"])


STATEMENTS: list[str] = []


def tables_of(connection: Any) -> list[str]:
    """Return the statements that created the tables, indexes and triggers, in their order."""
    named = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    return list(connection.exec_driver_sql(named).scalars())


@pytest.fixture(scope="session", autouse=True)
def shared_certificates() -> Iterator[None]:
    """Read the certificates of authorities once: that takes 25 ms, and `httpx.get` does it for each request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "create_ssl_context", cache(transports.create_ssl_context))
        yield


def run_in_folder(folder: Path, *words: str) -> tuple[int, str, str]:
    """Run a command in this process; return the exit code, the output, and the error output.

    A process of its own would take 2 s of CPU to start. Loggers are left as they were, for tests that read logs.
    """
    from tidegate.cli.output import NOTICED

    logs = {log: (log.level, log.propagate) for log in map(logging.getLogger, NOTICED)}
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["tidegate", *words])
        with pytest.raises(SystemExit) as left:
            main()
    for log, (level, propagate) in logs.items():
        log.setLevel(level)
        log.propagate = propagate
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def fixed_randomness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the system's randomness by a stream of the test's name, so that a sampled test has one result in every run.

    `make claims` (`TIDEGATE_SEED=fresh`) and child processes use the system's own.
    """
    if os.environ.get("TIDEGATE_SEED") == "fresh":
        return
    calls = itertools.count()

    def draw(_source: Any, count: int) -> bytes:
        return hashlib.shake_256(f"{request.path.name}/{request.node.name}/{next(calls)}".encode()).digest(count)

    monkeypatch.setattr(SystemBytes, "take", draw)
    monkeypatch.setattr(
        SecureBits, "words", lambda source, count: np.frombuffer(draw(source, 8 * count), "<u8").astype(np.uint64)
    )
