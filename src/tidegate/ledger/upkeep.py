"""When a ledger was last verified and backed up, so that a page can warn. Stored beside the ledger's file, for nothing else.

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


def note_work(ledger: Ledger, work: Work, **facts: Any) -> None:
    """Record that a ledger was verified or backed up now. A record that cannot be written is not an error."""
    if ledger.store.path is None:
        return
    path = ledger.store.path.with_name(f"{ledger.store.path.name}.upkeep")
    content = {**read_work(ledger), work: {"at": datetime.now(UTC).isoformat(timespec="seconds"), **facts}}
    with suppress(OSError):
        replace_file(path, json.dumps(content).encode())


def read_work(ledger: Ledger) -> dict[str, Any]:
    """Return what was recorded: by kind of work, the time and its facts."""
    if ledger.store.path is None:
        return {}
    with suppress(OSError, ValueError):
        content = json.loads(ledger.store.path.with_name(f"{ledger.store.path.name}.upkeep").read_text("utf-8"))
        return content if isinstance(content, dict) else {}
    return {}
