"""Polls: the list, the builder, and for each poll its state, its links and print sheet, and its results."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from tidegate.collect.polls.respondent_texts import LANGUAGES, in_language, text_language
from tidegate.service.access.permissions import OWNER
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.collections import Survey, results_of
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.poll_drafts import what_respondents_read
from tidegate.service.routes.polls import MOST_SLIPS, list_polls, poll_of, poll_state, qr_modules
from tidegate.service.settings import service_url
from tidegate.web.snippets.poll import listing_code, poll_code

routes = unversioned_router()
START = {"epsilon": "2", "random": "1/3", "clients": 250}  # of a new poll
LANGUAGE_NAMES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "it": "Italiano",
    "nl": "Nederlands",
}
LANGUAGE_NAMES |= {
    "pl": "Polski",
    "pt": "Português",
    "sv": "Svenska",
    "tr": "Türkçe",
    "uk": "Українська",
    "ar": "العربية",
}


@routes.get("/console/data/{name}/polls", **PAGE)
def polls_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    view = {**list_polls(request, served), "may_make": caller.role == OWNER}
    view["codes"] = listing_code(address=service_url(request), dataset=served.name)
    return show("polls", request, view, here="polls", json_urls=(f"/v1/data/{served.name}/polls",), dataset=served.name)


@routes.get("/console/data/{name}/new-poll", **PAGE)
def builder_page(request: Request, served: Served) -> Response:
    view = {
        "at": f"/v1/data/{served.name}/polls",
        "dataset": served.name,
        "taken": list(served.policy.collections),
        "languages": [
            {"code": code, "name": name, "has_form": code in LANGUAGES} for code, name in LANGUAGE_NAMES.items()
        ],
        "start": START,
        "now": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    page = {"view": view, "may_add": served.file is not None, "codes": {"Command line": ""}}
    return show("poll_builder", request, page, here="polls", json_urls=(view["at"],), dataset=served.name)


@routes.get("/console/data/{name}/polls/{collection}", **PAGE)
def poll_page(request: Request, served: Served, collection: Survey, caller: CurrentCaller) -> Response:
    state = poll_state(request, served, collection)
    at = f"/v1/data/{served.name}/polls/{collection}"
    codes = poll_code(collection, address=service_url(request), dataset=served.name)
    definition, poll = poll_of(served, collection)
    view = {
        "at": at,
        "closing": f"/v1/data/{served.name}/collections/{collection}/closing",
        "state": state,
        "all_codes": codes,
    }
    page = {
        **view,
        "view": view,
        "title": in_language(state["title"], ""),
        "may_close": caller.role == OWNER,
        "reads": [what_respondents_read(definition, poll, language) for language in poll.languages],
        "language_names": LANGUAGE_NAMES,
        "codes": codes["state"],
    }
    return show("poll", request, page, here="polls", json_urls=(at,), dataset=served.name)


@routes.get("/console/data/{name}/polls/{collection}/share", **PAGE)
def share_page(request: Request, served: Served, collection: Survey) -> Response:
    state = poll_state(request, served, collection)
    at = f"/v1/data/{served.name}/polls/{collection}"
    view = {
        "at": at,
        "state": state,
        "sheet": {language: sheet_texts()[text_language(language)] for language in state["languages"]},
        "qr": qr_modules(state["form"]),
        "most": MOST_SLIPS,
    }
    page = {**view, "view": view, "title": in_language(state["title"], ""), "language_names": LANGUAGE_NAMES}
    return show("poll_share", request, page, here="polls", json_urls=(at,), dataset=served.name)


@routes.get("/console/data/{name}/polls/{collection}/results", **PAGE)
def results_page(
    request: Request,
    served: Served,
    collection: Survey,
    language: Annotated[str, Query(alias="lang", max_length=12)] = "",
) -> Response:
    poll_of(served, collection)
    results = results_of(served, collection)
    chosen = language if language in results.languages else results.languages[0]
    at = f"/v1/data/{served.name}/collections/{collection}/results"
    view: dict[str, Any] = {
        "at": at,
        "chart_at": f"/v1/data/{served.name}/polls/{collection}/chart",
        "poll": collection,
        "results": results,
        "language": chosen,
        "language_names": LANGUAGE_NAMES,
        "title": in_language(results.title, chosen),
        "charts": {of.question: _chart(of.plot(language=chosen)) for of in results},
        "codes": poll_code(collection, address=service_url(request), dataset=served.name)["results"],
    }
    return show("poll_results", request, view, here="polls", json_urls=(at,), dataset=served.name)


@cache
def sheet_texts() -> dict[str, dict[str, str]]:
    """Return the texts of a slip of the print sheet, by language."""
    content: dict[str, dict[str, str]] = json.loads((files("tidegate.web") / "texts" / "sheet.json").read_text("utf-8"))
    return content


def _chart(chart: Any) -> dict[str, Any]:
    """Return a chart whose drawing, which the service made and escaped, goes into the page as it is."""
    drawn = chart.to_dict()
    return {**drawn, "svg": Markup(drawn["svg"])}  # noqa: S704
