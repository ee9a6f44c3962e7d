"""Collections: the list, a form for a new one with the adviser, and the estimates of one collection."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.service.access.permissions import OWNER
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.collection_drafts import given_away, list_collections
from tidegate.service.routes.collections import Survey, collection_state
from tidegate.service.routes.dependencies import Asking, Held, router
from tidegate.service.settings import service_url
from tidegate.web.snippets.collect import spelled_collect, spelled_listing

routes = router()


@routes.get("/console/data/{name}/collections", **PAGE)
def collections_page(request: Request, held: Held, caller: Asking) -> Response:
    at = f"/data/{held.name}/collections"
    place = {"address": service_url(request), "dataset": held.name}
    view = {**list_collections(held), "at": at, "may_make": caller.role == OWNER}
    shown = {"view": view, "listed": view["collections"], "may_add": view["may_add"], "codes": spelled_listing(**place)}
    return show("collections", request, shown, here="collections", twins=(at,), dataset=held.name)


@routes.get("/console/data/{name}/collections/{collection}", **PAGE)
def collection_page(request: Request, held: Held, collection: Survey, caller: Asking) -> Response:
    at, state = f"/data/{held.name}/collections/{collection}", collection_state(held, collection, charts=True)
    survey = held.survey(collection)
    losses, asked = survey.respondent_loss.questions, survey.collection.questions
    place = {"address": service_url(request), "dataset": held.name}
    view: dict[str, Any] = {
        "at": at,
        "form": f"/forms/{held.name}/{collection}",
        "state": state,
        "fingerprint": survey.collection.fingerprint,
        "each": [given_away(question, losses[name]) for name, question in asked.items()],
        "ordered": [name for name in state["estimable"] if survey.operators[name].ordered],
        "may_close": caller.role == OWNER,
        "all_codes": spelled_collect(collection, state["estimable"], state["baskets"], **place),
    }
    shown = {**view, "view": view, "codes": view["all_codes"]["state"]}
    return show(
        "collection", request, shown, here=f"collect/{collection}", twins=(f"{at}/state", at), dataset=held.name
    )
