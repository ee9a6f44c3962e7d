"""The meaning of a probability of identification: in sentences, compared with known values, and as a curve."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Target, identification_at
from tidegate.errors import Unsupported
from tidegate.exact import say as number
from tidegate.policy.promises import Guarantee
from tidegate.service.routes.risk_readings import Reading

KNOWN = (
    {
        "rho": "0.015",
        "what": "the probability that the safe harbor rule of HIPAA appears to intend: one in 68 people, on average",
        "source": "Lee & Clifton 2012, Section I",
    },
)
NEAR = Fraction(1, 3)  # relative distance within which a known value of rho is mentioned
MOST_LOSS = 60.0


def meaning(rho: Fraction, worlds: Fraction | None, guarantee: Guarantee = "worst-case") -> dict[str, Any]:
    """Explain rho: the size of the crowd, known values nearby, and with `worlds` the loss that rho allows."""
    if not 0 < rho < 1:
        raise Unsupported("`rho` must be between 0 and 1.", "Use, for example, ?rho=0.015&worlds=99.")
    known = [value for value in KNOWN if abs(Fraction(value["rho"]) - rho) <= NEAR * Fraction(value["rho"])]
    says = [_promise(rho, guarantee), f"That is {_hidden(rho)}."]
    values: dict[str, Any] = {"blind_guess": None, "epsilon": None, "odds": None, "yes_no": None}
    if worlds is not None:
        reading = Reading(guarantee, _target(rho, worlds, guarantee).limit)
        values |= {"blind_guess": float(1 / worlds), "odds": float(_odds(rho, worlds)), "yes_no": reading.yes_no}
        values |= {reading.unit: str(reading.loss)}
        says += _allowed(rho, worlds, reading)
    says += [f"{number(Fraction(value['rho']))} is {value['what']} ({value['source']})." for value in known]
    return {"one_in": float(1 / rho), **values, "says": says, "known": known}


def _promise(rho: Fraction, guarantee: Guarantee) -> str:
    if guarantee == "average":
        return (
            "An adversary who knows all rows except one, and all answers, identifies the missing one with a probability of at most "
            f"{number(rho)} on average over the noise. A single response can be more certain than that."
        )
    return (
        "An adversary who knows all rows except one, and all answers, identifies the missing one with a "
        f"probability of at most {number(rho)}."
    )


def _allowed(rho: Fraction, worlds: Fraction, reading: Reading) -> list[str]:
    """Return the loss that rho allows, and the yes/no certainty at that loss."""
    guess = f"Among {number(worlds)} possible values, a random guess is right with probability {number(1 / worlds, 4)}."
    if reading.guarantee == "average":
        loss = (
            f"{guess} All answers together can have a total loss of Z {reading.loss.say()}, which is at most epsilon "
            f"{number(reading.epsilon_at_delta)} with delta = 1e-6."
        )
        rare = f"A guess becomes more likely right than wrong with a probability of at most {_tail(rho, worlds)}."
        certainty = (
            "With that loss, an adversary answers a yes/no question about one person correctly with a probability of up to "
            f"{reading.yes_no:.4g} on average; a coin flip has 0.5."
        )
        return [loss, rare, certainty] if rho < Fraction(1, 2) else [loss, certainty]
    return [
        f"{guess} All answers together can raise the odds of a guess by a factor of {number(_odds(rho, worlds), 4)}, "
        f"which is a total loss of epsilon {reading.loss.say()}.",
        "With that loss, an adversary can answer a yes/no question about one person with a certainty of up to "
        f"{reading.yes_no:.4g}; a coin flip has 0.5.",
    ]


def curve(
    worlds: Fraction, *, most: Fraction | None, points: int, guarantee: Guarantee = "worst-case"
) -> dict[str, Any]:
    """Return points of the loss and the probability of identification, starting at a random guess."""
    if worlds <= 1:
        raise Unsupported("`worlds` must be above 1.", "Use, for example, ?worlds=99.")
    certain = math.log(float(worlds))  # a guess can be certain from this z on, and soon after this epsilon
    end = float(most) if most is not None else min(MOST_LOSS, certain + (5 if guarantee == "worst-case" else 0))
    readings = [Reading(guarantee, Amount.up(Fraction(end) * index / (points - 1))) for index in range(points)]
    curve_points = [
        {
            reading.unit: float(reading.loss.value),
            "rho": identification(reading, worlds),
            "yes_no": reading.yes_no,
        }
        for reading in readings
    ]
    return {"blind_guess": float(1 / worlds), "points": curve_points}


def identification(reading: Reading, worlds: Fraction) -> float:
    """Return the probability of identification that a loss allows."""
    return float(identification_at(reading.loss, worlds, reading.guarantee))


def _target(rho: Fraction, worlds: Fraction, guarantee: Guarantee) -> Target:
    if worlds <= 1:
        raise Unsupported("`worlds` must be above 1.", "Use, for example, ?rho=0.015&worlds=99.")
    target = Target("this", worlds, rho, guarantee)
    target.refuse()
    return target


def _tail(rho: Fraction, worlds: Fraction) -> str:
    """Return how often the largest posterior can exceed 1/2 (Doob's inequality), rounded up to three decimal places."""
    tail = (rho - 1 / worlds) / (Fraction(1, 2) - 1 / worlds)
    return f"{math.ceil(tail * 1000) / 1000:g}"


def _odds(rho: Fraction, worlds: Fraction) -> Fraction:
    """Return the factor by which the odds rise from a random guess to rho."""
    return rho / (1 - rho) * (worlds - 1)


def _hidden(rho: Fraction) -> str:
    if rho > Fraction(1, 2):
        return "more often right than wrong, so it protects nobody"
    return f"like hiding among at least {math.floor(1 / rho):,} people who are all equally likely"
