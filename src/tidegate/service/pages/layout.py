"""The console's pages: the frame around a view, and a refusal as a page."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from tidegate.service.access.callers import Caller
from tidegate.service.access.csrf import csrf_of
from tidegate.service.access.permissions import PUBLIC, RESPONDENT
from tidegate.service.settings import service_url
from tidegate.web.render import render

HEADINGS = {403: "This is not open to you", 404: "Nothing is here", 429: "Slower, please"}
SIGN_IN = "/console/sign-in"
PAGE: dict[str, Any] = {"include_in_schema": False, "response_class": HTMLResponse}  # of every page's route


def show(template: str, request: Request, view: dict[str, Any], **frame: Any) -> HTMLResponse:
    """A page of the console. `view` is what the API tells; `frame` says where the page stands (see base.html)."""
    return HTMLResponse(render(template, {**framed(request, **frame), **view}))


def framed(request: Request, *, here: str, twins: tuple[str, ...] = (), dataset: str = "") -> dict[str, Any]:
    """What the frame of a page shows: who is there, and where one can go."""
    caller: Caller = getattr(request.state, "caller", Caller())
    holdings = request.app.state.holdings
    held = holdings[dataset] if dataset and dataset in holdings else None
    me = None if caller.role == PUBLIC else {"role": caller.role, "name": caller.name}
    return {
        "me": me,
        "csrf": csrf_of(caller.cookie) if caller.cookie else "",
        "here": here,
        "twins": twins,
        "dataset": held.name if held else "",
        "desks": list(held.policy.concealments) if held else [],
        "collections": list(held.policy.collections) if held else [],
        "address": service_url(request),
    }


def is_page(request: Request) -> bool:
    """Whether a browser wants to see a page, and not a program its JSON."""
    pages = request.url.path == "/" or request.url.path.startswith(("/console", "/forms/"))
    return pages and "text/html" in request.headers.get("accept", "")


def refusal(request: Request, error: dict[str, Any], status: int) -> Response:
    """A refusal as a page; whoever is not signed in is asked to."""
    if status == 401:
        return RedirectResponse(f"{SIGN_IN}?next={quote(request.url.path)}", 303)
    caller = getattr(request.state, "caller", Caller())
    if status == 403 and caller.role == RESPONDENT and request.url.path == "/console":
        return RedirectResponse("/console/record", 303)
    view = {"status": status, "heading": HEADINGS.get(status, "This did not work"), "error": error}
    return HTMLResponse(render("problem", {**framed(request, here=""), **view}), status)
