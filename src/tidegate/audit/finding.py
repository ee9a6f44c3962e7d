"""What an attack found: the promise, what the attacker was granted, the bound that he proves, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["held", "broken", "observed", "not tried"]
Unit = Literal["epsilon", "probability", "area"]


@dataclass(frozen=True)
class Finding:
    """One attack on one promise.

    verb      answer, release, collect, synthesize or ledger
    promise   what was promised, as a sentence
    attack    the attacker's short name
    knows     what the promise grants him
    bound     what he proves (a lower bound on the loss, or on his chance to be right), but for a chance alpha
    promised  the limit that the promise sets, in the same unit; None where it sets none
    alpha     the chance with which true code is accused
    verdict   held: the bound stays below the limit. broken: it does not. observed: nothing is promised here, it is told.
              not tried: `says` tells why
    says      the finding as a sentence
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


def judged(bound: float, promised: float) -> Verdict:
    """A bound above the promise refutes it."""
    return "broken" if bound > promised else "held"
