"""Synthesize: budget, progress by stage, tables, and their quality for the data holder."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidegate.accounting import Amount, budget_of
from tidegate.accounting.average import epsilon_at_delta
from tidegate.errors import NotThere
from tidegate.ledger import Account
from tidegate.ledger.jobs import DONE, Jobs
from tidegate.policy import Policy, Text
from tidegate.service.access.permissions import OWNER
from tidegate.service.datasets import ServedDataset
from tidegate.service.jobs import job_to_dict
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.datasets import summary
from tidegate.service.routes.dependencies import CurrentCaller, Described, Served, unversioned_router
from tidegate.service.routes.syntheses import JobName, synthesis_state
from tidegate.service.settings import service_url
from tidegate.web.snippets.synthesize import download_code, quality_code, synthesis_code

routes = unversioned_router()
SHOWN = 50  # jobs on the page
DELTA = "0.000001"  # of an epsilon that stands for a Z, unless another one is entered
FIRST = "0.5"  # used if the remaining budget is unknown


@routes.get("/console/data/{name}/syntheses", **PAGE)
def synthesize_page(request: Request, served: Served, caller: CurrentCaller) -> Response:
    view = {
        **summary(served, caller),
        "jobs": [job_to_dict(job) for job in Jobs(served.session.ledger.store).latest(served.name, limit=SHOWN)],
        "form": _form(served),
        "may_start": caller.role == OWNER,
    }
    view["codes"] = _codes(request, view)
    json_urls = (f"/v1/data/{served.name}", f"/v1/data/{served.name}/syntheses")
    return show(
        "synthesize", request, {**view, "view": view}, here="synthesize", json_urls=json_urls, dataset=served.name
    )


@routes.get("/console/data/{name}/syntheses/{job}/quality", **PAGE)
def quality_page(request: Request, served: Served, job: JobName) -> Response:
    state = synthesis_state(served, job)
    if state["state"] != DONE:
        raise NotThere(
            f"This synthesis is {state['state']}, so there is nothing to compare yet.",
            "Open this page when it is done.",
        )
    json_url = f"/v1/data/{served.name}/syntheses/{job}/quality"
    view = {"job": state, "at": json_url, "codes": quality_code(state["wanted"], dataset=served.name)}
    return show(
        "quality", request, {**view, "view": view}, here="synthesize", json_urls=(json_url,), dataset=served.name
    )


def _form(served: ServedDataset) -> Described | None:
    """Return the choices of the form and their ranges; None if the policy has no budget."""
    budget = budget_of(served.policy)
    if not budget.ceiling:
        return None
    account = served.session.account
    left, part = account.left, account.left.value / account.ceiling.value if account.ceiling else Fraction(0)
    guess = max((target.random_guess for target in budget.targets), default=None)
    most = min((target.rho for target in budget.targets), default=None)
    return {
        "left": str(left),
        "unit": account.unit,
        "choices": ["epsilon", "share"] if account.unit == "epsilon" else ["share", "z", "epsilon"],
        **_losses(account),
        "share": _about_half(part),
        "rho": None if guess is None or most is None else {"least": float(guess), "most": float(most)},
        "columns": _columns(served.policy),
        "rows": served.policy.dataset.rows,
    }


def _losses(account: Account) -> dict[str, Any]:
    """Return initial losses of a table. Where the budget is in Z, an epsilon is that of a loss at `delta`."""
    left = account.left.value
    if account.unit == "epsilon":
        return {"epsilon": _about_half(left)}
    most = epsilon_at_delta(Amount.down(2 * left), Fraction(DELTA))
    return {"z": _about_half(left), "epsilon": _about_half(Fraction(most)), "delta": DELTA, "epsilon_left": most}


def _about_half(left: Fraction) -> str:
    """Return an initial budget: half of the remaining budget, in two digits."""
    return f"{float(f'{float(left) / 2:.2g}'):f}".rstrip("0").rstrip(".") if left > Fraction(1, 10**5) else FIRST


def _columns(policy: Policy) -> list[str]:
    """Return the columns that can be synthesized: no keys, no sets, and none that the policy leaves out."""
    out = policy.synthesis.leave_out
    columns = policy.attributes.items()
    return [name for name, of in columns if of.countable and not isinstance(of, Text) and name not in out]


def _codes(request: Request, view: dict[str, Any]) -> dict[str, str]:
    """Return code for the form's values and for downloading the newest table."""
    service = {"address": service_url(request), "dataset": view["name"]}
    first = view["form"]["choices"][0] if view["form"] else "epsilon"
    options = {first: view["form"][first] if view["form"] else FIRST}
    codes = synthesis_code(options, **service, preview=not view["may_start"])
    done = next((job["id"] for job in view["jobs"] if job["state"] == DONE), None)
    download = download_code(**service, job=done) if done else {}
    return codes | {f"{kind}: download the newest table": text for kind, text in download.items()}
