"""A release desk, asked from afar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tidegate.session.http import ServiceClient

KEYS = 1000  # asked at once


@dataclass(frozen=True)
class RemoteDesk:
    """A release desk. Outcomes are dictionaries: released (with the record), deferred (with the place), or refused."""

    _client: ServiceClient
    _place: str

    def request(self, key: str | int) -> dict[str, Any]:
        """Ask for the record of a key."""
        return self.request_many([key])[str(key)]

    def request_many(self, keys: Iterable[str | int]) -> dict[str, dict[str, Any]]:
        """Ask for many records in order. A request is decided once, however often it comes."""
        wanted = list(dict.fromkeys(str(key) for key in keys))
        told: dict[str, dict[str, Any]] = {}
        for start in range(0, len(wanted), KEYS):
            part = wanted[start : start + KEYS]
            found = self._client.post(f"{self._place}/requests", {"keys": part}, again=True)["outcomes"]
            told |= dict(zip(part, found, strict=True))
        return told

    def status(self, key: str | int) -> dict[str, Any]:
        """Where a request stands."""
        return dict(self._client.post(f"{self._place}/status", {"key": str(key)}, again=True))

    def withdraw(self, key: str | int) -> None:
        """Take a waiting request back."""
        self._client.post(f"{self._place}/withdrawals", {"key": str(key)})

    def released(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """The records that left after a cursor, and the next cursor."""
        records: list[dict[str, Any]] = []
        after: int | None = since
        cursor = since
        while after is not None:
            page = self._client.get(f"{self._place}/released", after=after, limit=1000)
            records, cursor, after = records + page["records"], page["cursor"], page["next"]
        return records, cursor

    def state(self) -> dict[str, Any]:
        """Exposure against its critical values, shares and queue: for an owner."""
        return dict(self._client.get(self._place))

    def audit(self, **wanted: Any) -> list[dict[str, Any]]:
        """How well simulated observers name a sensitive group from what leaves: worlds, records, profile, seed."""
        return list(self._client.post(f"{self._place}/audits", wanted, again=True)["observations"])
