"""The console's cookie: a random name of a session. Only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import Request, Response

from tidegate.ledger.sessions import Sessions, StoredSession
from tidegate.ledger.tokens import stamp
from tidegate.service.settings import Settings

LONGEST_COOKIE = 100
FLOW_SECONDS = 600  # for a user to sign in at the provider


def cookie_name(settings: Settings) -> str:
    """Return the cookie's name; with https, one that browsers accept over https only.

    `__Host-` also keeps other hosts of the domain from setting the cookie, but it needs Path=/, so that the browser would send
    it to every other application of the host. Below a path the cookie is therefore `__Secure-` with that path.
    """
    if not settings.secure:
        return "tidegate"
    return "__Secure-tidegate" if settings.base else "__Host-tidegate"


def _attributes(settings: Settings, *, samesite: str = "strict") -> dict[str, Any]:
    """Return the attributes of every cookie: pages of other sites do not send it, scripts do not read it."""
    return {"path": settings.base or "/", "httponly": True, "samesite": samesite, "secure": settings.secure}


def cookie_of(request: Request, settings: Settings) -> str:
    """Return the cookie of a request; empty if there is none."""
    cookie = request.cookies.get(cookie_name(settings), "")
    return cookie if len(cookie) <= LONGEST_COOKIE else ""


def new_session(token: str, *, method: str, hours: float) -> tuple[str, StoredSession]:
    """Return a new cookie and the session that is stored under its hash. `token` is an id."""
    cookie, now = secrets.token_urlsafe(32), datetime.now(UTC)
    times = (stamp(now), stamp(now), stamp(now + timedelta(hours=hours)))
    return cookie, StoredSession(hash_cookie(cookie), token, method, *times)


def set_cookie(response: Response, cookie: str, settings: Settings) -> None:
    """Set the cookie of a session on a response."""
    seconds = int(settings.sign_in_hours * 3600)
    response.set_cookie(cookie_name(settings), cookie, max_age=seconds, **_attributes(settings))


def sign_out(sessions: Sessions, cookie: str, response: Response, settings: Settings) -> None:
    """End a session on the server and in the browser."""
    sessions.end(hash_cookie(cookie))
    response.delete_cookie(cookie_name(settings), **_attributes(settings))


def form_cookie_name(settings: Settings) -> str:
    return cookie_name(settings) + "-form"


def form_cookie(request: Request, response: Response, settings: Settings) -> str:
    """Return the cookie that the sign-in form is bound to; set it if there is none.

    A form on another site does not send it (SameSite=Strict), so it cannot sign a visitor in under another name.
    """
    name = form_cookie_name(settings)
    cookie = request.cookies.get(name, "")
    if not 0 < len(cookie) <= LONGEST_COOKIE:
        cookie = secrets.token_urlsafe(32)
        response.set_cookie(name, cookie, **_attributes(settings))
    return cookie


def set_flow_cookie(response: Response, flow: str, settings: Settings) -> None:
    """Set the cookie of a sign-in at the provider. It is Lax: the provider is another site, and sends the browser back."""
    name = cookie_name(settings) + "-oidc"
    response.set_cookie(name, flow, max_age=FLOW_SECONDS, **_attributes(settings, samesite="lax"))


def flow_cookie(request: Request, settings: Settings) -> str:
    """Return the cookie of a sign-in at the provider; empty if there is none."""
    return request.cookies.get(cookie_name(settings) + "-oidc", "")


def delete_flow_cookie(response: Response, settings: Settings) -> None:
    """Delete the cookie of a sign-in at the provider: it is used once."""
    name = cookie_name(settings) + "-oidc"
    response.delete_cookie(name, **_attributes(settings, samesite="lax"))


def hash_cookie(cookie: str) -> str:
    """Return the name under which a sign-in is stored."""
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
