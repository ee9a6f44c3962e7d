"""The Bayes update of Agrawal & Srikant: EM's form, with densities at midpoints in place of exact chances."""

from __future__ import annotations

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.channel import Channel
from tidegate.collect.reconstruct.em import MOST, Steps, em


def bayes(counts: Floats, channel: Channel, *, start: Floats, least: int = 1, most: int = MOST) -> Steps:
    """The distribution whose posterior mean, over all reports, is itself; stopped by the published rule.

    A channel of whole numbers, one bin each, is its own channel of midpoints; there this and EM are one.

    Reference  Agrawal & Srikant 2000, Section 3, equation (1) of the survey: fY is taken between midpoints.
    """
    return em(counts, channel.midpoints(), start=start, least=least, most=most)
