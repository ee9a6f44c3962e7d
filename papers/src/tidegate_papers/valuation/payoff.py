"""A measured payoff: how well a distribution is known from the reports of a group of participants.

`Learned` is a function of the participants, as the coalition games in games.py need it: the share of the distance between
knowing nothing and the truth that the reports of a group overcome. It needs the truth, so it is for planning on data with
a known truth: the value of more respondents, and of which group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct import Channel, reconstruct
from tidegate.errors import Unsupported


@dataclass(frozen=True)
class Learned:
    """The payoff of a group: 1 - L1(reconstructed, truth) / L1(uniform, truth), never below 0; an empty group earns 0.

    Args:
        counts: (players, reports): how often each player's respondents sent each report.
        truth: The distribution to learn.
    """

    counts: Floats
    channel: Channel
    truth: Floats
    method: str = "em"

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or (self.counts < 0).any():
            raise Unsupported("The counts of reports must have one row for every player.")
        if not np.isclose(self.truth.sum(), 1) or np.allclose(self.truth, 1 / self.truth.size):
            raise Unsupported(
                "The truth must be a distribution other than the uniform one, which is known without any report."
            )

    def __call__(self, group: frozenset[int]) -> float:
        counts = self.counts[sorted(group)].sum(axis=0)
        if not counts.any():
            return 0.0
        estimate = reconstruct(counts, self.channel, method=self.method).masses
        off = np.abs(estimate - self.truth).sum() / np.abs(1 / self.truth.size - self.truth).sum()
        return max(0.0, 1 - float(off))
