"""What a promise allows in practice: "1 in 20" in words, the answers that its budget pays for, and guesses that may be near."""

from __future__ import annotations

import math
from fractions import Fraction

from pydantic import BaseModel, Field

from tidegate.accounting import Target
from tidegate.errors import Unsupported
from tidegate.policy.promises import Guarantee
from tidegate.service.routes.risk_readings import Reading, possibilities, readings_of

SHARES = (Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000))  # of the people: how far a count may be off
WINDOWS = (0, 1, 2, 5, 10)  # steps on each side of a guess
LAPLACE, NORMAL = math.log(20), 1.959964  # a 95% interval in scales of Laplace noise and in standard deviations
NAMES: dict[Guarantee, str] = {"worst-case": "For every response", "average": "On average over the noise"}
SAYS: dict[Guarantee, str] = {
    "worst-case": "Whatever answers come out, no guess becomes more likely than this.",
    "average": "Over all the noise that could be drawn. A rare response can make a guess more likely than this.",
}
NEVER = "cannot be promised"


class Practice(BaseModel):
    """What a promise means and allows."""

    one_in: str = Field(description="The promise: at most 1 chance in this many.")
    rho: str
    says: list[str] = Field(description="The promise in sentences.")
    readings: list[PracticeReading]
    windows: list[PracticeWindow] = Field(
        description="The same promise for guesses that count as right if they are near."
    )


class PracticeReading(BaseModel):
    """The promise under one guarantee."""

    guarantee: Guarantee
    name: str
    says: str
    loss: str = Field(description="The limit of the total loss, with its unit.")
    yes_no: int = Field(
        description="How often, of 100 times, a yes/no question about one person can be answered correctly."
    )
    counts: list[PracticeCounts]


class PracticeCounts(BaseModel):
    """How many counts the whole budget pays for."""

    off: str = Field(description="How far a count may be off, with 95% confidence.")
    most: int = Field(description="The number of such counts.")


class PracticeWindow(BaseModel):
    """The promise if a guess within some steps counts as right."""

    within: int
    by_chance: str = Field(description="How often a random guess is right.")
    losses: dict[Guarantee, str] = Field(description="The limit of the total loss, by guarantee.")


def practice(one_in: Fraction, worlds: Fraction, *, within: int, people: int) -> Practice:
    """Describe the promise that nobody's value can be guessed with more than 1 chance in `one_in`."""
    if one_in <= 1:
        raise Unsupported("`one_in` must be above 1.", "Use, for example, 20 for 1 chance in 20.")
    count, rho = possibilities(worlds, within), 1 / one_in
    Target("this", count, rho, window=within).refuse()
    readings = readings_of(rho, count)
    return Practice(
        one_in=_number(one_in),
        rho=f"{float(rho):.4g}",
        says=_sentences(one_in, count, within),
        readings=[_reading(reading, people) for reading in readings.values()],
        windows=[_window(rho, worlds, steps) for steps in WINDOWS if worlds > 2 * steps + 1],
    )


def _sentences(one_in: Fraction, count: Fraction, within: int) -> list[str]:
    near = f" to within {within:,} {'step' if within == 1 else 'steps'}" if within else ""
    times = count / one_in
    return [
        f"Somebody who knows everything about everybody else, and sees all answers, guesses a person's value{near} with at most 1 chance in {_number(one_in)}.",
        f"Without any answers the chance is 1 in {_number(count)}, so all answers together make a guess at most {_number(times)} times as likely.",
    ]


def _reading(reading: Reading, people: int) -> PracticeReading:
    counts = [
        PracticeCounts(off=_off(share, people), most=counts_within(reading, float(share * people))) for share in SHARES
    ]
    return PracticeReading(
        guarantee=reading.guarantee,
        name=NAMES[reading.guarantee],
        says=SAYS[reading.guarantee],
        loss=_loss(reading),
        yes_no=math.ceil(100 * reading.yes_no),
        counts=counts,
    )


def counts_within(reading: Reading, off: float) -> int:
    """Return how many counts can each have a 95% interval of this half-width, if they share the whole loss equally."""
    if reading.guarantee == "average":
        return math.floor(8 * float(reading.loss) * (off / NORMAL) ** 2)
    return math.floor(float(reading.loss) * off / LAPLACE)


def _off(share: Fraction, people: int) -> str:
    return f"{float(100 * share):g}% of the people ({float(share * people):,.4g})"


def _window(rho: Fraction, worlds: Fraction, steps: int) -> PracticeWindow:
    count = possibilities(worlds, steps)
    readings = readings_of(rho, count)
    losses: dict[Guarantee, str] = {name: _loss(readings[name]) if readings else NEVER for name in NAMES}
    return PracticeWindow(within=steps, by_chance=f"1 in {_number(count)}", losses=losses)


def _loss(reading: Reading) -> str:
    return f"{'Z' if reading.guarantee == 'average' else 'epsilon'} {float(reading.loss):.3g}"


def _number(value: Fraction) -> str:
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.3g}"
