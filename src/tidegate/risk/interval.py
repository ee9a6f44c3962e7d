"""Confidence-interval privacy: the width of the range that contains a value with a certain confidence.

The width of noise is the shortest w1 + w2 with P(-w2 <= noise <= w1) at least the confidence; privacy is that width as a
fraction of the attribute's range.

Reference:
    Agrawal, Srikant 2000 (SIGMOD).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from tidegate.arrays import Floats

CERTAIN = 0.95
_SLACK = 1e-12  # tolerance for sums of floats that should reach the confidence exactly


def uniform_width(half_width: float, *, confidence: float = CERTAIN) -> float:
    """Return the width of uniform noise on [-half_width, half_width]."""
    return 2 * half_width * confidence


def gaussian_width(sigma: float, *, confidence: float = CERTAIN) -> float:
    """Return the width of Gaussian noise: 3.92 sigma at 95%; 6.58 sigma at 99.9% (Agrawal and Srikant print 6.8)."""
    return 2 * NormalDist().inv_cdf((1 + confidence) / 2) * sigma


def laplace_width(scale: float, *, confidence: float = CERTAIN) -> float:
    """Return the width of Laplace noise."""
    return -2 * scale * math.log(1 - confidence)


def noise_for_privacy(privacy: float, *, confidence: float = CERTAIN) -> dict[str, float]:
    """Return the noise with that privacy on a range of 1: half_width (uniform), sigma (Gaussian), scale (Laplace)."""
    return {
        "half_width": privacy / uniform_width(1, confidence=confidence),
        "sigma": privacy / gaussian_width(1, confidence=confidence),
        "scale": privacy / laplace_width(1, confidence=confidence),
    }


def shortest_run(weights: Floats, *, confidence: float = CERTAIN) -> tuple[int, int]:
    """Return the first and last index of the shortest run that contains this fraction of the weight."""
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    needed = confidence * reached[-1] * (1 - _SLACK)
    ends = np.searchsorted(reached, reached[:-1] + needed)  # indexes before `end` reach it, the first included
    lengths = np.where(ends < reached.size, ends - np.arange(weights.size), weights.size + 1)
    first = int(np.argmin(lengths))
    return first, first + int(lengths[first]) - 1


def noise_width(channel: Floats, *, confidence: float = CERTAIN) -> int:
    """Return the length, in steps, of the shortest run of reports with that confidence, for the least hidden value."""
    runs = (shortest_run(column, confidence=confidence) for column in channel.T)
    return min(last - first for first, last in runs)


def concluded_width(channel: Floats, prior: Floats, *, confidence: float = CERTAIN) -> tuple[int, float]:
    """Return the length, in steps, of the run of values that a report implies: the shortest, and the mean."""
    joint = channel * prior
    seen = joint[joint.sum(axis=1) > 0]
    runs = (shortest_run(row, confidence=confidence) for row in seen)
    widths = np.array([last - first for first, last in runs])
    return int(widths.min()), float(widths @ seen.sum(axis=1) / seen.sum())


def averaged_width(half_width: float, *, reports: int) -> float:
    """Return the expected remaining width after several fresh uniform reports of one value."""
    return 4 * half_width / (reports + 1)
