"""EM on grouped reports: the likelihood of the counts rises with every step; the published rule stops it early.

The converged estimate overfits; the stop regularizes it, and with a flat likelihood EM stops at once.

The Bayes update of Agrawal & Srikant: EM's form, with densities at midpoints in place of exact chances.

EM with smoothing: after each step every bin gives a quarter of its mass to each neighbor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.channel import Channel
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import chdtri  # type: ignore[import-untyped]

MOST = 100_000
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Steps:
    """An estimate and the number of steps that led to it."""

    masses: Floats
    steps: int


def em_step(counts: Floats, channel: Channel, masses: Floats) -> Floats:
    """Return p * A'(n / Ap), scaled to sum to one. Impossible reports are left out."""
    raised = masses * channel.back(counts / np.maximum(channel.forward(masses), TINY))
    return np.asarray(raised / raised.sum())


def chi_square_stop(bins: int) -> float:
    """Return 1% of the 95% point of chi-square with bins - 1 degrees of freedom.

    Reference:
        Agrawal & Srikant 2000, Section 3: "1% of the threshold of the chi-square test"; the 95% is our reading.
    """
    return 0.01 * float(chdtri(bins - 1, 0.05))


def em(
    counts: Floats, channel: Channel, *, start: Floats, least: int = 1, most: int = MOST, stop: float | None = None
) -> Steps:
    """Run EM from `start` until N sum (p' - p)^2 / p is below `stop`, with at least `least` and at most `most` steps.

    Reference:
        Agrawal & Aggarwal 2001, in its grouped form: N drops out, and the step costs two products with A.
    """
    total, masses = counts.sum(), start
    enough = chi_square_stop(channel.values) if stop is None else stop
    for step in range(1, most + 1):
        updated = em_step(counts, channel, masses)
        moved = total * ((updated - masses) ** 2 / np.maximum(masses, TINY)).sum()
        masses = updated
        if step >= least and moved < enough:
            return Steps(masses, step)
    return Steps(masses, most)


def most_likely(counts: Floats, channel: Channel, *, start: Floats, gain: float = 1e-6, most: int = 1000) -> Steps:
    """Return the maximum of the likelihood, by extrapolated EM; `steps` counts the EM steps taken.

    Reference:
        Varadhan & Roland 2008, SQUAREM, step length S3, on masses; a step that lowers the likelihood is undone.
    """
    masses, best = start, log_likelihood(counts, channel, start)
    for steps in range(3, 3 * most + 1, 3):
        first = em_step(counts, channel, masses)
        second = em_step(counts, channel, first)
        leap = em_step(counts, channel, _extrapolated(masses, first, second))
        reached = log_likelihood(counts, channel, leap)
        if reached < best:
            leap, reached = second, log_likelihood(counts, channel, second)
        risen, masses, best = reached - best, leap, reached
        if risen < gain:
            return Steps(masses, steps)
    return Steps(masses, 3 * most)


def log_likelihood(counts: Floats, channel: Channel, masses: Floats) -> float:
    """Return sum n log(Ap)."""
    return float(counts @ np.log(np.maximum(channel.forward(masses), TINY)))


def _extrapolated(masses: Floats, first: Floats, second: Floats) -> Floats:
    change, bend = first - masses, second - 2 * first + masses
    length = max(1.0, float(np.sqrt((change @ change) / max(float(bend @ bend), TINY))))
    far = np.maximum(masses + 2 * length * change + length**2 * bend, 1e-3 * second)
    return np.asarray(far / far.sum())


def bayes(counts: Floats, channel: Channel, *, start: Floats, least: int = 1, most: int = MOST) -> Steps:
    """Return the distribution whose posterior mean over all reports is itself, stopped by the published rule.

    A channel of whole numbers, one bin each, is its own channel of midpoints; there this and EM are one.

    Reference:
        Agrawal & Srikant 2000, Section 3, equation (1) of the survey: fY is taken between midpoints.
    """
    return em(counts, channel.midpoints(), start=start, least=least, most=most)


MOST_SMOOTHED = 10_000


def smoothed(masses: Floats) -> Floats:
    """Smooth by (1/4, 1/2, 1/4); at the ends the missing neighbor is the end itself, so no mass is lost."""
    padded = np.concatenate([masses[:1], masses, masses[-1:]])
    return np.asarray(padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4)


def em_smoothed(
    counts: Floats, channel: Channel, *, start: Floats, gain: float = 1e-3, most: int = MOST_SMOOTHED
) -> Steps:
    """Run EM with smoothing after every step, until the likelihood rises by less than `gain`.

    Reference:
        Silverman et al. 1990; Li et al. 2020, Section 5.3.
    """
    masses, best = start, log_likelihood(counts, channel, start)
    for step in range(1, most + 1):
        masses = smoothed(em_step(counts, channel, masses))
        reached = log_likelihood(counts, channel, masses)
        if abs(reached - best) < gain:
            return Steps(masses, step)
        best = reached
    return Steps(masses, most)
