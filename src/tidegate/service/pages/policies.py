"""Policy page: the policy as a form and as TOML, its versions with their differences, and what a change would mean."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from tidegate.errors import TidegateError
from tidegate.policy import EachPerson, Loss, Policy
from tidegate.policy.toml import write_policy
from tidegate.service.access.callers import Caller
from tidegate.service.datasets import ServedDataset
from tidegate.service.drafts.columns import kind_title
from tidegate.service.drafts.policy import AMOUNT, MOST_ONE_IN, rho_of
from tidegate.service.drafts.promise import one_in
from tidegate.service.drafts.store import Fields
from tidegate.service.errors import content_of
from tidegate.service.forms import form_fields
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.datasets import describe_data
from tidegate.service.routes.dependencies import CurrentCaller, Served, unversioned_router
from tidegate.service.routes.policies import (
    check_data,
    get_policy,
    preview_change,
    save_change,
    shown_text,
    without_locations,
)

routes = unversioned_router()


@routes.get("/console/data/{name}/policy", **PAGE)
def policy_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    return _show(request, served, caller, {"saved": request.query_params.get("saved") == "yes"})


@routes.post("/console/data/{name}/policy", **PAGE)
async def post_policy(request: Request, served: Served, caller: CurrentCaller) -> Response:
    fields = await form_fields(request)
    return await run_in_threadpool(_post, request, served, caller, fields)


def _post(request: Request, served: ServedDataset, caller: Caller, fields: Fields) -> Response:
    """Preview a change, or save it; a refusal is shown beside what was typed."""
    action = _field(fields, "action") or "preview"
    more: dict[str, Any] = {"edit": _field(fields, "edit") or "form"}
    try:
        if action == "check":
            return _show(request, served, caller, {"report": check_data(served)})
        if action == "save":
            caller.refuse_part()
            save_change(served, _field(fields, "toml"), fingerprint=_field(fields, "fingerprint"))
            return RedirectResponse(f"/console/data/{served.name}/policy?saved=yes", 303)
        if more["edit"] == "form":
            more["typed"] = {name: _field(fields, name) for name in ("one_in", "epsilon", "rows", "edition")}
            problems = form_problems(served.policy, more["typed"])
            if problems:
                return _show(request, served, caller, {**more, "problems": problems})
            text = changed_text(served, more["typed"])
        else:
            text = _field(fields, "toml")
        more |= {"text": text, "preview": preview_change(served, text)}
    except TidegateError as error:
        request.state.refused = error.code
        typed_text = {"text": _field(fields, "toml")} if "toml" in fields else {}
        more |= {"error": content_of(error, owner=True), **typed_text}
    return _show(request, served, caller, more)


def _field(fields: Fields, name: str) -> str:
    return next(iter(fields.get(name, [])), "")


def form_problems(policy: Policy, typed: dict[str, str]) -> dict[str, str]:
    """Return the problem of each field that cannot be read."""
    problems = {}
    number, epsilon, rows = (typed[name].strip() for name in ("one_in", "epsilon", "rows"))
    if policy.identification and (not AMOUNT.fullmatch(number) or not 1 < Decimal(number) <= MOST_ONE_IN):
        problems["one_in"] = f"Write a number above 1 and at most {MOST_ONE_IN:,}."
    if policy.loss and (not AMOUNT.fullmatch(epsilon) or not Decimal(epsilon)):
        problems["epsilon"] = "Write a number above 0."
    if rows and not (rows.replace(",", "").isdecimal() and int(rows.replace(",", ""))):
        problems["rows"] = "Write a whole number of at least 1, or leave the field empty."
    return problems


def changed_text(served: ServedDataset, typed: dict[str, str]) -> str:
    """Return the policy with what was typed in the form, as a text for the preview. An unchanged field changes nothing."""
    policy, shown = served.policy, form_values(served.policy)
    changed = {name for name, value in typed.items() if value.strip() != shown[name]}
    if not changed:
        return shown_text(served)
    rows = typed["rows"].strip().replace(",", "")
    dataset = replace(policy.dataset, rows=int(rows) if rows else None, edition=typed["edition"].strip())
    identification, loss = policy.identification, policy.loss
    if "one_in" in changed and identification:
        identification = replace(identification, rho=Fraction(rho_of(typed["one_in"].strip())))
    if "epsilon" in changed and loss:
        loss = Loss(Decimal(typed["epsilon"].strip()))
    result = replace(policy, dataset=dataset, identification=identification, loss=loss)
    return write_policy(without_locations(result))


def form_values(policy: Policy) -> dict[str, str]:
    """Return the fields of the form as they are now."""
    return {
        "one_in": one_in(policy.identification.rho).replace(",", "") if policy.identification else "",
        "epsilon": f"{policy.loss.to_dict()['epsilon']}" if policy.loss else "",
        "rows": str(policy.dataset.rows) if policy.dataset.rows is not None else "",
        "edition": policy.dataset.edition,
    }


def _show(request: Request, served: ServedDataset, caller: Caller, more: dict[str, Any]) -> Response:
    policy, content = served.policy, get_policy(served)
    view = {
        **describe_data(served, caller),
        **content,
        "may_change": content["may_change"] and not caller.dataset,
        "text": content["toml"],
        "typed": form_values(policy),
        "has": {"identification": bool(policy.identification), "loss": bool(policy.loss)},
        "columns": [
            {"name": name, "kind": kind_title(attribute.kind), "says": attribute.describe()}
            for name, attribute in policy.attributes.items()
        ],
        "unit_says": policy.dataset.unit.describe(),
        "counted": "persons" if isinstance(policy.dataset.unit, EachPerson) else "rows",
        "protect": list(policy.identification.protect) if policy.identification else [],
        "edit": "form",
        "problems": {},
        "preview": None,
        "error": None,
        "report": None,
        "saved": False,
        **more,
    }
    return show(
        "policy", request, view, here="policy", json_urls=(f"/v1/data/{served.name}/policy",), dataset=served.name
    )
