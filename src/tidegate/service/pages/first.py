"""The first pages of the console, and what all pages load. What a page shows is what the API tells."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from tidegate.errors import NotThere
from tidegate.service.access.table import OWNER
from tidegate.service.pages.frame import PAGE, show
from tidegate.service.routes.collecting import Survey
from tidegate.service.routes.common import Asking, Held, router
from tidegate.service.routes.datasets import list_data
from tidegate.service.routes.ledger import entries
from tidegate.web.files import served
from tidegate.web.pages import render
from tidegate.web.spelling import COMMAND, PYTHON, connecting

routes = router()
Filed = Annotated[str, Path(pattern=r"^[a-z0-9_.-]{1,40}$")]
LATEST = 8


@routes.get("/", **PAGE)
def to_console() -> Response:
    return RedirectResponse("/console", 303)


@routes.get("/console/sign-in", **PAGE)
def sign_in_page(request: Request) -> Response:
    return show("sign_in", request, {}, here="sign-in")


@routes.get("/console", **PAGE)
def overview(request: Request, caller: Asking) -> Response:
    view = {**list_data(request, caller), "entries": None}
    twins: tuple[str, ...] = ("/data",)
    if caller.role == OWNER:
        view |= {"entries": entries(request, caller, newest=True, limit=LATEST)["entries"]}
        twins = ("/data", f"/ledger/entries?newest=true&limit={LATEST}")
    view["codes"] = _opening(str(request.base_url).rstrip("/"), [one["name"] for one in view["datasets"]])
    return show("overview", request, view, here="overview", twins=twins)


@routes.get("/forms/{name}/{collection}", **PAGE)
def form(held: Held, collection: Survey) -> Response:
    described = held.survey(collection).collection  # which puts the promise into the ledger before it is shown
    view = {"description": described.public_dict(), "send_to": f"/data/{held.name}/collections/{collection}/reports"}
    return HTMLResponse(render("form", view))


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
    """A file of the pages; a browser that has it asks again at no cost, or not at all where the address names its tag."""
    found = served().get(name)
    if found is None:
        raise NotThere("no page needs a file of that name.")
    tag = f'"{found.tag}"'
    lasting = "public, max-age=31536000, immutable" if request.url.query == found.tag else "no-cache"
    headers = {"etag": tag, "cache-control": lasting}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.kind, headers=headers)


def _opening(address: str, names: list[str]) -> dict[str, str]:
    """How to come in by Python and by the command line."""
    name = names[0] if names else "people"
    python = f"{connecting(address, name)}\nremote.describe()"
    return {PYTHON: python, COMMAND: f"tidegate check {name}.toml\ntidegate ledger show {name}.toml"}
