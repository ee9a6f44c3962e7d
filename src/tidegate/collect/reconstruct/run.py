"""The reconstruction: check the counts, choose the method, estimate, warn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tidegate.arrays import Floats, Positions
from tidegate.collect.reconstruct.bands import strict_band
from tidegate.collect.reconstruct.bank import FEWEST, Progress, bank
from tidegate.collect.reconstruct.categories import Inverse, inverted
from tidegate.collect.reconstruct.cells import Cells, Rows, cells
from tidegate.collect.reconstruct.channel import Channel, Dense
from tidegate.collect.reconstruct.em import Steps, bayes, em, em_smoothed
from tidegate.collect.reconstruct.features import FINE, expected_features, features, too_few_reports, unsettled
from tidegate.collect.reconstruct.fit import one_thread
from tidegate.collect.reconstruct.result import Reconstruction
from tidegate.errors import Unsupported, did_you_mean

STEPPING: dict[str, Callable[..., Steps]] = {"bayes": bayes, "em": em, "em-smoothed": em_smoothed}
METHODS = ("bank", *STEPPING, "inversion")


@one_thread
def reconstruct(
    counts: ArrayLike,
    channel: Channel | Floats,
    *,
    method: str = "bank",
    values: Sequence[int] | None = None,
    atoms: bool = False,
    widths: ArrayLike | None = None,
    progress: Progress | None = None,
) -> Reconstruction:
    """Estimate the distribution of the values from the counts of their randomized reports.

    `channel` is A[s, j], the probability of report s from value j. `values` lists the grid indexes that can have mass;
    `atoms` states that there are few, unknown ones. `widths` are those of unequal bins. `progress(done, of)` reports
    progress.

    Guarantee:
        The same counts give the same estimate; masses are not negative and sum to one. It reads counts of
        randomized reports alone, so it costs no privacy.

    Needs:
        Columns of the channel that sum to one. Reports that no value can give are left out.
    """
    channel = channel if not isinstance(channel, np.ndarray) else Dense(channel)
    reports, breadth = _checked(np.asarray(counts, np.float64), channel, widths)
    listed = None if values is None else _listed(values, channel.values)
    if method not in METHODS:
        raise Unsupported(f'Unknown method: "{method}".', did_you_mean(method, METHODS))
    if method in STEPPING:
        return _stepped(method, reports, channel, listed, breadth)
    if method == "inversion" or (channel.values if listed is None else listed.size) < FEWEST:
        return _inverted(reports, channel, listed)
    return _banked(cells(reports, channel, values=listed, widths=breadth), channel, atoms=atoms, progress=progress)


def _banked(gathered: Cells, channel: Channel, *, atoms: bool, progress: Progress | None) -> Reconstruction:
    total, estimate = gathered.data.total, bank(gathered, progress=progress)
    inner = channel if gathered.listed.size == gathered.grid else Dense(gathered.data.matrix)
    shown = features(inner, reports=total)
    said = expected_features(shown, reports=total, values=gathered.listed.size)
    masses = estimate.atoms if atoms else estimate.masses
    if shown < FINE and not atoms and gathered.listed.size == gathered.grid:
        said += unsettled(_strict_width(gathered, masses))
    if not atoms and gathered.listed.size == gathered.grid:
        said += too_few_reports(estimate.masses, estimate.atoms)
    name = "bank, atoms" if atoms else "bank"
    return Reconstruction(masses, name, total, shown, warnings=said, _bank=estimate, _cells=gathered)


def _strict_width(gathered: Cells, masses: Floats) -> float:
    size = gathered.centers.size
    points = np.tri(size)[size // 20 :: -(-size // 10)]
    rows = Rows(points, np.arange(len(points)))
    band = strict_band(gathered.data, gathered.gathered(masses), rows, rows, confidence=0.95)
    return float((band.high - band.low).mean())


def _stepped(
    method: str, counts: Floats, channel: Channel, listed: Positions | None, widths: Floats | None
) -> Reconstruction:
    """Run a published method on the whole grid, from the uniform distribution."""
    inner = channel if listed is None else channel.columns(listed)
    even = np.ones(inner.values) if widths is None or listed is not None else widths
    steps = STEPPING[method](counts, inner, start=even / even.sum())
    gathered = cells(counts, channel, values=listed, widths=widths)
    shown, total = features(inner, reports=counts.sum()), float(counts.sum())
    said = expected_features(shown, reports=total, values=inner.values)
    return Reconstruction(gathered.placed(steps.masses), method, total, shown, steps.steps, said, _cells=gathered)


def _inverted(counts: Floats, channel: Channel, listed: Positions | None) -> Reconstruction:
    gathered = cells(counts, channel, values=listed, widths=None)
    if gathered.merged:
        raise Unsupported(
            f"{gathered.listed.size:,} values are too many to invert: the errors would exceed the shares.",
            'Use method="bank", or shares() for categories.',
        )
    if np.linalg.matrix_rank(gathered.data.matrix) < gathered.listed.size:
        raise Unsupported(
            "These reports cannot be inverted: different distributions of the values give the same reports.",
            'Use method="bank" and the strict band, or less noise.',
        )
    inverse, total = inverted(gathered.data.counts, gathered.data.matrix), float(counts.sum())
    shown = features(Dense(gathered.data.matrix), reports=total)
    said = expected_features(shown, reports=total, values=gathered.listed.size)
    covariance = gathered.placed(gathered.placed(inverse.covariance).T)
    whole = Inverse(gathered.placed(inverse.raw), gathered.placed(inverse.masses), covariance)
    return Reconstruction(whole.masses, "inversion", total, shown, warnings=said, _inverse=whole, _cells=gathered)


def _checked(counts: Floats, channel: Channel, widths: ArrayLike | None) -> tuple[Floats, Floats | None]:
    if counts.shape != (channel.reports,):
        raise Unsupported(
            f"Counts of shape {counts.shape} do not fit a channel with {channel.reports:,} different reports.",
            "Count the reports on the grid of the channel.",
        )
    if not (np.isfinite(counts).all() and counts.min() >= 0):
        raise Unsupported("Counts must be finite and not negative.")
    counts = np.where(channel.forward(np.full(channel.values, 1 / channel.values)) > 0, counts, 0.0)
    if counts.sum() == 0:
        raise Unsupported("There is no possible report to reconstruct from.")
    if widths is None:
        return counts, None
    breadth = np.asarray(widths, np.float64)
    if breadth.shape != (channel.values,) or not (np.isfinite(breadth).all() and breadth.min() > 0):
        raise Unsupported(f"`widths` must be {channel.values:,} numbers above zero, one for each bin.")
    return counts, breadth


def _listed(values: Sequence[int], size: int) -> Positions:
    listed = np.unique(np.asarray(values, np.intp))
    if not listed.size or listed[0] < 0 or listed[-1] >= size:
        raise Unsupported(f"`values` must be grid indexes from 0 to {size - 1}.")
    return listed
