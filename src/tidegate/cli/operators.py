"""risk operator, risk advise: what a randomized report gives away, and which operator to take."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import Unsupported
from tidegate.operators import BASKET_OPERATORS, VALUE_OPERATORS, Parameter, RandomizedResponse, SquareWave

if TYPE_CHECKING:
    from tidegate.collect.adviser import Advice, Option
    from tidegate.collect.baskets.measures import BasketMeasures
    from tidegate.collect.measures import Measures
    from tidegate.operators.basket_plans import SizePlan
    from tidegate.policy import Attribute

EXAMPLE = f"tidegate risk operator {SquareWave.name} --values 45 --epsilon 2"
LARGEST = 20  # items in a basket that is measured
SPELLED = {"cutoff": "K"}  # options with a name of their own
VALUES = typer.Option(None, "--values", help="How many values the attribute has (its grid, bins or categories).")
POLICY = typer.Option(None, "--policy", help="A policy file; with --attribute, instead of --values.")
ATTRIBUTE = typer.Option(None, "--attribute", help="A column of the policy.")


def _help(name: str) -> str:
    """The help of a parameter's option, from the operators that have it."""
    for operator in VALUE_OPERATORS.values():
        for parameter in operator.parameters:
            if parameter.name == name:
                return parameter.text
    texts: dict[str, list[str]] = {}
    for operator in reversed(BASKET_OPERATORS.values()):
        for parameter in operator.plan_parameters:
            if parameter.name == name:
                texts.setdefault(parameter.text, []).append(operator.name)
    return " ".join(f"{'Baskets' if names[1:] else names[0]}: {text}" for text, names in texts.items())


def operator(
    name: str = typer.Argument(help=f"{', '.join(VALUE_OPERATORS)}; of baskets: {', '.join(BASKET_OPERATORS)}."),
    values: int | None = VALUES,
    policy: Path | None = POLICY,
    attribute: str | None = ATTRIBUTE,
    epsilon: str | None = typer.Option(None, help=_help("epsilon")),
    each: str | None = typer.Option(None, help=_help("each")),
    privacy: str | None = typer.Option(None, help=_help("privacy")),
    sigma: str | None = typer.Option(None, help=_help("sigma")),
    half_width: str | None = typer.Option(None, "--half-width", help=_help("half_width")),
    prior: str | None = typer.Option(None, help="How likely each value is beforehand: 0.5,0.25,0.25."),
    size: int | None = typer.Option(None, "--size", help="Baskets: how many items one holds."),
    items: int | None = typer.Option(None, "--items", help="Baskets: how many items there are (default: many)."),
    cutoff: int | None = typer.Option(None, "--K", "--cutoff", help=_help("cutoff")),
    rho: str | None = typer.Option(None, "--rho", help=_help("rho")),
    keep: str | None = typer.Option(None, "--keep", help=_help("keep")),
    insert: str | None = typer.Option(None, "--insert", help=_help("insert")),
    supports: str | None = typer.Option(
        None, "--supports", help="Baskets: the most that 1, 2, 3, ... items together are in: 0.05,0.02,0.01."
    ),
    json: bool = JSON,
) -> None:
    """All privacy measures of one report, side by side: epsilon, interval, entropy, breach."""
    from tidegate.collect.measures import measure
    from tidegate.policy import Question
    from tidegate.policy.collection import operator_for

    if name in BASKET_OPERATORS:
        strange: dict[str, Any] = {"epsilon": epsilon, "each": each, "privacy": privacy, "sigma": sigma}
        strange |= {"half-width": half_width}
        strange |= {"values": values, "policy": policy, "attribute": attribute, "prior": prior}
        _refuse_given(name, strange, "A basket is randomized as a whole: say what stays and what comes in.")
        of_set = {"size": size, "cutoff": cutoff, "rho": rho, "keep": keep, "insert": insert}
        own = {"size", *(parameter.name for parameter in BASKET_OPERATORS[name].plan_parameters)}
        _refuse_given(name, {word: of_set[word] for word in of_set if word not in own}, example_of(name))
        return tell_baskets(name, of_set, items=items, supports=supports, json=json)
    sets_only = {"size": size, "items": items, "K": cutoff, "rho": rho, "keep": keep, "insert": insert}
    _refuse_given(name, {**sets_only, "supports": supports}, "That is for baskets.")

    given = {"epsilon": epsilon, "each": each, "privacy": privacy, "sigma": sigma, "half_width": half_width}
    parameters = {word: _number(text, word) for word, text in given.items() if text is not None}
    question = Question(attribute or "it", _universe(values, policy, attribute, name), name, **parameters)
    made = operator_for(question)
    chances = None if prior is None else [float(_number(part, "prior")) for part in prior.split(",")]
    measured = measure(made, chances)
    if json:
        return emit({**measured.to_dict(), "parameters": {word: str(value) for word, value in parameters.items()}})
    named = str(question) if attribute else str(question).removeprefix(f"{question.attribute} by ")
    say(f"{named}: {made.values:,} values, {_reports(made)}.")
    table(["measure", "", "what it means"], [list(row) for row in measured.rows()], right={1})
    if measured.merged > 1:
        say(f"Entropy, breach and conclusions are those of runs of {measured.merged} neighbouring values.")
    if math.isinf(measured.epsilon):
        say("Unlimited: there is a report after which its holder is certain that some values are not the true one.")
    return None


def _refuse_given(name: str, options: dict[str, Any], do: str) -> None:
    for word, value in options.items():
        if value is not None:
            raise Unsupported(f"{name} does not know --{'K' if word == 'cutoff' else word}.", do)


def _reports(made: Any) -> str:
    return (
        f"{made.report_size:,} possible reports"
        if made.form == "code"
        else f"a report is a set of some of the {made.values:,}"
    )


