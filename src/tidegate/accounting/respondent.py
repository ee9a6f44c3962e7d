"""The largest loss of one respondent to a collection. Reports carry no identity, so it cannot be added up afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

from tidegate.exact import plain, say
from tidegate.operators import BASKET_OPERATORS, OPERATORS
from tidegate.policy.collection import Collection, largest_sum, set_operator

Loss = Fraction | None  # None: unlimited


@dataclass(frozen=True)
class RespondentLoss:
    """The largest loss of one respondent: by question, in total, and by a single report.

    The total is the sum over all questions, or the largest over those that one person is asked.

    Guarantee:
        With repeats = "once" this is the whole loss. "memoised": all reports of the same true values together lose
        no more; a question whose true value changes adds its part again, for those in `ever` at most up to that
        amount. "two-layers": the same, and a single report loses at most `each_report`. In which reports a value
        changed is not covered: only the second layer hides it from an adversary who can link one person's reports.
    """

    questions: Mapping[str, Loss]
    each_report: Loss
    repeats: str
    in_clear: tuple[
        str, ...
    ] = ()  # basket questions whose number of items is sent in clear, not covered by any epsilon
    units: tuple[tuple[str, ...], ...] = ()  # if a person is asked some of the questions: what is drawn, and how many
    ask: int | None = None
    ever: Mapping[str, Fraction] = field(
        default_factory=dict
    )  # of questions with a limit, however often a value changes

    @cached_property
    def in_all(self) -> Loss:
        """The sum over the questions that one person answers, whichever those are."""
        units = self.units or tuple((name,) for name in self.questions)
        return largest_sum(self.questions, units, self.ask)

    @cached_property
    def default_lifetime(self) -> Loss:
        """The lifetime of a collection that states none.

        It covers one report if `repeats` is "once", and otherwise one change of every answer. It is unlimited only if the
        loss of one report is unlimited.
        """
        return self.in_all if self.in_all is None or self.repeats == "once" else 2 * self.in_all

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {_describe(loss)}" for name, loss in self.questions.items())
        parts += f"; each person is asked {self.ask} of {len(self.units)}" if self.ask is not None else ""
        parts += (
            f"; in addition, the number of items in {' and '.join(self.in_clear)} is sent in clear"
            if self.in_clear
            else ""
        )
        if self.repeats == "once":
            return f"one person loses {_most(self.in_all)}, once ({parts})"
        report = f"each report loses {_most(self.each_report)}; " if self.repeats == "two-layers" else ""
        changed = "while the true values do not change; a changed value adds its part again"
        ever = "".join(f", up to {_upwards(loss)} for {name}" for name, loss in self.ever.items())
        return f"{report}one person loses {_most(self.in_all)} ({parts}), {changed}{ever}"

    def to_dict(self) -> dict[str, Any]:
        """Return the losses as exact decimal texts; null means unlimited."""
        questions = {name: _text(loss) for name, loss in self.questions.items()}
        losses = {"questions": questions, "in_all": _text(self.in_all), "each_report": _text(self.each_report)}
        if self.ever:
            losses["ever"] = {name: _text(loss) for name, loss in self.ever.items()}
        return {**losses, "size_in_clear": list(self.in_clear)} if self.in_clear else losses


def respondent_loss(collection: Collection) -> RespondentLoss:
    """Return the largest loss of one respondent to a collection, from its public description alone."""
    questions = collection.questions.items()
    baskets = {name: set_operator(question) for name, question in questions if question.operator in BASKET_OPERATORS}
    clear = tuple(name for name, operator in baskets.items() if operator.needs_size)
    losses = {name: question.loss for name, question in questions}
    single = {name: question.parameters.get("each", losses[name]) for name, question in questions}
    drawn = () if collection.ask is None else collection.units
    most = {name: OPERATORS[question.operator].most_answers or 0 for name, question in questions}
    ever = {name: loss * most[name] for name, loss in losses.items() if loss is not None and most[name]}
    return RespondentLoss(losses, collection.most(single), collection.repeats, clear, drawn, collection.ask, ever)


def total(losses: Any) -> Loss:
    """Return the sum, unlimited if one loss is unlimited."""
    summed = Fraction(0)
    for loss in losses:
        if loss is None:
            return None
        summed += loss
    return summed


def _describe(loss: Loss) -> str:
    return "unlimited" if loss is None else _upwards(loss)


def _most(loss: Loss) -> str:
    return "an unlimited amount" if loss is None else f"at most epsilon {_upwards(loss)}"


def _upwards(loss: Fraction) -> str:
    """Return the loss in a few digits, rounded up: a stated maximum must hold."""
    digits = next((count for count in (3, 4) if _number(say(loss, count)) == loss), 0)
    return say(loss, digits) if digits else say(Fraction(ceil(loss * 1000), 1000), 4 + len(str(int(loss))) - 1)


def _number(text: str) -> Fraction:
    return Fraction(text.replace(",", "")) if text[:1].isdigit() else Fraction(-1)


def _text(loss: Loss) -> str | None:
    return None if loss is None else f"{plain(loss)}"
