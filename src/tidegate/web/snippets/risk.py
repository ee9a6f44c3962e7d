"""Code snippets of the risk lab's calculations in Python and on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tidegate.operators import BASKET_OPERATORS, Parameter


def conversion_code(
    *, worlds: str, rho: str = "", epsilon: str = "", z: str = "", guarantee: str = "worst-case", within: int = 0
) -> dict[str, str]:
    """Return the snippets that convert rho to the loss that it allows, or back.

    `within` is the number of steps on each side of a guess that count as right.
    """
    covered = 2 * within + 1
    count = f'Fraction("{worlds}")' + (f" / {covered}" if within else "")
    kind = f", guarantee={_quoted(guarantee)}" if guarantee != "worst-case" else ""
    largest = rho or ("1/2" if z else "1")  # any rho will do for the conversion of a loss
    lines = [
        "from fractions import Fraction",
        "",
        "from tidegate.accounting import Amount, Target",
        "",
        f'target = Target("it", worlds={count}, rho=Fraction("{largest}"){kind})',
    ]
    if epsilon or z:
        lines += [f'float(target.identification(Amount.up(Fraction("{epsilon or z}"))))']
    else:
        lines += ["target.refuse()  # raises an error if a random guess is right more often", "str(target.limit)"]
    words = ["tidegate", "risk", "convert", "--worlds", str(Fraction(worlds) / covered) if within else worlds]
    words += ["--epsilon", epsilon] if epsilon else ["--z", z] if z else ["--rho", rho]
    words += ["--guarantee", guarantee] if rho and guarantee != "worst-case" else []
    return {"Python": "\n".join(lines), "Command line": shlex.join(words)}


def operators_code(operators: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the snippets of all measures of a randomized report. Each item has operator, values, parameters."""
    rows = [
        f"    ({_quoted(operator['operator'])}, {operator['values']}, {_parameters(operator)}),"
        for operator in operators
    ]
    lines = [
        "from tidegate.collect.adviser import plain_universe",
        "from tidegate.collect.measures import measure",
        "from tidegate.operators import OPERATORS",
        "from tidegate.policy import Question",
        "from tidegate.policy.collection import operator_for",
        "",
        "operators = [",
        *rows,
        "]",
        "for name, values, parameters in operators:",
        "    universe = plain_universe(values, ordered=OPERATORS[name].ordered)",
        '    print(measure(operator_for(Question("it", universe, name, **parameters))).to_dict())',
    ]
    return {"Python": "\n".join(lines), "Command line": "\n".join(map(_operator_command, operators))}


def baskets_code(*, operator: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the snippets of all measures of a randomized basket."""
    lines = [
        "from fractions import Fraction",
        "",
        "from tidegate.collect.baskets.design import usual_maximum",
        "from tidegate.collect.baskets.measures import measure_baskets",
        f"from tidegate.operators import {BASKET_OPERATORS[operator].__name__}",
        "",
        _plan(operator, parameters),
        f"measure_baskets(plan, {_maximum(parameters)}{_items(parameters)}).to_dict()",
    ]
    words = ["tidegate", "risk", "operator", operator]
    options = {"size": "--size", "cutoff": "--K", "rho": "--rho", "keep": "--keep", "insert": "--insert"}
    for name, option in {**options, "items": "--items", "supports": "--supports"}.items():
        words += [option, _text(parameters[name])] if parameters.get(name) not in (None, []) else []
    return {"Python": "\n".join(lines), "Command line": shlex.join(words)}


def advice_code(*, values: int, clients: int, categories: bool, requirement: Mapping[str, Any]) -> dict[str, str]:
    """Return the snippets that recommend an operator for a privacy requirement."""
    ((name, value),) = requirement.items()
    pair = isinstance(value, list | tuple)
    shown = f"({', '.join(_quoted(part) for part in value)})" if pair else _quoted(value)
    lines = [
        "from tidegate.collect.adviser import advise, plain_universe",
        "",
        f"universe = plain_universe({values}, ordered={not categories})",
        f"print(advise(universe, clients={clients}, {name}={shown}))",
    ]
    words = ["tidegate", "risk", "advise", "--values", str(values), "--clients", str(clients)]
    words += ["--categories"] if categories else []
    words += [f"--{name}", ",".join(map(str, value)) if pair else str(value)]
    return {"Python": "\n".join(lines), "Command line": shlex.join(words)}


def _parameters(operator: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f'"{name}": "{value}"' for name, value in operator["parameters"].items()) + "}"


def _operator_command(operator: Mapping[str, Any]) -> str:
    words = ["tidegate", "risk", "operator", operator["operator"], "--values", str(operator["values"])]
    parameters = operator["parameters"].items()
    words += [word for name, value in parameters for word in (f"--{name.replace('_', '-')}", str(value))]
    return shlex.join(words)


def _plan(operator: str, parameters: Mapping[str, Any]) -> str:
    """Return the line that creates the plan for baskets of one size."""
    known = BASKET_OPERATORS[operator]
    arguments = [
        f'"{parameter.name}": {_plain(parameter, parameters[parameter.name])}'
        for parameter in known.plan_parameters
        if parameters.get(parameter.name) is not None
    ]
    size = parameters.get("size") or len(parameters["keep"]) - 1
    return f"plan = {known.__name__}.size_plan({size}, {{{', '.join(arguments)}}})"


def _plain(parameter: Parameter, value: Any) -> str:
    if parameter.is_list:
        return "[" + ", ".join(f'Fraction("{part}")' for part in value) + "]"
    return str(value) if parameter.kind == "count" else f'Fraction("{value}")'


def _maximum(parameters: Mapping[str, Any]) -> str:
    supports = [f'Fraction("{support}")' for support in parameters.get("supports") or ()]
    return f"[1, {', '.join(supports)}]" if supports else "usual_maximum(plan.size)"


def _items(parameters: Mapping[str, Any]) -> str:
    return "" if parameters.get("items") is None else f", vocabulary_size={parameters['items']}"


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _quoted(value: Any) -> str:
    return f'"{value}"'
