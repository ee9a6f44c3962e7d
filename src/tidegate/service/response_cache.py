"""Responses that are still true, kept as they were sent.

A preview, a derivation and an answer that was given before follow from the question, the policy, the entries of the account
and whether its source changed, and from nothing else. Entries are only added, and each holds the hash of the one before: while the account's last
entry is the same, so is every such response, to the last digit.

Guarantee  The last entry is read anew for every request, so a charge by any process counts at once. What is made while
           others write is kept under the entry before theirs, which is never the last one again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import Response
from pydantic_core import to_json

from tidegate.ledger import queries
from tidegate.service.datasets import Holding
from tidegate.session import Session

MOST_BYTES = 8 * 1024 * 1024  # of a data set's responses; then all are let go


class Unchanged:
    """The responses about one data set since something was last written to its account."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._head, self._bytes = "", 0
        self._kept: dict[str, bytes] = {}

    def response(self, asked: str, make: Callable[[], dict[str, Any]], *, charges: bool = False) -> Response:
        """The response to what was asked: the one kept, where it still holds, or else a new one. What `charges` is kept
        only where it cost nothing: the one who paid is told so once."""
        head = self._read_head()
        with self._turn:
            found = self._kept.get(asked) if head and head == self._head else None
        if found is None:
            made = make()
            found = as_bytes(made)
            if head and not (charges and made["cost"] != "0"):
                self._keep(head, asked, found)
        return sent(found)

    def _keep(self, head: str, asked: str, content: bytes) -> None:
        with self._turn:
            if head != self._head or self._bytes + len(content) + len(asked) > MOST_BYTES:
                self._head, self._bytes, self._kept = head, 0, {}
            self._bytes += len(content) + len(asked)
            self._kept[asked] = content

    def _read_head(self) -> str:
        """The account's last entry and the state of its source; empty where the policy's account is still to be opened."""
        policy = self._session.policy
        with self._session.ledger.store.reading() as connection:
            entry = queries.head(connection, policy.dataset.name)
        if not entry or entry.policy != policy.fingerprint:
            return ""
        return f"{entry.hash} {self._session.ledger.source_index(policy.dataset.name)}"


_of_holdings: WeakKeyDictionary[Holding, Unchanged] = WeakKeyDictionary()
_turn = threading.Lock()


def unchanged(held: Holding) -> Unchanged:
    """The responses about a data set that is held; with another policy it is held anew, and they are forgotten."""
    with _turn:
        return _of_holdings.setdefault(held, Unchanged(held.session))


def as_bytes(content: dict[str, Any]) -> bytes:
    """Values as JSON; what is no finite number is null, as everywhere."""
    return to_json(content, inf_nan_mode="null")


def sent(content: bytes) -> Response:
    """A response made where the work was done: FastAPI would check and write it in a second thread."""
    return Response(content, media_type="application/json")
