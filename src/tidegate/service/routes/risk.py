"""risk: rho <-> epsilon for a universe, and the measures of randomized reports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import ConfigDict, Field

from tidegate.accounting import Amount, Target, identification_after
from tidegate.errors import Unsupported
from tidegate.policy.exact import exact
from tidegate.policy.exact import say as number
from tidegate.service.routes.common import Described, Form, Number, router

routes = router()
Figure = Annotated[str, Query(pattern=r"^\d{1,15}(\.\d{1,30})?$", max_length=50)]
Operator = Literal[
    "uniform-noise", "gaussian-noise", "laplace-noise", "square-wave", "randomized-response", "unary", "subset"
]
MOST_VALUES = 1000
Chance = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class Operated(Form):
    model_config = ConfigDict(
        json_schema_extra={"example": {"operator": "square-wave", "values": 45, "parameters": {"epsilon": 2}}}
    )
    operator: Operator
    values: int = Field(ge=2, le=MOST_VALUES, description="How many the attribute has.")
    parameters: dict[Literal["epsilon", "each", "privacy", "sigma", "half_width"], Number] = Field(max_length=5)


class Basket(Form):
    """cut-and-paste needs size, cutoff and rho; mask needs size and keep, and may have insert."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"operator": "cut-and-paste", "size": 5, "cutoff": 3, "rho": 0.1}}
    )
    operator: Literal["cut-and-paste", "mask"]
    size: int = Field(ge=1, le=20, description="How many items a basket holds.")
    items: int | None = Field(None, ge=1, le=10**6, description="How many there are (default: many).")
    cutoff: int | None = Field(None, ge=0, le=100)
    rho: Chance | None = None
    keep: Chance | None = None
    insert: Chance | None = None


class Wish(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"values": 45, "clients": 10000, "epsilon": 2}})
    values: int = Field(ge=2, le=200)
    clients: int = Field(ge=1, le=10**9, description="Expected to answer.")
    categories: bool = Field(False, description="The values have no order.")
    epsilon: Number | None = None
    interval: Number | None = None
    breach: tuple[Number, Number] | None = None
    loss: Number | None = None


@routes.get("/risk/conversion")
def convert_risk(worlds: Figure, rho: Figure | None = None, epsilon: Figure | None = None) -> Described:
    many = exact(worlds)
    if many <= 1 or (rho is None) == (epsilon is None):
        raise Unsupported("it needs worlds above 1 and either rho or epsilon.", "?worlds=99&rho=0.1")
    if rho is not None:
        target = Target("this", many, exact(rho))
        if not 0 < target.rho < 1:
            raise Unsupported("rho is a probability between 0 and 1.")
        target.refuse()
        words = f"identification at most {number(target.rho)} among {number(many)} possibilities allows a total loss of epsilon {target.limit.say()}."
        return {"worlds": worlds, "rho": rho, "epsilon": str(target.limit), "says": words}
    loss = Amount.up(exact(epsilon or "0"))
    after = identification_after(loss, many)
    words = f"a total loss of epsilon {loss.say()} leaves identification at most {float(after):.4g} among {number(many)} possibilities (a blind guess: {float(1 / many):.4g})."
    return {"worlds": worlds, "epsilon": str(loss), "rho": f"{after:.12f}", "says": words}


@routes.post("/risk/operators")
def measure_operator(asked: Operated) -> Described:
    from tidegate.collect.adviser import plain_universe  # here: arrays take long to load
    from tidegate.collect.mechanisms import operator_for
    from tidegate.policy import Question
    from tidegate.policy.collection import OPERATORS

    universe = plain_universe(asked.values, ordered=OPERATORS[asked.operator].ordered)
    parameters: dict[str, Any] = {name: exact(value) for name, value in asked.parameters.items()}
    measured = operator_for(Question("it", universe, asked.operator, **parameters)).measures(None)
    rows = [{"measure": name, "value": value, "says": says} for name, value, says in measured.rows()]
    told = {name: str(value) for name, value in parameters.items()}
    return {**measured.to_dict(), "parameters": told, "rows": rows}


@routes.post("/risk/baskets")
def measure_baskets(asked: Basket) -> Described:
    from tidegate.collect.sets.design import usual_maximum  # here: arrays take long to load
    from tidegate.collect.sets.measures import measure_baskets as measure

    if asked.items is not None and asked.items < asked.size:
        raise Unsupported(f"a basket of {asked.size} different items needs as many; there are {asked.items}.")
    measured = measure(_plan(asked), usual_maximum(asked.size), vocabulary_size=asked.items)
    return {"operator": asked.operator, **measured.to_dict(), "size_sent": asked.operator != "mask"}


def _plan(asked: Basket) -> Any:
    from tidegate.policy.setplans import SizePlan, cut_and_paste_keep, item_flip

    if asked.operator == "mask" and asked.keep is not None:
        come = None if asked.insert is None else exact(asked.insert)
        return item_flip(exact(asked.keep), come, vocabulary_size=20, largest=asked.size).plan(asked.size)
    if asked.operator == "cut-and-paste" and asked.rho is not None and asked.cutoff is not None:
        rho = exact(asked.rho)
        return SizePlan.rounded(asked.size, cut_and_paste_keep(asked.size, asked.cutoff, rho), rho)
    raise Unsupported("cut-and-paste needs cutoff and rho; mask needs keep.", "See /openapi.json for examples.")


@routes.post("/risk/advice")
def advise_operator(wish: Wish) -> Described:
    from tidegate.collect.adviser import advise, plain_universe

    wanted: dict[str, Any] = {"epsilon": wish.epsilon, "interval": wish.interval, "loss": wish.loss}
    given = {name: exact(value) for name, value in wanted.items() if value is not None}
    pair = None if wish.breach is None else (exact(wish.breach[0]), exact(wish.breach[1]))
    universe = plain_universe(wish.values, ordered=not wish.categories)
    advice = advise(universe, clients=wish.clients, breach=pair, **given)
    return {**advice.to_dict(), "says": str(advice)}
