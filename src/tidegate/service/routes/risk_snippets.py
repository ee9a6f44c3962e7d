"""risk: what is calculated, as code to copy."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from tidegate.errors import Unsupported
from tidegate.service.routes.dependencies import Described, Form, Number, router
from tidegate.service.routes.risk import Basket, Operated, Wish, plan_parameters
from tidegate.web.snippets.risk import spelled_advice, spelled_baskets, spelled_conversion, spelled_operators

routes = router()
WISHES = {"epsilon", "interval", "breach", "loss"}


class Conversion(Form):
    worlds: Number
    rho: Number | None = None
    epsilon: Number | None = None


class Calculated(Form):
    """One calculation, in the form that its own address takes."""

    model_config = ConfigDict(json_schema_extra={"example": {"conversion": {"worlds": 99, "rho": 0.1}}})
    conversion: Conversion | None = None
    operators: list[Operated] | None = Field(None, min_length=1, max_length=20)
    baskets: Basket | None = None
    advice: Wish | None = None


@routes.post("/risk/code")
def risk_as_code(asked: Calculated) -> Described:
    if sum(one is not None for _, one in asked) != 1:
        raise Unsupported("one calculation is needed: conversion, operators, baskets or advice.")
    if asked.conversion is not None:
        return _conversion(asked.conversion)
    if asked.operators is not None:
        return spelled_operators([one.model_dump() for one in asked.operators])
    if asked.baskets is not None:
        return _baskets(asked.baskets)
    return _advice(asked.advice)


def _conversion(asked: Conversion) -> Described:
    if (asked.rho is None) == (asked.epsilon is None):
        raise Unsupported("a conversion needs either rho or epsilon.")
    return spelled_conversion(**{name: str(value).removesuffix(".0") for name, value in asked if value is not None})


def _baskets(asked: Basket) -> Described:
    given = asked.model_dump(exclude={"operator"}, exclude_none=True)
    plan_parameters(asked)  # refuses what is missing
    return spelled_baskets(operator=asked.operator, given=given)


def _advice(asked: Wish | None) -> Described:
    told = asked.model_dump(exclude_none=True) if asked else {}
    wanted = {name: told.pop(name) for name in WISHES & set(told)}
    if len(wanted) != 1:
        raise Unsupported("one wanted privacy is needed.", "Name epsilon, interval, breach or loss.")
    return spelled_advice(**told, wanted=wanted)
