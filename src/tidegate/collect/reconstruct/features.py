"""How many features of a distribution a number of reports can show, and what to say about it, before collecting."""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.cells import MOST
from tidegate.collect.reconstruct.channel import Channel
from tidegate.collect.reconstruct.fit import one_thread

VISIBLE = 10.0  # signal against noise, squared
IDENTIFIED, FINE = 8, 14  # measured: below 8 caught 32 of 35 bad estimates, below 14 all 35
UNSETTLED = 0.2  # mean width of the strict band of the distribution function
UNTOLD = 0.3  # distance between the smooth and the discrete reading


@one_thread
def features(channel: Channel, *, reports: float) -> int:
    """R: the number of directions around the even distribution that `reports` reports show above their noise.

    It needs no data: it can be said before collecting. Long grids are counted on 128 cells.
    """
    run = -(-channel.values // MOST)
    values, out = (np.append(np.arange(0, size, run), size) for size in (channel.values, channel.reports))
    matrix = channel.merged(out, values)
    even = np.diff(values) / channel.values
    scaled = matrix * np.sqrt(even) / np.sqrt(np.maximum(matrix @ even, 1e-300))[:, None]
    strengths = np.linalg.svd(scaled, compute_uv=False)
    return int((reports * strengths[1:] ** 2 > VISIBLE).sum())


def foretold(shown: int, *, reports: float, values: int) -> tuple[str, ...]:
    """What R means, in words; nothing where all is well. Few values need few features."""
    if shown >= min(FINE, values - 1):
        return ()
    said = f"{reports:,.0f} reports show {shown} features of the distribution under this noise"
    if shown < min(IDENTIFIED, values - 1):
        moments = max(shown - 1, 0)
        return (f"{said}: its shape is not identified, only about {moments} moments are; show the strict band.",)
    return (f"{said}: its coarse shape only.",)


def unsettled(width: float) -> tuple[str, ...]:
    """A warning where the strict band of the distribution function is wide."""
    if width <= UNSETTLED:
        return ()
    return (f"the reports do not fix the distribution: its strict band is {width:.2f} wide on average.",)


def untold(smooth: Floats, discrete: Floats) -> tuple[str, ...]:
    """A warning where a smooth and a discrete reading explain the reports alike and differ."""
    if float(np.abs(smooth - discrete).sum()) <= UNTOLD:
        return ()
    return ("the reports cannot tell a smooth distribution from a few values; list the values if they are known.",)
