"""From a wanted rho, epsilon or error to the loss that is spent; the other two follow."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf
from typing import Literal, TypeAlias

from tidegate.accounting import Amount, budget_of
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.sums import rows_are_public
from tidegate.answer.request import Query
from tidegate.errors import Infeasible, Unsupported
from tidegate.exact import Number, positive, say
from tidegate.policy import Policy
from tidegate.risk import likeliest_run, window_scale

Calibration: TypeAlias = Literal["equation-15", "tight"]
LOWEST, HIGHEST = Fraction(1, 10**9), Fraction(10**4)


def resolve_loss(
    queries: tuple[Query, ...],
    policy: Policy,
    *,
    rho: Number | None = None,
    epsilon: Number | None = None,
    error: Number | None = None,
    confidence: float = 0.95,
    calibration: Calibration = "equation-15",
    window: int = 1,
) -> Fraction:
    """Return the total loss of a request, which states it in exactly one of three ways.

    calibration="tight" (with rho) takes the least noise that keeps every run of `window` neighbouring values of the
    asked column at or below rho, for one answer. Its price is the loss that this implies, which is what is charged.
    """
    given = [name for name, value in (("rho", rho), ("epsilon", epsilon), ("error", error)) if value is not None]
    if len(given) != 1:
        raise Unsupported(
            "a question needs exactly one of rho, epsilon and error.",
            "rho: how likely somebody may be identified by this answer; epsilon: its loss; error: how far it may be off.",
        )
    if not 0 < confidence < 1:
        raise Unsupported("confidence is between 0 and 1.", "0.95 means 95 times in 100.")
    if epsilon is not None:
        return positive(epsilon, "epsilon")
    if calibration not in ("equation-15", "tight") or (calibration == "tight" and rho is None):
        raise Unsupported('calibration is "equation-15", or "tight" together with rho.')
    if rho is not None and calibration == "tight":
        return _tight(queries, policy, positive(rho, "rho"), window)
    if rho is not None:
        return budget_of(policy).loss_alone(positive(rho, "rho")).value
    return _for_error(queries, policy, float(positive(error or 0, "error")), confidence)


def _tight(queries: tuple[Query, ...], policy: Policy, rho: Fraction, window: int) -> Fraction:
    """The loss of the least noise for a sum or a mean over a public number of rows: (size - 1) / scale, rounded down."""
    if len(queries) != 1 or queries[0].statistic not in ("sum", "mean") or not rows_are_public(queries[0], policy):
        raise Unsupported(
            "tight calibration is for one sum or mean over all rows, whose number is public.",
            'Declare rows, unit = "row" and missing = "lowest", or leave calibration out.',
        )
    column, size = queries[0].column, policy.attribute(queries[0].column).size
    prior = _prior_vector(column, policy)
    if rho >= 1:
        raise Unsupported("`rho` must be below 1.", "Write 0.05 for 5%.")
    fits = 1 <= window <= size
    scale = window_scale(size, float(rho), window=window, prior=prior) if fits else inf
    if scale == inf:
        guess = likeliest_run(prior, window) if prior and fits else window / size
        raise Infeasible(
            f"rho = {say(rho)} cannot be kept for {window:,} neighbouring values of {size:,}: a random guess is right with probability {say(guess, 4)}.",
            f"Ask for a rho above {say(guess, 4)}, or a narrower window.",
            smallest_rho=guess,
        )
    return Fraction(floor((size - 1) / scale * 10**9), 10**9)


def _prior_vector(column: str, policy: Policy) -> list[float] | None:
    """Return the adversary's prior of every value; None where all are equally likely."""
    prior = policy.identification.prior.get(column) if policy.identification else None
    if prior is None:
        return None
    if len(prior) != policy.attribute(column).size:
        raise Unsupported(
            f'Tight calibration needs the prior probability of every value of "{column}"; the policy states only the largest.',
            f"List all {policy.attribute(column).size:,} probabilities in [promise.identification.prior], or omit `calibration`.",
        )
    return [float(probability) for probability in prior]


def _for_error(queries: tuple[Query, ...], policy: Policy, wanted: float, confidence: float) -> Fraction:
    """The smallest loss with which the answer is within `wanted`, by halving the interval."""
    if len(queries) != 1:
        raise Unsupported("an error is asked for one question at a time.", "Use epsilon or rho for several together.")
    query = queries[0]
    query.check(policy)
    if error_of(query, policy, HIGHEST, confidence) is None:
        raise Unsupported(
            f"how far {query.says()} may be off depends on the data.",
            "Ask it by rho or epsilon; preview says what is known.",
        )
    low, high = LOWEST, HIGHEST
    if not _within(query, policy, high, confidence, wanted):
        raise Unsupported(
            f"an error of {say(wanted)} is too small for {query.says()}.", "Whole numbers with noise are never exact."
        )
    for _ in range(60):
        middle = Fraction((float(low) * float(high)) ** 0.5).limit_denominator(10**12)
        if not low < middle < high:
            break
        low, high = (low, middle) if _within(query, policy, middle, confidence, wanted) else (middle, high)
    return high


def _within(query: Query, policy: Policy, epsilon: Fraction, confidence: float, wanted: float) -> bool:
    found = error_of(query, policy, epsilon, confidence)
    return found is not None and found <= wanted


def error_of(query: Query, policy: Policy, epsilon: Fraction, confidence: float) -> float | None:
    """How far the answer may be off at a loss; None where that depends on the data."""
    mechanism = mechanism_for(query)
    charged = Amount.down(epsilon).value  # as it is planned: a grain less can be a whole number more noise
    return mechanism.error(query, policy, mechanism.event(query, policy, epsilon=charged), confidence=confidence)
