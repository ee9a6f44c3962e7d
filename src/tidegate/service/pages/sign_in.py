"""Sign in: with a token, with a one-time link, or with an account of the provider."""

from __future__ import annotations

import hmac
import re
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from tidegate.errors import NotSignedIn, NotThere, TidegateError, TooOften, Unreachable, Unsupported
from tidegate.service.access.csrf import csrf_of
from tidegate.service.access.groups import provider_name
from tidegate.service.access.guard import address_of
from tidegate.service.access.oidc import Oidc
from tidegate.service.access.permissions import RESPONDENT
from tidegate.service.access.sessions import (
    delete_flow_cookie,
    flow_cookie,
    form_cookie,
    form_cookie_name,
    set_cookie,
    set_flow_cookie,
)
from tidegate.service.errors import content_of, status_of
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.access import begin_session
from tidegate.service.routes.dependencies import unversioned_router
from tidegate.service.settings import Settings, service_url

routes = unversioned_router()
NEXT = re.compile(r"/console(/[\w./-]*(\?[\w.=&%+-]*)?)?", re.ASCII)


@routes.get("/console/sign-in", **PAGE)
def sign_in_page(request: Request) -> Response:
    return _sign_in_page(request, request.query_params.get("next", ""))


@routes.post("/console/sign-in", **PAGE)
async def sign_in_form(request: Request) -> Response:
    """Sign in by form, for browsers without scripts. The token is in the body, never in the URL."""
    text = (await request.body()).decode("utf-8", "replace")
    fields = dict(parse_qsl(text, max_num_fields=10)) if text.count("&") < 10 else {}
    response = RedirectResponse("/console", 303)
    try:
        _refuse_foreign_form(request, fields.get("csrf", ""))
        caller, _ = await begin_session(request, response, fields.get("token", "").strip())
    except (NotSignedIn, TooOften, Unsupported) as error:
        request.state.refused = error.code
        return _sign_in_page(request, fields.get("next", ""), error)
    response.headers["location"] = "/console/record" if caller.role == RESPONDENT else _next(fields.get("next", ""))
    return response


def _sign_in_page(request: Request, next_page: str, error: TidegateError | None = None) -> Response:
    settings: Settings = request.app.state.settings
    carrier = Response()
    cookie = form_cookie(request, carrier, settings)
    view = {"form_csrf": csrf_of(cookie), "next": _next(next_page), "error": content_of(error) if error else None}
    view["provider"] = provider_name(settings)
    page = show("sign_in", request, view, here="sign-in")
    page.raw_headers += [header for header in carrier.raw_headers if header[0] == b"set-cookie"]
    page.status_code = status_of(error) if error else 200
    return page


def _refuse_foreign_form(request: Request, csrf: str) -> None:
    settings: Settings = request.app.state.settings
    cookie = request.cookies.get(form_cookie_name(settings), "")
    if not cookie or not hmac.compare_digest(csrf_of(cookie).encode(), csrf.encode("utf-8", "replace")):
        raise Unsupported(
            "This form has expired or was sent from another site.", "Allow cookies, enter your token, and sign in."
        )


def _next(path: str) -> str:
    """Return the path to open after sign-in: a page of this console, and nothing else."""
    return path if NEXT.fullmatch(path) and "//" not in path else "/console"


@routes.get("/console/sign-in/oidc", **PAGE)
async def begin_at_provider(request: Request) -> Response:
    """Redirect to the provider. What belongs to this sign-in is in an encrypted cookie of this browser."""
    settings: Settings = request.app.state.settings
    next_page = _next(request.query_params.get("next", ""))
    try:
        url, flow = await run_in_threadpool(_oidc(request).begin, service_url(request), next_page)
    except (Unreachable, Unsupported) as error:
        request.state.refused = error.code
        return _sign_in_page(request, next_page, error)
    response = RedirectResponse(url, 303)
    set_flow_cookie(response, flow, settings)
    return response


@routes.get("/console/sign-in/oidc/callback", **PAGE)
async def come_back_from_provider(request: Request) -> Response:
    """Start a session for the user whom the provider sent back.

    The response is a page that leads on, not a redirect: after a redirect from another site, browsers do not send a cookie that is
    SameSite=Strict.
    """
    settings: Settings = request.app.state.settings
    flow, query = flow_cookie(request, settings), dict(request.query_params)
    try:
        finished = await run_in_threadpool(_oidc(request).finish, flow, query, service_url(request))
    except (NotSignedIn, Unreachable, Unsupported) as error:
        request.state.refused = error.code
        request.app.state.guard.callers.activity.refuse("oidc", address=address_of(request))
        page = _sign_in_page(request, "", error)
    else:
        token, cookie, next_page = finished
        page = show("signed_in", request, {"name": token.name, "next": _next(next_page)}, here="sign-in")
        set_cookie(page, cookie, settings)
    delete_flow_cookie(page, settings)
    return page


def _oidc(request: Request) -> Oidc:
    oidc: Oidc | None = request.app.state.oidc
    if oidc is None:
        raise NotThere("This service has no sign-in provider.", "Sign in with a token or a link.")
    return oidc
