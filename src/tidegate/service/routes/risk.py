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


class Operated(Form):
    model_config = ConfigDict(
        json_schema_extra={"example": {"operator": "square-wave", "values": 45, "parameters": {"epsilon": 2}}}
    )
    operator: Operator
    values: int = Field(ge=2, le=MOST_VALUES, description="How many the attribute has.")
    parameters: dict[Literal["epsilon", "each", "privacy", "sigma", "half_width"], Number] = Field(max_length=5)


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


@routes.post("/risk/advice")
def advise_operator(wish: Wish) -> Described:
    from tidegate.collect.adviser import advise, plain_universe

    wanted: dict[str, Any] = {"epsilon": wish.epsilon, "interval": wish.interval, "loss": wish.loss}
    given = {name: exact(value) for name, value in wanted.items() if value is not None}
    pair = None if wish.breach is None else (exact(wish.breach[0]), exact(wish.breach[1]))
    universe = plain_universe(wish.values, ordered=not wish.categories)
    advice = advise(universe, clients=wish.clients, breach=pair, **given)
    return {**advice.to_dict(), "says": str(advice)}
