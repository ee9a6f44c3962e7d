"""risk operator, of sets: what a randomized basket gives away."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidegate.cli.output import emit, say, table
from tidegate.errors import Unsupported
from tidegate.operators import BASKET_OPERATORS, Parameter

if TYPE_CHECKING:
    from tidegate.collect.baskets.measures import BasketMeasures
    from tidegate.operators.basket_plans import SizePlan

LARGEST = 20
SPELLED = {"cutoff": "K"}  # options with a name of their own


def example_of(name: str) -> str:
    """A command with all that an operator needs."""
    known = BASKET_OPERATORS[name]
    options = [
        f"--{SPELLED.get(one.name, one.name)} {one.example}" for one in known.plan_parameters if not one.optional
    ]
    return " ".join([f"tidegate risk operator {name}", *options, *([] if known.takes_plans else ["--size 5"])])


def tell_baskets(name: str, given: dict[str, Any], *, items: int | None, supports: str | None, json: bool) -> None:
    """All measures of a report of baskets of one size."""
    from tidegate.collect.baskets.design import usual_maximum
    from tidegate.collect.baskets.measures import measure_baskets

    plan = plan_of(name, given)
    if items is not None and items < plan.size:
        raise Unsupported(
            f"a basket of {plan.size} different items needs as many; there are {items}.", example_of(name)
        )
    maximum = usual_maximum(plan.size) if supports is None else _maximum(supports)
    measured = measure_baskets(plan, maximum, vocabulary_size=items)
    if json:
        return emit({"operator": name, **measured.to_dict(), "size_sent": BASKET_OPERATORS[name].sends_size})
    return _show(name, measured, items=items, assumed=supports is None)


def plan_of(name: str, given: dict[str, Any]) -> SizePlan:
    """What the options come to for baskets of one size."""
    known, size = BASKET_OPERATORS[name], given.get("size")
    needed = [parameter.name for parameter in known.plan_parameters if not parameter.optional]
    for option in (*needed, *(() if known.takes_plans else ("size",))):
        if given.get(option) is None:
            raise Unsupported(f"{name} needs --{SPELLED.get(option, option)}.", example_of(name))
    if size is not None and not 1 <= size <= LARGEST:
        raise Unsupported(f"--size is from 1 to {LARGEST} items.", example_of(name))
    stated = {parameter.name: given[parameter.name] for parameter in known.plan_parameters}
    return known.size_plan(
        int(size or 0),
        {
            parameter.name: _value(parameter, stated[parameter.name])
            for parameter in known.plan_parameters
            if stated[parameter.name] is not None
        },
    )


def _value(parameter: Parameter, stated: Any) -> Any:
    if parameter.kind == "count":
        return stated
    if parameter.kind == "probability":
        return _chance(stated, parameter.name)
    chances = [_chance(part, parameter.name) for part in stated.split(",")]
    if not 2 <= len(chances) <= LARGEST + 1:
        raise Unsupported(f"--{parameter.name} takes from 2 to {LARGEST + 1} probabilities.", parameter.example)
    return chances


def _chance(text: str, name: str) -> Fraction:
    from tidegate.exact import exact

    try:
        value = exact(text.strip())
    except (TypeError, ValueError):
        value = Fraction(-1)
    if not 0 <= value <= 1:
        raise Unsupported(f"--{name} takes probabilities from 0 to 1.", "For example 0.05.")
    return value


def _maximum(supports: str) -> tuple[Fraction, ...]:
    each = (Fraction(1), *(_chance(part, "supports") for part in supports.split(",")))
    if list(each) != sorted(each, reverse=True) or each[-1] == 0:
        raise Unsupported(
            "--supports must not rise, and none is 0: more items together are never in more baskets.",
            "The most that 1, 2, 3, ... items are in baskets of this size: --supports 0.05,0.02,0.01",
        )
    return each


def _show(name: str, measured: BasketMeasures, *, items: int | None, assumed: bool) -> None:
    plan = measured.plan
    among = f"of {items:,} items" if items else f"of {2 * plan.size:,} items or more"
    say(f"{name}, baskets of {plan.size} {among}: {_plan(plan)}.")
    table(["measure", "", "what it means"], _rows(measured), right={1})
    say("How probable an item is, by itemsets that hold it: beforehand, and after the worst look of each kind.")
    cells = [
        [str(row.items), *map(_share, (row.before, row.visible, row.absent, row.mixed))] for row in measured.breaches
    ]
    table(["items", "before", "all seen", "none seen", "some seen"], cells, right={0, 1, 2, 3, 4})
    if assumed:
        say("Assumed: the usual supports of `tidegate collect design`. Give --supports: the breaches rest on them.")
    if math.isinf(measured.loss.epsilon):
        say("Unlimited: there is a report after which its holder is certain that some baskets are not the true one.")
    if BASKET_OPERATORS[name].sends_size:
        say("The size of the basket is sent in clear, outside of epsilon; bring all baskets to one size to hide it.")


def _plan(plan: SizePlan) -> str:
    keep = ", ".join(f"{float(chance):.4f}" for chance in plan.keep)
    return f"0, 1, ... stay with probability {keep}; another comes in with {float(plan.insert):.4f}"


def _rows(measured: BasketMeasures) -> list[list[str]]:
    from tidegate.exact import say as number

    loss, entropy = measured.loss, measured.entropy
    stays, comes = float(measured.stays), float(measured.comes)
    return [
        ["epsilon", _loss(loss.epsilon), f"between any two baskets of this size: gamma {_gamma(loss.any_two)}"],
        ["epsilon, one item", _loss(loss.epsilon_one_replaced), f"one item replaced: gamma {_gamma(loss.one_replaced)}"],
        ["interval", "none", "items have no order"],
        ["an item seen", _factor(measured.seen), f"its odds change by this: seen with {number(stays)}, else {number(comes)}"],
        ["an item not seen", _factor(measured.unseen), "its odds change by this"],
        ["entropy loss", number(entropy.loss), f"{number(entropy.told)} bits are told of an item in {number(100 * float(measured.prior))}% of baskets"],
        ["breach, any prior", number(measured.limit), "what anything held for 5% likely becomes at most"],
        ["worst breach", number(measured.worst), "the most probable that an item becomes, of those below"],
    ]  # fmt: skip


def _loss(epsilon: float) -> str:
    return "unlimited" if math.isinf(epsilon) else f"{epsilon:.4f}"


def _gamma(ratio: Any) -> str:
    return "unlimited" if math.isinf(ratio) else f"{float(ratio):,.4g}"


def _factor(odds: float) -> str:
    return "unlimited" if math.isinf(odds) else f"x {odds:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
