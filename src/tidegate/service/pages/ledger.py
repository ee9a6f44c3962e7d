"""Ledger: a description of every entry, filters in the URL, verification, export."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import Response

from tidegate.service.pages.layout import PAGE, show
from tidegate.service.pagination import write_cursor
from tidegate.service.routes.dependencies import After, CurrentCaller, unversioned_router
from tidegate.service.routes.ledger import KINDS, LISTS, Kind, can_prove, entries_after, totals
from tidegate.web.snippets.ledger import ledger_code

routes = unversioned_router()
SHOWN = 50


@routes.get("/console/ledger", **PAGE)
def ledger_page(
    request: Request,
    caller: CurrentCaller,
    dataset: Annotated[str, Query(max_length=63)] = "",
    kind: Kind = "",
    user: Annotated[str, Query(alias="who", max_length=63)] = "",
    text: Annotated[str, Query(max_length=100)] = "",
    after: After = 0,
) -> Response:
    chosen: dict[str, Any] = {"dataset": dataset, "kind": kind, "who": user, "text": text}
    matches = entries_after(
        request, caller, after, SHOWN, dataset=dataset, kind=kind, user=user, text=text, newest=True
    )
    filters = {name: value for name, value in chosen.items() if value}
    names = [name for name in request.app.state.datasets if caller.dataset in ("", name)]
    first = names[0] if names else "people"
    view = {
        **totals(request, caller),
        **matches,
        "chosen": chosen,
        "names": names,
        "kinds": KINDS,
        "older": f"?{urlencode({**filters, 'after': matches['next']})}" if matches["next"] else "",
        "first": f"?{urlencode(filters)}" if after else "",
        "whole": not caller.dataset,
        "can_prove": can_prove(request.app.state.datasets.ledger),
    }
    view["codes"] = ledger_code(dataset or first, head=view["head"])
    shown = {
        **filters,
        "newest": "true",
        "limit": SHOWN,
        **({"cursor": write_cursor(LISTS[True], after)} if after else {}),
    }
    return show(
        "ledger", request, view, here="ledger", json_urls=("/v1/ledger", f"/v1/ledger/entries?{urlencode(shown)}")
    )
