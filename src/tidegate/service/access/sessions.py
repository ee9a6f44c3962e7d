"""The console's cookie: a random name of a sign-in. Only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import Request, Response

from tidegate.ledger.tokens import Tokens
from tidegate.service.settings import Settings

LONGEST_COOKIE = 100


def cookie_name(settings: Settings) -> str:
    """Return the cookie's name; with https, one that browsers accept over https only.

    `__Host-` also keeps other hosts of the domain from setting the cookie, but it needs Path=/, so that the browser would send
    it to every other application of the host. Below a path the cookie is therefore `__Secure-` with that path.
    """
    if not settings.secure:
        return "tidegate"
    return "__Secure-tidegate" if settings.base else "__Host-tidegate"


def cookie_of(request: Request, settings: Settings) -> str:
    """Return the cookie of a request; empty if there is none."""
    cookie = request.cookies.get(cookie_name(settings), "")
    return cookie if len(cookie) <= LONGEST_COOKIE else ""


def sign_in(tokens: Tokens, token: str, response: Response, settings: Settings) -> str:
    """Start a sign-in of a token (by its id), set its cookie on the response, and return the cookie."""
    cookie, hours = secrets.token_urlsafe(32), settings.sign_in_hours
    tokens.sign_in(hash_cookie(cookie), token=token, expires=datetime.now(UTC) + timedelta(hours=hours))
    response.set_cookie(cookie_name(settings), cookie, max_age=int(hours * 3600), **_attributes(settings))
    return cookie


def sign_out(tokens: Tokens, cookie: str, response: Response, settings: Settings) -> None:
    """End a sign-in on the server and in the browser."""
    tokens.sign_out(hash_cookie(cookie))
    response.delete_cookie(cookie_name(settings), **_attributes(settings))


def _attributes(settings: Settings) -> dict[str, Any]:
    """Return the attributes of every cookie: pages of other sites do not send it, scripts do not read it."""
    return {"path": settings.base or "/", "httponly": True, "samesite": "strict", "secure": settings.secure}


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


def hash_cookie(cookie: str) -> str:
    """Return the name under which a sign-in is stored."""
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
