"""Conversion of a requested rho, share, error or loss to the loss that is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf
from typing import Any, Literal, TypeAlias

from tidegate.accounting import Amount, Budget, Event, Unit, budget_of
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.sums import rows_are_public
from tidegate.answer.request import Query
from tidegate.errors import Infeasible, Unsupported
from tidegate.exact import Number, positive, root_below, say
from tidegate.policy import Policy
from tidegate.risk import likeliest_run, window_scale

Calibration: TypeAlias = Literal["equation-15", "tight"]
Planning: TypeAlias = Literal["one-by-one", "auto"]
LOWEST, HIGHEST = Fraction(1, 10**9), Fraction(10**4)


@dataclass(frozen=True)
class RequestedLoss:
    """The loss that a request spends: an epsilon, or a z where only the average loss is limited."""

    amount: Fraction
    unit: Unit = "epsilon"

    def to_dict(self) -> dict[str, str]:
        """Return ``{"epsilon": "1/10"}`` or ``{"z": "1/100"}``."""
        return {self.unit: str(self.amount)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RequestedLoss:
        """Return the loss that `to_dict` wrote."""
        unit: Unit = "z" if content.get("z") is not None else "epsilon"
        return cls(Fraction(content[unit]), unit)

    def part(self, count: int) -> RequestedLoss:
        """Return one of `count` equal parts, in whole grains: the charge is then never above the requested loss."""
        return RequestedLoss(Amount.down(self.amount / count).value, self.unit)

    def event(self, query: Query, policy: Policy) -> Event:
        """Return the event of a query for this loss."""
        mechanism, target = mechanism_for(query), query.target(policy)
        if self.unit == "z":
            return mechanism.average_event(query, target, z=self.amount)
        return mechanism.event(query, target, epsilon=self.amount)


def resolve_loss(
    queries: tuple[Query, ...],
    policy: Policy,
    *,
    rho: Number | None = None,
    epsilon: Number | None = None,
    error: Number | None = None,
    share: Number | None = None,
    z: Number | None = None,
    confidence: float = 0.95,
    calibration: Calibration = "equation-15",
    window: int = 1,
) -> RequestedLoss:
    """Return the total loss of a request, which states exactly one of rho, epsilon, error, share and z.

    `share` is a part of the total budget. Where a policy limits the pure loss, the loss is an epsilon; where it limits only
    the average loss, it is a z, and `epsilon` is not available.

    calibration="tight" (with rho) uses the least noise that keeps every run of `window` neighboring values of the column at
    or below rho, for one answer. Its price is the implied loss, which is charged.
    """
    requested = {"rho": rho, "epsilon": epsilon, "error": error, "share": share, "z": z}
    stated = [name for name, value in requested.items() if value is not None]
    budget = budget_of(policy)
    if len(stated) != 1:
        raise Unsupported(
            "Specify exactly one of `rho`, `epsilon`, `error`, or `share`.",
            "`rho` limits identification by this answer, `epsilon` is its loss, `error` is its largest error, and `share` "
            "is its part of the total budget.",
        )
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1, not {confidence:g}.", "For example, 0.95 means 95%.")
    if epsilon is not None or z is not None:
        return _stated(budget, epsilon, z)
    if share is not None:
        return RequestedLoss(budget.part(positive(share, "share")), budget.unit)
    if calibration not in ("equation-15", "tight") or (calibration == "tight" and rho is None):
        raise Unsupported('`calibration` must be "equation-15", or "tight" together with `rho`.')
    if rho is not None and calibration == "tight":
        if budget.guarantee == "average":
            raise Unsupported("Tight calibration requires the worst-case guarantee.", "Omit `calibration`.")
        return RequestedLoss(_tight(queries, policy, positive(rho, "rho"), window))
    if rho is not None:
        return in_account_unit(budget, budget.loss_alone(positive(rho, "rho")).value)
    return for_error(queries, policy, float(positive(error or 0, "error")), confidence)


def _stated(budget: Budget, epsilon: Number | None, z: Number | None) -> RequestedLoss:
    """Return a loss that was stated as an amount, in the unit of the account."""
    if epsilon is not None and budget.unit == "z":
        raise Unsupported(
            "`epsilon` is not available under the average guarantee, which limits Z.",
            "Specify `z`, `rho`, `share`, or `error`.",
        )
    if z is not None and budget.guarantee != "average":
        raise Unsupported(
            "`z` requires the average guarantee, and this policy has the worst-case one.",
            "Specify `rho`, `epsilon`, `error`, or `share`.",
        )
    if z is not None:
        return in_account_unit(budget, positive(z, "z"))
    return RequestedLoss(positive(epsilon or 0, "epsilon"))


def in_account_unit(budget: Budget, loss: Fraction) -> RequestedLoss:
    """Return a loss of the policy's guarantee in the unit of the account.

    If an average guarantee stands beside a limit on epsilon, pure noise is used: z = epsilon**2 / 8.
    """
    if budget.guarantee == "average" and budget.unit == "epsilon":
        return RequestedLoss(root_below(8 * loss))
    return RequestedLoss(loss, budget.unit)


def _tight(queries: tuple[Query, ...], policy: Policy, rho: Fraction, window: int) -> Fraction:
    """Return the loss of the least noise for a sum or mean over a public number of rows: (size - 1) / scale, rounded down."""
    if (
        len(queries) != 1
        or queries[0].statistic not in ("sum", "mean")
        or not rows_are_public(queries[0], queries[0].target(policy))
    ):
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


def for_error(queries: tuple[Query, ...], policy: Policy, target: float, confidence: float) -> RequestedLoss:
    """Return the smallest loss with which the error is at most `wanted`, by bisection."""
    if len(queries) != 1:
        raise Unsupported("`error` applies to one query at a time.", "Use `rho` or `share` for several queries.")
    query = queries[0]
    query.check(query.target(policy))
    unit = budget_of(policy).unit
    if error_of(query, policy, RequestedLoss(HIGHEST, unit), confidence) is None:
        raise Unsupported(
            f"The error of {query.says()} depends on the data.",
            "Specify `rho` or `share`; a preview shows what is known.",
        )
    low, high = LOWEST, HIGHEST
    if not _within(query, policy, RequestedLoss(high, unit), confidence, target):
        raise Unsupported(
            f"An error of {say(target)} is too small for {query.says()}: noisy whole numbers are never exact.",
            "Request a larger error.",
        )
    for _ in range(60):
        middle = Fraction((float(low) * float(high)) ** 0.5).limit_denominator(10**12)
        if not low < middle < high:
            break
        fits = _within(query, policy, RequestedLoss(middle, unit), confidence, target)
        low, high = (low, middle) if fits else (middle, high)
    return RequestedLoss(high, unit)


def _within(query: Query, policy: Policy, loss: RequestedLoss, confidence: float, target: float) -> bool:
    error = error_of(query, policy, loss, confidence)
    return error is not None and error <= target


def error_of(query: Query, policy: Policy, loss: RequestedLoss, confidence: float) -> float | None:
    """Return the error of the answer at a loss; None if it depends on the data."""
    event = loss.part(1).event(query, policy)  # as planned: one grain less can mean a whole number more noise
    return mechanism_for(query).error(query, query.target(policy), event, confidence=confidence)
