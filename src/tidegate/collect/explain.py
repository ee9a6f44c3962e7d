"""A description of what is sent and what the holder can conclude, for the respondent."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from tidegate.collect.encoding import words_of
from tidegate.exact import say
from tidegate.operators import (
    BasketOperator,
    ChoiceOperator,
    HashResponse,
    Hybrid,
    Operator,
    Prefix,
    ProjectiveGeometry,
    Report,
)
from tidegate.operators.additive import shortest_run
from tidegate.policy.attributes import Numeric
from tidegate.policy.collection import Question

CERTAIN = Fraction(19, 20)


def read_aloud(question: Question, operator: Operator, report: Report) -> str:
    """Return text such as ``We will send 41. From it the holder can conclude that your age is between 19 and 63 with 95% certainty.``"""
    return f"We will send {sent_words(question, operator, report)}. {concluded(question, operator, report)}"


def sent_words(question: Question, operator: Operator, report: Report) -> str:
    """Return the report as text; a noisy number can be outside the attribute's bounds."""
    if isinstance(operator, ChoiceOperator):
        return operator.sent_words(report, [words_of(question, code) for code in range(operator.items)])
    if isinstance(operator, Hybrid) and isinstance(report, int) and isinstance(question.universe, Numeric):
        return say(question.universe.low + operator.grid_position(report) * question.universe.width)
    if isinstance(operator, Prefix):
        return operator.sent_words(report)
    if isinstance(operator, ProjectiveGeometry | HashResponse) and isinstance(report, int):
        several = f"{operator.supported_count(report):,} of the {operator.values:,} values"
        return f"the number {report:,}, which stands for {several}"
    if isinstance(report, list):
        return " and ".join(words_of(question, code) for code in report) or "an empty list"
    return words_of(question, grid_index(operator, report))


def grid_index(operator: Operator, report: int) -> int:
    """Return the index of a report on the grid of the values; noise can move it below 0 or beyond the last value."""
    return report - (operator.report_size - operator.values) // 2


def concluded(question: Question, operator: Operator, report: Report) -> str:
    """Return what a holder can conclude who considered every value equally likely before."""
    if isinstance(operator, ChoiceOperator | Prefix):
        return operator.concluded()
    if isinstance(operator, BasketOperator):
        return _concluded_of_items(operator)
    subject = f'your "{question.attribute}"'
    if operator.ordered:
        weights = whole(operator.likelihoods(report))
        first, last = shortest_run(weights, CERTAIN)
        if (first, last) == (0, operator.values - 1):
            return f"From it the holder cannot rule out any {subject[5:]} with 95% certainty."
        words = words_of(question, first, last).replace(" to ", " and ")
        between = "between " if " and " in words else ""
        return f"From it the holder can conclude that {subject} is {between}{words} with 95% certainty."
    best, ties, probability = operator.likeliest(report)
    chance = say(probability, 2)
    which = words_of(question, best) if ties == 1 else f"any one of the {ties:,} likeliest values"
    guess = say(Fraction(1, operator.values), 2)
    return f"From it the holder can guess that {subject} is {which}, and is right with probability {chance} (before: {guess})."


def _concluded_of_items(operator: BasketOperator) -> str:
    """Return the odds of a single item, over all sizes of a basket; then the odds of any conclusion."""
    shown, hidden = operator.item_odds()
    high = "is certainly in your basket" if shown is None else f"is in your basket with odds {say(shown)} times as high"
    low = "certainly not" if hidden is None else f"with odds {say(hidden)} times as low"
    gamma = operator.gamma
    most = "whole baskets can be ruled out" if gamma is None else f"no odds change more than {say(gamma)} times"
    size = " The number of your items is sent in clear." if operator.operator.needs_size else ""
    return (
        f"From it the holder can conclude that an item shown, by itself, {high} as before, and one not shown {low}; "
        f"from all of it together {most}.{size}"
    )


def whole(probabilities: list[Fraction]) -> list[int]:
    """Return integers in the same proportions."""
    scale = lcm(*(probability.denominator for probability in probabilities))
    return [int(probability * scale) for probability in probabilities]
