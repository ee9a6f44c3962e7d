"""What one person gives to a collection at most. Reports carry no identity, so nobody could add it up afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from tidegate.accounting.baskets import basket_loss, tells_size
from tidegate.exact import plain, say
from tidegate.policy.baskets import SET_OPERATORS
from tidegate.policy.collection import Collection, Question

Loss = Fraction | None  # None: unlimited


@dataclass(frozen=True)
class Gives:
    """The most that one person gives: by question, in all, and by a single report.

    Guarantee  With repeats = "once" this is all there is. "memoised": all reports of the same true values together give no
               more; a question whose true value changes gives its part again. "two-layers": the same, and a single
               report gives `each_report` at most.
    """

    questions: Mapping[str, Loss]
    each_report: Loss
    repeats: str
    in_clear: tuple[str, ...] = ()  # questions about baskets whose number of items is sent, outside of every epsilon

    @property
    def in_all(self) -> Loss:
        """The sum over the questions."""
        return total(self.questions.values())

    @property
    def default_lifetime(self) -> Loss:
        """The lifetime of a collection that states none: room for one report where `repeats` is "once", and else for one
        change of every answer. It is unlimited only where the loss of one report is."""
        return self.in_all if self.in_all is None or self.repeats == "once" else 2 * self.in_all

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {_said(loss)}" for name, loss in self.questions.items())
        parts += (
            f"; besides, how many items {' and '.join(self.in_clear)} holds is sent in clear" if self.in_clear else ""
        )
        if self.repeats == "once":
            return f"one person gives epsilon {_most(self.in_all)}, once ({parts})"
        report = f"each report gives epsilon {_most(self.each_report)}; " if self.repeats == "two-layers" else ""
        changed = "while the true values stay as they are; a changed one gives its part again"
        return f"{report}one person gives epsilon {_most(self.in_all)} ({parts}), {changed}"

    def to_dict(self) -> dict[str, Any]:
        """In exact decimals as text; null is unlimited."""
        questions = {name: _text(loss) for name, loss in self.questions.items()}
        losses = {"questions": questions, "in_all": _text(self.in_all), "each_report": _text(self.each_report)}
        return {**losses, "size_in_clear": list(self.in_clear)} if self.in_clear else losses


def given_by_one(collection: Collection) -> Gives:
    """What one person gives to a collection at most, from its public description alone."""
    asked = collection.questions.items()
    losses = {name: _loss(question) for name, question in asked}
    single = [question.parameters.get("each", losses[name]) for name, question in asked]
    clear = tuple(name for name, question in asked if question.operator in SET_OPERATORS and tells_size(question))
    return Gives(losses, total(single), collection.repeats, clear)


def _loss(question: Question) -> Loss:
    if question.operator in SET_OPERATORS:
        return basket_loss(question)
    return question.parameters.get("epsilon")


def total(losses: Any) -> Loss:
    """The sum, unlimited where one of them is."""
    summed = Fraction(0)
    for loss in losses:
        if loss is None:
            return None
        summed += loss
    return summed


def _said(loss: Loss) -> str:
    return "unlimited" if loss is None else _upwards(loss)


def _most(loss: Loss) -> str:
    return "without limit" if loss is None else f"{_upwards(loss)} at most"


def _upwards(loss: Fraction) -> str:
    """In a few digits, and never less than it is: what is said to be the most must be."""
    digits = next((many for many in (3, 4) if _number(say(loss, many)) == loss), 0)
    return say(loss, digits) if digits else say(Fraction(ceil(loss * 1000), 1000), 4 + len(str(int(loss))) - 1)


def _number(said: str) -> Fraction:
    return Fraction(said.replace(",", "")) if said[:1].isdigit() else Fraction(-1)


def _text(loss: Loss) -> str | None:
    return None if loss is None else f"{plain(loss)}"
