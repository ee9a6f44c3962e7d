"""Conversion between rho and z: a probability of identification on average, and a loss that adds up.

A guess is right with probability q without any answer. If the answers have an average loss of at most z, then every guess
after them is right with a probability s that satisfies d_alpha(s, q) <= alpha z for every order alpha >= 1, where d_alpha is the
Renyi divergence of two coins (Kullback-Leibler for alpha = 1): the answers against a reference that does not depend on the
row, and "the guess is right" as an event of both. Each alpha is sound, so that a search in floats is enough, as long as
its last step is computed exactly and rounded in the safe direction.

Reference:
    Renyi 1961; Rogers, Roth, Ullman, Vadhan 2016, arXiv:1605.08294 (adaptive composition); Canonne, Kamath, Steinke
    2020, arXiv:2004.00010 (zcdp to epsilon and delta).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from tidegate.accounting.amount import Amount, Price
from tidegate.accounting.identification import DIGITS, EXACTLY

DELTA = Fraction(1, 10**6)  # of the epsilon that is shown beside a loss without a pure bound
LARGEST_ORDER = 1e7
ROUNDING = Decimal(10) ** (20 - DIGITS)  # far above the errors of the decimals, far below every digit that is shown
SHOWN = Context(prec=15, rounding=ROUND_CEILING)
GOLDEN = (math.sqrt(5) - 1) / 2


@lru_cache(maxsize=4096)
def average_loss_for(rho: Fraction, guess: Fraction, guesses: int = 1) -> Amount:
    """Return the largest z that keeps the best guess at or below rho, where a random guess is right with probability `guess`.

    `guesses`: the adversary is right if one of that many rows is identified (persons with several unknown rows), and each of them
    has `guess` on its own.

    Guarantee:
        Rounded down: the promise holds for the amount returned.

    Needs:
        guess * guesses < rho < 1.
    """
    if not guess * guesses < rho < 1:
        raise ValueError("rho must be larger than the probability of a random guess and below 1.")
    if guesses > 1:
        return _divided_loss(rho / guesses, guess)
    order = _best_order(float(rho), float(guess), float(1 - guess))
    divergence = _divergence(rho, guess, order)
    return max(_divided_loss(rho, guess), Amount.down(Fraction(max(Decimal(0), divergence))))


def _divided_loss(rho: Fraction, guess: Fraction) -> Amount:
    """Return (sqrt(ln 1/guess) - sqrt(ln 1/rho))**2, rounded down: the closed form, which also holds for a bound above 1."""
    difference = EXACTLY.subtract(_root_log(guess), _root_log(rho))
    square = EXACTLY.multiply(difference, difference)
    return Amount.down(Fraction(max(Decimal(0), EXACTLY.subtract(square, ROUNDING))))


def _root_log(probability: Fraction) -> Decimal:
    """Return sqrt(ln 1/probability)."""
    return EXACTLY.sqrt(EXACTLY.minus(EXACTLY.ln(_decimal(probability))))


@lru_cache(maxsize=16384)
def average_identification_after(z: Amount, guess: Fraction, guesses: int = 1) -> Decimal:
    """Return the largest probability with which the best guess is right after an average loss of z, rounded up."""
    if guess >= 1 or guess * guesses >= 1:
        return Decimal(1)
    if not z:
        return SHOWN.multiply(_decimal(guess), Decimal(guesses))
    closed = min(Decimal(1), SHOWN.multiply(_closed_success(z, guess), Decimal(guesses)))
    if guesses > 1 or float(z) >= -math.log(guess):
        return closed
    return min(closed, _success(z, guess))


def _closed_success(z: Amount, guess: Fraction) -> Decimal:
    """Return exp(-(sqrt(ln 1/guess) - sqrt(z))**2), rounded up."""
    far = EXACTLY.subtract(_root_log(guess), EXACTLY.sqrt(Decimal(str(z))))
    if far <= 0:
        return Decimal(1)
    return EXACTLY.add(EXACTLY.exp(EXACTLY.minus(EXACTLY.multiply(far, far))), ROUNDING)


def average_yes_no(z: Amount) -> Decimal:
    """Return how often a question with two equally likely answers can be answered correctly after z, rounded up."""
    return average_identification_after(z, Fraction(1, 2))


def epsilon_at_delta(zcdp: Amount, delta: Fraction = DELTA) -> float:
    """Return the epsilon of (epsilon, delta)-differential privacy that a zcdp loss implies, for display."""
    if not zcdp:
        return 0.0
    loss, far = float(zcdp), -math.log(delta)

    def epsilon(order: float) -> float:
        return order * loss + math.log1p(-1 / order) + (far - math.log(order)) / (order - 1)

    return max(0.0, epsilon(_lowest(epsilon, math.sqrt(far / loss) + 1)))


def zcdp_for(epsilon: Fraction, delta: Fraction) -> Amount:
    """Return the largest zcdp loss that implies (epsilon, delta)-differential privacy.

    Guarantee:
        Rounded down: the promise holds for the amount returned, by one order that is computed in 80 digits, and
        `epsilon_at_delta` shows at most epsilon for it.

    Needs:
        epsilon > 0, 0 < delta < 1.
    """
    bound, far = float(epsilon), -math.log(delta)

    def minus_loss(order: float) -> float:
        return -(bound - math.log1p(-1 / order) - (far - math.log(order)) / (order - 1)) / order

    root = bound / (math.sqrt(far + bound) + math.sqrt(far))  # sqrt(far + epsilon) - sqrt(far), of the closed form
    order = Decimal(_lowest(minus_loss, math.sqrt(far) / root + 1))
    over = EXACTLY.subtract(order, Decimal(1))
    rest = EXACTLY.divide(EXACTLY.add(EXACTLY.ln(_decimal(delta)), EXACTLY.ln(order)), over)
    shrunk = EXACTLY.ln(EXACTLY.divide(over, order))
    exact_loss = EXACTLY.divide(EXACTLY.add(EXACTLY.subtract(_decimal(epsilon), shrunk), rest), order)
    amount = Amount.down(Fraction(max(Decimal(0), EXACTLY.subtract(exact_loss, ROUNDING))))
    while Fraction(epsilon_at_delta(amount, delta)) > epsilon:  # its floats are not rounded in the safe direction
        amount = Amount(amount.grains - amount.grains // 2**44 - 1)
    return amount


def shown_epsilon(total: Price) -> float:
    """Return the epsilon at delta = 1e-6 of a total loss: the one that follows from zcdp, or the pure one if that is lower."""
    converted = epsilon_at_delta(total.zcdp)
    return converted if total.pure is None else min(converted, float(total.pure))


def _success(z: Amount, guess: Fraction) -> Decimal:
    """Return the smallest s, rounded up, for which some order shows that no guess is right more often."""
    loss, q, miss = float(z), float(guess), float(1 - guess)
    low, high = q, 1.0
    s = min(1 - 1e-9, math.exp(-((math.sqrt(-math.log(q)) - math.sqrt(loss)) ** 2)))
    for _ in range(60):
        order = _best_order(s, q, miss)
        reached = _loss_at(order, s, q, miss)
        low, high = (s, high) if reached < loss else (low, s)
        step = (loss - reached) / _slope(order, s, q, miss)
        s, last = s + step, s
        if not low < s < high:
            s = (low + high) / 2
        if abs(s - last) <= 1e-14 * s:
            break
    limit = Decimal(str(z))
    for margin in (1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-6):
        bound = min(Decimal(1), SHOWN.create_decimal(Decimal(s) * (1 + Decimal(margin))))
        if bound >= 1 or _divergence(Fraction(bound), guess, _best_order(float(bound), q, miss)) >= limit:
            return bound
    return Decimal(1)


def _loss_at(order: float, s: float, q: float, miss: float) -> float:
    """Return d_order(s, q) / order in floats."""
    if s >= 1:
        return -math.log(q) / order
    if order == 1.0:
        return s * math.log(s / q) + (1 - s) * math.log((1 - s) / miss)
    right = order * math.log(s) + (1 - order) * math.log(q)
    wrong = order * math.log1p(-s) + (1 - order) * math.log(miss)
    top = max(right, wrong)
    return (top + math.log1p(math.exp(min(right, wrong) - top))) / (order - 1) / order


def _slope(order: float, s: float, q: float, miss: float) -> float:
    """Return the derivative of `_loss_at` in s."""
    if order == 1.0:
        return math.log(s / q) - math.log((1 - s) / miss)
    right = order * math.log(s) + (1 - order) * math.log(q)
    wrong = order * math.log1p(-s) + (1 - order) * math.log(miss)
    share = 1 / (1 + math.exp(min(700.0, wrong - right)))
    return (share / s - (1 - share) / (1 - s)) / (order - 1)


def _best_order(s: float, q: float, miss: float) -> float:
    """Return an order at which the divergence, divided by the order, is largest."""
    if not q < s < 1:
        return 1.0
    near, far = math.sqrt(-math.log(s)), math.sqrt(-math.log(q))
    guess = far / max(far - near, far / LARGEST_ORDER)  # of the closed form
    order = _lowest(lambda order: -_loss_at(order, s, q, miss), guess)
    return order if _loss_at(order, s, q, miss) > _loss_at(1.0, s, q, miss) else 1.0


def _lowest(function: Callable[[float], float], start: float) -> float:
    """Return the order above 1 at which a function with one valley is lowest: golden sections on the logarithm of order - 1."""
    middle = math.log(max(start - 1, 1e-3))
    low, high = max(middle - 8, math.log(1e-4)), min(middle + 8, math.log(LARGEST_ORDER))
    points = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [function(1 + math.exp(point)) for point in points]
    while high - low > 1e-7:
        if values[0] <= values[1]:
            high, points[1], values[1] = points[1], points[0], values[0]
            points[0] = high - GOLDEN * (high - low)
            values[0] = function(1 + math.exp(points[0]))
        else:
            low, points[0], values[0] = points[0], points[1], values[1]
            points[1] = low + GOLDEN * (high - low)
            values[1] = function(1 + math.exp(points[1]))
    return 1 + math.exp((low + high) / 2)


def _divergence(s: Fraction, q: Fraction, order: float) -> Decimal:
    """Return d_order(s, q) / order in 80 digits, rounded down: every operation has its context, as the default has 28."""
    context = EXACTLY
    hit, guess, missed, miss = (context.ln(_decimal(value)) for value in (s, q, 1 - s, 1 - q))
    if order == 1.0:
        right = context.multiply(_decimal(s), context.subtract(hit, guess))
        wrong = context.multiply(_decimal(1 - s), context.subtract(missed, miss))
        return context.subtract(context.add(right, wrong), ROUNDING)
    alpha = Decimal(order)
    over = context.subtract(alpha, Decimal(1))
    right, wrong = (
        context.exp(context.subtract(context.multiply(alpha, own), context.multiply(over, other)))
        for own, other in ((hit, guess), (missed, miss))
    )
    total = context.ln(context.add(right, wrong))
    return context.subtract(context.divide(context.divide(total, over), alpha), ROUNDING)


def _decimal(value: Fraction) -> Decimal:
    return EXACTLY.divide(Decimal(value.numerator), Decimal(value.denominator))