def advise(
    clients: int = typer.Option(..., "--clients", help="How many persons are expected to answer."),
    values: int | None = VALUES,
    categories: bool = typer.Option(False, "--categories", help="The values have no order."),
    policy: Path | None = POLICY,
    attribute: str | None = ATTRIBUTE,
    epsilon: str | None = typer.Option(None, help="Wanted: a local loss of at most this."),
    interval: str | None = typer.Option(None, help="Wanted: a 95% interval of at least this share of the range."),
    breach: str | None = typer.Option(None, help="Wanted: 0.05,0.5 lets nothing of 5% become 50% likely."),
    loss: str | None = typer.Option(None, help="Wanted: an entropy loss of at most this."),
    json: bool = JSON,
) -> None:
    """Which operator and parameters keep a wanted privacy, and the error to expect from so many clients."""
    from tidegate.collect.adviser import advise as ask

    universe = _universe(values, policy, attribute, RandomizedResponse.name if categories else SquareWave.name)
    pair = None
    if breach is not None:
        ends = [_number(part, "breach") for part in breach.split(",")]
        if len(ends) != 2:
            raise Unsupported("--breach takes two probabilities.", "Write --breach 0.05,0.5.")
        pair = (ends[0], ends[1])
    given = {"epsilon": epsilon, "interval": interval, "loss": loss}
    numbers: dict[str, Any] = {word: _number(text, word) for word, text in given.items() if text is not None}
    advice = ask(universe, clients=clients, breach=pair, **numbers)
    return emit(advice.to_dict()) if json else _show(advice)


def _show(advice: Advice) -> None:
    say(f"Wanted: {advice.wanted}; {advice.values:,} values, {advice.clients:,} clients.")
    possible = [option for option in advice.options if option.measures is not None]
    error = ["shows", "mean +-"] if advice.ordered else ["share +-"]
    headers = ["operator", "epsilon", "interval", "loss", "breach", *error]
    table(
        headers,
        [_row(option, option.measures, advice.ordered) for option in possible if option.measures],
        right=set(range(1, len(headers))),
    )
    for option in advice.options:
        if option.measures is None:
            say(f"{option.operator}: {option.why_not}.")
    shows = " shows: how many features of the distribution. +-: 95 times in 100, in steps." if advice.ordered else ""
    say(f"breach: what 5% can become, whatever the prior.{shows}")
    say(str(advice), *(f"Or {option.line}." for option in possible[1:]))


def _row(option: Option, measures: Measures, ordered: bool) -> list[str]:
    from tidegate.exact import say as number

    loss = "unlimited" if math.isinf(measures.epsilon) else number(measures.epsilon)
    share = "-" if measures.privacy is None else f"{number(100 * measures.privacy)}%"
    wrong = option.error or 0.0
    error = [str(option.features), number(wrong)] if ordered else [f"{number(100 * wrong)}%"]
    return [option.operator, loss, share, number(measures.entropy.loss), number(measures.breach_limit), *error]


def _universe(values: int | None, policy: Path | None, attribute: str | None, operator: str) -> Attribute:
    from tidegate.collect.adviser import plain_universe
    from tidegate.policy import read_policy
    from tidegate.policy.collection import LARGEST_SIZE

    if policy is not None and attribute is not None and values is None:
        return read_policy(policy).attribute(attribute)
    if values is None or policy is not None or attribute is not None:
        raise Unsupported("either --values, or --policy with --attribute is needed.", EXAMPLE)
    if not 2 <= values <= LARGEST_SIZE:
        raise Unsupported(f"from 2 to {LARGEST_SIZE:,} values are needed.", EXAMPLE)
    known = VALUE_OPERATORS.get(operator)
    return plain_universe(values, ordered=known is None or known.ordered)


def _number(text: str, name: str) -> Any:
    from tidegate.exact import exact

    value = None
    with suppress(TypeError, ValueError):
        value = exact(text.strip())
    if value is None or value < 0:
        raise Unsupported(f"--{name.replace('_', '-')} must be a number of 0 or more.", EXAMPLE)
    return value


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
    return _show_baskets(name, measured, items=items, assumed=supports is None)


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


def _show_baskets(name: str, measured: BasketMeasures, *, items: int | None, assumed: bool) -> None:
    plan = measured.plan
    among = f"of {items:,} items" if items else f"of {2 * plan.size:,} items or more"
    say(f"{name}, baskets of {plan.size} {among}: {_plan_text(plan)}.")
    table(["measure", "", "what it means"], _basket_rows(measured), right={1})
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


def _plan_text(plan: SizePlan) -> str:
    keep = ", ".join(f"{float(chance):.4f}" for chance in plan.keep)
    return f"0, 1, ... stay with probability {keep}; another comes in with {float(plan.insert):.4f}"


def _basket_rows(measured: BasketMeasures) -> list[list[str]]:
    from tidegate.exact import say as number

    loss, entropy = measured.loss, measured.entropy
    stays, comes = float(measured.stays), float(measured.comes)
    return [
        ["epsilon", _loss(loss.epsilon), f"between any two baskets of this size: gamma {_gamma(loss.any_two)}"],
        ["epsilon, one item", _loss(loss.epsilon_one_replaced), f"one item replaced: gamma {_gamma(loss.one_replaced)}"],
        ["interval", "none", "items have no order"],
        ["an item seen", _factor(measured.seen), f"its odds change by this: seen with {number(stays)}, else {number(comes)}"],
        ["an item not seen", _factor(measured.unseen), "its odds change by this"],
        ["entropy loss", number(entropy.loss), f"{number(entropy.information)} bits are told of an item in {number(100 * float(measured.prior))}% of baskets"],
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
