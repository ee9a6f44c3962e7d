"""The caller of a request: a token's, a sign-in's, or the public.

A token that was found right is remembered for a while by an HMAC of it, so that its slow hash is not computed for every
request; whether it was revoked or has expired is looked up anew each second.
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
from tidegate.service.access.sessions import kept_name
from tidegate.service.access.tokens import may_be_valid, record_hash, verify

REMEMBERED, FRESH, MOST = 300.0, 1.0, 10_000  # seconds, seconds, callers


@dataclass(frozen=True)
class Caller:
    """Who asks. `name` is the `who` of entries; `dataset` is empty where the token is for all; `cookie` says how it came."""

    role: str = PUBLIC
    name: str = ""
    dataset: str = ""
    token: str = ""
    share: Amount | None = None
    record: str = ""
    cookie: str = ""

    def refuse_other(self, dataset: str) -> None:
        """NotAllowed where the token is for another data set, whether that exists or not."""
        if self.dataset and self.dataset != dataset:
            raise NotAllowed("this token is for another data set.")

    def refuse_other_records(self, secret: bytes, dataset: str, keys: list[str]) -> None:
        """NotAllowed where a respondent asks for anything but the own record."""
        if self.role != RESPONDENT:
            return
        hashes = [record_hash(secret, dataset, key) for key in keys]
        if len(hashes) != 1 or not hmac.compare_digest(hashes[0], self.record):
            raise NotAllowed("this token is for one record, and not for this one.")


class Callers:
    """Finds callers by what they bring."""

    def __init__(self, tokens: Tokens, wrong: Buckets) -> None:
        self.tokens, self._wrong = tokens, wrong
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, tuple[StoredToken, float, float]] = {}  # kept, when verified, when last looked up
        self._turn = threading.Lock()

    def remembered(self, given: str, *, cookie: bool) -> Caller | None:
        """The caller where this was verified lately and looked up just now: nothing is read."""
        found, now = self._known.get(self._name(given, cookie)), time.monotonic()
        if found is None or now - found[1] > REMEMBERED or now - found[2] > FRESH:
            return None
        return _caller(found[0], given if cookie else "")

    def again(self, given: str) -> Caller | None:
        """The caller of a token that was verified before and still opens something: one look-up."""
        kept = self._looked_up(given, cookie=False)
        return _caller(kept) if kept else None

    def verified(self, given: str, *, address: str) -> Caller:
        """The caller of a token, or NotSignedIn at the same cost whatever is wrong.

        Guarantee  Wrong tokens never keep a valid one out. Once an address has sent too many, a token that cannot be valid
                   (its id is unknown, expired or revoked) is refused without the slow hash; any other is still verified.
        """
        if self.is_slowed(address) and not may_be_valid(self.tokens, given):
            self._wrong.take(address)
        kept = verify(self.tokens, given)
        if kept is None:
            self._wrong.take(address)
            raise _nobody()
        self._remember(given, kept, cookie=False)
        return _caller(kept)

    def is_slowed(self, address: str) -> bool:
        """Whether an address has sent more wrong tokens than are checked at full speed."""
        return not self._wrong.has(address)

    def by_cookie(self, given: str) -> Caller:
        """The caller of a sign-in."""
        token = self.tokens.signed_in(kept_name(given))
        kept = self.tokens.find(token) if token else None
        if kept is None or kept.over(datetime.now(UTC)):
            raise _nobody()
        self._remember(given, kept, cookie=True)
        return _caller(kept, given)

    def forget(self) -> None:
        """Look everything up anew: somebody signed out, or a token was revoked here."""
        with self._turn:
            self._known.clear()

    def _looked_up(self, given: str, *, cookie: bool) -> StoredToken | None:
        """A token that was verified before and still opens something, looked up now."""
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


def _nobody() -> NotSignedIn:
    return NotSignedIn(
        "this token opens nothing: it is wrong, expired or revoked.", "Ask the data holder for a new one."
    )
