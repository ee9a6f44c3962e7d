"""The layout around every console page, and error pages."""

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

HEADINGS = {403: "Access denied", 404: "Page not found", 429: "Too many requests"}
SIGN_IN = "/console/sign-in"
PAGE: dict[str, Any] = {"include_in_schema": False, "response_class": HTMLResponse}  # options of every page's route


def show(template: str, request: Request, view: dict[str, Any], **frame: Any) -> HTMLResponse:
    """Render a console page. `view` holds values of the API, `frame` the arguments of `layout_values`."""
    return HTMLResponse(_render(template, request, {**layout_values(request, **frame), **view}))


def layout_values(request: Request, *, here: str, json_urls: tuple[str, ...] = (), dataset: str = "") -> dict[str, Any]:
    """Return the values of the layout: the signed-in user and the navigation."""
    caller: Caller = getattr(request.state, "caller", Caller())
    datasets = request.app.state.datasets
    served = datasets[dataset] if dataset and dataset in datasets else None
    me = None if caller.role == PUBLIC else {"role": caller.role, "name": caller.name}
    return {
        "me": me,
        "csrf": csrf_of(caller.cookie) if caller.cookie else "",
        "idle_seconds": 60 * request.app.state.settings.idle_minutes if caller.cookie else 0,
        "here": here,
        "json_urls": json_urls,
        "dataset": served.name if served else "",
        "desks": list(served.policy.release_promises) if served else [],
        "collections": list(served.policy.collections) if served else [],
        "only_polls": served is not None and served.policy.is_for_polls,
        "address": service_url(request),
    }


def is_page(request: Request) -> bool:
    """Return whether the request is for a page in a browser, not for JSON."""
    pages = request.url.path == "/" or request.url.path.startswith(("/console", "/forms/"))
    return pages and "text/html" in request.headers.get("accept", "")


def refusal(request: Request, error: dict[str, Any], status: int) -> Response:
    """Return an error page; redirect users who are not signed in to the sign-in page."""
    if status == 401:
        path = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        return RedirectResponse(f"{SIGN_IN}?next={quote(path)}", 303)
    caller = getattr(request.state, "caller", Caller())
    if status == 403 and caller.role == RESPONDENT and request.url.path == "/console":
        return RedirectResponse("/console/record", 303)
    view = {"status": status, "heading": HEADINGS.get(status, "Something went wrong"), "error": error}
    return HTMLResponse(_render("problem", request, {**layout_values(request, here=""), **view}), status)


def _render(template: str, request: Request, view: dict[str, Any]) -> str:
    base = request.app.state.settings.base
    return render(template, {"base": base, **view}, base=base)
