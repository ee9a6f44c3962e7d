"""Users of an OpenID Connect provider: admission by groups, renewal of their sessions, sign-out at the provider.

A user is an issuer and a subject. Their name in the ledger is given at the first sign-in and never changes: spending is counted by
name, so a user who could change it would get a new budget share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.accounting import Amount
from tidegate.errors import NotSignedIn, Unreachable
from tidegate.exact import exact
from tidegate.ledger.sessions import StoredSession
from tidegate.ledger.tokens import StoredToken, stamp
from tidegate.service.access.callers import Callers
from tidegate.service.access.groups import Grant, grant_of, read_groups
from tidegate.service.access.sessions import new_session
from tidegate.service.access.tokens import LONGEST_NAME
from tidegate.service.logs import log_event
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from tidegate.service.access.provider import Identity, Provider

CALLBACK = "/console/sign-in/oidc/callback"
RETRY = timedelta(seconds=60)  # until a provider that did not respond is asked again


class Oidc:
    """The users of the service's provider. Authlib is imported when the first of them signs in."""

    def __init__(self, settings: Settings, callers: Callers) -> None:
        self._settings, self._callers = settings, callers
        self._mapping = read_groups(settings.oidc_groups)
        self._interval = timedelta(minutes=settings.oidc_minutes)
        callers.renew = self.renew

    @cached_property
    def provider(self) -> Provider:
        from tidegate.service.access.provider import Provider

        return Provider(self._settings, self._callers.tokens.secret())

    def begin(self, address: str, next_page: str) -> tuple[str, str]:
        """Return the URL of a sign-in at the provider, and the value of its cookie."""
        return self.provider.begin(address + CALLBACK, next_page)

    def finish(self, flow: str, query: Mapping[str, str], address: str) -> tuple[StoredToken, str, str]:
        """Start a session for the user whom the provider sent back; return token, cookie and the page to open."""
        identity, next_page = self.provider.finish(flow, query, address + CALLBACK)
        token = self._admit(identity)
        cookie, session = new_session(token.id, method="oidc", hours=self._settings.sign_in_hours)
        self._callers.sessions.start(replace(session, **self._confirmation(identity, cookie)), user=token.name)
        return token, cookie, next_page

    def renew(self, session: StoredSession, token: StoredToken, cookie: str) -> StoredToken | None:
        """Ask the provider whether a session goes on; return its token, or None if it has ended.

        While the provider does not respond, the session goes on until its `lapse`.
        """
        from tidegate.service.access.provider import derive_key, unseal

        sessions, now = self._callers.sessions, datetime.now(UTC)
        if not sessions.claim_renewal(session, until=now + RETRY):
            return token  # another request asks
        sealed = unseal(derive_key(cookie.encode(), SEALED), session.sealed) or {}
        try:
            identity = self.provider.renew(str(sealed.get("refresh_token", "")), token.identity.partition(" ")[2])
            renewed = self._admit(identity)
        except Unreachable:
            log_event("provider-unreachable")
            return token
        except NotSignedIn:
            sessions.end(session.id)
            return None
        confirmed = self._confirmation(identity, cookie)
        times = {name: datetime.fromisoformat(confirmed[name]) for name in ("renew", "lapse")}
        sessions.renew(session.id, **times, sealed=confirmed["sealed"])
        return renewed

    def sign_out_url(self, cookie: str, session: StoredSession | None, back: str) -> str:
        """Return the URL that ends the session at the provider too; empty if there is none, or it does not respond."""
        from tidegate.service.access.provider import derive_key, unseal

        sealed = unseal(derive_key(cookie.encode(), SEALED), session.sealed) if session else None
        if not sealed or "id_token" not in sealed:
            return ""
        try:
            return self.provider.sign_out_url(str(sealed["id_token"]), back)
        except Unreachable:
            log_event("provider-unreachable")
            return ""

    def _confirmation(self, identity: Identity, cookie: str) -> dict[str, str]:
        """Return the fields of a session that the provider confirmed now. Without a refresh token it ends after the interval."""
        from tidegate.service.access.provider import derive_key, seal

        now, can_renew = datetime.now(UTC), "refresh_token" in identity.tokens
        return {
            "renew": stamp(now + self._interval) if can_renew else "",
            "lapse": stamp(now + (2 if can_renew else 1) * self._interval),
            "sealed": seal(derive_key(cookie.encode(), SEALED), identity.tokens),
        }

    def _admit(self, identity: Identity) -> StoredToken:
        """Return the access of a user, created or changed as their groups require, or refuse them."""
        grant = grant_of(identity.groups, self._mapping)
        if grant is None:
            raise NotSignedIn(
                "Your account is in no group that has access to this service.", "Ask the data holder for access."
            )
        tokens, key = self._callers.tokens, f"{identity.issuer} {identity.subject}"
        public = hashlib.sha256(key.encode()).hexdigest()[:16]
        stored = tokens.find(public)
        if stored is None:
            created = _access(public, key, self._free_name(identity), grant)
            tokens.add(created)
            return created
        if stored.revoked:
            raise NotSignedIn("An owner revoked your access to this service.", "Ask the data holder for a token.")
        changed = replace(stored, role=grant.role, dataset=grant.dataset, share=_amount(grant.share))
        if changed != stored:
            tokens.change(changed, user=f"groups of {stored.name}")
            self._callers.forget()
        return changed

    def _free_name(self, identity: Identity) -> str:
        """Return the name of a new user. No other user has it, so that nobody spends under the name of another."""
        printable = "".join(sign if sign.isprintable() else " " for sign in identity.name)
        wished = " ".join(printable.split())[: LONGEST_NAME - 5] or "user"
        taken = {token.name for token in self._callers.tokens.all()}
        candidates = (wished, *(f"{wished} {number}" for number in range(2, len(taken) + 3)))
        return next(name for name in candidates if name not in taken)


SEALED = b"tidegate provider tokens"


def _access(public: str, key: str, name: str, grant: Grant) -> StoredToken:
    share = _amount(grant.share)
    times = {"made": stamp(datetime.now(UTC)), "expires": ""}
    fields = {"salt": "", "hash": "", "role": grant.role, "dataset": grant.dataset, "record": "", "share": share}
    return StoredToken(id=public, name=name, **fields, **times, maker=f"groups of {name}", identity=key)


def _amount(share: str) -> str:
    return str(Amount.down(exact(share))) if share else ""
