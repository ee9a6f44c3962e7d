"""The adviser: which operator with which parameters, from a privacy target and the expected number of clients.

It also predicts, before any report is collected, what a number of reports can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tidegate.collect.measures import UNLIKELY, Measures, judge_sets, judged_channel, measure
from tidegate.collect.reconstruct import build_channel, expected_features, features
from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain, say
from tidegate.operators import (
    VALUE_OPERATORS,
    HashResponse,
    Hybrid,
    OneOption,
    Operator,
    Parameter,
    PrivSet,
    ProjectiveGeometry,
    Pure,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
)
from tidegate.operators.operator import LARGEST_EPSILON
from tidegate.policy.attributes import Attribute, Integer, Items
from tidegate.policy.categories import Category
from tidegate.policy.collection import Question, expected_variance, has_mean, operator_for, size_of
from tidegate.risk.entropy import entropy_privacy
from tidegate.risk.local import gamma_allowed

FINE = 100  # parameters are tried in hundredths
ALIKE = 1.05  # ratio of two errors up to which the shorter report is better
FEW_VALUES = 4  # up to which a plain response of many rounds is better than a hashed one
Condition = Callable[[Operator], bool]


@dataclass(frozen=True)
class Target:
    """A privacy target: one measure and its bound, with a description."""

    measure: str
    says: str
    keeps: Condition
    epsilon: Fraction | None = None


@dataclass(frozen=True)
class Option:
    """An operator with the parameter that meets the target and the expected error, or why it cannot."""

    operator: str
    parameter: tuple[str, Fraction] | None
    measures: Measures | None
    features: int | None = None
    error: float | None = None
    why_not: str = ""
    bits: int | None = None  # of a stored report about a category

    @property
    def line(self) -> str:
        """The option as a policy file states it."""
        if self.parameter is None:
            return ""
        name, value = self.parameter
        return f'operator = "{self.operator}", {name} = {plain(value)}'

    def to_dict(self) -> dict[str, Any]:
        parameter = {} if self.parameter is None else {self.parameter[0]: float(self.parameter[1])}
        measures = self.measures.to_dict() if self.measures else None
        rest = {"features": self.features, "error_95": self.error, "why_not": self.why_not, "measures": measures}
        return {"operator": self.operator, "parameters": parameter, "policy": self.line, **rest}


@dataclass(frozen=True)
class Advice:
    """All operators for one attribute, the recommended one first."""

    wanted: str
    values: int
    clients: int
    ordered: bool
    options: tuple[Option, ...]

    @property
    def best(self) -> Option:
        return self.options[0]

    def __str__(self) -> str:
        best = self.best
        if best.parameter is None:
            return f"No operator keeps {self.wanted}: {best.why_not}."
        if self.ordered and best.features is None:
            shown = f"{self.clients:,} reports estimate the mean and no distribution; its error is at most {say(best.error or 0)} steps (95%)"
        elif best.features is not None:
            warned = expected_features(best.features, reports=self.clients, values=self.values)
            features = (
                warned[0] if warned else f"{self.clients:,} reports show {best.features} features of the distribution."
            )
            shown = f"{features} The error of the mean is at most {say(best.error or 0)} steps (95%)"
        else:
            shown = f"{self.clients:,} reports estimate the share of a category with an error of at most {say(100 * (best.error or 0))} percentage points (95%)"
        return f"Write {best.line}: it keeps {self.wanted}. {shown}."

    def to_dict(self) -> dict[str, Any]:
        about = {"wanted": self.wanted, "values": self.values, "clients": self.clients, "says": str(self)}
        return {
            **about,
            "recommended": self.best.line or None,
            "options": [option.to_dict() for option in self.options],
        }


def advise(
    universe: Attribute,
    *,
    clients: int,
    epsilon: Number | None = None,
    interval: Number | None = None,
    breach: tuple[Number, Number] | None = None,
    loss: Number | None = None,
) -> Advice:
    """Return the operators that meet one privacy target on an attribute, the most informative with a guarantee first.

    Args:
        epsilon: The largest local loss.
        interval: The smallest 95% interval, as a share of the range (numbers only).
        breach: (0.05, 0.5): nothing of probability 5% can become 50% likely, whatever the prior.
        loss: The largest entropy loss P(X|Z), for equally likely values.
    """
    target = _target(epsilon, interval, breach, loss)
    if clients < 1:
        raise Unsupported("The expected number of clients must be 1 or more.")
    ordered = not isinstance(universe, Category)
    if target.measure == "interval" and not ordered:
        raise Unsupported(
            "A category has no interval, because its values have no order.", "Set `epsilon`, `breach`, or `loss`."
        )
    size = size_of(universe)
    names = [name for name, known in VALUE_OPERATORS.items() if known.ordered == ordered]
    options = sorted((_option(name, universe, target, clients) for name in names), key=_rank)
    return Advice(target.says, size, clients, ordered, tuple(_shortest_first(options)))


def _shortest_first(options: list[Option]) -> list[Option]:
    """Move the shortest report among the most exact options for a category to the front, in the order of the registry."""
    best = options[0].error
    if best is None or options[0].measures is None or options[0].features is not None or options[0].bits is None:
        return options
    close = [o for o in options if o.bits is not None and o.error is not None and o.error <= ALIKE * best]
    first = min(close, key=lambda option: option.bits or 0)
    return [first, *(option for option in options if option is not first)]


def _rank(option: Option) -> tuple[Any, ...]:
    """Rank possible before impossible, limited before unlimited loss, then more features, then less error.

    Errors that are equal but for rounding keep the order of the registry: simpler operators first.
    """
    if option.measures is None:
        return (2,)
    return (int(math.isinf(option.measures.epsilon)), -(option.features or 0), round(option.error or 0.0, 9))


def _option(name: str, universe: Attribute, target: Target, clients: int) -> Option:
    parameter = VALUE_OPERATORS[name].parameters[0]
    if size_of(universe) > (most := VALUE_OPERATORS[name].most_values):
        return Option(name, None, None, why_not=f"it accepts at most {most:,} values")
    if VALUE_OPERATORS[name].only_mean and not has_mean(universe):
        return Option(name, None, None, why_not="it estimates a mean, and this attribute has bins or is a date or time")
    make = partial(_operator, name, universe, parameter.name)
    if target.epsilon is not None and VALUE_OPERATORS[name].unlimited:
        return Option(
            name, None, None, why_not="its local loss is unlimited, so it limits neither epsilon nor breaches"
        )
    value = target.epsilon if target.epsilon is not None else _search(make, parameter, target.keeps)
    if value is None:
        return Option(name, None, None, why_not="no parameter within its bounds meets the target")
    operator = make(value)
    error = share_error(operator, clients) if isinstance(operator, Pure) else mean_error(operator, clients)
    shown = features_of(operator, clients) if operator.ordered and not operator.only_mean else None
    return Option(name, (parameter.name, value), measure(operator), shown, error, bits=_bits(operator))


def _bits(operator: Operator) -> int | None:
    """Return the length of a stored report about a category: of its code, or one bit for each value of a set."""
    if operator.ordered:
        return None
    return operator.report_size if operator.form == "set" else (operator.report_size - 1).bit_length()


def _operator(name: str, universe: Attribute, kind: str, value: Fraction) -> Operator:
    parameter: dict[str, Any] = {kind: value}
    return operator_for(Question("it", universe, name, **parameter))


def _search(make: Callable[[Fraction], Operator], parameter: Parameter, keeps: Condition) -> Fraction | None:
    """Return the least private parameter, in hundredths, that meets the condition: by bisection."""
    weaker, stronger = (int(FINE * end) for end in parameter.search or parameter.bounds(2, Fraction(1)))
    if not keeps(make(Fraction(stronger, FINE))):
        return None
    if keeps(make(Fraction(weaker, FINE))):
        return Fraction(weaker, FINE)
    while abs(weaker - stronger) > 1:
        middle = (weaker + stronger) // 2
        weaker, stronger = (weaker, middle) if keeps(make(Fraction(middle, FINE))) else (middle, stronger)
    return Fraction(stronger, FINE)


def _target(epsilon: Any, interval: Any, breach: Any, loss: Any) -> Target:
    bounds = {"epsilon": epsilon, "interval": interval, "breach": breach, "loss": loss}
    named = [name for name, value in bounds.items() if value is not None]
    if len(named) != 1:
        raise Unsupported("Exactly one privacy target is needed.", "Set `epsilon`, `interval`, `breach`, or `loss`.")
    return TARGETS[named[0]](bounds[named[0]])


def _by_epsilon(bound: Any) -> Target:
    most = exact(bound)
    if not Fraction(1, 1000) <= most <= LARGEST_EPSILON:
        raise Unsupported(f"`epsilon` must be from 0.001 to {LARGEST_EPSILON}.")
    return Target("epsilon", f"a local epsilon of at most {say(most)}", lambda operator: True, most)


def _by_interval(bound: Any) -> Target:
    share = exact(bound)
    if not 0 < share <= 10:
        raise Unsupported("`interval` must be a share of the range above 0 and at most 10.", "1 is 100%.")

    def keeps(operator: Operator) -> bool:
        return (operator.interval() or 0) >= float(share) * (operator.values - 1) - 1e-9

    return Target("interval", f"a 95% interval of at least {say(100 * share)}% of the range", keeps)


def _by_breach(bound: Any) -> Target:
    before, after = map(exact, bound)
    if not 0 < before < after < 1:
        raise Unsupported("`breach` must be a probability and a larger one, both between 0 and 1.", "Write 0.05,0.5.")
    limit = math.log(gamma_allowed(float(before), float(after)))
    most = Fraction(math.ceil(limit * 1000) - 1, 1000)  # strictly below
    if not Fraction(1, 1000) <= most:
        raise Unsupported("The two probabilities of `breach` are too close.", "Choose them further apart.")
    says = f"no breach from {say(100 * before)}% to {say(100 * after)}% (epsilon below {limit:.4f})"
    return Target("breach", says, lambda operator: True, min(most, Fraction(LARGEST_EPSILON)))


def _by_loss(bound: Any) -> Target:
    share = float(exact(bound))
    if not 0 < share < 1:
        raise Unsupported("`loss` must be between 0 and 1.")
    return Target("loss", f"an entropy loss of at most {say(share)}", lambda operator: _lost(operator) <= share)


def _lost(operator: Operator) -> float:
    if isinstance(operator, Pure) and operator.supports_several:
        return judge_sets(operator, UNLIKELY).entropy.loss
    _, channel, prior = judged_channel(operator, np.full(operator.values, 1 / operator.values))
    return entropy_privacy(channel, prior).loss


TARGETS: dict[str, Callable[[Any], Target]] = {
    "epsilon": _by_epsilon,
    "interval": _by_interval,
    "breach": _by_breach,
    "loss": _by_loss,
}


def plain_universe(values: int, *, ordered: bool) -> Attribute:
    """Return an attribute with this number of values, if nothing else is known."""
    return Integer(0, values - 1) if ordered else Category(tuple(range(values)))


NORMAL_95 = 1.959963984540054


def features_of(operator: Operator, clients: int) -> int:
    """Return how many features of a distribution on an ordered grid this many reports can show."""
    return features(build_channel(operator.channel()), reports=clients)


def mean_error(operator: Operator, clients: int) -> float:
    """Return the 95% error of an estimated mean, in steps, for evenly spread values."""
    return NORMAL_95 * math.sqrt((operator.variance() + (operator.values**2 - 1) / 12) / clients)


def share_error(operator: Pure, clients: int) -> float:
    """Return the 95% error of the estimated share of a category of average size, from the exact variance.

    It is the share among those who answer, with the variance of the randomization. Add share (1 - share) / clients for a
    population that they were sampled from.
    """
    return NORMAL_95 * math.sqrt(operator.variance(1 / operator.values) / clients)


def best_question(
    attribute: str,
    universe: Attribute,
    *,
    epsilon: Number,
    choose: int | None = None,
    each: Number | None = None,
    mean: bool = False,
) -> Question:
    """Return a question about an attribute with the operator that has the least error.

    Args:
        choose: The largest number of options that one person chooses; any number if None.
        each: For rounds: the loss of one report, below epsilon. A category of more than four values is then hashed, so that
            a person whose answer changes uses at most two permanent answers.
        mean: Whether only the mean of a number is wanted.
    """
    total = exact(epsilon)
    if each is not None:
        name = RandomizedResponse.name if size_of(universe) <= FEW_VALUES else HashResponse.name
        return Question(attribute, universe, name, epsilon=total, each=exact(each))
    if isinstance(universe, Items):
        listed = [Question(attribute, universe, OneOption.name, epsilon=total)]
        if choose is not None:
            listed.append(Question(attribute, universe, PrivSet.name, epsilon=total, choose=choose))
    elif isinstance(universe, Category):
        listed = _for_category(attribute, universe, total)
    else:
        return Question(attribute, universe, Hybrid.name if mean else SquareWave.name, epsilon=total)
    return min(listed, key=lambda question: round(expected_variance(question) or math.inf, 9))


def _for_category(attribute: str, universe: Category, epsilon: Fraction) -> list[Question]:
    """Return the questions to compare: beyond 3 e**epsilon + 2 values, projective geometry has nearly the least error."""
    is_long = size_of(universe) > 3 * math.exp(epsilon) + 2
    names = [ProjectiveGeometry.name] if is_long else [RandomizedResponse.name, SubsetSelection.name]
    return [Question(attribute, universe, name, epsilon=epsilon) for name in names]
