"""The diaries of unfinished syntheses in a ledger's database, as another process sees them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import psycopg

QUERY = "SELECT body FROM tidegate_diaries ORDER BY charge, number"


def diary_lines(ledger: str | Path) -> list[dict[str, Any]]:
    """Return all lines of all diaries; none if there is no ledger yet."""
    if str(ledger).startswith("postgresql:"):
        with psycopg.connect(str(ledger)) as connection:
            rows = connection.execute(QUERY).fetchall()
    else:
        rows = []
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection,
        ):
            rows = connection.execute(QUERY).fetchall()
    return [json.loads(body) for (body,) in rows]
