"""A release desk over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.release.result import Outcome, Outcomes, Records, outcome_from_dict
from tidegate.session.http import ServiceClient, read_response

MOST_KEYS = 1_000  # of one request
PAGE = 1_000  # records of one response


@dataclass(frozen=True)
class RemoteDesk:
    """Releases records under one concealment or hiding promise. Respondents can request their own record only."""

    _client: ServiceClient
    _path: str

    def request(self, key: str | int) -> Outcome:
        """Request the record of a key."""
        return self.request_many([key])[str(key)]

    def request_many(self, keys: Iterable[str | int]) -> Outcomes:
        """Request many records in order. A request is decided once, however often it is sent."""
        names = list(dict.fromkeys(str(key) for key in keys))
        outcomes = Outcomes()
        for start in range(0, len(names), MOST_KEYS):
            part = names[start : start + MOST_KEYS]
            data = self._client.post(f"{self._path}/requests", {"keys": part}, again=True)["outcomes"]
            outcomes.update(zip(part, map(_outcome, data), strict=True))
        return outcomes

    def status(self, key: str | int) -> Outcome:
        """Return the state of a request."""
        return _outcome(self._client.post(f"{self._path}/status", {"key": str(key)}, again=True))

    def withdraw(self, key: str | int) -> None:
        """Withdraw a waiting request and delete its record. Released records cannot be withdrawn."""
        self._client.post(f"{self._path}/withdrawals", {"key": str(key)})

    def released(self, since: int = 0, *, limit: int | None = None) -> tuple[Records, int]:
        """Return the records released after a cursor, and the next cursor."""
        records = Records()
        cursor = since
        while limit is None or len(records) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(records))
            page = self._client.get(f"{self._path}/released", after=cursor, limit=size)
            records.extend(page["records"])
            cursor = page["cursor"]
            if page["next"] is None:
                break
        return records, cursor

    def state(self) -> dict[str, Any]:
        """Return what was released, with exposure, shares and queue, or with the quotas of a hiding promise. Owners only."""
        return dict(self._client.get(self._path))

    def audit(
        self, *, worlds: int = 20, records: int = 400, profile: Sequence[float] = (), seed: int = 1
    ) -> list[dict[str, Any]]:
        """Simulate observers who guess a sensitive group from the released records. Owners only.

        Args:
            worlds: The number of simulated pairs of data sets.
            records: The number of records in each.
            profile: The distribution of values in a sensitive group; the policy's first profile if empty.
        """
        content = {"worlds": worlds, "records": records, "profile": list(profile), "seed": seed}
        return list(self._client.post(f"{self._path}/audits", content, again=True)["observations"])


def _outcome(data: Any) -> Outcome:
    return read_response(lambda: outcome_from_dict(data))
