"""Quotes: signed offers of a query at a price, valid for 15 minutes.

Guarantee:
    A purchase with a quote runs the quote's query under the quote's policy, at its event and price; or at no cost if the
    query was answered in the meantime. Anything else is refused before a charge.

Needs:
    The ledger's secret: anybody who has it can sign. Nothing is stored, so any process of the service can read a quote.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidegate.accounting import Event
from tidegate.answer import Query
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.run import PlannedRequest, plan_request
from tidegate.answer.spending import Planning, RequestedLoss
from tidegate.answer.sql import plan_sql
from tidegate.errors import StaleQuote, Unsupported
from tidegate.ledger.entry import canonical, sha256
from tidegate.policy import Policy

SECONDS = 15 * 60
LONGEST = 48 * 1024  # characters: a quote must fit into a request
VERSION = 2


@dataclass(frozen=True)
class Quote:
    """A query and its price. `loss` is the requested loss, which can be slightly above the price."""

    dataset: str
    policy: str
    queries: tuple[Query, ...]
    loss: RequestedLoss
    planning: Planning
    event: str
    price: str
    expires: int
    sql: str = ""  # the statement whose queries these are

    @classmethod
    def of(
        cls,
        planned: PlannedRequest,
        *,
        loss: RequestedLoss,
        planning: Planning = "one-by-one",
        sql: str = "",
        now: float | None = None,
    ) -> Quote:
        """Create a quote that is valid from now on."""
        expires = int((time.time() if now is None else now) + SECONDS)
        named = {"dataset": planned.policy.dataset.name, "policy": planned.policy.fingerprint}
        priced = _priced(planned.event)
        return cls(**named, queries=planned.queries, loss=loss, planning=planning, **priced, expires=expires, sql=sql)

    @property
    def expires_at(self) -> str:
        return datetime.fromtimestamp(self.expires, UTC).isoformat()

    def sign(self, secret: bytes) -> str:
        """Return the quote as signed text."""
        body = {
            "version": VERSION,
            "dataset": self.dataset,
            "policy": self.policy,
            "questions": [query_to_dict(query) for query in self.queries],
            **({"sql": self.sql} if self.sql else {}),
            **self.loss.to_dict(),
            "plan": self.planning,
            "event": self.event,
            "price": self.price,
            "expires": self.expires,
        }
        text = canonical(body).encode()
        signed = f"{_encode(text)}.{_encode(_signature(text, secret))}"
        if len(signed) > LONGEST:
            raise Unsupported("These queries are too long for one quote.", "Split them into several quotes.")
        return signed

    def refuse_stale(self, policy: Policy, *, clock: Callable[[], float] = time.time) -> None:
        """Raise StaleQuote if the quote has expired, or if its policy or price has changed."""
        if clock() > self.expires:
            raise _stale("This quote has expired")
        if (self.dataset, self.policy) != (policy.dataset.name, policy.fingerprint):
            raise _stale("This quote is for another data set or an earlier policy")
        if self.sql and plan_sql(self.sql, policy).queries != self.queries:
            raise _stale("This SQL now stands for other queries")
        planned = plan_request(self.queries, policy, loss=self.loss, planning=self.planning)
        if _priced(planned.event) != {"event": self.event, "price": self.price}:
            raise _stale("The price of this query has changed")


def read_quote(text: str, secret: bytes) -> Quote:
    """Return the quote of a signed text; refuse it if the signature is not valid."""
    body, _, signature = text.partition(".")
    content, signed = _decode(body), _decode(signature)
    if not content or not hmac.compare_digest(_signature(content, secret), signed):
        raise Unsupported("This is not a valid quote of this service.", "Request a quote and send it unchanged.")
    parts: dict[str, Any] = json.loads(content)
    if parts["version"] != VERSION:
        raise _stale("This quote is from another version of the service")
    return Quote(
        parts["dataset"],
        parts["policy"],
        tuple(query_from_dict(question) for question in parts["questions"]),
        RequestedLoss.from_dict(parts),
        parts["plan"],
        parts["event"],
        parts["price"],
        parts["expires"],
        parts.get("sql", ""),
    )


def quote_secret(secret: bytes) -> bytes:
    """Return the key that signs quotes, derived from the service's secret."""
    return hmac.new(secret, b"tidegate quote", hashlib.sha256).digest()


def _priced(event: Event) -> dict[str, str]:
    price = event.price
    return {"event": sha256(canonical(event.to_dict())), "price": str(price.z if price.pure is None else price.pure)}


def _stale(what: str) -> StaleQuote:
    return StaleQuote(f"{what}, so nothing was charged.", "Request a new quote and check its price.")


def _signature(content: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, content, hashlib.sha256).digest()


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
