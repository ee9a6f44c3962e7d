"""The console's cookie: a random name of a session. Only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

from fastapi import Request, Response

from tidegate.errors import Unsupported
from tidegate.ledger.sessions import Sessions, StoredSession
from tidegate.ledger.tokens import stamp
from tidegate.service.settings import host_name, is_loopback

LONGEST_COOKIE = 100
FLOW_SECONDS = 600  # for a user to sign in at the provider


def cookie_name(*, secure: bool) -> str:
    """Return the cookie's name; with https, one that browsers accept from this host only."""
    return "__Host-tidegate" if secure else "tidegate"


def cookie_of(request: Request, *, secure: bool) -> str:
    """Return the cookie of a request; empty if there is none."""
    cookie = request.cookies.get(cookie_name(secure=secure), "")
    return cookie if len(cookie) <= LONGEST_COOKIE else ""


def new_session(token: str, *, method: str, hours: float) -> tuple[str, StoredSession]:
    """Return a new cookie and the session that is stored under its hash. `token` is an id."""
    cookie, now = secrets.token_urlsafe(32), datetime.now(UTC)
    times = (stamp(now), stamp(now), stamp(now + timedelta(hours=hours)))
    return cookie, StoredSession(hash_cookie(cookie), token, method, *times)


def set_cookie(response: Response, cookie: str, *, secure: bool, hours: float) -> None:
    """Set the cookie of a session on a response."""
    name, seconds = cookie_name(secure=secure), int(hours * 3600)
    response.set_cookie(name, cookie, max_age=seconds, path="/", httponly=True, samesite="strict", secure=secure)


def sign_out(sessions: Sessions, cookie: str, response: Response, *, secure: bool) -> None:
    """End a session on the server and in the browser."""
    sessions.end(hash_cookie(cookie))
    name = cookie_name(secure=secure)
    response.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=secure)


def refuse_unprotected(request: Request, *, secure: bool) -> None:
    """Raise Unsupported if the cookie would be sent without https: the host is not loopback and no public URL is set."""
    host = host_name(request.headers.get("host", ""))
    if not secure and not is_loopback(host):
        raise Unsupported(
            "This service was started without a public URL, so its sign-in cookie would be sent without https.",
            "Start it with tidegate serve POLICY --public-url https://HOST, or open it as http://127.0.0.1.",
        )


def form_cookie_name(*, secure: bool) -> str:
    return cookie_name(secure=secure) + "-form"


def form_cookie(request: Request, response: Response, *, secure: bool) -> str:
    """Return the cookie that the sign-in form is bound to; set it if there is none.

    A form on another site does not send it (SameSite=Strict), so it cannot sign a visitor in under another name.
    """
    name = form_cookie_name(secure=secure)
    cookie = request.cookies.get(name, "")
    if not 0 < len(cookie) <= LONGEST_COOKIE:
        cookie = secrets.token_urlsafe(32)
        response.set_cookie(name, cookie, path="/", httponly=True, samesite="strict", secure=secure)
    return cookie


def set_flow_cookie(response: Response, flow: str, *, secure: bool) -> None:
    """Set the cookie of a sign-in at the provider. It is Lax: the provider is another site, and sends the browser back."""
    name = cookie_name(secure=secure) + "-oidc"
    response.set_cookie(name, flow, max_age=FLOW_SECONDS, path="/", httponly=True, samesite="lax", secure=secure)


def flow_cookie(request: Request, *, secure: bool) -> str:
    """Return the cookie of a sign-in at the provider; empty if there is none."""
    return request.cookies.get(cookie_name(secure=secure) + "-oidc", "")


def delete_flow_cookie(response: Response, *, secure: bool) -> None:
    """Delete the cookie of a sign-in at the provider: it is used once."""
    name = cookie_name(secure=secure) + "-oidc"
    response.delete_cookie(name, path="/", httponly=True, samesite="lax", secure=secure)


def hash_cookie(cookie: str) -> str:
    """Return the name under which a sign-in is stored."""
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
