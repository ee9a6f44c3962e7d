"""One-time sign-in links: ``/console/sign-in#tgl_<secret>``. They work once, within 15 minutes.

The secret is in the fragment, which browsers do not send. The service stores a hash of it: it has 256 random bits, so a fast
hash does not reveal it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime, timedelta

from tidegate.errors import NotSignedIn
from tidegate.ledger.sessions import Sessions
from tidegate.ledger.tokens import StoredToken
from tidegate.service.access.sessions import new_session

MINUTES = 15
PATH = "/console/sign-in"
FORM = re.compile(r"tgl_[A-Za-z0-9_-]{43}")


def make_link(sessions: Sessions, token: StoredToken, *, address: str, user: str) -> tuple[str, datetime]:
    """Create a link for a token's user at the address of the service; return it and its end."""
    secret, expires = f"tgl_{secrets.token_urlsafe(32)}", datetime.now(UTC) + timedelta(minutes=MINUTES)
    sessions.add_link(_hash(secret), token=token, expires=expires, user=user)
    return f"{address}{PATH}#{secret}", expires


def is_link(text: str) -> bool:
    """Return whether a text has the form of a link's secret."""
    return FORM.fullmatch(text) is not None


def use_link(sessions: Sessions, secret: str, *, hours: float) -> tuple[str, StoredToken]:
    """Start a session with the secret of a link; return its cookie and the token."""
    cookie, session = new_session("", method="link", hours=hours)
    token = sessions.use_link(_hash(secret), session)
    if token is None:
        raise NotSignedIn(
            f"This link is not valid: a link works once, within {MINUTES} minutes.",
            "Ask the data holder for a new link.",
        )
    return cookie, token


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
