"""risk operator, risk advise: privacy measures of a randomized report, and a recommended operator."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import Unsupported
from tidegate.operators import (
    BASKET_OPERATORS,
    CHOICE_OPERATORS,
    VALUE_OPERATORS,
    Parameter,
    PrivSet,
    ProjectiveGeometry,
    SquareWave,
    parameters_of,
)
from tidegate.operators.operator import MOST_VALUES

if TYPE_CHECKING:
    from tidegate.collect.adviser import Advice, Option
    from tidegate.collect.baskets.measures import BasketMeasures
    from tidegate.collect.measures import Measures
    from tidegate.collect.question_sampling import QuestionPlan
    from tidegate.operators.basket_plans import SizePlan
    from tidegate.policy import Attribute

EXAMPLE = f"tidegate risk operator {SquareWave.name} --values 45 --epsilon 2"
CHOICE_EXAMPLE = f"tidegate risk operator {PrivSet.name} --items 8 --choose 3 --epsilon 2"
CHOICE_ADVICE = "tidegate risk advise --items 8 --choose 3 --clients 2000 --epsilon 2"
EXAMPLE_ADVICE = "tidegate risk advise --values 4 --categories --clients 2000 --epsilon 2 --questions 6"
TEXT_ADVICE = "tidegate risk advise --text --clients 200000 --epsilon 2"
ROUNDS_ADVICE = "tidegate risk advise --values 20 --categories --clients 2000 --epsilon 2 --each 1"
MOST_QUESTIONS = 100
LARGEST = 20  # items in a measured basket
MOST_OPTIONS = 1_000
OPTION_NAMES = {"cutoff": "K"}  # options that are not named like their parameter
VALUES = typer.Option(
    None, "--values", help="The number of values of the attribute (its grid points, bins or categories)."
)
POLICY = typer.Option(None, "--policy", help="A policy file; with --attribute, instead of --values.")
CHOOSE = typer.Option(None, "--choose", help=f"Chosen options: {parameters_of(PrivSet.name)['choose'].text}")
ATTRIBUTE = typer.Option(None, "--attribute", help="A column of the policy.")


def _help(name: str) -> str:
    """Return the help of a parameter's option, from the operators that have it."""
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
    name: str = typer.Argument(
        help=f"{', '.join(VALUE_OPERATORS)}; for baskets: {', '.join(BASKET_OPERATORS)}; for chosen options: {', '.join(CHOICE_OPERATORS)}."
    ),
    values: int | None = VALUES,
    policy: Path | None = POLICY,
    attribute: str | None = ATTRIBUTE,
    epsilon: str | None = typer.Option(None, help=_help("epsilon")),
    each: str | None = typer.Option(None, help=_help("each")),
    privacy: str | None = typer.Option(None, help=_help("privacy")),
    sigma: str | None = typer.Option(None, help=_help("sigma")),
    half_width: str | None = typer.Option(None, "--half-width", help=_help("half_width")),
    prior: str | None = typer.Option(None, help="The prior probability of each value: 0.5,0.25,0.25."),
    size: int | None = typer.Option(None, "--size", help="Baskets: the number of items in a basket."),
    items: int | None = typer.Option(
        None,
        "--items",
        help="Baskets: the number of different items (default: unlimited); chosen options: their number.",
    ),
    choose: int | None = CHOOSE,
    cutoff: int | None = typer.Option(None, "--K", "--cutoff", help=_help("cutoff")),
    rho: str | None = typer.Option(None, "--rho", help=_help("rho")),
    keep: str | None = typer.Option(None, "--keep", help=_help("keep")),
    insert: str | None = typer.Option(None, "--insert", help=_help("insert")),
    supports: str | None = typer.Option(
        None, "--supports", help="Baskets: the largest support of 1, 2, 3, ... items together: 0.05,0.02,0.01."
    ),
    json: bool = JSON,
) -> None:
    """Show all privacy measures of one report: epsilon, interval, entropy, breach."""
    from tidegate.collect.measures import measure
    from tidegate.policy import Question
    from tidegate.policy.collection import operator_for

    if name in CHOICE_OPERATORS:
        others: dict[str, Any] = {
            "each": each,
            "privacy": privacy,
            "sigma": sigma,
            "half-width": half_width,
            "size": size,
        }
        others |= {"values": values, "policy": policy, "attribute": attribute, "prior": prior, "supports": supports}
        others |= {"K": cutoff, "rho": rho, "keep": keep, "insert": insert}
        _refuse_options(name, others, CHOICE_EXAMPLE)
        return measure_choice(name, items=items, epsilon=epsilon, choose=choose, json=json)
    _refuse_options(name, {"choose": choose}, "This option is for chosen options.")
    if name in BASKET_OPERATORS:
        unsupported: dict[str, Any] = {"epsilon": epsilon, "each": each, "privacy": privacy, "sigma": sigma}
        unsupported |= {"half-width": half_width}
        unsupported |= {"values": values, "policy": policy, "attribute": attribute, "prior": prior}
        _refuse_options(
            name, unsupported, "A basket is randomized as a whole: specify which items are kept and inserted."
        )
        basket_options = {"size": size, "cutoff": cutoff, "rho": rho, "keep": keep, "insert": insert}
        own = {"size", *(parameter.name for parameter in BASKET_OPERATORS[name].plan_parameters)}
        _refuse_options(
            name, {option: value for option, value in basket_options.items() if option not in own}, example_of(name)
        )
        return measure_basket(name, basket_options, items=items, supports=supports, json=json)
    basket_only = {"size": size, "items": items, "K": cutoff, "rho": rho, "keep": keep, "insert": insert}
    _refuse_options(name, {**basket_only, "supports": supports}, "This option is for baskets.")

    options = {"epsilon": epsilon, "each": each, "privacy": privacy, "sigma": sigma, "half_width": half_width}
    parameters = {option: _number(text, option) for option, text in options.items() if text is not None}
    question = Question(attribute or "it", _universe(values, policy, attribute, name), name, **parameters)
    built = operator_for(question)
    probabilities = None if prior is None else [float(_number(part, "prior")) for part in prior.split(",")]
    measured = measure(built, probabilities)
    if json:
        return emit({**measured.to_dict(), "parameters": {option: str(value) for option, value in parameters.items()}})
    named = str(question) if attribute else str(question).removeprefix(f"{question.attribute} by ")
    say(f"{named}: {built.values:,} values, {_reports(built)}.")
    table(["measure", "", "what it means"], [list(row) for row in measured.rows()], right={1})
    if measured.merged > 1:
        say(f"Entropy, breach and conclusions are for groups of {measured.merged} neighboring values.")
    if math.isinf(measured.epsilon):
        say("Unlimited: after some reports, the collector can rule out some values with certainty.")
    return None


