"""Error responses: problem documents (RFC 9457) with the same sentences as in Python.

    {"type": "urn:tidegate:problem:budget-exceeded", "title": "Budget exceeded", "status": 409, "detail": "...",
     "instance": "urn:tidegate:request:...", "code": "budget-exceeded", "do": "...", "facts": {...}}

A response never quotes input that could not be parsed, and never the message of a table engine.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Any, TypeAlias

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from tidegate.errors import (
    BudgetExceeded,
    Infeasible,
    KeyInUse,
    KeyReused,
    LedgerError,
    MissingExtra,
    NameTaken,
    NotAllowed,
    NotSignedIn,
    NotThere,
    NotWaiting,
    PolicyError,
    PolicyLoosened,
    RequestError,
    SecondAccount,
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

PROBLEM_TYPE = "application/problem+json"
State: TypeAlias = Mapping[str, Any]
STATUS: dict[type[TidegateError], int] = {
    NotSignedIn: 401,
    NotAllowed: 403,
    NotThere: 404,
    BudgetExceeded: 409,
    KeyReused: 409,
    KeyInUse: 409,
    NotWaiting: 409,
    PolicyLoosened: 409,
    StalePolicy: 409,
    StaleQuote: 409,
    NameTaken: 409,
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
LATER = "Try again later. The same request is not charged twice."
HIDDEN = {
    TableError: ("The data of this data set is not available.", LATER),
    LedgerError: ("The ledger is not available, so nothing was charged.", LATER),
    SecondAccount: (
        "This data set is not ready: its data has another account.",
        "Ask the data holder to decide about it.",
    ),
}


def status_of(error: TidegateError) -> int:
    """Return the HTTP status of an error: that of the nearest class that has one."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def content_of(error: TidegateError, *, owner: bool = False) -> dict[str, Any]:
    """Return code, what, do and facts as JSON values. Only an owner sees where the data or a ledger is."""
    content = error.to_dict()["error"]
    if (status_of(error) == 503 or isinstance(error, SecondAccount)) and not owner:
        what, do = next(texts for kind, texts in HIDDEN.items() if isinstance(error, kind))
        content = {**content, "what": what, "do": do, "facts": {}}
    values: dict[str, Any] = _replace_surrogates(json.loads(json.dumps(content, default=str)))
    return values


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded in a response."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {name: _replace_surrogates(part) for name, part in value.items()}
    return [_replace_surrogates(part) for part in value] if isinstance(value, list) else value


def respond(error: TidegateError, state: State, *, owner: bool = False, status: int = 0) -> Response:
    """Return the response for an error; `status` replaces the one of its class."""
    status, headers = status or status_of(error), {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 429 or isinstance(error, KeyInUse):
        headers["Retry-After"] = str(error.facts.get("seconds", 1))
    return _problem(content_of(error, owner=owner), status, state, headers)


def _problem(
    content: dict[str, Any], status: int, state: State, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a problem document. Its `instance` contains the request's id, which is in the header and in the log as well."""
    code = content["code"]
    problem = {
        "type": f"urn:tidegate:problem:{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": content["what"],
        "instance": f"urn:tidegate:request:{state.get('request', '')}",
        "code": code,
        "do": content["do"],
        "facts": content["facts"],
    }
    if state.get("unversioned"):
        problem["error"] = content  # pages and devices of version 0.1 read this
    return JSONResponse(problem, status, headers, media_type=PROBLEM_TYPE)


async def tidegate_error(request: Request, error: Exception) -> Response:
    caller = getattr(request.state, "caller", None)
    if not isinstance(error, TidegateError):
        raise TypeError("This handler handles TidegateError only.")
    request.state.refused = error.code
    owner = caller is not None and caller.role == "owner"
    if is_page(request):
        return refusal(request, content_of(error, owner=owner), status_of(error))
    return respond(error, state_of(request), owner=owner)


def state_of(request: Request) -> State:
    """Return the state that the middleware sets: the request's id, and whether its address has no version."""
    state: State = request.scope.get("state", {})
    return state


async def validation_error(request: Request, error: Exception) -> Response:
    """Handle a request that does not match its schema: report the field and the reason, never the input."""
    failures = error.errors() if isinstance(error, RequestValidationError) else []
    reasons = list(dict.fromkeys(_describe_failure(failure) for failure in failures))[:5]
    request.state.refused = "unsupported"
    problem = Unsupported(
        f"The request does not match the schema: {'; '.join(reasons)}.",
        "See /openapi.json for the schema and examples.",
    )
    if is_page(request):
        return refusal(request, content_of(problem), 422)
    return respond(problem, state_of(request))


def _describe_failure(failure: Any) -> str:
    """Describe a failure by the schema's own names; unknown names and names in free-form parts come from the caller."""
    path = [str(part) for part in failure["loc"][:2] if isinstance(part, str)]
    kind = str(failure["type"])
    path = path[:1] if kind in ("extra_forbidden", "json_invalid") else path
    reason = "unknown field" if kind == "extra_forbidden" else kind.replace("_", " ")
    return f"{' '.join(path) or 'request'}: {reason}"


async def http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict((error.headers if isinstance(error, HTTPException) else None) or {})
    if status < 500:
        request.state.refused = "not-there" if status in (404, 405) else "unsupported"
    if status == 404 and is_page(request):
        return refusal(request, {"what": "This page does not exist.", "do": ""}, 404)
    if status == 404:
        problem = NotThere("This address does not exist.", "See /openapi.json for all addresses.")
        return respond(problem, state_of(request))
    if status == 405:
        problem = NotThere("This address does not support this method.", "See /openapi.json for its methods.")
        response = respond(problem, state_of(request), status=405)
        response.headers.update(headers)
        return response
    if status < 500:
        unreadable = Unsupported("The request could not be parsed.", "Send JSON as described in /openapi.json.")
        return respond(unreadable, state_of(request))
    return defect(error, state_of(request))


def misdirected(state: State, *, is_public: bool) -> Response:
    """Return the response to a request for another host."""
    what, do = "This service does not use this host name.", "Use its public URL."
    if not is_public:
        what = "This service was started without a public URL, so only this machine can use it, as http://127.0.0.1."
        do = "Start it with tidegate serve POLICY --public-url https://HOST, behind a proxy with a certificate."
    return respond(NotThere(what, do), state, status=421)


def too_deep(state: State) -> Response:
    deep = Unsupported("The JSON of this request is nested too deeply.", "Split it into several requests.")
    return respond(deep, state)


def defect(error: BaseException, state: State) -> Response:
    """Return the response to an internal error. Only its location is reported: its message could hold private values."""
    do = f"Please report it: {source_location(error)}."
    return _problem({"code": "defect", "what": "Tidegate failed.", "do": do, "facts": {}}, 500, state)


def source_location(error: BaseException) -> str:
    """Return the class and the source line of an internal error."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "tidegate/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('tidegate/')[2]}:{ours[-1].lineno}" if ours else "elsewhere"
    return f"{type(error).__name__} at {where}"
