"""Saved questions and dashboards: lists, forms that post without scripts, and dashboards of stored answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from tidegate.errors import TidegateError, Unsupported
from tidegate.ledger.entry import canonical
from tidegate.ledger.library import Item
from tidegate.service.access.callers import Caller
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.errors import content_of
from tidegate.service.forms import form_fields
from tidegate.service.pages.answers import answers_view
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.library import MOST_SHOWN, ItemId, Shelf, Title, dashboard_items, look_up

routes = unversioned_router()
Fields = dict[str, list[str]]
FEW_ROWS = 12  # of a table in a dashboard
WEIGHT = 150_000  # characters of the charts of a dashboard, so that the page stays below 300 kB
_TITLE: TypeAdapter[str] = TypeAdapter(Title)


@routes.get("/console/data/{name}/library", **PAGE)
def library_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    return _show(request, Shelf.of(request, served, caller))


@routes.get("/console/data/{name}/dashboards/{item}", **PAGE)
def dashboard_page(request: Request, served: Served, caller: CurrentCaller, item: ItemId) -> Response:
    shelf = Shelf.of(request, served, caller)
    return _show_dashboard(request, shelf, shelf.find("dashboard", item))


@routes.post("/console/data/{name}/library", **PAGE)
async def post_library(request: Request, served: Served, caller: CurrentCaller) -> Response:
    fields = await form_fields(request)
    return await run_in_threadpool(_post, request, served, caller, fields)


def _post(request: Request, served: ServedDataset, caller: Caller, fields: Fields) -> Response:
    """Run the action of a form; a refusal is shown above the lists, with what was typed."""
    shelf, action = Shelf.of(request, served, caller), ACTIONS.get(_field(fields, "action"))
    try:
        if action is None:
            raise Unsupported("The form has no known action.", "Reload the page, and try again.")
        return RedirectResponse(f"/console/data/{quote(served.name)}/{action(shelf, fields)}", 303)
    except TidegateError as error:
        request.state.refused = error.code
        typed = {name: _field(fields, name) for name in fields}
        return _show(request, shelf, error=content_of(error), typed=typed)


def _rename(shelf: Shelf, fields: Fields) -> str:
    shelf.update(_kind(fields), _field(fields, "item"), name=_title(fields))
    return "library"


def _share(shelf: Shelf, fields: Fields) -> str:
    shelf.update(_kind(fields), _field(fields, "item"), shared=_field(fields, "shared") == "yes")
    return "library"


def _delete(shelf: Shelf, fields: Fields) -> str:
    shelf.remove(_kind(fields), _field(fields, "item"))
    return "library"


def _create(shelf: Shelf, fields: Fields) -> str:
    names = _arranged(shelf, fields)
    item = shelf.add("dashboard", _title(fields), names, shared=_field(fields, "shared") == "yes")
    return f"dashboards/{item.id}"


def _arrange(shelf: Shelf, fields: Fields) -> str:
    item = shelf.update(
        "dashboard",
        _field(fields, "item"),
        name=_title(fields),
        shared=_field(fields, "shared") == "yes",
        body=canonical(_arranged(shelf, fields)),
    )
    return f"dashboards/{item.id}"


ACTIONS: dict[str, Callable[[Shelf, Fields], str]] = {
    "rename": _rename,
    "share": _share,
    "delete": _delete,
    "create": _create,
    "arrange": _arrange,
}


def _field(fields: Fields, name: str) -> str:
    return next(iter(fields.get(name, [])), "").strip()


def _kind(fields: Fields) -> str:
    return "dashboard" if _field(fields, "kind") == "dashboard" else "question"


def _title(fields: Fields) -> str:
    try:
        return _TITLE.validate_python(_field(fields, "name"))
    except ValidationError:
        pass
    raise Unsupported("A name must have 1 to 100 characters, without line breaks.", "Enter another name.")


def _arranged(shelf: Shelf, fields: Fields) -> list[str]:
    """Return the questions of a dashboard in the order of their positions; an empty position leaves a question out."""
    positions: list[tuple[int, str]] = []
    for item in shelf.visible("question"):
        text = _field(fields, f"position-{item.id}")
        if text and not (text.isdecimal() and len(text) <= 4):
            raise Unsupported(
                f'The position of "{item.name}" must be a whole number.', "Enter 1 for the first question."
            )
        positions += [(int(text), item.id)] if text else []
    if len(positions) > MOST_SHOWN:
        raise Unsupported(f"A dashboard shows at most {MOST_SHOWN} questions.", "Divide them between two dashboards.")
    return [name for _, name in sorted(positions)]


def _show(request: Request, shelf: Shelf, *, error: Any = None, typed: Any = None) -> Response:
    name = shelf.served.name
    view = {
        "questions": [shelf.describe(item) for item in shelf.visible("question")],
        "dashboards": [shelf.describe(item) for item in shelf.visible("dashboard")],
        "may_remove": shelf.caller.role == OWNER,
        "error": error,
        "typed": typed or {},
    }
    json_urls = tuple(f"/v1/data/{name}/{kind}" for kind in ("questions", "dashboards"))
    return show("library", request, view, here="library", json_urls=json_urls, dataset=name)


def _show_dashboard(request: Request, shelf: Shelf, item: Item) -> Response:
    """Show stored answers; a question without one is shown with its price. Nothing runs, and nothing is charged."""
    weight, cards = WEIGHT, []
    for question in dashboard_items(shelf, item):
        card = _card(shelf, question, weight)
        cards.append(card)
        drawn = [part["chart"] for part in (card["view"] or {"parts": []})["parts"] if part["chart"]]
        weight -= sum(len(chart.__html__()) for chart in drawn)
    described = shelf.describe(item)
    positions = {name: position for position, name in enumerate(described["questions"], 1)}
    view = {"board": described, "cards": cards, "positions": positions}
    view["questions"] = [shelf.describe(question) for question in shelf.visible("question")] if described["own"] else []
    json_urls = (f"/v1/data/{shelf.served.name}/dashboards/{item.id}",)
    return show("dashboard", request, view, here="library", json_urls=json_urls, dataset=shelf.served.name)


def _card(shelf: Shelf, question: Item | None, weight: int) -> dict[str, Any]:
    if question is None:
        return {"item": None, "stored": None, "view": None, "problem": None}
    stored, problem = look_up(shelf, question)
    view = answers_view(stored.answers, rows=FEW_ROWS, weight=weight) if stored and stored.answers else None
    about = {"what": problem.what, "do": problem.do} if problem else None
    return {"item": shelf.describe(question), "stored": stored, "view": view, "problem": about}
