"""How many features of a distribution a number of reports can show, known before collecting, and warnings about it."""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.cells import MOST
from tidegate.collect.reconstruct.channel import Channel
from tidegate.collect.reconstruct.fit import one_thread

VISIBLE = 10.0  # signal against noise, squared
IDENTIFIED, FINE = 8, 14  # measured: below 8 caught 32 of 35 bad estimates, below 14 all 35
UNSETTLED = 0.2  # mean width of the strict band of the distribution function
DIFFERENT = 0.3  # distance between the smooth and the discrete estimate


@one_thread
def features(channel: Channel, *, reports: float) -> int:
    """Return R, the number of directions around the uniform distribution that `reports` reports show above their noise.

    It needs no data, so it is known before collecting. Long grids are merged to 128 cells.
    """
    run = -(-channel.values // MOST)
    values, out = (np.append(np.arange(0, size, run), size) for size in (channel.values, channel.reports))
    matrix = channel.merged(out, values)
    even = np.diff(values) / channel.values
    scaled = matrix * np.sqrt(even) / np.sqrt(np.maximum(matrix @ even, 1e-300))[:, None]
    strengths = np.linalg.svd(scaled, compute_uv=False)
    return int((reports * strengths[1:] ** 2 > VISIBLE).sum())


def expected_features(shown: int, *, reports: float, values: int) -> tuple[str, ...]:
    """Return a warning if R features are too few for the shape; few values need few features."""
    if shown >= min(FINE, values - 1):
        return ()
    warning = f"{reports:,.0f} reports show {shown} features of the distribution under this noise"
    if shown < min(IDENTIFIED, values - 1):
        moments = max(shown - 1, 0)
        return (
            f"{warning}: its shape is not identified, only about {moments} {'moment' if moments == 1 else 'moments'}; use the strict band.",
        )
    return (f"{warning}: its coarse shape only.",)


def unsettled(width: float) -> tuple[str, ...]:
    """Return a warning if the strict band of the distribution function is wide."""
    if width <= UNSETTLED:
        return ()
    return (f"The reports do not determine the distribution: its strict band is {width:.2f} wide on average.",)


def too_few_reports(smooth: Floats, discrete: Floats) -> tuple[str, ...]:
    """Return a warning if a smooth and a discrete estimate explain the reports equally well but differ."""
    if float(np.abs(smooth - discrete).sum()) <= DIFFERENT:
        return ()
    return (
        "The reports cannot distinguish a smooth distribution from a few values; list the values if they are known.",
    )
