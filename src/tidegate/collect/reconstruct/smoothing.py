"""EM with smoothing: after each step every bin gives a quarter of its mass to either neighbour."""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.channel import Channel
from tidegate.collect.reconstruct.em import Steps, em_step, log_likelihood

MOST = 10_000


def smoothed(masses: Floats) -> Floats:
    """(1/4, 1/2, 1/4); at the ends the neighbour that is missing is the end itself, so no mass is lost."""
    padded = np.concatenate([masses[:1], masses, masses[-1:]])
    return np.asarray(padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4)


def em_smoothed(counts: Floats, channel: Channel, *, start: Floats, gain: float = 1e-3, most: int = MOST) -> Steps:
    """EM with a smoothing after every step, until the likelihood rises by less than `gain`.

    Reference  Silverman et al. 1990; Li et al. 2020, Section 5.3.
    """
    masses, best = start, log_likelihood(counts, channel, start)
    for step in range(1, most + 1):
        masses = smoothed(em_step(counts, channel, masses))
        reached = log_likelihood(counts, channel, masses)
        if abs(reached - best) < gain:
            return Steps(masses, step)
        best = reached
    return Steps(masses, most)
