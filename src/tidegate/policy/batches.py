"""The schedule on which received reports are counted: the `batch` of a collection.

batch = "close"                                  one batch, when the collection closes
batch = { at_least = 500, every = "1 day" }      at each slot with at least this number waiting; the rest, at the close
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

UNITS = {"week": 7 * 86_400, "day": 86_400, "hour": 3_600, "minute": 60}
SPAN = re.compile(r"([1-9][0-9]{0,4}) (week|day|hour|minute)s?")
LEAST, MOST = 10, 1_000_000


@dataclass(frozen=True)
class BatchRule:
    """The minimum number of reports that are counted together, and the seconds between slots (None: only at the close).

    Slots are the multiples of `every` since 1970-01-01 00:00 UTC; weeks therefore start on a Thursday.
    """

    at_least: int
    every: int | None

    def __str__(self) -> str:
        if self.every is None:
            return "reports are counted when the collection closes"
        return f"reports are counted every {_span(self.every)} if at least {self.at_least:,} wait, and at the close"

    def slot(self, now: datetime) -> datetime | None:
        """Return the last scheduled time up to `now`; None if reports are only counted at the close."""
        if self.every is None:
            return None
        seconds = int(now.timestamp()) // self.every * self.every
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)

    def rounded(self, waiting: int) -> int:
        """Round the number of waiting reports down to a multiple of the minimum: that much can be shown."""
        return waiting // self.at_least * self.at_least

    def to_value(self) -> Any:
        """Return the value of the key `batch`."""
        return "close" if self.every is None else {"at_least": self.at_least, "every": _span(self.every)}


DEFAULT = BatchRule(100, UNITS["day"])
AT_CLOSE = BatchRule(100, None)


def read_batch(value: Any) -> BatchRule:
    """Read the key `batch`.

    Raises:
        ValueError: It is neither "close" nor a table of `at_least` and `every`.
    """
    if value == "close":
        return AT_CLOSE
    if not isinstance(value, Mapping) or set(value) != {"at_least", "every"}:
        raise ValueError('"close" or { at_least = 500, every = "1 day" } is required')
    least, span = value["at_least"], value["every"]
    if isinstance(least, bool) or not isinstance(least, int) or not LEAST <= least <= MOST:
        raise ValueError(f"`at_least` must be a whole number from {LEAST} to {MOST:,}")
    span_match = SPAN.fullmatch(span) if isinstance(span, str) else None
    if span_match is None:
        raise ValueError('`every` must be a time such as "12 hours", "1 day" or "2 weeks"')
    return BatchRule(least, int(span_match[1]) * UNITS[span_match[2]])


def _span(seconds: int) -> str:
    unit, size = next((unit, size) for unit, size in UNITS.items() if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}{'s' if count > 1 else ''}"
