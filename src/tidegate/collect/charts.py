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


def chart(found: Distribution) -> Chart:
    """Return the reports as they are, the distribution reconstructed from them, and how sure it is."""
    drawn = _category_marks(found) if found.errors is not None else _number_marks(found)
    title = f"{found.finding}, from {found.reports:,} randomized reports"
    shares = Axis("share", low=0, format="percent")
    return Chart(title, drawn[0], drawn[1], shares, _table(found), height=260, notes=found.warnings)


def _number_marks(found: Distribution) -> tuple[tuple[Any, ...], Axis]:
    start, step = found.scale or (0.0, 1.0)
    shown = _reports_shown(found)
    raw_edges = numbers(start + step * (found.first + shown.start + np.arange(shown.stop - shown.start + 1) - 0.5))
    edges = numbers(start + step * (np.arange(found.masses.size + 1) - 0.5))
    raw = numbers(found.raw[shown])
    marks: list[Any] = [Band("reports as received", raw_edges, (0.0,) * len(raw), raw, "quiet", steps=True)]
    if found.low is not None and found.high is not None:
        label = f"{say(100 * found.confidence)}% band"
        marks.append(Band(label, edges, numbers(found.low), numbers(found.high), steps=True))
    tips = tuple(f"{label}: {percent(mass)}" for label, mass in zip(found.labels, found.masses.tolist(), strict=True))
    marks.append(Step(f"reconstructed ({found.method})", edges, numbers(found.masses), tips=tips))
    if found.scale is not None:
        return tuple(marks), Axis(found.attribute)
    names = _tick_names(found.labels)
    return tuple(marks), Axis(
        found.attribute, ticks=names, low=min(raw_edges[0], -0.5), high=max(raw_edges[-1], edges[-1])
    )


def _tick_names(labels: Sequence[str]) -> tuple[tuple[float, str], ...]:
    """Return at most eight labels of bins, so that they fit beside each other."""
    every = -(-len(labels) // 8)
    return tuple((float(index), labels[index]) for index in range(0, len(labels), every))


def _reports_shown(found: Distribution) -> slice:
    """The reports from the first value to the last, and farther out where more than one in a thousand are."""
    below = np.cumsum(found.raw)
    start = min(-found.first, int(np.searchsorted(below, 0.0005)))
    end = max(found.masses.size - found.first, int(np.searchsorted(below, 0.9995)) + 1)
    return slice(max(0, start), min(found.raw.size, end))


def _category_marks(found: Distribution) -> tuple[tuple[Any, ...], Axis]:
    shown = np.arange(len(found.labels))
    if shown.size > MOST_SHOWN:
        shown = np.argsort(-found.masses, kind="stable")[:MOST_SHOWN]
    places = numbers(range(shown.size))
    marks: list[Any] = [
        Bar("reports that contain it", places, numbers(found.raw[shown]), "quiet", 0.36, -0.2),
        Bar("reconstructed", places, numbers(found.masses[shown]), "accent", 0.36, 0.2),
    ]
    if found.low is not None and found.high is not None:
        label = f"{say(100 * found.confidence)}% interval"
        marks.append(Interval(label, places, numbers(found.low[shown]), numbers(found.high[shown]), shift=0.2))
    few = f", the {MOST_SHOWN} most frequent of {len(found.labels):,}" if shown.size < len(found.labels) else ""
    names = tuple(found.labels[index] for index in shown)
    return tuple(marks), Axis(f"{found.attribute}{few}", "category", names)


def _table(found: Distribution) -> Table:
    size = len(found.labels)
    raw = [
        float(found.raw[index - found.first]) if 0 <= index - found.first < found.raw.size else 0.0
        for index in range(size)
    ]
    low, high = (
        [""] * size if ends is None else [percent(end) for end in ends.tolist()] for ends in (found.low, found.high)
    )
    masses = [percent(mass) for mass in found.masses.tolist()]
    rows = zip(found.labels, masses, low, high, map(percent, raw), strict=True)
    return Table((found.attribute, "share", "low", "high", "of the reports"), tuple(rows))


def counted_chart(batches: Sequence[tuple[str, int]]) -> Chart:
    """Return how many reports were counted in all after each batch; batches are (time of the ledger entry, reports)."""
    if not batches:
        return Chart("No report has been counted yet", empty="No batch is complete yet.", height=60)
    times = [datetime.fromisoformat(at).timestamp() for at, _ in batches]
    totals = np.cumsum([reports for _, reports in batches]).tolist()
    span = max(times[-1] - times[0], 60.0)
    edges = (times[0] - 0.05 * span, *times, times[-1] + 0.05 * span)
    whole = "1 report was" if totals[-1] == 1 else f"{totals[-1]:,} reports were"
    many = "1 batch" if len(batches) == 1 else f"{len(batches):,} batches"
    tips = ("", *(f"{moment(at)}: {total:,} reports" for (at, _), total in zip(batches, totals, strict=True)))
    ends = ((times[0], moment(batches[0][0])), (times[-1], moment(batches[-1][0])))
    return Chart(
        f"{whole} counted in {many}, the last on {moment(batches[-1][0])} UTC",
        (Step("reports", edges, numbers([0, *totals]), tips=tips),),
        Axis(ticks=ends[-1:] if times[-1] == times[0] else ends),
        Axis("reports", low=0, format="whole"),
        Table(
            ("counted at (UTC)", "reports in all"),
            tuple((moment(at), total) for (at, _), total in zip(batches, totals, strict=True)),
        ),
        height=120,
    )
