"""What a number of reports can show, known before any is collected."""

from __future__ import annotations

import math

from tidegate.collect.matching import channel_of
from tidegate.collect.mechanisms import Operator, Pure
from tidegate.collect.reconstruct import features

NORMAL_95 = 1.959963984540054


def features_of(operator: Operator, clients: int) -> int:
    """How many features of a distribution on an ordered grid that many reports can show."""
    return features(channel_of(operator), reports=clients)


def mean_error(operator: Operator, clients: int) -> float:
    """In steps: the mean of evenly spread values is within this of the estimate, 95 times in 100."""
    return NORMAL_95 * math.sqrt((operator.spread() + (operator.values**2 - 1) / 12) / clients)


def share_error(operator: Pure, clients: int) -> float:
    """The share of a category of average size is within this of the estimate, 95 times in 100: exact variance.

    Of the share among those who answer; the variance is that of the randomization. Add share (1 - share) / clients to
    speak of a population they were drawn from.
    """
    return NORMAL_95 * math.sqrt(operator.variance(1 / operator.values) / clients)
