"""The charts of a collection: a reconstructed distribution with its band, and the reports as they were counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.charts import Axis, Band, Bar, Chart, Interval, Step, Table, numbers
from tidegate.exact import say
from tidegate.html.render import moment, percent

if TYPE_CHECKING:
    from tidegate.collect.result import Distribution

MOST_SHOWN = 40  # categories, the largest first


def chart(distribution: Distribution) -> Chart:
    """Return a chart of the raw reports, the reconstructed distribution, and its band; empty if there are too few answers."""
    if distribution.too_few:
        title = f"{distribution.attribute}: too few answers to say"
        return Chart(title, empty=distribution.too_few, height=60, notes=distribution.warnings)
    marks = _category_marks(distribution) if distribution.errors is not None else _number_marks(distribution)
    title = f"{distribution.finding}, from {distribution.reports:,} randomized reports"
    shares = Axis("share", low=0, format="percent")
    return Chart(title, marks[0], marks[1], shares, _table(distribution), height=260, notes=distribution.warnings)


def _number_marks(distribution: Distribution) -> tuple[tuple[Any, ...], Axis]:
    start, step = distribution.scale or (0.0, 1.0)
    shown = _reports_shown(distribution)
    raw_edges = numbers(
        start + step * (distribution.first + shown.start + np.arange(shown.stop - shown.start + 1) - 0.5)
    )
    edges = numbers(start + step * (np.arange(distribution.masses.size + 1) - 0.5))
    raw = numbers(distribution.raw[shown])
    marks: list[Any] = [Band("reports as received", raw_edges, (0.0,) * len(raw), raw, "quiet", steps=True)]
    if distribution.low is not None and distribution.high is not None:
        label = f"{say(100 * distribution.confidence)}% band"
        marks.append(Band(label, edges, numbers(distribution.low), numbers(distribution.high), steps=True))
    tips = tuple(
        f"{label}: {percent(mass)}"
        for label, mass in zip(distribution.labels, distribution.masses.tolist(), strict=True)
    )
    marks.append(Step(f"reconstructed ({distribution.method})", edges, numbers(distribution.masses), tips=tips))
    if distribution.scale is not None:
        return tuple(marks), Axis(distribution.attribute)
    names = _tick_names(distribution.labels)
    return tuple(marks), Axis(
        distribution.attribute, ticks=names, low=min(raw_edges[0], -0.5), high=max(raw_edges[-1], edges[-1])
    )


def _tick_names(labels: Sequence[str]) -> tuple[tuple[float, str], ...]:
    """Return at most eight labels of bins, so that they fit next to each other."""
    every = -(-len(labels) // 8)
    return tuple((float(index), labels[index]) for index in range(0, len(labels), every))


def _reports_shown(distribution: Distribution) -> slice:
    """Return the range of reports to show: all values, and beyond them while more than 0.1% of the reports remain."""
    below = np.cumsum(distribution.raw)
    start = min(-distribution.first, int(np.searchsorted(below, 0.0005)))
    end = max(distribution.masses.size - distribution.first, int(np.searchsorted(below, 0.9995)) + 1)
    return slice(max(0, start), min(distribution.raw.size, end))


def _category_marks(distribution: Distribution) -> tuple[tuple[Any, ...], Axis]:
    shown = np.arange(len(distribution.labels))
    if shown.size > MOST_SHOWN:
        shown = np.argsort(-distribution.masses, kind="stable")[:MOST_SHOWN]
    positions = numbers(range(shown.size))
    marks: list[Any] = [
        Bar("reports that contain it", positions, numbers(distribution.raw[shown]), "quiet", 0.36, -0.2),
        Bar("reconstructed", positions, numbers(distribution.masses[shown]), "accent", 0.36, 0.2),
    ]
    if distribution.low is not None and distribution.high is not None:
        label = f"{say(100 * distribution.confidence)}% interval"
        marks.append(
            Interval(label, positions, numbers(distribution.low[shown]), numbers(distribution.high[shown]), shift=0.2)
        )
    few = (
        f", the {MOST_SHOWN} most frequent of {len(distribution.labels):,}"
        if shown.size < len(distribution.labels)
        else ""
    )
    names = tuple(distribution.labels[index] for index in shown)
    return tuple(marks), Axis(f"{distribution.attribute}{few}", "category", names)


def _table(distribution: Distribution) -> Table:
    size = len(distribution.labels)
    raw = [
        float(distribution.raw[index - distribution.first])
        if 0 <= index - distribution.first < distribution.raw.size
        else 0.0
        for index in range(size)
    ]
    low, high = (
        [""] * size if ends is None else [percent(end) for end in ends.tolist()]
        for ends in (distribution.low, distribution.high)
    )
    masses = [percent(mass) for mass in distribution.masses.tolist()]
    rows = zip(distribution.labels, masses, low, high, map(percent, raw), strict=True)
    return Table((distribution.attribute, "share", "low", "high", "of the reports"), tuple(rows))


def counted_chart(batches: Sequence[tuple[str, int]]) -> Chart:
    """Return a chart of the total number of counted reports after each batch; batches are (time of the ledger entry, reports)."""
    if not batches:
        return Chart("No report has been counted yet", empty="No batch is complete yet.", height=60)
    times = [datetime.fromisoformat(at).timestamp() for at, _ in batches]
    totals = np.cumsum([reports for _, reports in batches]).tolist()
    span = max(times[-1] - times[0], 60.0)
    edges = (times[0] - 0.05 * span, *times, times[-1] + 0.05 * span)
    whole = "1 report was" if totals[-1] == 1 else f"{totals[-1]:,} reports were"
    batch_count = "1 batch" if len(batches) == 1 else f"{len(batches):,} batches"
    tips = ("", *(f"{moment(at)}: {total:,} reports" for (at, _), total in zip(batches, totals, strict=True)))
    ends = ((times[0], moment(batches[0][0])), (times[-1], moment(batches[-1][0])))
    return Chart(
        f"{whole} counted in {batch_count}, the last on {moment(batches[-1][0])} UTC",
        (Step("reports", edges, numbers([0, *totals]), tips=tips),),
        Axis(ticks=ends if times[-1] - times[0] > span / 2 else ends[-1:]),  # two dates at one position overlap
        Axis("reports", low=0, format="whole"),
        Table(
            ("counted at (UTC)", "reports in all"),
            tuple((moment(at), total) for (at, _), total in zip(batches, totals, strict=True)),
        ),
        height=120,
    )
