"""Conversion of a requested rho, epsilon or error to the loss that is spent."""

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
    """Return the total loss of a request, which states exactly one of rho, epsilon and error.

    calibration="tight" (with rho) uses the least noise that keeps every run of `window` neighboring values of the column at
    or below rho, for one answer. Its price is the implied loss, which is charged.
    """
    stated = [name for name, value in (("rho", rho), ("epsilon", epsilon), ("error", error)) if value is not None]
    if len(stated) != 1:
        raise Unsupported(
            "Specify exactly one of `rho`, `epsilon`, or `error`.",
            "`rho` limits identification by this answer, `epsilon` is its loss, and `error` is its largest error.",
        )
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1, not {confidence:g}.", "For example, 0.95 means 95%.")
    if epsilon is not None:
        return positive(epsilon, "epsilon")
    if calibration not in ("equation-15", "tight") or (calibration == "tight" and rho is None):
        raise Unsupported('`calibration` must be "equation-15", or "tight" together with `rho`.')
    if rho is not None and calibration == "tight":
        return _tight(queries, policy, positive(rho, "rho"), window)
    if rho is not None:
        return budget_of(policy).loss_alone(positive(rho, "rho")).value
    return _for_error(queries, policy, float(positive(error or 0, "error")), confidence)


def _tight(queries: tuple[Query, ...], policy: Policy, rho: Fraction, window: int) -> Fraction:
    """Return the loss of the least noise for a sum or mean over a public number of rows: (size - 1) / scale, rounded down."""
    if len(queries) != 1 or queries[0].statistic not in ("sum", "mean") or not rows_are_public(queries[0], policy):
        raise Unsupported(
            "Tight calibration requires one sum or mean over all rows, with a public number of rows.",
            'Declare rows, unit = "row" and missing = "lowest", or omit `calibration`.',
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
            f"rho = {say(rho)} cannot be kept for {window:,} neighboring values of {size:,}: a random guess is right with probability {say(guess, 4)}.",
            f"Request a rho above {say(guess, 4)}, or a narrower window.",
            smallest_rho=guess,
        )
    return Fraction(floor((size - 1) / scale * 10**9), 10**9)


def _prior_vector(column: str, policy: Policy) -> list[float] | None:
    """Return the adversary's prior of every value; None if all are equally likely."""
    prior = policy.identification.prior.get(column) if policy.identification else None
    if prior is None:
        return None
    if len(prior) != policy.attribute(column).size:
        raise Unsupported(
            f'Tight calibration needs the prior probability of every value of "{column}"; the policy states only the largest.',
            f"List all {policy.attribute(column).size:,} probabilities in [promise.identification.prior], or omit `calibration`.",
        )
    return [float(probability) for probability in prior]


def _for_error(queries: tuple[Query, ...], policy: Policy, target: float, confidence: float) -> Fraction:
    """Return the smallest loss with which the error is at most `wanted`, by bisection."""
    if len(queries) != 1:
        raise Unsupported("`error` applies to one query at a time.", "Use `epsilon` or `rho` for several queries.")
    query = queries[0]
    query.check(policy)
    if error_of(query, policy, HIGHEST, confidence) is None:
        raise Unsupported(
            f"The error of {query.says()} depends on the data.",
            "Specify `rho` or `epsilon`; a preview shows what is known.",
        )
    low, high = LOWEST, HIGHEST
    if not _within(query, policy, high, confidence, target):
        raise Unsupported(
            f"An error of {say(target)} is too small for {query.says()}: noisy whole numbers are never exact.",
            "Request a larger error.",
        )
    for _ in range(60):
        middle = Fraction((float(low) * float(high)) ** 0.5).limit_denominator(10**12)
        if not low < middle < high:
            break
        low, high = (low, middle) if _within(query, policy, middle, confidence, target) else (middle, high)
    return high


def _within(query: Query, policy: Policy, epsilon: Fraction, confidence: float, target: float) -> bool:
    error = error_of(query, policy, epsilon, confidence)
    return error is not None and error <= target


def error_of(query: Query, policy: Policy, epsilon: Fraction, confidence: float) -> float | None:
    """Return the error of the answer at a loss; None if it depends on the data."""
    mechanism = mechanism_for(query)
    charged = Amount.down(epsilon).value  # as planned: one grain less can mean a whole number more noise
    return mechanism.error(query, policy, mechanism.event(query, policy, epsilon=charged), confidence=confidence)
