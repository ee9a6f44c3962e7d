"""The release desk for the data holder, and a respondent's own record."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.errors import NotThere
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.dependencies import Asking, Held, router
from tidegate.service.routes.releases import Promise, desk_state, key_column, own_record, promised
from tidegate.service.settings import service_url
from tidegate.web.snippets.release import spelled_release

routes = router()


@routes.get("/console/data/{name}/desks/{promise}", **PAGE)
def desk_page(request: Request, held: Held, promise: Promise) -> Response:
    if promise not in held.policy.concealments:
        raise NotThere("This data set has no concealment promise of that name.")
    twin, address = f"/data/{held.name}/desks/{promise}", service_url(request)
    view: dict[str, Any] = {
        "at": twin,
        "desk": promise,
        "key": key_column(held),
        **promised(held, promise),
        "profiles": [
            list(map(float, profile.values)) for profile in held.policy.concealments[promise].profiles.values()
        ],
        "state": desk_state(held, promise, charts=True)
        if held.is_open(promise)
        else None,  # opening takes seconds: the page requests it later
        "all_codes": spelled_release(promise, address=address, dataset=held.name),
    }
    twins = (twin, f"{twin}/released")
    shown = {**view, "view": view, "codes": view["all_codes"]["state"]}
    return show("desk", request, shown, here=f"desk/{promise}", twins=twins, dataset=held.name)


@routes.get("/console/record", **PAGE)
def record_page(request: Request, caller: Asking) -> Response:
    view = own_record(request, caller)
    shown = {"view": view, "offered": view["desks"], "belongs_to": view["dataset"], "key": view["key"]}
    return show("record", request, shown, here="record", twins=("/record",))
