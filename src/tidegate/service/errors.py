"""Error responses. Every error has the same shape and the same sentences as in Python:

    {"error": {"code": "budget-exceeded", "what": "...", "do": "...", "facts": {...}}}

A response never quotes input that could not be parsed, and never the message of a table engine.
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
    Unreachable,
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
    Unreachable: 502,
    TableError: 503,
    LedgerError: 503,
    TidegateError: 500,
}
DESCRIPTIONS = {
    401: "The token is missing or not valid",
    403: "The token does not permit this request",
    404: "Not found",
    405: "Method not allowed",
    409: "The request conflicts with the budget, the policy, or an earlier use of its key",
    413: "The request is too large",
    422: "The request is malformed or not supported",
    429: "Too many requests; the Retry-After header gives the seconds to wait",
    503: "The data or the ledger is not available",
}
HIDDEN = {
    TableError: "The data of this data set is not available.",
    LedgerError: "The ledger is not available, so nothing was charged.",
}


def status_of(error: TidegateError) -> int:
    """Return the HTTP status of an error: that of the nearest class that has one."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def body_of(error: TidegateError, *, owner: bool = False) -> dict[str, Any]:
    """Return the error as JSON values. If the data or the ledger fails, only an owner sees the location."""
    content = error.to_dict()["error"]
    if status_of(error) == 503 and not owner:
        what = next(message for kind, message in HIDDEN.items() if isinstance(error, kind))
        content = {
            **content,
            "what": what,
            "do": "Try again later. The same request is not charged twice.",
            "facts": {},
        }
    values: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return {"error": _replace_surrogates(values)}


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded in a response."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {name: _replace_surrogates(part) for name, part in value.items()}
    return [_replace_surrogates(part) for part in value] if isinstance(value, list) else value


def respond(error: TidegateError, *, owner: bool = False) -> Response:
    """Return the response for an error."""
    status, headers = status_of(error), {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 429:
        headers["Retry-After"] = str(error.facts.get("seconds", 1))
    return JSONResponse(body_of(error, owner=owner), status, headers)


async def tidegate_error(request: Request, error: Exception) -> Response:
    caller = getattr(request.state, "caller", None)
    if not isinstance(error, TidegateError):
        raise TypeError("This handler handles TidegateError only.")
    request.state.refused = error.code
    owner = caller is not None and caller.role == "owner"
    if is_page(request):
        return refusal(request, body_of(error, owner=owner)["error"], status_of(error))
    return respond(error, owner=owner)


async def validation_error(request: Request, error: Exception) -> Response:
    """Handle a request that does not match its schema: report the field and the reason, never the input."""
    failures = error.errors() if isinstance(error, RequestValidationError) else []
    reasons = list(dict.fromkeys(_describe_failure(failure) for failure in failures))[:5]
    request.state.refused = "unsupported"
    problem = Unsupported(
        f"The request does not match the schema: {'; '.join(reasons)}.",
        "See /openapi.json for the schema and examples.",
    )
    return refusal(request, body_of(problem)["error"], 422) if is_page(request) else respond(problem)


def _describe_failure(failure: Any) -> str:
    """Describe a failure by the schema's own names; unknown names and names in free-form parts come from the caller."""
    path = [str(part) for part in failure["loc"][:2] if isinstance(part, str)]
    kind = str(failure["type"])
    path = path[:1] if kind in ("extra_forbidden", "json_invalid") else path
    return f"{' '.join(path) or 'request'}: {kind.replace('_', ' ')}"


async def http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict((error.headers if isinstance(error, HTTPException) else None) or {})
    if status == 404 and is_page(request):
        return refusal(request, {"what": "This page does not exist.", "do": ""}, 404)
    if status == 404:
        return respond(NotThere("This address does not exist.", "See /openapi.json for all addresses."))
    if status == 405:
        return JSONResponse(
            body_of(NotThere("This address does not support this method.", "See /openapi.json for its methods.")),
            405,
            headers,
        )
    if status < 500:
        return respond(Unsupported("The request could not be parsed.", "Send JSON as described in /openapi.json."))
    return defect(error)


def misdirected() -> Response:
    """Return the response to a request for another host."""
    return JSONResponse(body_of(NotThere("This service does not use this host name.", "Use its public URL.")), 421)


def too_deep() -> Response:
    return respond(Unsupported("The JSON of this request is nested too deeply.", "Split it into several requests."))


def defect(error: BaseException) -> Response:
    """Return the response to an internal error. Only its location is reported: its message could hold private values."""
    do = f"Please report it: {source_location(error)}."
    return JSONResponse({"error": {"code": "defect", "what": "Tidegate failed.", "do": do, "facts": {}}}, 500)


def source_location(error: BaseException) -> str:
    """Return the class and the source line of an internal error."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "tidegate/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('tidegate/')[2]}:{ours[-1].lineno}" if ours else "elsewhere"
    return f"{type(error).__name__} at {where}"
