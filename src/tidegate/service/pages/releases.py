"""The release desk for the data holder, and a respondent's own record."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.errors import NotThere
from tidegate.policy.hiding import join_hidings
from tidegate.service.datasets import ServedDataset
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.release_audits import MOST_RECORDS, last_simulation
from tidegate.service.routes.releases import (
    Promise,
    describe_promise,
    desk_state,
    key_column,
    own_record,
)
from tidegate.service.settings import service_url
from tidegate.web.snippets.release import hiding_code, release_code

routes = unversioned_router()


@routes.get("/console/data/{name}/desks/{promise}", **PAGE)
def desk_page(request: Request, served: Served, promise: Promise) -> Response:
    if promise not in served.policy.release_promises:
        raise NotThere("This data set has no release promise of that name.")
    json_url = f"/v1/data/{served.name}/desks/{promise}"
    view: dict[str, Any] = {
        "at": json_url,
        "desk": promise,
        "key": key_column(served),
        **describe_promise(served, promise),
    }
    if promise in served.policy.hidings:
        template, json_urls = "hiding_desk", [json_url, f"{json_url}/released", f"/v1/data/{served.name}/selections"]
        view |= _hiding_view(served, promise, address=service_url(request))
    else:
        template, json_urls = "desk", [json_url, f"{json_url}/released"]
        view |= _concealment_view(served, promise, address=service_url(request))
    is_not_open = template == "hiding_desk" and not view["state"]["open"]
    shown = {**view, "view": view, "codes": view["all_codes"]["open" if is_not_open else "state"]}
    return show(template, request, shown, here=f"desk/{promise}", json_urls=tuple(json_urls), dataset=served.name)


def _concealment_view(served: ServedDataset, promise: str, *, address: str) -> dict[str, Any]:
    return {
        "profiles": [
            list(map(float, profile.values)) for profile in served.policy.concealments[promise].profiles.values()
        ],
        "state": desk_state(served, promise, charts=True)
        if served.is_open(promise)
        else None,  # opening takes seconds: the page requests it later
        "simulation": last_simulation(served, promise),
        "all_codes": release_code(promise, address=address, dataset=served.name),
    }


def _hiding_view(served: ServedDataset, promise: str, *, address: str) -> dict[str, Any]:
    state = desk_state(served, promise)
    joint = join_hidings(served.policy.hidings)
    among = served.policy.hidings[promise].among
    return {
        "state": state,
        "selections_at": f"/v1/data/{served.name}/selections",
        "joint_about": list(joint.about),
        "among": among,
        "most_records": MOST_RECORDS,
        "all_codes": hiding_code(promise, address=address, dataset=served.name, has_list=among != "all"),
    }


@routes.get("/console/record", **PAGE)
def record_page(request: Request, caller: CurrentCaller) -> Response:
    view = own_record(request, caller)
    shown = {"view": view, "offered": view["desks"], "belongs_to": view["dataset"], "key": view["key"]}
    return show("record", request, shown, here="record", json_urls=("/v1/record",))
