"""The loss of one respondent to a later reader of ledger and results, who sees a shuffled batch and no order of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

from tidegate.accounting.respondent import respondent_loss
from tidegate.accounting.shuffle import (
    Blanket,
    blanket_epsilon,
    blanket_of,
    default_delta,
    general_epsilon,
    sampled_blanket,
)
from tidegate.exact import plain, say
from tidegate.policy.collection import Collection, operator_for

ASSUMES = "if all of them are honest, each person sent one of them, and the service kept no other record"


@dataclass(frozen=True)
class LaterReader:
    """What anyone with ledger, segments and results can learn later about one report of a batch.

    Guarantee:
        (epsilon, delta) per person, whatever the others hold. It does not cover the service while it runs, which sees each
        report with its time and address: for it only `local` holds. `reports` counts honest reports: with m known or
        forged ones, the claim is that of a batch of n - m.

    Args:
        local: The local epsilon of one report, always stated first.
        reports: The number of reports in the batch, n.
        epsilon: At most `local`; rounded up.
        delta: 1 / (100 n), unless another one was requested.
    """

    local: Fraction
    reports: int
    epsilon: float
    delta: float

    @property
    def shown(self) -> tuple[str, str]:
        """Epsilon and delta in three digits, rounded up."""
        return _upwards(self.epsilon), _upwards(self.delta)

    def __str__(self) -> str:
        epsilon, delta = self.shown
        return (
            f"Each report has a local epsilon of {_upwards(float(self.local))}; that is all that holds against the service while it "
            f"runs. A later reader of ledger and results learns at most epsilon {epsilon} with delta "
            f"{delta} about one of the {self.reports:,} reports of a batch, {ASSUMES}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, the local epsilon first."""
        numbers = {"reports": self.reports, "epsilon": self.epsilon, "delta": self.delta}
        return {"local": f"{plain(self.local)}", **numbers, "says": str(self)}


def later_reader(collection: Collection, reports: int, *, delta: float | None = None) -> LaterReader | None:
    """Return the claim for a shuffled batch of `reports` reports; None if there is none beyond the local loss.

    There is none if the local loss is unlimited, or if the size of a basket is sent in clear: a report then hides only among
    those of its size.
    """
    loss = respondent_loss(collection)
    if loss.each_report is None or loss.in_clear or reports < 1:
        return None
    local, delta = float(loss.each_report), default_delta(reports) if delta is None else delta
    blanket = _blanket(collection)
    if blanket is None:
        epsilon = general_epsilon(local, reports, delta=delta)
    else:
        epsilon = blanket_epsilon(blanket, reports, delta=delta)
    return LaterReader(loss.each_report, reports, min(epsilon, local), delta)


def _blanket(collection: Collection) -> Blanket | None:
    """Return the blanket of a report about one question; several questions in one report are not two-level.

    If each person is asked one question, which is public and drawn independently of the answers, this is the blanket of the
    question and its answer together. Otherwise the general bound holds with the local loss of the whole report: the largest sum
    of epsilons over the questions that can be drawn together.
    """
    questions = list(collection.questions.values())
    if len(questions) > 1 and (collection.ask != 1 or collection.together):
        return None
    blankets = [blanket_of(operator_for(question)) for question in questions]
    known = [blanket for blanket in blankets if blanket is not None]
    return sampled_blanket(known) if len(known) == len(blankets) else None


def _upwards(number: float) -> str:
    """Return three digits, rounded up: a stated maximum must hold."""
    unit = 10.0 ** (floor(log10(number)) - 2)
    return say(ceil(number / unit - 1e-9) * unit)
