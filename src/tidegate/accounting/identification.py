"""Conversion between rho and epsilon: a probability of identification among m worlds, and a loss that adds up.

Reference:
    Lee & Clifton 2012, equation (15): B = ln((m - 1) rho / (1 - rho)); a loss E leaves at most
    1 / (1 + (m - 1) e^-E). m can be a fraction: 1 / the largest prior, or (population - known) / (rows - known).
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from tidegate.accounting.amount import Amount

DIGITS = 80
EXACTLY = Context(prec=DIGITS)
UPWARD = Context(prec=DIGITS, rounding=ROUND_CEILING)
DOWNWARD = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def feasible(rho: Fraction, worlds: Fraction) -> bool:
    """Return whether rho can be promised at all: a random guess must be right less often than that."""
    return rho * worlds > 1


@lru_cache(maxsize=4096)
def loss_for(rho: Fraction, worlds: Fraction) -> Amount:
    """Return the largest total loss that keeps identification at or below rho.

    Guarantee:
        Rounded down: the promise holds for the amount returned.

    Needs:
        rho > 1 / worlds.
    """
    if not feasible(rho, worlds) or rho >= 1:
        raise ValueError("rho must be larger than the probability of a random guess and below 1.")
    odds = (worlds - 1) * rho / (1 - rho)
    low = DOWNWARD.divide(Decimal(odds.numerator), Decimal(odds.denominator))
    logarithm = EXACTLY.ln(low)  # correctly rounded: at most half a unit in the 80th digit too high
    return Amount.down(Fraction(max(Decimal(0), EXACTLY.next_minus(logarithm))))


def identification_after(loss: Amount, worlds: Fraction) -> Decimal:
    """Return the probability of identification that a total loss allows among `worlds` candidates, rounded up."""
    if worlds <= 1:
        return Decimal(1)
    shrunk = max(Decimal(0), EXACTLY.next_minus(EXACTLY.exp(_decimal(loss).copy_negate())))
    others = DOWNWARD.divide(Decimal((worlds - 1).numerator), Decimal((worlds - 1).denominator))
    return min(Decimal(1), UPWARD.divide(Decimal(1), DOWNWARD.add(Decimal(1), DOWNWARD.multiply(others, shrunk))))


def yes_no_certainty(loss: Amount) -> Decimal:
    """Return the certainty with which an adversary can answer a yes/no question about one person, rounded up.

    It is e^E / (1 + e^E) for a total loss E and an adversary who knows all other rows. It does not depend on the number of
    worlds: a wide universe allows a large E.
    """
    return identification_after(loss, Fraction(2))


def _decimal(loss: Amount) -> Decimal:
    return Decimal(str(loss))
