"""One shape for every error: what happened, what to do, and the numbers; the same sentences as everywhere else.

    {"error": {"code": "budget-exceeded", "what": "...", "do": "...", "facts": {...}}}

What a caller sent is never quoted where it was not understood, and what an engine said never leaves.
"""

from __future__ import annotations

import json
import traceback
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from tidegate.errors import (
    BudgetExceeded,
    Infeasible,
    KeyReused,
    LedgerError,
    MissingExtra,
    NotAllowed,
    NotSignedIn,
    NotThere,
    NotWaiting,
    PolicyError,
    PolicyLoosened,
    RequestError,
    StalePolicy,
    StaleQuote,
    TableError,
    TidegateError,
    TooLarge,
    TooManyCells,
    TooOften,
    Unsupported,
)
from tidegate.service.pages.layout import is_page, refusal

STATUS: dict[type[TidegateError], int] = {
    NotSignedIn: 401,
    NotAllowed: 403,
    NotThere: 404,
    BudgetExceeded: 409,
    KeyReused: 409,
    NotWaiting: 409,
    PolicyLoosened: 409,
    StalePolicy: 409,
    StaleQuote: 409,
    TooLarge: 413,
    Infeasible: 422,
    TooManyCells: 422,
    RequestError: 422,
    PolicyError: 422,
    TooOften: 429,
    MissingExtra: 501,
    TableError: 503,
    LedgerError: 503,
    TidegateError: 500,
}
SAID = {
    401: "no token was given, or it opens nothing",
    403: "this token does not open this",
    404: "there is nothing at this address",
    405: "this address is not used in this way",
    409: "it does not fit what is: the budget, the policy, a key used before",
    413: "it is more than is read here",
    422: "the request is not understood, or asks what is not answered",
    429: "too many requests; Retry-After says when",
    503: "the data or the ledger cannot be reached now",
}
HIDDEN = {
    TableError: "the data of this set cannot be read now.",
    LedgerError: "the ledger cannot be used now, so nothing was charged.",
}


def status_of(error: TidegateError) -> int:
    """The status of an error: that of the nearest class that has one."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def body_of(error: TidegateError, *, owner: bool = False) -> dict[str, Any]:
    """The error as JSON values. Where data or ledger fail, only an owner is told where they are."""
    content = error.to_dict()["error"]
    if status_of(error) == 503 and not owner:
        what = next(said for kind, said in HIDDEN.items() if isinstance(error, kind))
        content = {
            **content,
            "what": what,
            "do": "Try again later; what was charged is not charged twice.",
            "facts": {},
        }
    told: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return {"error": _sendable(told)}


def _sendable(told: Any) -> Any:
    """Without halves of characters, which no response can hold."""
    if isinstance(told, str):
        return told.encode("utf-8", "replace").decode("utf-8")
    if isinstance(told, dict):
        return {name: _sendable(part) for name, part in told.items()}
    return [_sendable(part) for part in told] if isinstance(told, list) else told


def respond(error: TidegateError, *, owner: bool = False) -> Response:
    """The response that tells an error."""
    status, headers = status_of(error), {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 429:
        headers["Retry-After"] = str(error.facts.get("seconds", 1))
    return JSONResponse(body_of(error, owner=owner), status, headers)


async def tidegate_error(request: Request, error: Exception) -> Response:
    caller = getattr(request.state, "caller", None)
    if not isinstance(error, TidegateError):
        raise TypeError("another handler's error")
    request.state.refused = error.code
    owner = caller is not None and caller.role == "owner"
    if is_page(request):
        return refusal(request, body_of(error, owner=owner)["error"], status_of(error))
    return respond(error, owner=owner)


async def not_in_form(request: Request, error: Exception) -> Response:
    """A request that does not fit the address: where it fails and how, never what was sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    told = list(dict.fromkeys(_told(one) for one in found))[:5]
    request.state.refused = "unsupported"
    problem = Unsupported(
        f"the request is not in the form that is taken here: {'; '.join(told)}.",
        "See /openapi.json for the form, with examples.",
    )
    return refusal(request, body_of(problem)["error"], 422) if is_page(request) else respond(problem)


def _told(one: Any) -> str:
    """A place by names of ours only: what is unknown, or inside of a free part, came from the caller."""
    place = [str(part) for part in one["loc"][:2] if isinstance(part, str)]
    kind = str(one["type"])
    named = place[:1] if kind in ("extra_forbidden", "json_invalid") else place
    return f"{' '.join(named) or 'it'}: {kind.replace('_', ' ')}"


async def http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict((error.headers if isinstance(error, HTTPException) else None) or {})
    if status == 404 and is_page(request):
        return refusal(request, {"what": "There is no page at this address.", "do": ""}, 404)
    if status == 404:
        return respond(NotThere("there is nothing at this address.", "See /openapi.json for all there is."))
    if status == 405:
        return JSONResponse(
            body_of(NotThere("this address is not used in this way.", "See /openapi.json for how.")), 405, headers
        )
    if status < 500:
        return respond(Unsupported("the request is not understood.", "Send JSON, as /openapi.json describes it."))
    return defect(error)


def misdirected() -> Response:
    """The response to a request for a host that is not this service's."""
    return JSONResponse(
        body_of(NotThere("This service is not reached under this host name.", "Use its public URL.")), 421
    )


def too_deep() -> Response:
    return respond(Unsupported("the request holds more within each other than is read here.", "Ask in parts."))


def defect(error: BaseException) -> Response:
    """A defect of ours. Its message could hold a private value: it says where, not what."""
    do = f"Please report it: {place_of(error)}."
    return JSONResponse({"error": {"code": "defect", "what": "Tidegate failed.", "do": do, "facts": {}}}, 500)


def place_of(error: BaseException) -> str:
    """The kind and the line of a defect."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "tidegate/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('tidegate/')[2]}:{ours[-1].lineno}" if ours else "elsewhere"
    return f"{type(error).__name__} at {where}"
