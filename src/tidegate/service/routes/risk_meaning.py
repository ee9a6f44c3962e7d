"""What a probability of identification means: in sentences, beside what is known from elsewhere, and as a curve."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Target, identification_after, yes_no_certainty
from tidegate.errors import Unsupported
from tidegate.exact import say as number

KNOWN = (
    {
        "rho": "0.015",
        "what": "what the safe harbor rule of HIPAA appears to intend: one of 68 people, on average",
        "source": "Lee & Clifton 2012, Section I",
    },
)
NEAR = Fraction(1, 3)  # of a rho: how far another is still told
MOST_EPSILON = 60.0


def meaning(rho: Fraction, worlds: Fraction | None) -> dict[str, Any]:
    """What rho means: among how many one is hidden, what is known of such a rho, and with `worlds` the loss it allows."""
    if not 0 < rho < 1:
        raise Unsupported("rho is a probability between 0 and 1.", "?rho=0.015&worlds=99")
    known = [one for one in KNOWN if abs(Fraction(one["rho"]) - rho) <= NEAR * Fraction(one["rho"])]
    says = [
        "Whoever is told every row but one, and all that was answered, names the missing one rightly with a "
        f"probability of at most {number(rho)}.",
        f"That is {_hidden(rho)}.",
    ]
    told: dict[str, Any] = {"blind_guess": None, "epsilon": None, "odds": None, "yes_no": None}
    if worlds is not None:
        target = _target(rho, worlds)
        told = {"blind_guess": float(1 / worlds), "epsilon": str(target.limit), "odds": float(_odds(rho, worlds))}
        told["yes_no"] = float(yes_no_certainty(target.limit))
        says.append(
            f"Among {number(worlds)} possibilities a blind guess is right with probability {number(1 / worlds, 4)}; "
            f"all answers together may raise the odds of a guess {number(_odds(rho, worlds), 4)} times, "
            f"which is a total loss of epsilon {target.limit.say()}."
        )
        says.append(
            f"With that loss an adversary can answer a yes/no question about one person with a certainty of up to "
            f"{told['yes_no']:.4g}; a coin flip is 0.5."
        )
    says += [f"{number(Fraction(one['rho']))} is {one['what']} ({one['source']})." for one in known]
    return {"one_in": float(1 / rho), **told, "says": says, "known": known}


def curve(worlds: Fraction, *, most: Fraction | None, points: int) -> dict[str, Any]:
    """Points of epsilon and the identification that it leaves, from a blind guess up; rounded as promises are."""
    if worlds <= 1:
        raise Unsupported("a curve needs worlds above 1.", "?worlds=99")
    end = float(most) if most is not None else min(MOST_EPSILON, math.log(float(worlds)) + 5)
    losses = [Amount.up(Fraction(end) * place / (points - 1)) for place in range(points)]
    found = [
        {
            "epsilon": float(loss.value),
            "rho": float(identification_after(loss, worlds)),
            "yes_no": float(yes_no_certainty(loss)),
        }
        for loss in losses
    ]
    return {"blind_guess": float(1 / worlds), "points": found}


def _target(rho: Fraction, worlds: Fraction) -> Target:
    if worlds <= 1:
        raise Unsupported("worlds is a number above 1.", "?rho=0.015&worlds=99")
    target = Target("this", worlds, rho)
    target.refuse()
    return target


def _odds(rho: Fraction, worlds: Fraction) -> Fraction:
    """By how much the odds of a guess rise from a blind one to rho."""
    return rho / (1 - rho) * (worlds - 1)


def _hidden(rho: Fraction) -> str:
    if rho > Fraction(1, 2):
        return "right more often than wrong: it hides nobody"
    return f"as good as hiding among {math.floor(1 / rho):,} people or more who are all equally likely"
