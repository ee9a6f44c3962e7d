"""The console's cookie: a random name of a sign-in. Only its hash is stored."""

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
    """Return the cookie's name; with https, one that browsers accept from this host only."""
    return "__Host-tidegate" if secure else "tidegate"


def cookie_of(request: Request, *, secure: bool) -> str:
    """Return the cookie of a request; empty if there is none."""
    cookie = request.cookies.get(cookie_name(secure=secure), "")
    return cookie if len(cookie) <= LONGEST_COOKIE else ""


def sign_in(tokens: Tokens, token: str, response: Response, *, secure: bool, hours: float) -> str:
    """Start a sign-in of a token (by its id), set its cookie on the response, and return the cookie."""
    cookie = secrets.token_urlsafe(32)
    tokens.sign_in(hash_cookie(cookie), token=token, expires=datetime.now(UTC) + timedelta(hours=hours))
    name = cookie_name(secure=secure)
    response.set_cookie(
        name, cookie, max_age=int(hours * 3600), path="/", httponly=True, samesite="strict", secure=secure
    )
    return cookie


def sign_out(tokens: Tokens, cookie: str, response: Response, *, secure: bool) -> None:
    """End a sign-in on the server and in the browser."""
    tokens.sign_out(hash_cookie(cookie))
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


def hash_cookie(cookie: str) -> str:
    """Return the name under which a sign-in is stored."""
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
