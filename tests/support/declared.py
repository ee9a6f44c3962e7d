"""Every JSON response of every service in this process is compared with the model that its route declares.

The service does not validate what it sends, so these comparisons are what keeps the OpenAPI description true. `tests/conftest.py`
fails the test during which a response had another form.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, get_args

from fastapi import Request, Response
from pydantic import TypeAdapter, ValidationError

from tidegate.service.access.guard import GuardedRoute
from tidegate.service.models.base import Declared

MISMATCHES: list[str] = []
_adapters: dict[tuple[str, str], TypeAdapter[Any] | None] = {}
_original = GuardedRoute.get_route_handler


def adapter(route: GuardedRoute) -> TypeAdapter[Any] | None:
    """Return what validates the responses of a route; None if it declares no model."""
    if route.rule.key not in _adapters:
        _adapters[route.rule.key] = _make_adapter(route)
    return _adapters[route.rule.key]


def _make_adapter(route: GuardedRoute) -> TypeAdapter[Any] | None:
    declared = next((part for part in get_args(route.response_model) if isinstance(part, Declared)), None)
    model = declared.model if declared else route.response_model
    return TypeAdapter(model) if model is not None else None


def mismatch(route: GuardedRoute, content: bytes) -> str:
    """Return how a response differs from its model; empty if it does not. Unknown fields count."""
    known = adapter(route)
    if known is None:
        return f"{route.rule.method} {route.rule.path} declares no model."
    try:
        known.validate_json(content, strict=True, extra="forbid")
    except ValidationError as error:
        fields = [f"{'.'.join(map(str, failure['loc']))}: {failure['msg']}" for failure in error.errors()[:5]]
        return f"{route.rule.method} {route.rule.path}: {'; '.join(fields)}"
    return ""


def _get_route_handler(self: GuardedRoute) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    inside = _original(self)

    async def handle(request: Request) -> Response:
        response = await inside(request)
        is_json = response.headers.get("content-type", "") == "application/json"
        if is_json and response.status_code < 300 and isinstance(getattr(response, "body", None), bytes):
            wrong = mismatch(self, response.body)
            if wrong:
                MISMATCHES.append(wrong)
        return response

    return handle


GuardedRoute.get_route_handler = _get_route_handler  # type: ignore[method-assign]
