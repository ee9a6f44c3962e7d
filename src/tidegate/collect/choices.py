"""Questions about chosen options: the measures of one report, and which operator estimates the shares best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.collect.adviser import NORMAL_95
from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain, say
from tidegate.operators import ChoiceOperator, OneOption, PrivSet
from tidegate.operators.operator import LARGEST_EPSILON
from tidegate.risk.local import posterior_limit

UNLIKELY = 0.05  # the prior probability from which breaches are measured
RARE, USUAL = 0.0, 0.3  # shares of an option for which errors are stated
FEW_CHOICES = 3  # a limit that is suggested if none is stated


@dataclass(frozen=True)
class ChoiceMeasures:
    """The privacy of one report about chosen options.

    chosen, other    the probability that a report supports an option that was chosen, and one that was not
    breach_limit     the highest probability that anything of prior probability 5% can reach, for any prior
    """

    operator: str
    items: int
    choose: int
    epsilon: float
    chosen: float
    other: float
    breach_limit: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return dict(self.__dict__)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return measure, number and meaning, for a table."""
        factor = (
            f"between any two sets of choices no odds change by more than a factor of {say(math.exp(self.epsilon))}"
        )
        shown, hidden = self.chosen / self.other, (1 - self.other) / (1 - self.chosen)
        chances = f"probability {say(self.chosen)} if chosen, else {say(self.other)}"
        return [
            ("epsilon of a report", say(self.epsilon, 4), factor),
            ("option supported", f"x {say(shown)}", f"raises its odds by this factor; {chances}"),
            ("option not supported", f"x {say(hidden)}", "lowers its odds by this factor"),
            ("breach, any prior", say(self.breach_limit), "the largest probability that 5% can become"),
        ]


def measure_choices(operator: ChoiceOperator) -> ChoiceMeasures:
    """Return all measures of one report."""
    gamma = float(operator.gamma or math.inf)
    chances = float(operator.p), float(operator.q)
    limit = posterior_limit(UNLIKELY, gamma=gamma)
    return ChoiceMeasures(operator.name, operator.items, operator.choose, operator.epsilon, *chances, limit)


@dataclass(frozen=True)
class ChoiceOption:
    """An operator, its line in a policy, and the 95% errors of a rare option and of one that 30% choose."""

    operator: str
    line: str
    rare: float
    usual: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "policy": self.line,
            "error_95_rare": self.rare,
            "error_95_usual": self.usual,
        }


@dataclass(frozen=True)
class ChoiceAdvice:
    """The operators for a question about chosen options, the best first."""

    items: int
    choose: int | None
    clients: int
    epsilon: Fraction
    options: tuple[ChoiceOption, ...]

    def __str__(self) -> str:
        best = self.options[0]
        errors = f"{say(100 * best.rare)} percentage points for a rare option and {say(100 * best.usual)} for one that 30% choose"
        limit = "" if self.choose else self._limit()
        return f"Write {best.line}. {self.clients:,} reports estimate its share with an error of at most {errors} (95%).{limit}"

    def _limit(self) -> str:
        """Return what a limit on the number of choices is worth; empty if it is not."""
        few = min(FEW_CHOICES, self.items)
        limited = _option(PrivSet(self.items, epsilon=self.epsilon, choose=few), self.clients, self.epsilon)
        if limited.rare >= self.options[0].rare:
            return ""
        errors = f"{say(100 * limited.rare)} and {say(100 * limited.usual)}"
        return (
            f" First decide whether the number of choices can be limited: with choose = {few} the errors are {errors}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"items": self.items, "choose": self.choose, "clients": self.clients, "epsilon": plain(self.epsilon)}
        return {**about, "says": str(self), "options": [option.to_dict() for option in self.options]}


def advise_choices(items: int, *, clients: int, epsilon: Number, choose: int | None = None) -> ChoiceAdvice:
    """Return the operators for a question about at most `choose` of `items` options (any number if None), the best first."""
    most = exact(epsilon)
    if not Fraction(1, 1000) <= most <= LARGEST_EPSILON:
        raise Unsupported(f"`epsilon` must be from 0.001 to {LARGEST_EPSILON}.")
    if clients < 1 or items < 1:
        raise Unsupported("The numbers of clients and of options must be 1 or more.")
    if choose is not None and not 1 <= choose <= items:
        raise Unsupported(f"`choose` must be from 1 to the number of options, {items:,}; it is {choose:,}.")
    operators: list[ChoiceOperator] = [OneOption(items, epsilon=most)]
    if choose is not None:
        operators.append(PrivSet(items, epsilon=most, choose=choose))
    options = sorted((_option(operator, clients, most) for operator in operators), key=lambda option: option.usual)
    return ChoiceAdvice(items, choose, clients, most, tuple(options))


def _option(operator: ChoiceOperator, clients: int, epsilon: Fraction) -> ChoiceOption:
    limit = f", choose = {operator.choose}" if len(operator.parameters) > 1 else ""
    line = f'operator = "{operator.name}", epsilon = {plain(epsilon)}{limit}'
    errors = (NORMAL_95 * math.sqrt(operator.share_variance(share) / clients) for share in (RARE, USUAL))
    return ChoiceOption(operator.name, line, *errors)
