"""Which channel, or which chances of support, the reports of an operator are reconstructed with.

Count code reports by `count_many(operator, codes)` of collect/counting.py and hand the counts to
`reconstruct(counts, channel_of(operator))`. Count (by the same), for set reports (and for randomized response, which is the set of
one), how many reports support each value, and hand that to `shares(supports, total=reports, support=support_of(operator))`.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from tidegate.collect.channels import channel_array
from tidegate.collect.mechanisms import LaplaceNoise, Operator, Pure, SquareWave, SubsetSelection, Unary
from tidegate.collect.mechanisms.additive import AdditiveNoise
from tidegate.collect.reconstruct import Channel, Dense, Shifted, Support
from tidegate.errors import Unsupported

LONGEST_DENSE = 512


def channel_of(operator: Operator) -> Channel:
    """P(report | value) as reconstruction takes it: a matrix, or for long grids shifted copies of one kernel."""
    if operator.values <= LONGEST_DENSE or not operator.ordered:
        return Dense(channel_array(operator))
    return shifted(operator)


@singledispatch
def shifted(operator: Operator) -> Channel:
    """The channel of a long grid, without a matrix."""
    return Dense(channel_array(operator))


@shifted.register
def _(operator: AdditiveNoise) -> Channel:
    return Shifted(operator.chances, operator.values)


@shifted.register
def _(operator: LaplaceNoise) -> Channel:
    return Shifted(operator.chances, operator.values, clipped=operator.reach)


@shifted.register
def _(operator: SquareWave) -> Channel:
    near, far = float(operator.near_each), float(operator.far_each)
    kernel = np.full(2 * operator.half + 1, near - far)
    return Shifted(kernel, operator.values, background=np.full(operator.report_size, far))


def support_of(operator: Operator) -> Support:
    """How often a report supports the true value, another one, and two at once, exactly as the client draws it."""
    if not isinstance(operator, Pure):
        raise Unsupported(f"a report of {operator.name} supports no single value.", "Use channel_of and reconstruct.")
    p, q = float(operator.p), float(operator.q)
    if isinstance(operator, Unary):
        return Support(p, q, p * q, q * q)
    if isinstance(operator, SubsetSelection):
        n, w = operator.values, operator.size
        pairs = p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)
        return Support(p, q, p * (w - 1) / (n - 1), pairs / ((n - 1) * (n - 2)) if n > 2 else 0.0)
    return Support(p, q, 0.0, 0.0)
