"""How many of several questions to ask each person: each of s questions gets epsilon / s, and each is asked of s in Q people.

The questions of a person are drawn independently of the answers, so the choice can be public and the loss of a report stays
epsilon. Fewer questions per person mean fewer answers to each, with less noise. Usually one question is best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, sqrt
from typing import Any

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, say
from tidegate.operators import SubsetSelection
from tidegate.operators.operator import LARGEST_EPSILON
from tidegate.policy.collection import Question, expected_variance
from tidegate.policy.question_plan import Variance, best_count, errors_by_count


@dataclass(frozen=True)
class QuestionPlan:
    """The questions that each person is asked, and the standard error of a share or of a mean.

    errors    the standard error for every number of questions per person, from 1 to all
    unit      that of the errors, times 100
    """

    questions: int
    each: int
    epsilon: Fraction
    error: float
    errors: tuple[float, ...]
    unit: str = "percentage points of a share"

    @property
    def epsilon_each(self) -> Fraction:
        """The epsilon of one question."""
        return self.epsilon / self.each

    def __str__(self) -> str:
        split = "" if self.each == self.questions else f"; asking all {self.questions} has {say(100 * self.errors[-1])}"
        return (
            f"Ask each person {self.each} of {self.questions} questions with epsilon {say(self.epsilon_each)} each: the standard "
            f"error is {say(100 * self.error)} {self.unit}{split}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"questions": self.questions, "each": self.each, "epsilon_each": float(self.epsilon_each)}
        return {**about, "error": self.error, "errors": list(self.errors), "says": str(self)}


@dataclass(frozen=True)
class UnitPlan:
    """The units that each person is asked, and the standard error of each: of a share, or of a mean as a part of the range.

    by_count    the standard errors for every number of units per person, from 1 to all
    """

    names: tuple[str, ...]
    each: int
    epsilon: Fraction
    by_count: tuple[tuple[float, ...], ...]

    @property
    def epsilon_each(self) -> Fraction:
        """The epsilon of one unit."""
        return self.epsilon / self.each

    @property
    def errors(self) -> dict[str, float]:
        """The standard error of each unit under this plan."""
        return dict(zip(self.names, self.by_count[self.each - 1], strict=True))

    @property
    def split(self) -> dict[str, float]:
        """The standard error of each unit if everybody is asked all of them."""
        return dict(zip(self.names, self.by_count[-1], strict=True))

    def __str__(self) -> str:
        errors = ", ".join(
            f"{name} {say(100 * error)} (asking all: {say(100 * self.split[name])})"
            if self.each < len(self.names)
            else f"{name} {say(100 * error)}"
            for name, error in self.errors.items()
        )
        return (
            f"Ask each person {self.each} of {len(self.names)} questions with epsilon {say(self.epsilon_each)} each. Standard errors in "
            f"percentage points: {errors}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"questions": list(self.names), "each": self.each, "epsilon_each": float(self.epsilon_each)}
        return {**about, "errors": self.errors, "by_count": [list(row) for row in self.by_count], "says": str(self)}


def plan_units(variances: Sequence[Variance], *, epsilon: Number, clients: int, names: Sequence[str] = ()) -> UnitPlan:
    """Return how many units of any kind to ask each person under a total epsilon.

    Args:
        variances: For each unit, N times the variance of its estimate at an epsilon, sampling of people included.
        names: The names of the units; numbers from 1 if empty.
    """
    total = exact(epsilon)
    if not variances or clients < 1 or total <= 0:
        raise Unsupported("Specify at least 1 question and 1 client, and an `epsilon` above 0.")
    rows = errors_by_count(variances, total)
    shown = tuple(names) or tuple(str(number + 1) for number in range(len(variances)))
    by_count = tuple(tuple(error / sqrt(clients) for error in row) for row in rows)
    return UnitPlan(shown, best_count(rows), total, by_count)


def plan_poll(questions: Mapping[str, Callable[[Fraction], Question]], *, epsilon: Number, clients: int) -> UnitPlan:
    """Return the same for questions of a poll: numbers, categories and sets of options.

    Args:
        questions: For each name, the question as it would be asked with an epsilon; see `adviser.best_question`.
    """
    return plan_units(
        [_variance_of(make) for make in questions.values()], epsilon=epsilon, clients=clients, names=list(questions)
    )


def _variance_of(make: Callable[[Fraction], Question]) -> Variance:
    def variance(epsilon: Fraction) -> float:
        expected = expected_variance(make(min(epsilon, Fraction(LARGEST_EPSILON))))
        return inf if expected is None else expected

    return variance


def plan_questions(
    questions: int, values: int, *, epsilon: Number, clients: int, share: float | None = None
) -> QuestionPlan:
    """Return how many of `questions` categories of `values` values to ask each person under a total epsilon.

    Args:
        share: The share of a value for which the error is stated; 1 / values if None.
    """
    total = exact(epsilon)
    if questions < 1 or values < 2 or clients < 1 or total <= 0:
        raise Unsupported("Specify at least 1 question, 2 values and 1 client, and an `epsilon` above 0.")
    expected = 1 / values if share is None else share
    errors = tuple(
        sqrt(questions / count * (category_variance(values, total / count) + expected * (1 - expected)) / clients)
        for count in range(1, questions + 1)
    )
    best = min(range(questions), key=errors.__getitem__)
    return QuestionPlan(questions, best + 1, total, errors[best], errors)


def plan_means(questions: int, *, epsilon: Number, clients: int) -> QuestionPlan:
    """Return the same for the means of numbers by Hybrid, for values that are as spread as possible."""
    total = exact(epsilon)
    if questions < 1 or clients < 1 or total <= 0:
        raise Unsupported("Specify at least 1 question and 1 client, and an `epsilon` above 0.")
    errors = tuple(
        sqrt(questions / count * (mean_variance(float(total / count)) + 1) / clients)
        for count in range(1, questions + 1)
    )
    best = min(range(questions), key=errors.__getitem__)
    return QuestionPlan(questions, best + 1, total, errors[best], errors, "% of half the range of a mean")


def category_variance(values: int, epsilon: Fraction) -> float:
    """Return N times the variance of a rare value's share: of randomized response or subset selection, the smaller."""
    limited = min(epsilon, Fraction(LARGEST_EPSILON))
    power = exp(float(limited))
    return min((power + values - 2) / (power - 1) ** 2, SubsetSelection(values, epsilon=limited).variance())


def mean_variance(epsilon: float) -> float:
    """Return N times the largest noise variance of Hybrid on [-1, 1], in the continuous limit."""
    power, root = exp(epsilon), exp(epsilon / 2)
    chance = 1 - exp(-epsilon / 2) if epsilon > 0.61 else 0.0

    def at(value: float) -> float:
        ends = ((power + 1) / (power - 1)) ** 2 - value**2
        piecewise = value**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        return chance * piecewise + (1 - chance) * ends

    return max(at(0.0), at(1.0))
