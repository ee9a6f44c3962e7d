"""A measured payoff: how well a distribution is known from the reports of those who take part.

`Learned` is a function of who takes part, as the coalition games of `risk.valuation` want it: the share of the distance between
knowing nothing and the truth that the reports of a group overcome. It needs the truth, so it is for planning, on data of
which the truth is known: what are more respondents worth, and those of which group?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct import Channel, reconstruct
from tidegate.errors import Unsupported


@dataclass(frozen=True)
class Learned:
    """The payoff of a group: 1 - L1(reconstructed, truth) / L1(uniform, truth), never below 0; nobody earns 0.

    counts   (players, reports): how often each player's respondents sent each report
    truth    the distribution that is to be learnt
    """

    counts: Floats
    channel: Channel
    truth: Floats
    method: str = "em"

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or (self.counts < 0).any():
            raise Unsupported("counts of reports are needed, one row for every player.")
        if not np.isclose(self.truth.sum(), 1) or np.allclose(self.truth, 1 / self.truth.size):
            raise Unsupported(
                "the truth must be a distribution other than the uniform one: that is known without anybody."
            )

    def __call__(self, who: frozenset[int]) -> float:
        heard = self.counts[sorted(who)].sum(axis=0)
        if not heard.any():
            return 0.0
        found = reconstruct(heard, self.channel, method=self.method).masses
        off = np.abs(found - self.truth).sum() / np.abs(1 / self.truth.size - self.truth).sum()
        return max(0.0, 1 - float(off))
