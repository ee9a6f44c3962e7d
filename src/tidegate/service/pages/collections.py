"""Collections: the list, a form for a new one with the adviser, and the estimates of one collection."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.service.access.permissions import OWNER
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.collection_drafts import describe_loss, list_collections
from tidegate.service.routes.collections import Survey, collection_state
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.settings import service_url
from tidegate.web.snippets.collect import collection_code, listing_code

routes = unversioned_router()


@routes.get("/console/data/{name}/collections", **PAGE)
def collections_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    at = f"/v1/data/{served.name}/collections"
    service = {"address": service_url(request), "dataset": served.name}
    view = {**list_collections(served), "at": at, "may_make": caller.role == OWNER}
    page = {"view": view, "listed": view["collections"], "may_add": view["may_add"], "codes": listing_code(**service)}
    return show("collections", request, page, here="collections", json_urls=(at,), dataset=served.name)


@routes.get("/console/data/{name}/collections/{collection}", **PAGE)
def collection_page(request: Request, served: Served, collection: Survey, caller: CurrentCaller) -> Response:
    at, state = f"/v1/data/{served.name}/collections/{collection}", collection_state(served, collection, charts=True)
    survey = served.survey(collection)
    losses, questions = survey.respondent_loss.questions, survey.collection.questions
    service = {"address": service_url(request), "dataset": served.name}
    view: dict[str, Any] = {
        "at": at,
        "form": f"/forms/{served.name}/{collection}",
        "state": state,
        "fingerprint": survey.collection.fingerprint,
        "each": [describe_loss(question, losses[name]) for name, question in questions.items()],
        "ordered": [name for name in state["estimable"] if survey.operators[name].ordered],
        "may_close": caller.role == OWNER,
        "is_poll": survey.collection.poll is not None,
        "all_codes": collection_code(collection, state["estimable"], state["baskets"], **service),
    }
    page = {**view, "view": view, "codes": view["all_codes"]["state"]}
    return show(
        "collection", request, page, here=f"collect/{collection}", json_urls=(f"{at}/state", at), dataset=served.name
    )
