"""How many of several questions to ask each person: each of s questions gets epsilon / s, and each is asked of s in Q people.

The questions of a person are drawn independently of the answers, so the choice can be public and the loss of a report stays
epsilon. Fewer questions per person mean fewer answers to each, with less noise. Usually one question is best.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from typing import Any

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, say
from tidegate.operators import SubsetSelection
from tidegate.operators.operator import LARGEST_EPSILON


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
