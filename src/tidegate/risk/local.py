"""Local loss: by how much a report can change the odds between any two values.

A channel is an array (reports, values) of P(report | value); a report that never happens says nothing.

Privacy breaches: a property held for unlikely before a report, and for likely after it.

Reference  Evfimievski, Gehrke, Srikant 2003 (PODS): a breach from rho1 to rho2 is impossible, whatever the prior and the
           property, where the largest ratio gamma is below rho2 (1 - rho1) / (rho1 (1 - rho2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats


def largest_ratio(channel: Floats) -> float:
    """gamma: the largest ratio of P(report | value) over P(report | other value); infinite where a zero faces a non-zero."""
    seen = channel[channel.max(axis=1) > 0]
    low, high = seen.min(axis=1), seen.max(axis=1)
    return math.inf if (low == 0).any() else float((high / low).max())


def local_epsilon(channel: Floats) -> float:
    """The logarithm of `largest_ratio`: every belief about a person changes its odds by e**epsilon at most."""
    return math.log(largest_ratio(channel))


def composed_epsilon(epsilon: float, *, times: int) -> float:
    """The loss of several independent reports of one value: they add up, which is why answers are memoised."""
    return epsilon * times


@dataclass(frozen=True)
class Revealing:
    """The report that lifts one value highest: which report, which value, from what to what."""

    report: int
    value: int
    before: float
    after: float


def gamma_allowed(before: float, after: float) -> float:
    """The ratio from which on a property could rise from `before` to `after`; below it no prior lets it."""
    return after * (1 - before) / (before * (1 - after))


def posterior_limit(before: float, *, gamma: float) -> float:
    """The most that a property held for likely by `before` can become after any report, whatever the prior."""
    return 1.0 if math.isinf(gamma) else gamma * before / (gamma * before + 1 - before)


def most_revealing(channel: Floats, prior: Floats) -> Revealing:
    """The report and value with the highest probability after the report."""
    after = posteriors(channel, prior)
    report, value = np.unravel_index(int(np.argmax(after)), after.shape)
    return Revealing(int(report), int(value), float(prior[value]), float(after[report, value]))


def worst_posterior(channel: Floats, prior: Floats, before: float) -> float:
    """The most that any property with a prior of at most `before` can become, for this one prior.

    A property is a set of values; the worst for a report takes those that it favours most. Exact where the prior is
    uniform; else an upper bound, in which one value may count in part.
    """
    after = posteriors(channel, prior)
    gain = np.divide(after, prior, out=np.zeros_like(after), where=prior > 0)
    order = np.argsort(-gain, axis=1, kind="stable")
    room = np.cumsum(prior[order], axis=1)
    held = np.take_along_axis(after, order, axis=1)
    uniform = np.allclose(prior, prior[0])
    part = np.clip((before - (room - prior[order])) / np.maximum(prior[order], 1e-300), 0, 1)
    share = np.floor(part + 1e-9) if uniform else part
    return min(1.0, float((held * share).sum(axis=1).max()))


def posteriors(channel: Floats, prior: Floats) -> Floats:
    """P(value | report), one row for each report that can happen (rows of others are zero)."""
    joint = channel * prior
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, total, out=np.zeros_like(joint), where=total > 0))
