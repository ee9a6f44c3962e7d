"""One JSON log line per request: its kind and outcome, never its content.

A line contains the path template (not the path), the status, the duration, the role, the id of the token, and the request's id.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("tidegate.service")
NOTICED = ("tidegate.ledger", "tidegate.tables")  # their sentences name files and addresses, and no value
LEVELS = {
    "defect": logging.ERROR,
    **dict.fromkeys(("policy-not-taken", "provider-unreachable", "provider-refused"), logging.WARNING),
}


def log_event(event: str, **facts: Any) -> None:
    """Write a log line. Work that fails and is tried again is a warning."""
    is_failure = event.endswith(("-failed", "-lost", "-interrupted"))
    LOG.log(LEVELS.get(event, logging.WARNING if is_failure else logging.INFO), event, extra={"facts": facts})


class Lines(logging.Formatter):
    """Formats records as JSON lines. Arguments and tracebacks of other loggers are omitted: they can hold values."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        facts = getattr(record, "facts", None)
        if facts is not None:
            return json.dumps({**line, "event": record.getMessage(), **facts})
        if record.name in NOTICED and not record.exc_info:
            return json.dumps({**line, "event": "notice", "text": record.getMessage()})
        if record.name.startswith("uvicorn") and not record.exc_info:
            return json.dumps({**line, "event": record.getMessage()})
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        return json.dumps({**line, "event": "elsewhere", "module": record.module, "line": record.lineno, "kind": kind})


def to_stream(stream: Any = None) -> None:
    """Send all log lines of this process to a stream (standard error by default)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines())
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)
    LOG.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", *NOTICED):
        logging.getLogger(name).handlers, logging.getLogger(name).propagate = [], True
        logging.getLogger(name).setLevel(logging.INFO)
