"""Query: a query by form or SQL, its cost, and the history of answers."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.policy import Category, Moment, Numeric, Policy, Text
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.answers import history_after
from tidegate.service.routes.datasets import describe_data
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.ledger import can_prove
from tidegate.service.settings import service_url
from tidegate.web.snippets.answer import COMMAND, PYTHON, connection_code

routes = unversioned_router()
LATEST = 20


@routes.get("/console/data/{name}/ask", **PAGE)
def ask_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    description = describe_data(served, caller)
    earlier = (
        history_after(served, caller, 0, LATEST, newest=True)
        if description["account"]
        else {"questions": [], "next": None}
    )
    json_urls = (f"/v1/data/{served.name}", f"/v1/data/{served.name}/history?newest=true&limit={LATEST}")
    code = {
        PYTHON: connection_code(service_url(request), served.name),
        COMMAND: f"tidegate check {served.name}.toml",
    }
    view = {**description, "columns": columns_of(served.policy), "history": earlier, "codes": code}
    view["can_prove"] = can_prove(served.session.ledger)
    return show("ask", request, {**view, "view": view}, here="ask", json_urls=json_urls, dataset=served.name)


def columns_of(policy: Policy) -> list[dict[str, Any]]:
    """Return the columns for the query form: ranges of numbers, dates and times, values of categories, buckets of text."""
    columns: list[dict[str, Any]] = []
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, Moment):
            cells = {"low": 0, "middle": attribute.size // 2, "high": attribute.size - 1}
            ends = {end: attribute.label(code).isoformat() for end, code in cells.items()}
            columns.append({"name": name, "kind": attribute.kind, **ends, "says": attribute.describe()})
        elif isinstance(attribute, Numeric):
            ends = {"low": float(attribute.low), "high": float(attribute.high), "step": float(attribute.width)}
            columns.append({"name": name, "kind": "number", **ends})
        elif isinstance(attribute, Category):
            columns.append({"name": name, "kind": "category", "values": list(attribute.values)})
        elif isinstance(attribute, Text) and attribute.countable:
            columns.append({"name": name, "kind": "text", "says": attribute.describe()})
    return columns
