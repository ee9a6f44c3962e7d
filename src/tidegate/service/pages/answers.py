"""Query: a query by form or SQL, its cost, and the history of answers."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.policy import Category, Numeric, Policy
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.answers import history
from tidegate.service.routes.datasets import describe_data
from tidegate.service.routes.dependencies import Asking, Held, router
from tidegate.service.settings import service_url
from tidegate.web.snippets.answer import COMMAND, PYTHON, connecting

routes = router()
LATEST = 20


@routes.get("/console/data/{name}/ask", **PAGE)
def ask_page(request: Request, held: Held, caller: Asking) -> Response:
    description = describe_data(held, caller)
    earlier = (
        history(held, caller, newest=True, limit=LATEST) if description["account"] else {"questions": [], "next": None}
    )
    twins = (f"/data/{held.name}", f"/data/{held.name}/history?newest=true&limit={LATEST}")
    code = {
        PYTHON: connecting(service_url(request), held.name),
        COMMAND: f"tidegate check {held.name}.toml",
    }
    view = {**description, "columns": columns_of(held.policy), "history": earlier, "codes": code}
    return show("ask", request, {**view, "view": view}, here="ask", twins=twins, dataset=held.name)


def columns_of(policy: Policy) -> list[dict[str, Any]]:
    """Return the columns for the query form: ranges of numbers, values of categories."""
    columns: list[dict[str, Any]] = []
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, Numeric):
            ends = {"low": float(attribute.low), "high": float(attribute.high), "step": float(attribute.width)}
            columns.append({"name": name, "kind": "number", **ends})
        elif isinstance(attribute, Category):
            columns.append({"name": name, "kind": "category", "values": list(attribute.values)})
    return columns
