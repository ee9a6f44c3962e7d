"""CSRF protection: a change that is authenticated by a cookie needs a token that only our own pages can read."""

from __future__ import annotations

import hashlib
import hmac

from tidegate.errors import NotAllowed

HEADER = "x-csrf-token"
SAFE = ("GET", "HEAD", "OPTIONS")


def csrf_of(cookie: str) -> str:
    """Return the CSRF token of a cookie. Other sites can make the browser send the cookie but cannot read this token."""
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), b"tidegate csrf", hashlib.sha256).hexdigest()


def refuse_foreign(method: str, cookie: str, token: str) -> None:
    """Raise NotAllowed if a change is authenticated by a cookie and the header is missing or wrong."""
    expected = csrf_of(cookie).encode()
    if method not in SAFE and not hmac.compare_digest(expected, token.encode("utf-8", "surrogatepass")):
        raise NotAllowed(
            "A change that is authenticated by a cookie needs the header X-CSRF-Token.",
            "Get its value from GET /v1/me, or send Authorization: Bearer instead.",
        )
