"""The meaning of a probability of identification: in sentences, compared with known values, and as a curve."""

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
        "what": "the probability that the safe harbor rule of HIPAA appears to intend: one in 68 people, on average",
        "source": "Lee & Clifton 2012, Section I",
    },
)
NEAR = Fraction(1, 3)  # relative distance within which a known value of rho is mentioned
MOST_EPSILON = 60.0


def meaning(rho: Fraction, worlds: Fraction | None) -> dict[str, Any]:
    """Explain rho: the size of the crowd, known values nearby, and with `worlds` the loss that rho allows."""
    if not 0 < rho < 1:
        raise Unsupported("`rho` must be between 0 and 1.", "Use, for example, ?rho=0.015&worlds=99.")
    known = [value for value in KNOWN if abs(Fraction(value["rho"]) - rho) <= NEAR * Fraction(value["rho"])]
    says = [
        "An adversary who knows all rows except one, and all answers, identifies the missing one with a "
        f"probability of at most {number(rho)}.",
        f"That is {_hidden(rho)}.",
    ]
    values: dict[str, Any] = {"blind_guess": None, "epsilon": None, "odds": None, "yes_no": None}
    if worlds is not None:
        target = _target(rho, worlds)
        values = {"blind_guess": float(1 / worlds), "epsilon": str(target.limit), "odds": float(_odds(rho, worlds))}
        values["yes_no"] = float(yes_no_certainty(target.limit))
        says.append(
            f"Among {number(worlds)} possible values, a random guess is right with probability {number(1 / worlds, 4)}. "
            f"All answers together can raise the odds of a guess by a factor of {number(_odds(rho, worlds), 4)}, "
            f"which is a total loss of epsilon {target.limit.say()}."
        )
        says.append(
            f"With that loss, an adversary can answer a yes/no question about one person with a certainty of up to "
            f"{values['yes_no']:.4g}; a coin flip has 0.5."
        )
    says += [f"{number(Fraction(value['rho']))} is {value['what']} ({value['source']})." for value in known]
    return {"one_in": float(1 / rho), **values, "says": says, "known": known}


def curve(worlds: Fraction, *, most: Fraction | None, points: int) -> dict[str, Any]:
    """Return points of epsilon and the probability of identification, starting at a random guess."""
    if worlds <= 1:
        raise Unsupported("`worlds` must be above 1.", "Use, for example, ?worlds=99.")
    end = float(most) if most is not None else min(MOST_EPSILON, math.log(float(worlds)) + 5)
    losses = [Amount.up(Fraction(end) * index / (points - 1)) for index in range(points)]
    curve_points = [
        {
            "epsilon": float(loss.value),
            "rho": float(identification_after(loss, worlds)),
            "yes_no": float(yes_no_certainty(loss)),
        }
        for loss in losses
    ]
    return {"blind_guess": float(1 / worlds), "points": curve_points}


def _target(rho: Fraction, worlds: Fraction) -> Target:
    if worlds <= 1:
        raise Unsupported("`worlds` must be above 1.", "Use, for example, ?rho=0.015&worlds=99.")
    target = Target("this", worlds, rho)
    target.refuse()
    return target


def _odds(rho: Fraction, worlds: Fraction) -> Fraction:
    """Return the factor by which the odds rise from a random guess to rho."""
    return rho / (1 - rho) * (worlds - 1)


def _hidden(rho: Fraction) -> str:
    if rho > Fraction(1, 2):
        return "more often right than wrong, so it protects nobody"
    return f"like hiding among at least {math.floor(1 / rho):,} people who are all equally likely"
