"""The result of an attack: the promise, what the adversary was granted, the bound that was proven, and the verdict.

Also the clock that limits how long an attack takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

Verdict = Literal["held", "broken", "observed", "not tried"]
Unit = Literal["epsilon", "probability", "area"]


@dataclass(frozen=True)
class Finding:
    """One attack on one promise.

    Args:
        verb: answer, release, collect, synthesize or ledger.
        promise: What was promised, as a sentence.
        attack: The attack's short name.
        knows: What the promise grants the adversary.
        bound: What the attack proves: a lower bound on the loss, or on the adversary's chance to be right, except with
            probability `alpha`.
        promised: The limit that the promise sets, in the same unit; None if it sets none.
        alpha: The probability with which correct code is accused.
        verdict: "held" if the bound stays below the limit, "broken" if it does not, "observed" if nothing is promised,
            "not tried" if the attack did not run; `says` states why.
        says: The finding as a sentence.
    """

    verb: str
    promise: str
    attack: str
    knows: str
    says: str
    verdict: Verdict
    unit: Unit = "epsilon"
    bound: float | None = None
    promised: float | None = None
    alpha: float | None = None
    tries: int = 0
    seconds: float = 0.0

    @property
    def broken(self) -> bool:
        return self.verdict == "broken"

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def judge(bound: float, promised: float) -> Verdict:
    """Return "broken" if the bound exceeds the promise, and "held" otherwise."""
    return "broken" if bound > promised else "held"


class Clock:
    """A time limit that starts when the object is created. Attacks check it between draws and stop when it is over."""

    def __init__(self, seconds: float) -> None:
        self._start, self._seconds = monotonic(), seconds

    @property
    def spent(self) -> float:
        return monotonic() - self._start

    @property
    def remaining(self) -> float:
        return max(0.0, self._seconds - self.spent)

    @property
    def over(self) -> bool:
        return self.remaining == 0

    def part(self, share: float) -> Clock:
        """Return a clock for a share of the remaining time."""
        return Clock(self.remaining * share)
