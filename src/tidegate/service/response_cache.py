"""Cached responses that are still valid.

A preview, a derivation and a repeated answer depend only on the query, the policy, the account's entries, and whether the
source changed. Entries are append-only and each contains the hash of the previous one. While the account's last entry is the
same, every such response is the same, to the last digit.

Guarantee:
    The last entry is read for every request, so a charge by any process counts immediately. A response that is computed
    during another write is cached under the entry before it, which is never the last one again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import Response
from pydantic_core import to_json

from tidegate.ledger import queries
from tidegate.service.datasets import ServedDataset
from tidegate.session import Session

MOST_BYTES = 8 * 1024 * 1024  # per data set; then all cached responses are dropped


class ResponseCache:
    """Responses about one data set since the last write to its account."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._head, self._bytes = "", 0
        self._cached: dict[str, bytes] = {}

    def response(self, request: str, make: Callable[[], dict[str, Any]], *, charges: bool = False) -> Response:
        """Return the cached response if it is still valid, or else a new one.

        A response of a request that `charges` is cached only if it cost nothing: a charge is reported once.
        """
        head = self._read_head()
        with self._turn:
            content = self._cached.get(request) if head and head == self._head else None
        if content is None:
            values = make()
            content = as_bytes(values)
            if head and not (charges and values["cost"] != "0"):
                self._add(head, request, content)
        return json_response(content)

    def _add(self, head: str, request: str, content: bytes) -> None:
        with self._turn:
            if head != self._head or self._bytes + len(content) + len(request) > MOST_BYTES:
                self._head, self._bytes, self._cached = head, 0, {}
            self._bytes += len(content) + len(request)
            self._cached[request] = content

    def _read_head(self) -> str:
        """Return the account's last entry and its source's state; empty if the policy's account is not open yet."""
        policy = self._session.policy
        with self._session.ledger.store.reading() as connection:
            entry = queries.head(connection, policy.dataset.name)
        if not entry or entry.policy != policy.fingerprint:
            return ""
        return f"{entry.hash} {self._session.ledger.source_index(policy.dataset.name)}"


_caches: WeakKeyDictionary[ServedDataset, ResponseCache] = WeakKeyDictionary()
_turn = threading.Lock()


def response_cache(served: ServedDataset) -> ResponseCache:
    """Return the cache of a served data set. A changed policy creates a new one, with an empty cache."""
    with _turn:
        return _caches.setdefault(served, ResponseCache(served.session))


def as_bytes(content: dict[str, Any]) -> bytes:
    """Return values as JSON; numbers that are not finite become null."""
    return to_json(content, inf_nan_mode="null")


def json_response(content: bytes) -> Response:
    """Return a response from bytes: FastAPI would validate and encode values in a second thread."""
    return Response(content, media_type="application/json")
