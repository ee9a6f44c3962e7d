"""The story: check the counts, choose the method, estimate, say what to keep in mind."""

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
from tidegate.collect.reconstruct.features import FINE, features, foretold, unsettled, untold
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
    """The distribution of the values, from the counts of their randomized reports.

    `channel` holds A[s, j], the chance of report s from value j. `values` lists the places on the grid that can hold
    mass at all; `atoms` says that there are few, unknown. `widths` are those of unequal bins. `progress(done, of)` is
    called as the work goes on.

    Guarantee  the same counts give the same estimate; masses are not negative and sum to one. It reads counts of
               randomized reports alone, so it costs no privacy.
    Needs      columns of the channel that sum to one. Reports that no value can give are left out.
    """
    channel = channel if not isinstance(channel, np.ndarray) else Dense(channel)
    reports, breadth = _checked(np.asarray(counts, np.float64), channel, widths)
    listed = None if values is None else _listed(values, channel.values)
    if method not in METHODS:
        raise Unsupported(f'no method is called "{method}".', did_you_mean(method, METHODS))
    if method in STEPPING:
        return _stepped(method, reports, channel, listed, breadth)
    if method == "inversion" or (channel.values if listed is None else listed.size) < FEWEST:
        return _inverted(reports, channel, listed)
    return _banked(cells(reports, channel, values=listed, widths=breadth), channel, atoms=atoms, progress=progress)


def _banked(found: Cells, channel: Channel, *, atoms: bool, progress: Progress | None) -> Reconstruction:
    total, estimate = found.data.total, bank(found, progress=progress)
    inner = channel if found.listed.size == found.grid else Dense(found.data.matrix)
    shown = features(inner, reports=total)
    said = foretold(shown, reports=total, values=found.listed.size)
    masses = estimate.atoms if atoms else estimate.masses
    if shown < FINE and not atoms and found.listed.size == found.grid:
        said += unsettled(_strict_width(found, masses))
    if not atoms and found.listed.size == found.grid:
        said += untold(estimate.masses, estimate.atoms)
    name = "bank, atoms" if atoms else "bank"
    return Reconstruction(masses, name, total, shown, warnings=said, _bank=estimate, _cells=found)


def _strict_width(found: Cells, masses: Floats) -> float:
    size = found.centres.size
    points = np.tri(size)[size // 20 :: -(-size // 10)]
    rows = Rows(points, np.arange(len(points)))
    band = strict_band(found.data, found.gathered(masses), rows, rows, confidence=0.95)
    return float((band.high - band.low).mean())


def _stepped(
    method: str, counts: Floats, channel: Channel, listed: Positions | None, widths: Floats | None
) -> Reconstruction:
    """The published methods, on the whole grid, from the even distribution."""
    inner = channel if listed is None else channel.columns(listed)
    even = np.ones(inner.values) if widths is None or listed is not None else widths
    found = STEPPING[method](counts, inner, start=even / even.sum())
    kept = cells(counts, channel, values=listed, widths=widths)
    shown, total = features(inner, reports=counts.sum()), float(counts.sum())
    said = foretold(shown, reports=total, values=inner.values)
    return Reconstruction(kept.placed(found.masses), method, total, shown, found.steps, said, _cells=kept)


def _inverted(counts: Floats, channel: Channel, listed: Positions | None) -> Reconstruction:
    kept = cells(counts, channel, values=listed, widths=None)
    if kept.merged:
        raise Unsupported(
            f"{kept.listed.size:,} values are too many to invert: the errors would drown the shares.",
            'Use method="bank", or shares() for categories.',
        )
    if np.linalg.matrix_rank(kept.data.matrix) < kept.listed.size:
        raise Unsupported(
            "these reports cannot be inverted: different distributions of the values give the same ones.",
            'Use method="bank" and the strict band, or ask for less noise.',
        )
    found, total = inverted(kept.data.counts, kept.data.matrix), float(counts.sum())
    shown = features(Dense(kept.data.matrix), reports=total)
    said = foretold(shown, reports=total, values=kept.listed.size)
    covariance = kept.placed(kept.placed(found.covariance).T)
    whole = Inverse(kept.placed(found.raw), kept.placed(found.masses), covariance)
    return Reconstruction(whole.masses, "inversion", total, shown, warnings=said, _inverse=whole, _cells=kept)


def _checked(counts: Floats, channel: Channel, widths: ArrayLike | None) -> tuple[Floats, Floats | None]:
    if counts.shape != (channel.reports,):
        raise Unsupported(
            f"counts of shape {counts.shape} do not fit a channel with {channel.reports:,} kinds of reports.",
            "Count the reports on the grid that the channel was made for.",
        )
    if not (np.isfinite(counts).all() and counts.min() >= 0):
        raise Unsupported("counts are numbers of reports: finite and not negative.")
    counts = np.where(channel.forward(np.full(channel.values, 1 / channel.values)) > 0, counts, 0.0)
    if counts.sum() == 0:
        raise Unsupported("there is nothing to reconstruct from: no report that a value can give has come in yet.")
    if widths is None:
        return counts, None
    breadth = np.asarray(widths, np.float64)
    if breadth.shape != (channel.values,) or not (np.isfinite(breadth).all() and breadth.min() > 0):
        raise Unsupported(f"widths are needed for {channel.values:,} bins, each above zero.")
    return counts, breadth


def _listed(values: Sequence[int], size: int) -> Positions:
    listed = np.unique(np.asarray(values, np.intp))
    if not listed.size or listed[0] < 0 or listed[-1] >= size:
        raise Unsupported(f"the listed values must be places 0 to {size - 1} on the grid.")
    return listed
