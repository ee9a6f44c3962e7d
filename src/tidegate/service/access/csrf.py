"""A change that comes with a cookie must also bring what only our own pages can read."""

from __future__ import annotations

import hashlib
import hmac

from tidegate.errors import NotAllowed

HEADER = "x-csrf-token"
SAFE = ("GET", "HEAD", "OPTIONS")


def csrf_of(cookie: str) -> str:
    """What a page sends back in its header: known to who can read our answers, not to who can merely send a cookie."""
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), b"tidegate csrf", hashlib.sha256).hexdigest()


def refuse_foreign(method: str, cookie: str, given: str) -> None:
    """NotAllowed where a change comes by cookie without the header."""
    expected = csrf_of(cookie).encode()
    if method not in SAFE and not hmac.compare_digest(expected, given.encode("utf-8", "surrogatepass")):
        raise NotAllowed(
            "a change by cookie needs the header X-CSRF-Token.", "GET /me tells it; or use Authorization: Bearer."
        )
