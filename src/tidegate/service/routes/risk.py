"""Risk: conversion between rho and the loss that it allows, its meaning, the measures of randomized reports, and code snippets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query
from pydantic import ConfigDict, Field

from tidegate.accounting import Amount, Target
from tidegate.accounting.budget import SHORT
from tidegate.errors import Unsupported
from tidegate.exact import exact
from tidegate.exact import say as number
from tidegate.operators import BASKET_OPERATORS, VALUE_OPERATORS, SquareWave, parameters_of
from tidegate.operators import BasketOperator as OnBaskets
from tidegate.policy.promises import Guarantee
from tidegate.service.models.base import Codes
from tidegate.service.models.risk import (
    BasketMeasures,
    MeasuredOperator,
    OperatorAdvice,
    OperatorComparison,
    RiskConversion,
    RiskCurve,
    RiskMeaning,
)
from tidegate.service.routes.dependencies import Charts, Described, Form, Number, router, with_charts
from tidegate.service.routes.risk_charts import breaches_chart, curve_chart, errors_chart, operators_chart
from tidegate.service.routes.risk_meaning import curve, identification, meaning
from tidegate.service.routes.risk_practice import Practice, practice
from tidegate.service.routes.risk_readings import Reading, possibilities, readings_of, readings_to_dict
from tidegate.web.snippets.risk import advice_code, baskets_code, conversion_code, operators_code

if TYPE_CHECKING:
    from tidegate.operators.basket_plans import SizePlan

routes = router()
Figure = Annotated[str, Query(pattern=r"^\d{1,15}(\.\d{1,30})?$", max_length=50)]
Reads = Annotated[
    Guarantee | None,
    Query(
        description="`worst-case`: for every response (default). `average`: over the noise, with Z instead of epsilon."
    ),
]
Within = Annotated[
    int, Query(ge=0, le=10**12, description="The number of steps on each side of a guess that count as right.")
]
if TYPE_CHECKING:
    Operator = str
    BasketOperator = str
    ParameterName = str
else:  # the names in the registry, for the schema and for validation
    Operator = Literal[tuple(VALUE_OPERATORS)]
    BasketOperator = Literal[tuple(BASKET_OPERATORS)]
    ParameterName = Literal[tuple(parameters_of(*VALUE_OPERATORS))]
MOST_VALUES, LARGEST = 1000, 20


def plan_example(known: type[OnBaskets]) -> dict[str, Any]:
    """Return the required parameters of a plan, with example values."""
    return {parameter.name: parameter.shown for parameter in known.plan_parameters if not parameter.optional}


def _needs(known: type[OnBaskets]) -> str:
    names = ["size"] * (not known.takes_plans)
    required = [parameter for parameter in known.plan_parameters if not parameter.optional]
    names += [parameter.name + " as a list" * parameter.is_list for parameter in required]
    return f"{known.name} needs {', '.join(names[:-1])} and {names[-1]}"


NEEDED = "; ".join(map(_needs, BASKET_OPERATORS.values()))
Probability = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class OperatorRequest(Form):
    model_config = ConfigDict(
        json_schema_extra={"example": {"operator": SquareWave.name, "values": 45, "parameters": {"epsilon": 2}}}
    )
    operator: Operator
    values: int = Field(ge=2, le=MOST_VALUES, description="The number of values of the attribute.")
    parameters: dict[ParameterName, Number] = Field(max_length=5)


class Comparison(Form):
    """Operators to compare, with a chart of the three main measures."""

    operators: list[OperatorRequest] = Field(min_length=1, max_length=20)


class Basket(Form):
    """A basket operator and its parameters."""

    model_config = ConfigDict(
        json_schema_extra={
            "description": f"{NEEDED}.",
            "examples": [
                {"operator": name, **({} if known.takes_plans else {"size": 5}), **plan_example(known)}
                for name, known in BASKET_OPERATORS.items()
            ],
        }
    )
    operator: BasketOperator
    size: int | None = Field(None, ge=1, le=LARGEST, description="The number of items in a basket.")
    items: int | None = Field(
        None, ge=1, le=10**6, description="The number of different items (default: a large number)."
    )
    cutoff: int | None = Field(None, ge=0, le=100)
    rho: Probability | None = None
    keep: Probability | Annotated[list[Probability], Field(min_length=2, max_length=LARGEST + 1)] | None = None
    insert: Probability | None = None
    charts: bool = Field(False, description="Also return the charts of the result, as SVG.")
    supports: list[Probability] = Field(
        [], max_length=LARGEST, description="The largest support of 1, 2, ... items together (default: typical values)."
    )


class Requirement(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"values": 45, "clients": 10000, "epsilon": 2}})
    values: int = Field(ge=2, le=200)
    clients: int = Field(ge=1, le=10**9, description="The expected number of respondents.")
    categories: bool = Field(False, description="Whether the values have no order.")
    epsilon: Number | None = None
    interval: Number | None = None
    breach: tuple[Number, Number] | None = None
    loss: Number | None = None


@routes.get("/risk/conversion", response_model=RiskConversion)
def convert_risk(
    worlds: Figure,
    rho: Figure | None = None,
    epsilon: Figure | None = None,
    z: Annotated[Figure | None, Query(description="The total loss under the average guarantee.")] = None,
    guarantee: Reads = None,
    within: Within = 0,
    charts: Charts = False,
) -> Described:
    stated = {"rho": rho, "epsilon": epsilon, "z": z}
    conversion = {"worlds": worlds, **_convert(exact(worlds), stated, guarantee, within)}
    if not charts:
        return conversion
    plotted = {"curve": curve_chart(conversion)}
    return with_charts(conversion, plotted | ({"errors": errors_chart(conversion)} if conversion["readings"] else {}))


def _convert(worlds: Fraction, stated: dict[str, str | None], guarantee: Guarantee | None, within: int) -> Described:
    """Return rho, the loss, and what they mean under both guarantees."""
    values = {name: value for name, value in stated.items() if value is not None}
    if worlds <= 1 or len(values) != 1:
        raise Unsupported(
            "The conversion needs `worlds` above 1 and exactly one of `rho`, `epsilon`, or `z`.",
            "Use, for example, ?worlds=99&rho=0.1.",
        )
    (name,) = values
    chosen: Guarantee = guarantee or ("average" if name == "z" else "worst-case")
    if (name, chosen) in (("epsilon", "average"), ("z", "worst-case")):
        raise Unsupported(
            f"`{name}` does not belong to the {chosen} guarantee.",
            "Use `epsilon` with the worst-case guarantee, and `z` with the average one.",
        )
    count = possibilities(worlds, within)
    converted = (
        _from_rho(values[name], count, chosen, within) if name == "rho" else _from_loss(values[name], count, chosen)
    )
    return {**converted, "guarantee": chosen, "within": within, "blind_guess": float(1 / count)}


def _from_rho(rho: str, count: Fraction, guarantee: Guarantee, within: int) -> Described:
    target = Target("this", count, exact(rho), guarantee, window=within)
    if not 0 < target.rho < 1:
        raise Unsupported("`rho` must be between 0 and 1.", "Use, for example, ?worlds=99&rho=0.1.")
    target.refuse()
    reading = Reading(guarantee, target.limit)
    text = f"A probability of identification of at most {number(target.rho)}{_on_average(reading)} among {number(count)} possible values allows a total loss of {_loss(reading)}{_certainty(reading)}."
    values = {"rho": rho, reading.unit: str(reading.loss), "yes_no": f"{reading.yes_no:.12f}", "says": text}
    return {**values, "readings": readings_to_dict(readings_of(target.rho, count, reading))}


def _from_loss(loss: str, count: Fraction, guarantee: Guarantee) -> Described:
    reading = Reading(guarantee, Amount.up(exact(loss)))
    after = identification(reading, count)
    text = f"A total loss of {_loss(reading)} limits the probability of identification{_on_average(reading)} to {after:.4g} among {number(count)} possible values (a random guess: {float(1 / count):.4g}){_certainty(reading)}."
    values = {reading.unit: str(reading.loss), "rho": f"{after:.12f}", "yes_no": f"{reading.yes_no:.12f}", "says": text}
    return {**values, "readings": readings_to_dict(readings_of(exact(values["rho"]), count, reading))}


def _loss(reading: Reading) -> str:
    return f"{SHORT[reading.unit]} {reading.loss.say()}"


def _on_average(reading: Reading) -> str:
    return " on average" if reading.guarantee == "average" else ""


def _certainty(reading: Reading) -> str:
    return f"; an adversary can then answer a yes/no question about one person with a certainty of up to {reading.yes_no:.4g}"


@routes.get("/risk/meaning", response_model=RiskMeaning)
def explain_risk(rho: Figure, worlds: Figure | None = None, guarantee: Reads = None, within: Within = 0) -> Described:
    count = None if worlds is None else possibilities(exact(worlds), within)
    explained = meaning(exact(rho), count, guarantee or "worst-case")
    return {"rho": rho, "worlds": worlds, **explained}


@routes.get("/risk/curve", response_model=RiskCurve)
def draw_risk(
    worlds: Figure,
    most: Annotated[float | None, Query(gt=0, le=1000, description="The largest loss of the curve.")] = None,
    points: Annotated[int, Query(ge=2, le=500)] = 101,
    guarantee: Reads = None,
    within: Within = 0,
) -> Described:
    count, end = possibilities(exact(worlds), within), None if most is None else exact(most)
    return {"worlds": worlds, **curve(count, most=end, points=points, guarantee=guarantee or "worst-case")}


@routes.get("/risk/practice")
def describe_practice(
    one_in: Annotated[Figure, Query(description="20: nobody's value can be guessed with more than 1 chance in 20.")],
    worlds: Figure,
    within: Within = 0,
    people: Annotated[int, Query(ge=1, le=10**12, description="The number of people in the data set.")] = 10_000,
) -> Practice:
    return practice(exact(one_in), exact(worlds), within=within, people=people)


@routes.post("/risk/operators", response_model=MeasuredOperator)
def measure_operator(body: OperatorRequest) -> Described:
    return _measure(body)


@routes.post("/risk/comparisons", response_model=OperatorComparison)
def compare_operators(body: Comparison) -> Described:
    operators = [_measure(operator) for operator in body.operators]
    return with_charts({"operators": operators}, {"operators": operators_chart(operators)})


def _measure(body: OperatorRequest) -> Described:
    from tidegate.collect.adviser import plain_universe  # here: numpy is slow to import
    from tidegate.collect.measures import measure
    from tidegate.policy import Question
    from tidegate.policy.collection import operator_for

    universe = plain_universe(body.values, ordered=VALUE_OPERATORS[body.operator].ordered)
    parameters: dict[str, Any] = {name: exact(value) for name, value in body.parameters.items()}
    measured = measure(operator_for(Question("it", universe, body.operator, **parameters)))
    rows = [{"measure": name, "value": value, "says": says} for name, value, says in measured.rows()]
    as_text = {name: str(value) for name, value in parameters.items()}
    return {**measured.to_dict(), "parameters": as_text, "rows": rows}


@routes.post("/risk/baskets", response_model=BasketMeasures)
def measure_baskets(body: Basket) -> Described:
    from tidegate.collect.baskets.design import usual_maximum  # here: numpy is slow to import
    from tidegate.collect.baskets.measures import measure_baskets as measure

    plan = _plan(body)
    if body.items is not None and body.items < plan.size:
        raise Unsupported(
            f"A basket of {plan.size} different items needs at least {plan.size} items, but `items` is {body.items}."
        )
    maximum = _maximum(body.supports) if body.supports else usual_maximum(plan.size)
    measured = measure(plan, maximum, vocabulary_size=body.items)
    sends_size = BASKET_OPERATORS[body.operator].sends_size
    measures: Described = {"operator": body.operator, **measured.to_dict(), "size_sent": sends_size}
    return with_charts(measures, {"breaches": breaches_chart(measures)}) if body.charts else measures


def plan_parameters(body: Basket) -> dict[str, Any]:
    """Return the exact parameters of the plan; refuse missing ones and those of the wrong type."""
    known = BASKET_OPERATORS[body.operator]
    values = {parameter: getattr(body, parameter.name) for parameter in known.plan_parameters}
    missing = [parameter for parameter, value in values.items() if value is None and not parameter.optional]
    of_wrong_type = [
        parameter
        for parameter, value in values.items()
        if value is not None and isinstance(value, list) != parameter.is_list
    ]
    if missing or of_wrong_type or not (body.size or known.takes_plans):
        raise Unsupported(f"{NEEDED}.", "See /openapi.json for examples.")
    return {
        parameter.name: [exact(part) for part in value] if parameter.is_list else exact(value)
        for parameter, value in values.items()
        if value is not None
    }


def _plan(body: Basket) -> SizePlan:
    return BASKET_OPERATORS[body.operator].size_plan(body.size or 0, plan_parameters(body))


def _maximum(supports: list[float]) -> tuple[Fraction, ...]:
    each = (Fraction(1), *map(exact, supports))
    if list(each) != sorted(each, reverse=True) or each[-1] == 0:
        raise Unsupported(
            "`supports` must not increase and must be above 0: larger itemsets are never in more baskets.",
            "Specify the largest support of 1, 2, 3, ... items together, for example [0.05, 0.02, 0.01].",
        )
    return each


@routes.post("/risk/advice", response_model=OperatorAdvice)
def advise_operator(body: Requirement) -> Described:
    from tidegate.collect.adviser import advise, plain_universe

    limits: dict[str, Any] = {"epsilon": body.epsilon, "interval": body.interval, "loss": body.loss}
    requirement = {name: exact(value) for name, value in limits.items() if value is not None}
    pair = None if body.breach is None else (exact(body.breach[0]), exact(body.breach[1]))
    universe = plain_universe(body.values, ordered=not body.categories)
    advice = advise(universe, clients=body.clients, breach=pair, **requirement)
    return {**advice.to_dict(), "says": str(advice)}


REQUIREMENTS = {"epsilon", "interval", "breach", "loss"}


class Conversion(Form):
    worlds: Number
    rho: Number | None = None
    epsilon: Number | None = None
    z: Number | None = None
    guarantee: Guarantee | None = None
    within: int = Field(0, ge=0, le=10**12)


class Calculation(Form):
    """One calculation, in the form of its own route."""

    model_config = ConfigDict(json_schema_extra={"example": {"conversion": {"worlds": 99, "rho": 0.1}}})
    conversion: Conversion | None = None
    operators: list[OperatorRequest] | None = Field(None, min_length=1, max_length=20)
    baskets: Basket | None = None
    advice: Requirement | None = None


@routes.post("/risk/code", response_model=Codes)
def risk_as_code(body: Calculation) -> Described:
    if sum(part is not None for _, part in body) != 1:
        raise Unsupported("Specify exactly one calculation: conversion, operators, baskets or advice.")
    if body.conversion is not None:
        return _conversion_snippet(body.conversion)
    if body.operators is not None:
        return operators_code([operator.model_dump() for operator in body.operators])
    if body.baskets is not None:
        return _basket_snippet(body.baskets)
    return _advice_snippet(body.advice)


def _conversion_snippet(body: Conversion) -> Described:
    losses = body.model_dump(include={"rho", "epsilon", "z"}, exclude_none=True)
    if len(losses) != 1:
        raise Unsupported("Specify exactly one of `rho`, `epsilon`, or `z`.")
    texts = {name: str(value).removesuffix(".0") for name, value in {"worlds": body.worlds, **losses}.items()}
    average = "z" in losses or (body.guarantee == "average" and "rho" in losses)
    return conversion_code(**texts, guarantee="average" if average else "worst-case", within=body.within)


def _basket_snippet(body: Basket) -> Described:
    parameters = body.model_dump(exclude={"operator", "charts"}, exclude_none=True)
    plan_parameters(body)  # refuses missing parameters
    return baskets_code(operator=body.operator, parameters=parameters)


def _advice_snippet(body: Requirement | None) -> Described:
    fields = body.model_dump(exclude_none=True) if body else {}
    requirement = {name: fields.pop(name) for name in REQUIREMENTS & set(fields)}
    if len(requirement) != 1:
        raise Unsupported(
            "Specify exactly one privacy requirement.", "Choose one of `epsilon`, `interval`, `breach` or `loss`."
        )
    return advice_code(**fields, requirement=requirement)
