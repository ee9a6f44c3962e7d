"""The release desk for the data holder, and a respondent's own record."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.errors import NotThere
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.dependencies import CurrentCaller, Served, router
from tidegate.service.routes.releases import Promise, describe_promise, desk_state, key_column, own_record
from tidegate.service.settings import service_url
from tidegate.web.snippets.release import release_code

routes = router()


@routes.get("/console/data/{name}/desks/{promise}", **PAGE)
def desk_page(request: Request, served: Served, promise: Promise) -> Response:
    if promise not in served.policy.concealments:
        raise NotThere("This data set has no concealment promise of that name.")
    json_url, address = f"/data/{served.name}/desks/{promise}", service_url(request)
    view: dict[str, Any] = {
        "at": json_url,
        "desk": promise,
        "key": key_column(served),
        **describe_promise(served, promise),
        "profiles": [
            list(map(float, profile.values)) for profile in served.policy.concealments[promise].profiles.values()
        ],
        "state": desk_state(served, promise, charts=True)
        if served.is_open(promise)
        else None,  # opening takes seconds: the page requests it later
        "all_codes": release_code(promise, address=address, dataset=served.name),
    }
    json_urls = (json_url, f"{json_url}/released")
    shown = {**view, "view": view, "codes": view["all_codes"]["state"]}
    return show("desk", request, shown, here=f"desk/{promise}", json_urls=json_urls, dataset=served.name)


@routes.get("/console/record", **PAGE)
def record_page(request: Request, caller: CurrentCaller) -> Response:
    view = own_record(request, caller)
    shown = {"view": view, "offered": view["desks"], "belongs_to": view["dataset"], "key": view["key"]}
    return show("record", request, shown, here="record", json_urls=("/record",))
