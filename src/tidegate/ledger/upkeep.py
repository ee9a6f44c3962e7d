"""When a ledger was last verified and backed up, and the last simulation of each release desk, for the pages. Stored beside
the ledger's file.

The record decides nothing: it can be deleted at any time, and a ledger in a database has none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

from tidegate.ledger.file import replace_file
from tidegate.ledger.ledger import Ledger

Work = Literal["verification", "backup"]
SIMULATIONS = "simulations"


def note_work(ledger: Ledger, work: Work, **facts: Any) -> None:
    """Record that a ledger was verified or backed up now. A record that cannot be written is not an error."""
    _write(ledger, {work: {"at": datetime.now(UTC).isoformat(timespec="seconds"), **facts}})


def note_simulation(ledger: Ledger, dataset: str, promise: str, facts: dict[str, Any]) -> None:
    """Record the summary of a simulated release desk. A record that cannot be written is not an error."""
    _write(ledger, {SIMULATIONS: {**_simulations(ledger), f"{dataset}/{promise}": facts}})


def read_simulation(ledger: Ledger, dataset: str, promise: str) -> dict[str, Any] | None:
    """Return the summary that was recorded for a release desk; None if there is none."""
    facts = _simulations(ledger).get(f"{dataset}/{promise}")
    return facts if isinstance(facts, dict) else None


def _simulations(ledger: Ledger) -> dict[str, Any]:
    stored = read_work(ledger).get(SIMULATIONS)
    return stored if isinstance(stored, dict) else {}


def _write(ledger: Ledger, facts: dict[str, Any]) -> None:
    if ledger.store.path is None:
        return
    path = ledger.store.path.with_name(f"{ledger.store.path.name}.upkeep")
    with suppress(OSError):
        replace_file(path, json.dumps({**read_work(ledger), **facts}).encode())


def read_work(ledger: Ledger) -> dict[str, Any]:
    """Return what was recorded: by kind of work, the time and its facts."""
    if ledger.store.path is None:
        return {}
    with suppress(OSError, ValueError):
        content = json.loads(ledger.store.path.with_name(f"{ledger.store.path.name}.upkeep").read_text("utf-8"))
        return content if isinstance(content, dict) else {}
    return {}
