"""The caller of a request: from a token, a sign-in, or public.

A verified token is remembered for five minutes by an HMAC of it, so that the slow hash is not computed for every request.
Whether it was revoked or has expired is looked up every second.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate.accounting import Amount
from tidegate.errors import NotAllowed, NotSignedIn
from tidegate.ledger.tokens import StoredToken, Tokens
from tidegate.service.access.permissions import PUBLIC, RESPONDENT
from tidegate.service.access.rate_limits import Buckets
from tidegate.service.access.sessions import hash_cookie
from tidegate.service.access.tokens import may_be_valid, record_hash, verify_token

REMEMBERED, FRESH, MOST = 300.0, 1.0, 10_000  # seconds, seconds, callers


@dataclass(frozen=True)
class Caller:
    """The caller of a request. `name` is the `who` of ledger entries; `dataset` is empty if the token is for all data sets."""

    role: str = PUBLIC
    name: str = ""
    dataset: str = ""
    token: str = ""
    share: Amount | None = None
    record: str = ""
    cookie: str = ""

    def refuse_other(self, dataset: str) -> None:
        """Raise NotAllowed if the token is for another data set, whether that one exists or not."""
        if self.dataset and self.dataset != dataset:
            raise NotAllowed("This token is for another data set.")

    def refuse_other_records(self, secret: bytes, dataset: str, keys: list[str]) -> None:
        """Raise NotAllowed if a respondent requests anything but their own record."""
        if self.role != RESPONDENT:
            return
        hashes = [record_hash(secret, dataset, key) for key in keys]
        if len(hashes) != 1 or not hmac.compare_digest(hashes[0], self.record):
            raise NotAllowed("This token is for another record.")


class Callers:
    """Finds callers by token or cookie."""

    def __init__(self, tokens: Tokens, wrong: Buckets) -> None:
        self.tokens, self._wrong = tokens, wrong
        self._key = secrets.token_bytes(32)
        self._known: dict[
            bytes, tuple[StoredToken, float, float]
        ] = {}  # token, time of verification, time of last lookup
        self._turn = threading.Lock()

    def remembered(self, given: str, *, cookie: bool) -> Caller | None:
        """Return the caller if the token or cookie was verified recently and looked up just now, without reading anything."""
        found, now = self._known.get(self._name(given, cookie)), time.monotonic()
        if found is None or now - found[1] > REMEMBERED or now - found[2] > FRESH:
            return None
        return _caller(found[0], given if cookie else "")

    def recheck(self, given: str) -> Caller | None:
        """Return the caller of a token that was verified before and is still valid; one lookup."""
        kept = self._look_up(given, cookie=False)
        return _caller(kept) if kept else None

    def verify(self, given: str, *, address: str) -> Caller:
        """Return the caller of a token, or raise NotSignedIn; the cost does not depend on what is wrong.

        Guarantee:
            Invalid tokens never lock out a valid one. If an address has sent too many, a token that cannot be valid (its id is
            unknown, expired, or revoked) is refused without the slow hash; any other token is still verified.
        """
        if self.is_slowed(address) and not may_be_valid(self.tokens, given):
            self._wrong.take(address)
        kept = verify_token(self.tokens, given)
        if kept is None:
            self._wrong.take(address)
            raise _invalid_token()
        self._remember(given, kept, cookie=False)
        return _caller(kept)

    def is_slowed(self, address: str) -> bool:
        """Return whether an address has sent too many invalid tokens recently."""
        return not self._wrong.has(address)

    def by_cookie(self, given: str) -> Caller:
        """Return the caller of a sign-in cookie."""
        token = self.tokens.signed_in(hash_cookie(given))
        kept = self.tokens.find(token) if token else None
        if kept is None or kept.over(datetime.now(UTC)):
            raise _invalid_token()
        self._remember(given, kept, cookie=True)
        return _caller(kept, given)

    def forget(self) -> None:
        """Forget all callers, because a user signed out or a token was revoked."""
        with self._turn:
            self._known.clear()

    def _look_up(self, given: str, *, cookie: bool) -> StoredToken | None:
        """Look up a token that was verified before; return it if it is still valid."""
        name, now = self._name(given, cookie), time.monotonic()
        found = self._known.get(name)
        if found is None or now - found[1] > REMEMBERED:
            return None
        kept = self.tokens.find(found[0].id)
        with self._turn:
            if kept is None or kept.over(datetime.now(UTC)):
                self._known.pop(name, None)
                return None
            self._known[name] = (kept, found[1], now)
        return kept

    def _remember(self, given: str, kept: StoredToken, *, cookie: bool) -> None:
        now = time.monotonic()
        with self._turn:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[self._name(given, cookie)] = (kept, now, now)

    def _name(self, given: str, cookie: bool) -> bytes:
        text = given.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, (b"cookie " if cookie else b"token ") + text, hashlib.sha256).digest()


def _caller(kept: StoredToken, cookie: str = "") -> Caller:
    share = Amount.parse(kept.share) if kept.share else None
    return Caller(kept.role, kept.name, kept.dataset, kept.id, share, kept.record, cookie)


def _invalid_token() -> NotSignedIn:
    return NotSignedIn(
        "This token is not valid: it is unknown, expired, or revoked.", "Ask the data holder for a new token."
    )
