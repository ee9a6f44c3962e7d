"""Risk lab: the meaning of the numbers, for any number of possible values or for a served data set."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from tidegate.accounting import Target, budget_of
from tidegate.errors import TidegateError, Unsupported
from tidegate.exact import exact, say
from tidegate.operators import (
    VALUE_OPERATORS,
    CutAndPaste,
    LaplaceNoise,
    RandomizedResponse,
    SquareWave,
    UniformNoise,
)
from tidegate.policy import Policy
from tidegate.service.pages.layout import PAGE, show
from tidegate.service.routes.dependencies import CurrentCaller, unversioned_router
from tidegate.service.routes.risk_practice import practice
from tidegate.web.snippets.risk import advice_code, baskets_code, conversion_code, operators_code

routes = unversioned_router()
SHOWN = (SquareWave, LaplaceNoise, UniformNoise, RandomizedResponse)  # at first
LARGEST = 10**12  # of a number in the form
START: dict[str, Any] = {
    "worlds": "99",
    "rho": "0.015",
    "guarantee": "worst-case",
    "within": 0,
    "values": 45,
    "operators": [
        {
            "operator": name,
            "parameters": {known.parameters[0].name: known.parameters[0].example},
            "ordered": known.ordered,
            "shown": known in SHOWN,
        }
        for name, known in VALUE_OPERATORS.items()
    ],
    "baskets": {
        "operator": CutAndPaste.name,
        "size": 5,
        **{
            parameter.name: parameter.shown if parameter.kind == "count" else parameter.example
            for parameter in CutAndPaste.plan_parameters
        },
    },
    "advice": {"values": 45, "clients": 10_000, "categories": False, "requirement": {"epsilon": "2"}},
}


Plain = Annotated[str, Query(max_length=40)]


@routes.get("/console/risk", **PAGE)
def risk_page(
    request: Request,
    caller: CurrentCaller,
    one_in: Plain = "20",
    values: Plain = "99",
    within: Plain = "0",
    people: Plain = "10000",
) -> Response:
    datasets = request.app.state.datasets
    visible = [name for name in datasets if caller.can_use(name)]
    universes = [universe for name in visible for universe in universes_of(datasets[name].policy)]
    view = {"universes": universes, "start": START, "codes": _codes()}
    words = _in_words({"one_in": one_in, "values": values, "within": within, "people": people})
    worlds = f"worlds={START['worlds']}"
    json_urls = (f"/v1/risk/meaning?rho={START['rho']}&{worlds}", f"/v1/risk/curve?{worlds}")
    return show("risk", request, {**view, "view": view, "words": words}, here="risk", json_urls=json_urls)


def _in_words(fields: dict[str, str]) -> dict[str, Any]:
    """Return what the promise of the form means, or what is wrong with a field. The form works without scripts."""
    try:
        one_in, values = (exact(fields[name].replace(",", "")) for name in ("one_in", "values"))
        within, people = (int(exact(fields[name].replace(",", ""))) for name in ("within", "people"))
        if not (values <= LARGEST and one_in <= LARGEST and 0 <= within <= LARGEST and 1 <= people <= LARGEST):
            raise Unsupported(f"A number is too large, or negative. The limit is {LARGEST:,}.")
        return {"fields": fields, "meaning": practice(one_in, values, within=within, people=people)}
    except TidegateError as error:
        return {"fields": fields, "problem": f"{error.what} {error.do}".strip()}


def universes_of(policy: Policy) -> list[dict[str, Any]]:
    """Return the attributes that an adversary could guess and their numbers of possible values: protected ones first.

    Persons of whom several are unknown are left out: under the average guarantee, a number of values does not describe them.
    """
    promised = [
        {
            **_universe(policy, target.name),
            **_values(policy, target),
            "rho": say(target.rho),
            "guarantee": target.guarantee,
        }
        for target in budget_of(policy).targets
        if target.guesses == 1
    ]
    protected = set(policy.identification.protect if policy.identification else ())
    others = [
        {**_universe(policy, name), "worlds": str(attribute.size)}
        for name, attribute in policy.attributes.items()
        if attribute.countable and name not in protected and attribute.size > 1
    ]
    return promised + others


def _universe(policy: Policy, name: str) -> dict[str, Any]:
    return {"dataset": policy.dataset.name, "name": name, "rho": None, "guarantee": None, "within": 0}


def _values(policy: Policy, target: Target) -> dict[str, Any]:
    """Return the number of values and the window of a guess. With a prior, the number already accounts for the window."""
    attribute = policy.attributes.get(target.name)
    if target.window and attribute is not None and attribute.size == target.worlds * (2 * target.window + 1):
        return {"worlds": str(attribute.size), "within": target.window}
    return {"worlds": _number(target.worlds)}


def _number(worlds: Any) -> str:
    """Return a number of possible values for the calculator: a whole number, or decimals rounded down."""
    return str(worlds.numerator) if worlds.denominator == 1 else f"{int(worlds * 10**6) / 10**6:.6f}"


def _codes() -> dict[str, dict[str, str]]:
    """Return the code snippets of all parts as the page opens."""
    baskets = START["baskets"]
    chosen = [{**operator, "values": START["values"]} for operator in START["operators"] if operator["shown"]]
    return {
        "conversion": conversion_code(worlds=START["worlds"], rho=START["rho"]),
        "operators": operators_code(chosen),
        "baskets": baskets_code(operator=baskets["operator"], parameters=baskets),
        "advice": advice_code(**START["advice"]),
    }
