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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidegate.accounting import Amount
from tidegate.errors import NotAllowed, NotSignedIn
from tidegate.ledger.sessions import Sessions, StoredSession
from tidegate.ledger.tokens import StoredToken, Tokens, passed
from tidegate.service.access.activity import Activity
from tidegate.service.access.permissions import PUBLIC, RESPONDENT
from tidegate.service.access.rate_limits import Buckets, host_of
from tidegate.service.access.sessions import hash_cookie
from tidegate.service.access.tokens import may_be_valid, record_hash, verify_token

REMEMBERED, FRESH, MOST = 300.0, 1.0, 10_000  # seconds, seconds, callers
Renew = Callable[[StoredSession, StoredToken, str], StoredToken | None]


@dataclass(frozen=True)
class Caller:
    """The caller of a request. `name` is the `who` of ledger entries.

    `dataset` is empty if the token is for all data sets, and can be several names with commas for an analyst.
    """

    role: str = PUBLIC
    name: str = ""
    dataset: str = ""
    token: str = ""
    share: Amount | None = None
    record: str = ""
    cookie: str = ""

    def can_use(self, dataset: str) -> bool:
        """Return whether the token is for a data set, among others."""
        return not self.dataset or dataset in self.dataset.split(",")

    def refuse_other(self, dataset: str) -> None:
        """Raise NotAllowed if the token is for another data set, whether that one exists or not."""
        if not self.can_use(dataset):
            raise NotAllowed("This token is for another data set.")

    def refuse_part(self) -> None:
        """Raise NotAllowed if the token is for one data set: only an owner of all can add or change data sets."""
        if self.dataset:
            raise NotAllowed("This token is for one data set, so it cannot add data sets or change policies.")

    def refuse_other_records(self, secret: bytes, dataset: str, keys: list[str]) -> None:
        """Raise NotAllowed if a respondent requests anything but their own record."""
        if self.role != RESPONDENT:
            return
        hashes = [record_hash(secret, dataset, key) for key in keys]
        if len(hashes) != 1 or not hmac.compare_digest(hashes[0], self.record):
            raise NotAllowed("This token is for another record.")


class Callers:
    """Finds callers by token or cookie."""

    def __init__(self, tokens: Tokens, wrong: Buckets, *, idle: float = 30.0, renew: Renew | None = None) -> None:
        """`idle` is the number of minutes without a request after which a session ends; `renew` asks the provider again."""
        self.tokens, self._wrong = tokens, wrong
        self.sessions = Sessions(tokens.store)
        self.activity = Activity(tokens, self.sessions)
        self.idle, self.renew = timedelta(minutes=idle), renew
        self._key = secrets.token_bytes(32)
        # by hash: the token, the time of verification, the time of the last lookup
        self._known: dict[bytes, tuple[StoredToken, float, float]] = {}
        self._turn = threading.Lock()
        self._secret, self._secret_until = b"", 0.0

    def secret(self) -> bytes:
        """Return the secret of the service. It is read again after a second: `tidegate ledger rotate` can replace it."""
        now = time.monotonic()
        if now >= self._secret_until:
            self._secret, self._secret_until = self.tokens.secret(), now + FRESH
        return self._secret

    def find_remembered(self, credential: str, *, cookie: bool) -> Caller | None:
        """Return the caller if the token or cookie was verified recently and looked up just now, without reading anything."""
        remembered, now = self._known.get(self._name(credential, cookie)), time.monotonic()
        if remembered is None or now - remembered[1] > REMEMBERED or now - remembered[2] > FRESH:
            return None
        return caller_of(remembered[0], credential if cookie else "")

    def recheck(self, credential: str) -> Caller | None:
        """Return the caller of a token that was verified before and is still valid; one lookup."""
        stored = self._look_up(credential, cookie=False)
        return caller_of(stored) if stored else None

    def verify(self, credential: str, *, address: str) -> Caller:
        """Return the caller of a token, or raise NotSignedIn; the cost does not depend on what is wrong.

        Guarantee:
            Invalid tokens never lock out a valid one. If an address has sent too many, a token that cannot be valid (its id is
            unknown, expired, or revoked) is refused without the slow hash; any other token is still verified.
        """
        if self.is_slowed(address) and not self.may_be_valid(credential):
            self._wrong.take(host_of(address))
        stored = verify_token(self.tokens, credential)
        if stored is None:
            self._wrong.take(host_of(address))
            raise _invalid_token()
        self._remember(credential, stored, cookie=False)
        return caller_of(stored)

    def is_slowed(self, address: str) -> bool:
        """Return whether an address has sent too many invalid tokens recently, to any process that shares the limit."""
        return not self._wrong.has(host_of(address))

    def may_be_valid(self, credential: str) -> bool:
        """Return whether a token has the id of a valid one; one lookup, no hash."""
        return may_be_valid(self.tokens, credential)

    def by_cookie(self, credential: str) -> Caller:
        """Return the caller of a session's cookie."""
        session, now = self.sessions.find(hash_cookie(credential)), datetime.now(UTC)
        stored = self.tokens.find(session.token) if session else None
        if session is None or stored is None or stored.over(now) or self.is_idle(session, now):
            raise _invalid_token()
        if passed(session.renew, now):
            stored = self.renew(session, stored, credential) if self.renew else None
            if stored is None:
                raise _invalid_token()
        self._remember(credential, stored, cookie=True)
        return caller_of(stored, credential)

    def last_seen(self, session: StoredSession) -> datetime:
        """Return the time of a session's last request, as far as this process knows."""
        stored = datetime.fromisoformat(session.seen)
        return max(stored, self.activity.last_seen(session.id) or stored)

    def is_idle(self, session: StoredSession, now: datetime) -> bool:
        """Return whether a session has ended because there was no request for too long."""
        return now - self.last_seen(session) > self.idle

    def forget(self) -> None:
        """Forget all callers, because a user signed out or a token was revoked."""
        with self._turn:
            self._known.clear()

    def _look_up(self, credential: str, *, cookie: bool) -> StoredToken | None:
        """Look up a token that was verified before; return it if it is still valid."""
        name, now = self._name(credential, cookie), time.monotonic()
        remembered = self._known.get(name)
        if remembered is None or now - remembered[1] > REMEMBERED:
            return None
        stored = self.tokens.find(remembered[0].id)
        with self._turn:
            if stored is None or stored.over(datetime.now(UTC)):
                self._known.pop(name, None)
                return None
            self._known[name] = (stored, remembered[1], now)
        return stored

    def _remember(self, credential: str, stored: StoredToken, *, cookie: bool) -> None:
        now = time.monotonic()
        with self._turn:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[self._name(credential, cookie)] = (stored, now, now)

    def _name(self, credential: str, cookie: bool) -> bytes:
        text = credential.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, (b"cookie " if cookie else b"token ") + text, hashlib.sha256).digest()


def caller_of(stored: StoredToken, cookie: str = "") -> Caller:
    """Return the caller that a stored token stands for."""
    share = Amount.parse(stored.share) if stored.share else None
    return Caller(stored.role, stored.name, stored.dataset, stored.id, share, stored.record, cookie)


def _invalid_token() -> NotSignedIn:
    return NotSignedIn(
        "This token is not valid: it is unknown, expired, or revoked.", "Ask the data holder for a new token."
    )
