"""The console's cookie: a random name of a sign-in, of which only the hash is kept."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

from fastapi import Request, Response

from tidegate.errors import Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.service.settings import host_name, is_loopback

LONGEST_COOKIE = 100


def cookie_name(*, secure: bool) -> str:
    """With https, a name that browsers accept from this very host only."""
    return "__Host-tidegate" if secure else "tidegate"


def cookie_of(request: Request, *, secure: bool) -> str:
    """The cookie of a request; empty where there is none."""
    given = request.cookies.get(cookie_name(secure=secure), "")
    return given if len(given) <= LONGEST_COOKIE else ""


def sign_in(tokens: Tokens, token: str, response: Response, *, secure: bool, hours: float) -> str:
    """Begin a sign-in of a token (its id) and set its cookie; returns the cookie."""
    cookie = secrets.token_urlsafe(32)
    tokens.sign_in(kept_name(cookie), token=token, expires=datetime.now(UTC) + timedelta(hours=hours))
    name = cookie_name(secure=secure)
    response.set_cookie(
        name, cookie, max_age=int(hours * 3600), path="/", httponly=True, samesite="strict", secure=secure
    )
    return cookie


def sign_out(tokens: Tokens, cookie: str, response: Response, *, secure: bool) -> None:
    """End a sign-in, here and in the browser."""
    tokens.sign_out(kept_name(cookie))
    name = cookie_name(secure=secure)
    response.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=secure)


def refuse_unprotected(request: Request, *, secure: bool) -> None:
    """Unsupported where the cookie would be sent without https: the service is reached under a name that is not loopback,
    and was not told that there is https before it."""
    host = host_name(request.headers.get("host", ""))
    if not secure and not is_loopback(host):
        raise Unsupported(
            "This service was not started with a public URL, so its sign-in cookie would be sent without https.",
            "Start it with tidegate serve POLICY --public-url https://HOST, or open it as http://127.0.0.1.",
        )


def form_cookie_name(*, secure: bool) -> str:
    return cookie_name(secure=secure) + "-form"


def form_cookie(request: Request, response: Response, *, secure: bool) -> str:
    """The cookie that the sign-in form is bound to, set where there is none. Another site's form does not bring it
    (SameSite=Strict), so it cannot sign a visitor in under another name."""
    name = form_cookie_name(secure=secure)
    cookie = request.cookies.get(name, "")
    if not 0 < len(cookie) <= LONGEST_COOKIE:
        cookie = secrets.token_urlsafe(32)
        response.set_cookie(name, cookie, path="/", httponly=True, samesite="strict", secure=secure)
    return cookie


def kept_name(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
