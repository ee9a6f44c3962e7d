"""The wizard: from a file or a table to a served data set, in six steps. Each step is a form that also posts without scripts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from tidegate.accounting import budget_of
from tidegate.accounting.budget import SHORT
from tidegate.errors import TidegateError
from tidegate.policy import Numeric, Policy
from tidegate.service.drafts.columns import GRIDS, KINDS, LABELS, MISSING, PARTS
from tidegate.service.drafts.policy import MOST_ONE_IN, DraftPolicy, most_one_in
from tidegate.service.drafts.promise import one_in, random_guess
from tidegate.service.drafts.publication import access_problems
from tidegate.service.drafts.simulation import PLANS, simulate
from tidegate.service.drafts.store import STEPS, Draft, Fields, Step
from tidegate.service.drafts.synthesis import preview_synthesis
from tidegate.service.errors import content_of
from tidegate.service.forms import form_fields
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.dependencies import unversioned_router
from tidegate.service.routes.drafts import (
    DraftId,
    Shop,
    Workshop,
    all_drafts,
    check_columns,
    describe_draft,
    publish_stored,
    remove_draft,
    save_step,
    source_choices,
    step_fields,
    with_access,
)

routes = unversioned_router()
TITLES = {
    "source": "Source",
    "people": "Who is protected",
    "columns": "Columns",
    "promise": "Promise",
    "simulation": "Simulate",
    "publication": "Publish",
}
FIELDS_OF_SOURCE = {"path": "path", "database": "table"}  # where the problem of a source is shown


@routes.get("/console/drafts", **PAGE)
def drafts_page(request: Request, shop: Shop) -> Response:
    view = {**all_drafts(shop), "titles": TITLES}
    return show("drafts", request, view, here="drafts", json_urls=("/v1/drafts",))


@routes.post("/console/drafts", **PAGE)
def start(shop: Shop) -> Response:
    draft = shop.drafts.add(owner=shop.caller.name)
    return RedirectResponse(f"/console/drafts/{draft.id}/source", 303)


@routes.post("/console/drafts/{draft}", **PAGE)
def delete(shop: Shop, draft: DraftId) -> Response:
    remove_draft(shop, draft)
    return RedirectResponse("/console/drafts", 303)


@routes.get("/console/drafts/{draft}/{step}", **PAGE)
def step_page(request: Request, shop: Shop, draft: DraftId, step: Step) -> Response:
    stored = shop.drafts.find(draft)
    if stored.published and step != "publication":
        return RedirectResponse(f"/console/drafts/{draft}/publication", 303)
    if step != "source" and not stored.source:
        return RedirectResponse(f"/console/drafts/{draft}/source", 303)
    return _show_step(request, shop, stored, step)


@routes.post("/console/drafts/{draft}/{step}", **PAGE)
async def post_step(request: Request, shop: Shop, draft: DraftId, step: Step) -> Response:
    fields = await form_fields(request)
    return await run_in_threadpool(_post_step, request, shop, draft, step, fields)


def _post_step(request: Request, shop: Workshop, draft: str, step: Step, fields: Fields) -> Response:
    """Store what was typed; go on if the step has no problem, and show the problems at their fields otherwise."""
    stored, action = shop.drafts.find(draft), next(iter(fields.get("action", [])), "continue")
    if stored.published:
        return RedirectResponse(f"/console/drafts/{draft}/publication", 303)
    try:
        stored = save_step(shop, stored, step, fields)
        if action == "check":
            return _show_step(request, shop, stored, step, more={"report": check_columns(shop, stored)}, tried=True)
        if action == "publish" and not access_problems(with_access(stored)):
            token = publish_stored(shop, stored)
            return _show_step(request, shop, shop.drafts.find(draft), step, more={"token": token})
    except TidegateError as error:
        request.state.refused = error.code
        return _show_step(request, shop, stored, step, error=error, chosen=fields, tried=True)
    reading = shop.read(stored)
    problems = access_problems(with_access(stored)) if step == "publication" else reading.problems.get(step)
    if action == "apply" or problems:
        return _show_step(request, shop, stored, step, tried=action != "apply")
    following = STEPS[min(len(STEPS) - 1, STEPS.index(step) + 1)]
    return RedirectResponse(f"/console/drafts/{draft}/{following}", 303)


def _show_step(
    request: Request,
    shop: Workshop,
    draft: Draft,
    step: Step,
    *,
    more: dict[str, Any] | None = None,
    error: TidegateError | None = None,
    chosen: Fields | None = None,
    tried: bool = False,
) -> Response:
    """Render a step. `tried`: the form was sent, so its problems are shown; `chosen` are fields that were not stored."""
    reading = shop.read(draft)
    content = describe_draft(shop, draft)
    problems = next(part["problems"] for part in content["steps"] if part["step"] == step) if tried else {}
    problems = {**problems, **(access_problems(with_access(draft)) if tried and step == "publication" else {})}
    fields = chosen if chosen is not None and step == "source" else step_fields(draft, reading, step)
    view: dict[str, Any] = {
        "draft": content,
        "step": step,
        "titles": TITLES,
        "marks": _marks(content, step),
        "fields": {name: values[0] if values else "" for name, values in fields.items()},
        "many_fields": fields,
        "problems": problems,
        "labels": {name: _label(draft, step, name) for name in problems},
        "error": content_of(error, owner=True) if error else None,
        "back": STEPS[STEPS.index(step) - 1] if step != STEPS[0] else "",
        "report": None,
        "token": None,
        **VIEWS[step](request, shop, draft, reading),
        **(more or {}),
    }
    if error is not None and step == "source":
        source = next(iter(fields.get("source", [])), "")
        view["problems"] = {FIELDS_OF_SOURCE.get(source, "upload"): f"{error.what} {error.do}".strip()}
    return show(f"draft_{step}", request, view, here="drafts", json_urls=(f"/v1/drafts/{draft.id}",))


def _label(draft: Draft, step: Step, name: str) -> str:
    """Return the column and the field of a problem, for the list of all problems; empty for other fields."""
    part, _, index = name.rpartition("-")
    is_column = step in ("columns", "promise") and index.isdecimal() and int(index) < len(draft.types)
    return ", ".join(filter(None, (list(draft.types)[int(index)], LABELS.get(part)))) if is_column else ""


def _marks(content: dict[str, Any], step: Step) -> dict[str, str]:
    """Return the state of each step for the list of steps: done, open, or here."""
    marks = {part["step"]: "open" if part["problems"] else "done" for part in content["steps"]}
    if not content["source"]:
        marks = dict.fromkeys(marks, "open")
    marks |= {} if content["complete"] or marks["promise"] == "open" else {"promise": "open"}
    marks |= {"simulation": "done" if content["complete"] else "open"}
    marks |= {"publication": "done" if content["published"] else "open"}
    return {**marks, step: "here"}


def _source_view(request: Request, shop: Workshop, draft: Draft, reading: DraftPolicy) -> dict[str, Any]:
    return {"choices": source_choices(shop)}


def _people_view(request: Request, shop: Workshop, draft: Draft, reading: DraftPolicy) -> dict[str, Any]:
    return {"names": list(draft.types)}


def _columns_view(request: Request, shop: Workshop, draft: Draft, reading: DraftPolicy) -> dict[str, Any]:
    key = draft.value("people", "key") if draft.value("people", "unit") == "person" else ""
    columns = [
        {
            "index": column.index,
            "name": column.name,
            "type": column.column_type,
            "kind": column.kind,
            "proposed": column.is_proposed,
            "is_person": column.name == key,
        }
        for column in reading.columns
    ]
    return {"columns": columns, "kinds": KINDS, "grids": GRIDS, "missing": MISSING, "parts": PARTS, "labels_of": LABELS}


def _promise_view(request: Request, shop: Workshop, draft: Draft, reading: DraftPolicy) -> dict[str, Any]:
    indexes = {name: index for index, name in enumerate(draft.types)}
    protectable = []
    for name, attribute in reading.protectable.items():
        guess = random_guess(reading, name)
        protectable.append(
            {
                "name": name,
                "index": indexes[name],
                "says": attribute.describe(),
                "is_number": isinstance(attribute, Numeric),
                "unit": str(getattr(attribute, "grid", "")),
                "one_in": one_in(guess),
                "most": min(MOST_ONE_IN, most_one_in(guess)),
            }
        )
    return {"protectable": protectable, "kind": reading.promise_kind}


def _simulation_view(request: Request, shop: Workshop, draft: Draft, reading: DraftPolicy) -> dict[str, Any]:
    count, rows = (request.query_params.get(name, "") for name in ("queries", "rows"))
    queries = int(count) if count.isdecimal() and 1 <= int(count) <= 10_000 else 20
    assumed = int(rows) if rows.isdecimal() and 1 <= int(rows) <= 10**12 else None
    policy = _policy(shop, reading)
    result = simulate(policy, queries=queries, rows=assumed) if policy else None
    synthesis, problem = None, ""
    if policy and request.query_params.get("synthetic"):
        try:
            synthesis = preview_synthesis(policy, rows=assumed)
        except TidegateError as error:
            problem = f"{error.what} {error.do}".strip()
    return {"simulation": result, "plans": PLANS, "assumed": rows, "synthesis": synthesis, "unavailable": problem}


def _policy(shop: Workshop, reading: DraftPolicy) -> Policy | None:
    """Return the policy of a draft; None if it is not complete or cannot be read."""
    with suppress(TidegateError):
        return shop.policy(reading)
    return None


def _publication_view(request: Request, shop: Workshop, draft: Draft, reading: DraftPolicy) -> dict[str, Any]:
    policy = _policy(shop, reading)
    budget = budget_of(policy) if policy else None
    return {"budget": {"unit": SHORT[budget.unit], "total": str(budget.ceiling)} if budget else None}


VIEWS = {
    "source": _source_view,
    "people": _people_view,
    "columns": _columns_view,
    "promise": _promise_view,
    "simulation": _simulation_view,
    "publication": _publication_view,
}
