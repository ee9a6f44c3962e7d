"""Overview, the form of a collection, and the static files of all pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from tidegate.collect.run import current_time
from tidegate.errors import NotThere
from tidegate.service.access.permissions import OWNER
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.collections import Survey
from tidegate.service.routes.datasets import list_data
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.home import home_content
from tidegate.service.routes.ledger import entries_after
from tidegate.service.settings import service_url
from tidegate.web.assets import served_files
from tidegate.web.poll_form import poll_view
from tidegate.web.render import render
from tidegate.web.snippets.answer import COMMAND, PYTHON, connection_code

routes = unversioned_router()
Filed = Annotated[str, Path(pattern=r"^[a-z0-9_.-]{1,40}$")]
LATEST = 8


@routes.get("/", **PAGE)
def to_console() -> Response:
    return RedirectResponse("/console", 303)


@routes.get("/console", **PAGE)
def overview(request: Request, caller: CurrentCaller) -> Response:
    view = {**list_data(request, caller), "entries": None, "warnings": [], "may_add": False}
    json_urls: tuple[str, ...] = ("/v1/data",)
    if caller.role == OWNER:
        view |= home_content(request, caller, charts=True)
        view |= {"entries": entries_after(request, caller, 0, LATEST, newest=True)["entries"]}
        view["may_add"] = request.app.state.datasets.folder is not None and not caller.dataset
        json_urls = ("/v1/home", f"/v1/ledger/entries?newest=true&limit={LATEST}")
    view["codes"] = _overview_code(service_url(request), [dataset["name"] for dataset in view["datasets"]])
    return show("overview", request, view, here="overview", json_urls=json_urls)


@routes.get("/forms/{name}/{collection}", **PAGE)
def form(request: Request, served: Served, collection: Survey) -> Response:
    survey = served.survey(collection)  # this records the promise in the ledger before it is shown
    poll = survey.collection.poll
    is_over = poll is not None and poll.closes <= current_time()
    closed = survey.collection.closed or survey.closed or is_over
    description = {**survey.collection.public_dict(), "closed": closed}
    base = request.app.state.settings.base
    address = f"{base}/v1/data/{served.name}/collections/{collection}"
    view = {"description": description, "send_to": f"{address}/reports"}
    if poll is None:
        return HTMLResponse(render("form", view, base=base))
    language, accepted = request.query_params.get("lang", ""), request.headers.get("accept-language", "")
    view |= {"tokens_to": f"{address}/tokens", **poll_view(survey.collection, language, accepted)}
    return HTMLResponse(render("poll_form", view, base=base))


@routes.get("/static/{file}", **PAGE)
async def static_file(request: Request, file: Filed) -> Response:
    return _file(request, f"static/{file}")


@routes.get("/client/{file}", **PAGE)
async def client_file(request: Request, file: Filed) -> Response:
    return _file(request, f"client/{file}")


@routes.get("/client/operators/{file}", **PAGE)
async def operator_file(request: Request, file: Filed) -> Response:
    return _file(request, f"client/operators/{file}")


def _file(request: Request, name: str) -> Response:
    """Return a static file. Browsers cache it for good if the URL contains its tag, and revalidate it otherwise."""
    file = served_files().get(name)
    if file is None:
        raise NotThere("There is no file of that name.")
    tag = f'"{file.tag}"'
    lifetime = "public, max-age=31536000, immutable" if request.url.query == file.tag else "no-cache"
    headers = {"etag": tag, "cache-control": lifetime}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


def _overview_code(address: str, names: list[str]) -> dict[str, str]:
    """Return code that opens a data set in Python and on the command line."""
    name = names[0] if names else "people"
    python = f"{connection_code(address, name)}\nremote.describe()"
    return {PYTHON: python, COMMAND: f"tidegate check {name}.toml\ntidegate ledger show {name}.toml"}
