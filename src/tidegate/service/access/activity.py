"""What callers do, collected in memory and written now and then: last requests of sessions, days of use, totals of refusals.

No request waits for these writes. Refusals become one entry of the ledger with totals: the first after a minute, then at
intervals that double up to an hour while refusals go on. So a process writes at most 30 such entries in a day, whatever is sent to it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tidegate.ledger.sessions import Sessions
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.rate_limits import network_of

SHORTEST, LONGEST = 60.0, 3600.0  # seconds between two entries about refusals
MOST_NAMES, MOST_NETWORKS = 10, 10_000


class Activity:
    """The activity of all callers of this process since the last write."""

    def __init__(self, tokens: Tokens, sessions: Sessions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens, self._sessions, self._clock = tokens, sessions, clock
        self._turn = threading.Lock()
        self._seen: dict[str, datetime] = {}  # by the id of the session
        self._used: set[str] = set()
        self._written: set[tuple[str, str]] = set()  # token and day
        self._counts: Counter[str] = Counter()
        self._networks: set[str] = set()
        self._names: set[str] = set()
        self._since, self._began = datetime.now(UTC), 0.0
        self._interval = SHORTEST

    def see(self, session: str) -> None:
        """Note a request of a session."""
        self._seen[session] = datetime.now(UTC)

    def last_seen(self, session: str) -> datetime | None:
        """Return the time of a session's last request, if it is not written yet."""
        return self._seen.get(session)

    def use(self, token: str) -> None:
        """Note the use of a token."""
        self._used.add(token)

    def refuse(self, reason: str, *, address: str, name: str = "") -> None:
        """Count a refusal. `reason` is a key of `tidegate.ledger.access.REASONS`, `name` the user if known."""
        with self._turn:
            if not self._counts:
                self._since, self._began = datetime.now(UTC), self._clock()
            self._counts[reason] += 1
            if len(self._networks) < MOST_NETWORKS:
                self._networks.add(network_of(address))
            if name and len(self._names) < MOST_NAMES:
                self._names.add(name)

    def write(self, *, closing: bool = False) -> None:
        """Write what was collected; refusals only if it is time, or the service stops."""
        seen, self._seen = self._seen, {}
        if seen:
            self._sessions.see(seen)
        self._write_uses()
        self._write_refusals(closing)

    def _write_uses(self) -> None:
        day = datetime.now(UTC).date().isoformat()
        used, self._used = self._used, set()
        new = {token for token in used if (token, day) not in self._written}
        if new:
            self._tokens.note_uses(sorted(new), day=day)
            self._written = {pair for pair in self._written if pair[1] == day} | {(token, day) for token in new}

    def _write_refusals(self, closing: bool) -> None:
        with self._turn:
            waited = self._clock() - self._began
            if not self._counts:
                self._interval = SHORTEST if waited > LONGEST else self._interval
                return
            if waited < self._interval and not closing:
                return
            facts: dict[str, Any] = {
                "since": self._since,
                "networks": len(self._networks),
                "names": sorted(self._names),
            }
            counts = self._counts
            self._counts, self._networks, self._names = Counter(), set(), set()
            self._interval = min(LONGEST, 2 * self._interval)
        self._tokens.note_refusals(counts, **facts)
