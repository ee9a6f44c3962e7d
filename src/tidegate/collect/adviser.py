"""Which operator, with which parameters: from a wanted privacy in any measure and the number of clients expected.

What a number of reports can show, known before any is collected.
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
from tidegate.collect.reconstruct import build_channel, features, foretold
from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain, say
from tidegate.operators import VALUE_OPERATORS, Operator, Parameter, Pure, RandomizedResponse
from tidegate.operators.operator import LARGEST_EPSILON
from tidegate.policy.attributes import Attribute, Category, Integer
from tidegate.policy.collection import Question, operator_for
from tidegate.risk.entropy import entropy_privacy
from tidegate.risk.local import gamma_allowed

FINE = 100  # parameters are tried in hundredths
Keeps = Callable[[Operator], bool]


@dataclass(frozen=True)
class Wanted:
    """One measure and its bound, with the text that says it."""

    measure: str
    says: str
    keeps: Keeps
    epsilon: Fraction | None = None


@dataclass(frozen=True)
class Option:
    """An operator with the parameter that keeps the wanted privacy, and the error to expect; or why it cannot."""

    operator: str
    parameter: tuple[str, Fraction] | None
    measures: Measures | None
    features: int | None = None
    error: float | None = None
    why_not: str = ""

    @property
    def line(self) -> str:
        """The option as the policy file says it."""
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
    """All operators for one attribute side by side, the recommended one first."""

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
        if best.features is not None:
            warned = foretold(best.features, reports=self.clients, values=self.values)
            features = (
                warned[0] if warned else f"{self.clients:,} reports show {best.features} features of the distribution."
            )
            shown = f"{features} They tell the mean to within {say(best.error or 0)} steps, 95 times in 100"
        else:
            shown = f"{self.clients:,} reports tell the share of a category to within {say(100 * (best.error or 0))} percentage points, 95 times in 100"
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
    """The operators that keep one wanted privacy on an attribute, the most informative with a guarantee first.

    epsilon    a local loss of at most this          interval   a 95% interval of at least this share of the range (numbers)
    breach     (0.05, 0.5): nothing held for 5% likely may become 50% likely, whatever the prior
    loss       an entropy loss P(X|Z) of at most this, for equally likely values
    """
    wanted = _wanted(epsilon, interval, breach, loss)
    if clients < 1:
        raise Unsupported("the number of clients expected is 1 or more.")
    ordered = not isinstance(universe, Category)
    if wanted.measure == "interval" and not ordered:
        raise Unsupported("a category has no interval: its values have no order.", "Name epsilon, breach or loss.")
    size = Question("it", universe, RandomizedResponse.name, epsilon=1).size
    names = [name for name, known in VALUE_OPERATORS.items() if known.ordered == ordered]
    options = sorted((_option(name, universe, wanted, clients) for name in names), key=_rank)
    return Advice(wanted.says, size, clients, ordered, tuple(options))


def _rank(option: Option) -> tuple[Any, ...]:
    """Possible before impossible, a limited loss before an unlimited one, more features, less error."""
    if option.measures is None:
        return (2,)
    return (int(math.isinf(option.measures.epsilon)), -(option.features or 0), option.error)


def _option(name: str, universe: Attribute, wanted: Wanted, clients: int) -> Option:
    parameter = VALUE_OPERATORS[name].parameters[0]
    make = partial(_operator, name, universe, parameter.name)
    if wanted.epsilon is not None and VALUE_OPERATORS[name].unlimited:
        return Option(name, None, None, why_not="its local loss is unlimited, so it bounds no epsilon and no breach")
    value = wanted.epsilon if wanted.epsilon is not None else _search(make, parameter, wanted.keeps)
    if value is None:
        return Option(name, None, None, why_not="no parameter within bounds keeps it")
    operator = make(value)
    error = share_error(operator, clients) if isinstance(operator, Pure) else mean_error(operator, clients)
    shown = features_of(operator, clients) if operator.ordered else None
    return Option(name, (parameter.name, value), measure(operator), shown, error)


def _operator(name: str, universe: Attribute, kind: str, value: Fraction) -> Operator:
    parameter: dict[str, Any] = {kind: value}
    return operator_for(Question("it", universe, name, **parameter))


def _search(make: Callable[[Fraction], Operator], parameter: Parameter, keeps: Keeps) -> Fraction | None:
    """The least private parameter, in hundredths, that keeps the promise: by halving, then checked."""
    weaker, stronger = (int(FINE * end) for end in parameter.search or parameter.bounds(2, Fraction(1)))
    if not keeps(make(Fraction(stronger, FINE))):
        return None
    if keeps(make(Fraction(weaker, FINE))):
        return Fraction(weaker, FINE)
    while abs(weaker - stronger) > 1:
        middle = (weaker + stronger) // 2
        weaker, stronger = (weaker, middle) if keeps(make(Fraction(middle, FINE))) else (middle, stronger)
    return Fraction(stronger, FINE)


def _wanted(epsilon: Any, interval: Any, breach: Any, loss: Any) -> Wanted:
    given = {"epsilon": epsilon, "interval": interval, "breach": breach, "loss": loss}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise Unsupported("one wanted privacy is needed.", "Name epsilon, interval, breach or loss.")
    return WANTED[named[0]](given[named[0]])


def _by_epsilon(given: Any) -> Wanted:
    most = exact(given)
    if not Fraction(1, 1000) <= most <= LARGEST_EPSILON:
        raise Unsupported(f"epsilon is from 0.001 to {LARGEST_EPSILON}.")
    return Wanted("epsilon", f"a local epsilon of at most {say(most)}", lambda operator: True, most)


def _by_interval(given: Any) -> Wanted:
    share = exact(given)
    if not 0 < share <= 10:
        raise Unsupported("an interval is a share of the range, above 0 and at most 10.", "1 is 100%.")

    def keeps(operator: Operator) -> bool:
        return (operator.interval() or 0) >= float(share) * (operator.values - 1) - 1e-9

    return Wanted("interval", f"a 95% interval of at least {say(100 * share)}% of the range", keeps)


def _by_breach(given: Any) -> Wanted:
    before, after = map(exact, given)
    if not 0 < before < after < 1:
        raise Unsupported("a breach goes from a small probability to a larger one.", "Write 0.05,0.5.")
    limit = math.log(gamma_allowed(float(before), float(after)))
    most = Fraction(math.ceil(limit * 1000) - 1, 1000)  # strictly below
    if not Fraction(1, 1000) <= most:
        raise Unsupported("these two probabilities are too near to each other.", "Name them further apart.")
    says = f"no breach from {say(100 * before)}% to {say(100 * after)}% (epsilon below {limit:.4f})"
    return Wanted("breach", says, lambda operator: True, min(most, Fraction(LARGEST_EPSILON)))


def _by_loss(given: Any) -> Wanted:
    share = float(exact(given))
    if not 0 < share < 1:
        raise Unsupported("an entropy loss is between 0 and 1.")
    return Wanted("loss", f"an entropy loss of at most {say(share)}", lambda operator: _lost(operator) <= share)


def _lost(operator: Operator) -> float:
    if operator.form == "set" and isinstance(operator, Pure):
        return judge_sets(operator, UNLIKELY).entropy.loss
    _, channel, prior = judged_channel(operator, np.full(operator.values, 1 / operator.values))
    return entropy_privacy(channel, prior).loss


WANTED: dict[str, Callable[[Any], Wanted]] = {
    "epsilon": _by_epsilon,
    "interval": _by_interval,
    "breach": _by_breach,
    "loss": _by_loss,
}


def plain_universe(values: int, *, ordered: bool) -> Attribute:
    """A stand-in for an attribute of which only the number of values is known."""
    return Integer(0, values - 1) if ordered else Category(tuple(range(values)))


NORMAL_95 = 1.959963984540054


def features_of(operator: Operator, clients: int) -> int:
    """How many features of a distribution on an ordered grid that many reports can show."""
    return features(build_channel(operator.channel()), reports=clients)


def mean_error(operator: Operator, clients: int) -> float:
    """In steps: the mean of evenly spread values is within this of the estimate, 95 times in 100."""
    return NORMAL_95 * math.sqrt((operator.variance() + (operator.values**2 - 1) / 12) / clients)


def share_error(operator: Pure, clients: int) -> float:
    """The share of a category of average size is within this of the estimate, 95 times in 100: exact variance.

    Of the share among those who answer; the variance is that of the randomization. Add share (1 - share) / clients to
    speak of a population they were drawn from.
    """
    return NORMAL_95 * math.sqrt(operator.variance(1 / operator.values) / clients)
