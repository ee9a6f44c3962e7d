"""One line of JSON for each request: what kind it was and how it went, never what it said.

A line holds the template of the address (not the address), the status, the time taken, the role and the request's id.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("tidegate.service")


def tell(event: str, **facts: Any) -> None:
    """Write a line."""
    LOG.info(event, extra={"facts": facts})


class Lines(logging.Formatter):
    """Records as JSON lines. Other loggers' arguments and tracebacks are left out: they may hold values."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        facts = getattr(record, "facts", None)
        if facts is not None:
            return json.dumps({**line, "event": record.getMessage(), **facts})
        if record.name.startswith("uvicorn") and not record.exc_info:
            return json.dumps({**line, "event": record.getMessage()})
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        return json.dumps({**line, "event": "elsewhere", "module": record.module, "line": record.lineno, "kind": kind})


def to_stream(stream: Any = None) -> None:
    """Send all lines of this process to a stream (the error stream, where none is named)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines())
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)
    LOG.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers, logging.getLogger(name).propagate = [], True
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