def measure_choice(name: str, *, items: int | None, epsilon: str | None, choose: int | None, json: bool) -> None:
    """Show all measures of a report about chosen options."""
    from tidegate.collect.choices import measure_choices
    from tidegate.operators import ChoiceOperator
    from tidegate.policy import Items, Question
    from tidegate.policy.collection import operator_for

    if items is None or not 1 <= items <= MOST_OPTIONS:
        raise Unsupported(f"`--items` must be the number of options, from 1 to {MOST_OPTIONS:,}.", CHOICE_EXAMPLE)
    limit = {} if choose is None else {"choose": choose}
    stated = limit if epsilon is None else {"epsilon": _number(epsilon, "epsilon"), **limit}
    question = Question("it", Items(tuple(map(str, range(items)))), name, **stated)
    built = operator_for(question)
    if not isinstance(built, ChoiceOperator):
        raise TypeError(name)
    measured = measure_choices(built)
    if json:
        return emit(measured.to_dict())
    say(f"{str(question).removeprefix('it by ')}: {items:,} options.")
    return table(["measure", "", "what it means"], [list(row) for row in measured.rows()], right={1})


def _refuse_options(name: str, options: dict[str, Any], do: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise Unsupported(f"The operator {name} has no option `--{OPTION_NAMES.get(option, option)}`.", do)


def _reports(built: Any) -> str:
    return (
        f"{built.report_size:,} possible reports"
        if built.form == "code"
        else f"a report is a subset of the {built.values:,} values"
    )


def advise(
    clients: int = typer.Option(..., "--clients", help="The expected number of respondents."),
    values: int | None = VALUES,
    categories: bool = typer.Option(False, "--categories", help="The values have no order."),
    policy: Path | None = POLICY,
    attribute: str | None = ATTRIBUTE,
    epsilon: str | None = typer.Option(None, help="Requirement: the largest local loss."),
    interval: str | None = typer.Option(
        None, help="Requirement: the smallest width of the 95% interval, as a fraction of the range."
    ),
    breach: str | None = typer.Option(None, help="Requirement: with 0.05,0.5, a probability of 5% never becomes 50%."),
    loss: str | None = typer.Option(None, help="Requirement: the largest entropy loss."),
    items: int | None = typer.Option(None, "--items", help="Chosen options: their number, instead of --values."),
    choose: int | None = CHOOSE,
    text: bool = typer.Option(False, "--text", help="Free text, instead of --values: which texts can be found."),
    each: str | None = typer.Option(
        None, "--each", help="Rounds: the loss of one report of a category, below epsilon."
    ),
    questions: int | None = typer.Option(
        None, "--questions", help="The number of such questions that share the epsilon: how many to ask each person."
    ),
    json: bool = JSON,
) -> None:
    """Recommend an operator and parameters for a privacy requirement, with the expected error for this number of clients."""
    from tidegate.collect.adviser import advise as recommend

    if items is not None:
        others = {"values": values, "policy": policy, "attribute": attribute, "interval": interval, "breach": breach}
        for option, value in {**others, "loss": loss, "categories": categories or None}.items():
            if value is not None:
                raise Unsupported(f"`--{option}` and `--items` cannot be used together.", CHOICE_ADVICE)
        return advise_choice(items, clients=clients, epsilon=epsilon, choose=choose, json=json)
    if choose is not None:
        raise Unsupported("`--choose` needs `--items`.", CHOICE_ADVICE)
    if text:
        others = {"values": values, "policy": policy, "attribute": attribute, "interval": interval, "breach": breach}
        _refuse_options("for text", {**others, "loss": loss, "each": each, "questions": questions}, TEXT_ADVICE)
        return advise_text(clients, epsilon, json=json)
    universe = _universe(values, policy, attribute, ProjectiveGeometry.name if categories else SquareWave.name)
    if each is not None:
        others = {"interval": interval, "breach": breach, "loss": loss, "questions": questions}
        _refuse_options("for rounds", others, ROUNDS_ADVICE)
        return advise_repeated(universe, clients=clients, epsilon=epsilon, each=each, json=json)
    pair = None
    if breach is not None:
        ends = [_number(part, "breach") for part in breach.split(",")]
        if len(ends) != 2:
            raise Unsupported("`--breach` must be two probabilities.", "Write --breach 0.05,0.5.")
        pair = (ends[0], ends[1])
    options = {"epsilon": epsilon, "interval": interval, "loss": loss}
    numbers: dict[str, Any] = {name: _number(text, name) for name, text in options.items() if text is not None}
    advice = recommend(universe, clients=clients, breach=pair, **numbers)
    plan = None if questions is None else _question_plan(questions, advice, numbers.get("epsilon"))
    if json:
        return emit({**advice.to_dict(), **({"plan": plan.to_dict()} if plan else {})})
    _show(advice)
    return say(str(plan)) if plan else None


def _question_plan(questions: int, advice: Advice, epsilon: Fraction | None) -> QuestionPlan:
    from tidegate.collect.question_sampling import plan_means, plan_questions

    if epsilon is None:
        raise Unsupported("`--questions` needs `--epsilon`, which the questions share.", EXAMPLE_ADVICE)
    if not 1 <= questions <= MOST_QUESTIONS:
        raise Unsupported(f"`--questions` must be from 1 to {MOST_QUESTIONS}.", EXAMPLE_ADVICE)
    if advice.ordered:
        return plan_means(questions, epsilon=epsilon, clients=advice.clients)
    return plan_questions(questions, advice.values, epsilon=epsilon, clients=advice.clients)


def advise_choice(items: int, *, clients: int, epsilon: str | None, choose: int | None, json: bool) -> None:
    """Recommend an operator for chosen options."""
    from tidegate.collect.choices import advise_choices
    from tidegate.exact import say as number

    if epsilon is None:
        raise Unsupported("Chosen options need `--epsilon`.", CHOICE_ADVICE)
    if items > MOST_OPTIONS:
        raise Unsupported(f"`--items` must be from 1 to {MOST_OPTIONS:,}.", CHOICE_ADVICE)
    advice = advise_choices(items, clients=clients, epsilon=_number(epsilon, "epsilon"), choose=choose)
    if json:
        return emit(advice.to_dict())
    limit = f"at most {choose:,} of {items:,} options" if choose else f"any of {items:,} options"
    say(f"Requirement: a local epsilon of at most {number(advice.epsilon)}; {limit}, {clients:,} clients.")
    rows = [
        [option.operator, f"{number(100 * option.rare)}%", f"{number(100 * option.usual)}%"]
        for option in advice.options
    ]
    table(["operator", "rare +-", "30% +-"], rows, right={1, 2})
    return say(str(advice), *(f"Alternative: {option.line}." for option in advice.options[1:]))


def advise_text(clients: int, epsilon: str | None, *, json: bool) -> None:
    """Show what reports about free text can show."""
    from tidegate.collect.strings import advise_strings

    if epsilon is None:
        raise Unsupported("`--text` needs `--epsilon`.", TEXT_ADVICE)
    advice = advise_strings(clients=clients, epsilon=_number(epsilon, "epsilon"))
    return emit({"says": advice}) if json else say(advice)


def advise_repeated(universe: Attribute, *, clients: int, epsilon: str | None, each: str, json: bool) -> None:
    """Recommend an operator for a category that is asked in rounds."""
    from tidegate.collect.rounds import advise_rounds
    from tidegate.exact import say as number
    from tidegate.policy import Category
    from tidegate.policy.collection import size_of

    if epsilon is None or not isinstance(universe, Category):
        raise Unsupported("`--each` needs `--epsilon` and a category.", ROUNDS_ADVICE)
    losses = {"epsilon": _number(epsilon, "epsilon"), "each": _number(each, "each")}
    advice = advise_rounds(size_of(universe), clients=clients, **losses)
    if json:
        return emit(advice.to_dict())
    rows = [[o.operator, f"{number(100 * o.error)}%", number(o.lifetime)] for o in advice.options]
    table(["operator", "share +-", "epsilon of all"], rows, right={1, 2})
    return say(str(advice))


def _show(advice: Advice) -> None:
    say(f"Requirement: {advice.wanted}; {advice.values:,} values, {advice.clients:,} clients.")
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
    shows = (
        " shows: the number of visible features of the distribution. +-: the 95% error, in steps."
        if advice.ordered
        else ""
    )
    say(f"breach: the largest probability that 5% can become, for any prior.{shows}")
    say(str(advice), *(f"Alternative: {option.line}." for option in possible[1:]))


def _row(option: Option, measures: Measures, ordered: bool) -> list[str]:
    from tidegate.exact import say as number

    loss = "unlimited" if math.isinf(measures.epsilon) else number(measures.epsilon)
    share = "-" if measures.privacy is None else f"{number(100 * measures.privacy)}%"
    size = option.error or 0.0
    features = "-" if option.features is None else str(option.features)
    error = [features, number(size)] if ordered else [f"{number(100 * size)}%"]
    return [option.operator, loss, share, number(measures.entropy.loss), number(measures.breach_limit), *error]


def _universe(values: int | None, policy: Path | None, attribute: str | None, operator: str) -> Attribute:
    from tidegate.collect.adviser import plain_universe
    from tidegate.policy import read_policy

    if policy is not None and attribute is not None and values is None:
        return read_policy(policy).attribute(attribute)
    if values is None or policy is not None or attribute is not None:
        raise Unsupported("Specify either `--values`, or `--policy` with `--attribute`.", EXAMPLE)
    known = VALUE_OPERATORS.get(operator)
    most = MOST_VALUES if known is None else known.most_values
    if not 2 <= values <= most:
        raise Unsupported(f"`--values` must be from 2 to {most:,}.", EXAMPLE)
    return plain_universe(values, ordered=known is None or known.ordered)


def _number(text: str, name: str) -> Any:
    from tidegate.exact import exact

    value = None
    with suppress(TypeError, ValueError):
        value = exact(text.strip())
    if value is None or value < 0:
        raise Unsupported(f"`--{name.replace('_', '-')}` must be a number of 0 or more.", EXAMPLE)
    return value


def example_of(name: str) -> str:
    """Return a command with all options that an operator needs."""
    known = BASKET_OPERATORS[name]
    options = [
        f"--{OPTION_NAMES.get(parameter.name, parameter.name)} {parameter.example}"
        for parameter in known.plan_parameters
        if not parameter.optional
    ]
    return " ".join([f"tidegate risk operator {name}", *options, *([] if known.takes_plans else ["--size 5"])])


def measure_basket(name: str, options: dict[str, Any], *, items: int | None, supports: str | None, json: bool) -> None:
    """Show all measures of a report of baskets of one size."""
    from tidegate.collect.baskets.design import usual_maximum
    from tidegate.collect.baskets.measures import measure_baskets

    plan = plan_of(name, options)
    if items is not None and items < plan.size:
        raise Unsupported(
            f"A basket of {plan.size} different items is impossible with `--items` {items}.", example_of(name)
        )
    maximum = usual_maximum(plan.size) if supports is None else _maximum(supports)
    measured = measure_baskets(plan, maximum, vocabulary_size=items)
    if json:
        return emit({"operator": name, **measured.to_dict(), "size_sent": BASKET_OPERATORS[name].sends_size})
    return _show_baskets(name, measured, items=items, assumed=supports is None)


def plan_of(name: str, options: dict[str, Any]) -> SizePlan:
    """Return the plan for baskets of one size that the options define."""
    known, size = BASKET_OPERATORS[name], options.get("size")
    needed = [parameter.name for parameter in known.plan_parameters if not parameter.optional]
    for option in (*needed, *(() if known.takes_plans else ("size",))):
        if options.get(option) is None:
            raise Unsupported(f"The operator {name} needs `--{OPTION_NAMES.get(option, option)}`.", example_of(name))
    if size is not None and not 1 <= size <= LARGEST:
        raise Unsupported(f"`--size` must be from 1 to {LARGEST} items.", example_of(name))
    texts = {parameter.name: options[parameter.name] for parameter in known.plan_parameters}
    return known.size_plan(
        int(size or 0),
        {
            parameter.name: _value(parameter, texts[parameter.name])
            for parameter in known.plan_parameters
            if texts[parameter.name] is not None
        },
    )


def _value(parameter: Parameter, text: Any) -> Any:
    if parameter.kind == "count":
        return text
    if parameter.kind == "probability":
        return _probability(text, parameter.name)
    probabilities = [_probability(part, parameter.name) for part in text.split(",")]
    if not 2 <= len(probabilities) <= LARGEST + 1:
        raise Unsupported(
            f"`--{parameter.name}` must be a list of 2 to {LARGEST + 1} probabilities.", parameter.example
        )
    return probabilities


def _probability(text: str, name: str) -> Fraction:
    from tidegate.exact import exact

    try:
        value = exact(text.strip())
    except (TypeError, ValueError):
        value = Fraction(-1)
    if not 0 <= value <= 1:
        raise Unsupported(f"`--{name}` must contain probabilities from 0 to 1.", "For example: 0.05.")
    return value


def _maximum(supports: str) -> tuple[Fraction, ...]:
    each = (Fraction(1), *(_probability(part, "supports") for part in supports.split(",")))
    if list(each) != sorted(each, reverse=True) or each[-1] == 0:
        raise Unsupported(
            "`--supports` must be above 0 and must not increase: larger itemsets are never in more baskets.",
            "List the largest support of 1, 2, 3, ... items in baskets of this size: --supports 0.05,0.02,0.01",
        )
    return each


def _show_baskets(name: str, measured: BasketMeasures, *, items: int | None, assumed: bool) -> None:
    plan = measured.plan
    among = f"of {items:,} items" if items else f"of {2 * plan.size:,} items or more"
    say(f"{name}, baskets of {plan.size} {among}: {_plan_text(plan)}.")
    table(["measure", "", "what it means"], _basket_rows(measured), right={1})
    say(
        "The probability of an item, by the size of the itemset that contains it: before, and after the worst report of each kind."
    )
    cells = [
        [str(row.items), *map(_share, (row.before, row.visible, row.absent, row.mixed))] for row in measured.breaches
    ]
    table(["items", "before", "all reported", "none reported", "some reported"], cells, right={0, 1, 2, 3, 4})
    if assumed:
        say("Assumption: the usual supports of tidegate collect design. The breaches depend on them: use --supports.")
    if math.isinf(measured.loss.epsilon):
        say("Unlimited: after some reports, the collector can rule out some baskets with certainty.")
    if BASKET_OPERATORS[name].sends_size:
        say(
            "The size of a basket is sent unrandomized and is not covered by epsilon. To hide it, use one size for all baskets."
        )


def _plan_text(plan: SizePlan) -> str:
    keep = ", ".join(f"{float(probability):.4f}" for probability in plan.keep)
    return (
        f"0, 1, ... items are kept with probability {keep}; each other item is inserted with {float(plan.insert):.4f}"
    )


def _basket_rows(measured: BasketMeasures) -> list[list[str]]:
    from tidegate.exact import say as number

    loss, entropy = measured.loss, measured.entropy
    present, absent = float(measured.stays), float(measured.comes)
    return [
        ["epsilon", _loss(loss.epsilon), f"between any two baskets of this size: gamma {_gamma(loss.any_two)}"],
        ["epsilon, one item", _loss(loss.epsilon_one_replaced), f"one item replaced: gamma {_gamma(loss.one_replaced)}"],
        ["interval", "none", "items have no order"],
        ["item reported", _factor(measured.seen), f"changes its odds by this factor; probability {number(present)} if in the basket, else {number(absent)}"],
        ["item not reported", _factor(measured.unseen), "changes its odds by this factor"],
        ["entropy loss", number(entropy.loss), f"{number(entropy.information)} bits are revealed about an item in {number(100 * float(measured.prior))}% of baskets"],
        ["breach, any prior", number(measured.limit), "the largest probability that 5% can become"],
        ["worst breach", number(measured.worst), "the largest probability of an item in the table below"],
    ]  # fmt: skip


def _loss(epsilon: float) -> str:
    return "unlimited" if math.isinf(epsilon) else f"{epsilon:.4f}"


def _gamma(ratio: Any) -> str:
    return "unlimited" if math.isinf(ratio) else f"{float(ratio):,.4g}"


def _factor(odds: float) -> str:
    return "unlimited" if math.isinf(odds) else f"x {odds:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
