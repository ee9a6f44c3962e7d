"""Local loss: the factor by which a report can change the odds between any two values. Privacy breaches.

A channel is an array (reports, values) of P(report | value); a report that never occurs has no effect.

A privacy breach is a property that is unlikely before a report, and likely after it.

Reference:
    Evfimievski, Gehrke, Srikant 2003 (PODS): a breach from rho1 to rho2 is impossible, for every prior and every
    property, if the largest ratio gamma is below rho2 (1 - rho1) / (rho1 (1 - rho2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats


def largest_ratio(channel: Floats) -> float:
    """Return gamma, the largest P(report | value) / P(report | other value); infinite if only one of them is zero."""
    seen = channel[channel.max(axis=1) > 0]
    low, high = seen.min(axis=1), seen.max(axis=1)
    return math.inf if (low == 0).any() else float((high / low).max())


def local_epsilon(channel: Floats) -> float:
    """Return the logarithm of `largest_ratio`: the odds of any belief about a person change by at most e**epsilon."""
    return math.log(largest_ratio(channel))


def composed_epsilon(epsilon: float, *, times: int) -> float:
    """Return the loss of several independent reports of one value. Losses add up, so clients memoize their reports."""
    return epsilon * times


@dataclass(frozen=True)
class Revealing:
    """The report that raises the probability of one value most: the report, the value, and both probabilities."""

    report: int
    value: int
    before: float
    after: float


def gamma_allowed(before: float, after: float) -> float:
    """Return the smallest ratio with which a property could rise from `before` to `after`, for any prior."""
    return after * (1 - before) / (before * (1 - after))


def posterior_limit(before: float, *, gamma: float) -> float:
    """Return the highest probability, after any report and for any prior, of a property with probability `before`."""
    return 1.0 if math.isinf(gamma) else gamma * before / (gamma * before + 1 - before)


def most_revealing(channel: Floats, prior: Floats) -> Revealing:
    """Return the report and value with the highest probability after the report."""
    after = posteriors(channel, prior)
    report, value = np.unravel_index(int(np.argmax(after)), after.shape)
    return Revealing(int(report), int(value), float(prior[value]), float(after[report, value]))


def worst_posterior(channel: Floats, prior: Floats, before: float) -> float:
    """Return the highest probability, for this prior, of any property with a prior probability of at most `before`.

    A property is a set of values; the worst for a report contains the values that the report favors most. Exact if the
    prior is uniform; otherwise an upper bound, in which one value can count in part.
    """
    after = posteriors(channel, prior)
    gain = np.divide(after, prior, out=np.zeros_like(after), where=prior > 0)
    order = np.argsort(-gain, axis=1, kind="stable")
    room = np.cumsum(prior[order], axis=1)
    posterior = np.take_along_axis(after, order, axis=1)
    uniform = np.allclose(prior, prior[0])
    part = np.clip((before - (room - prior[order])) / np.maximum(prior[order], 1e-300), 0, 1)
    share = np.floor(part + 1e-9) if uniform else part
    return min(1.0, float((posterior * share).sum(axis=1).max()))


def posteriors(channel: Floats, prior: Floats) -> Floats:
    """Return P(value | report): one row for each report, zero for reports that cannot occur."""
    joint = channel * prior
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, total, out=np.zeros_like(joint), where=total > 0))
