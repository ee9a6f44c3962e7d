"""Charts of a release: exposure against its critical value, released shares, distributions compared with the baseline.

Titles state the finding. A measure below its critical value is never rounded up to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.charts import Axis, Bar, Chart, Line, Rule, Step, Table, numbers
from tidegate.charts.chart import Dash
from tidegate.release.plan import Plan
from tidegate.release.tracks import Track
from tidegate.risk.exposure import kullback_leibler

PANEL = 130  # pixels
ROW = 30
FEW = 3  # points that a line alone would hardly show
DASHES: tuple[Dash, ...] = ("solid", "dotted", "dashed")


def exposure(tracks: Sequence[Track], *, targets: Sequence[str], title: str = "") -> Chart:
    """Return the measure of one test below its critical value as records are released, a panel for each target."""
    panels = tuple(_exposure_panel(track, targets) for track in tracks)
    return Chart(title or _exposure_title(tracks, targets), panels=panels)


def overview(tracks: Sequence[Track], *, targets: Sequence[str]) -> Chart:
    """Return every test of a desk in one chart, as shares of its critical value.

    The one that is nearest to it now has the accent color; the others are muted.
    """
    if not tracks:
        return Chart("No records released yet, so there is no exposure", empty="No records released yet.", height=80)
    nearest = max(tracks, key=lambda track: track.latest)
    lines = tuple(
        Line(
            track_name(track, targets),
            numbers(track.records),
            numbers(_parts(track)),
            "accent" if track is nearest else "quiet",
            "solid" if track is nearest else DASHES[index % len(DASHES)],
            dots=track.records.size <= FEW,
        )
        for index, track in enumerate(sorted(tracks, key=lambda track: track is nearest))
    )
    return Chart(
        _overview_title(tracks, targets),
        (*lines, Rule("critical value", (1.0,), dash="dashed")),
        Axis("released records (of the group)", "log"),
        Axis(
            "share of the critical value",
            low=0,
            high=max(1.1, 1.05 * max(track.closest for track in tracks)),
            format="percent",
        ),
    )


def single(track: Track, *, targets: Sequence[str]) -> Chart:
    """Return one test of a desk, in the units of its measure."""
    panel = _exposure_panel(track, targets, height=240)
    return Chart(_overview_title([track], targets), panel.marks, panel.x, panel.y, height=240, empty=panel.empty)


def shares(
    requested: Sequence[int],
    released: Sequence[int],
    *,
    targets: Sequence[str],
    known: Sequence[float] = (),
    title: str = "",
) -> Chart:
    """Return the released part of each target's requested records. `known` are the public shares of the targets."""
    rows, whole = numbers(range(len(targets))), max(sum(released), 1)
    parts = [count / total if total else None for total, count in zip(requested, released, strict=True)]
    tips = tuple(
        f"{name}: {count:,} of {total:,} released"
        for name, total, count in zip(targets, requested, released, strict=True)
    )
    marks: list[Bar | Rule] = [
        Bar("requested", rows, numbers(requested), "quiet", tips=tips),
        Bar("released", rows, numbers(released), tips=tips),
    ]
    columns = ["group", "requested", "released", "released of requested"]
    table = [
        [name, total, count, "" if part is None else f"{part:.1%}"]
        for name, total, count, part in zip(targets, requested, released, parts, strict=True)
    ]
    if known:
        marks.append(Rule("expected from its known share", numbers(share * sum(requested) for share in known), rows))
        columns += ["known share of all records", "share of released records"]
        for row, share, count in zip(table, known, released, strict=True):
            row += [f"{share:.0%}", f"{count / whole:.0%}"]
    return Chart(
        title or _shares_title(targets, parts),
        tuple(marks),
        Axis(kind="category", categories=tuple(targets)),
        Axis("records", low=0, format="whole"),
        Table(tuple(columns), tuple(tuple(row) for row in table)),
        horizontal=True,
        height=ROW * len(targets),
    )


def distributions(
    plan: Plan,
    counts: Ints,
    *,
    values: Sequence[str],
    targets: Sequence[str],
    before: Ints | None = None,
    bars: str = "released",
    title: str = "",
) -> Chart:
    """Return how each target's records are distributed over the values, compared with the baseline and with `before`."""
    parts = [_shares_of(part) for part in (counts, before) if part is not None]
    top = 1.1 * max(float(plan.floats.max()), *(float(part.max()) for part in parts))
    panels = tuple(
        _distribution_panel(
            plan, counts, before, target, values, f"{name}, {int(counts[:, target].sum()):,} records", bars, top
        )
        for target, name in enumerate(targets)
    )
    return Chart(title or _distribution_title(plan, counts, before, targets), panels=panels)


def share_text(part: float) -> str:
    """Return a share of the critical value; one below 1 is never rounded up to the whole."""
    return "more than 99.9%" if 0.999 < part < 1 else f"{part:.1%}"


def _exposure_panel(track: Track, targets: Sequence[str], *, height: int = PANEL) -> Chart:
    tested = np.isfinite(track.critical)
    records, values, critical = track.records[tested], track.values[tested], track.critical[tested]
    name = "" if track.target is None else targets[track.target]
    if not critical.size:
        number = int(track.records[-1]) if track.records.size else 0
        return Chart(name, empty=f"{number:,} records, too few to test", height=height)
    wide = bool(critical.max() > 10 * critical.min() > 0)  # over decades: a logarithmic axis
    axis = Axis(track.measure, "log", low=float(critical.min()) / 6) if wide else Axis(track.measure, low=0)
    return Chart(
        name,
        (
            Line("exposure", numbers(records), numbers(values)),
            Line("critical value", numbers(records), numbers(critical), "limit", "dashed"),
        ),
        Axis(f"released records{f' of {name}' if name else ''}", "log", low=10.0 ** math.floor(math.log10(records[0]))),
        axis,
        height=height,
    )


def _exposure_title(tracks: Sequence[Track], targets: Sequence[str]) -> str:
    worst = max(tracks, key=lambda track: track.closest)
    whose = "" if worst.target is None else f" ({targets[worst.target]})"
    name = worst.measure.partition(" (")[0]
    name = name[0].upper() + name[1:]
    if worst.closest >= 1:
        return f"{name} exceeded its critical value{whose}"
    return f"{name} stays below its critical value; it reached {share_text(worst.closest)} of it{whose}"


def _overview_title(tracks: Sequence[Track], targets: Sequence[str]) -> str:
    worst = max(tracks, key=lambda track: track.closest)
    if worst.closest >= 1:
        return f"A promise is broken: exposure reached {worst.closest:.0%} of its critical value"
    if not any(np.isfinite(track.critical).any() for track in tracks):
        return "Too few records have been released to test"
    if len(tracks) == 1:
        return f"Exposure stays below its critical value: {share_text(worst.closest)} of it at most"
    nearest = max(tracks, key=lambda track: track.latest)
    return f"Exposure stays below its critical value; nearest to it now is {track_name(nearest, targets)}, at {share_text(nearest.latest)}"


def track_name(track: Track, targets: Sequence[str]) -> str:
    """Return the name of a track: its test, and its target if it has one."""
    return track.test if track.target is None else f"{track.test}, {targets[track.target]}"


def _parts(track: Track) -> list[float | None]:
    """Return a measure as shares of its critical value; None where there are too few records to test."""
    pairs = zip(track.values.tolist(), track.critical.tolist(), strict=True)
    return [value / critical if math.isfinite(critical) and critical > 0 else None for value, critical in pairs]


def _shares_title(targets: Sequence[str], parts: Sequence[float | None]) -> str:
    known = [(part, name) for part, name in zip(parts, targets, strict=True) if part is not None]
    if not known:
        return "No records requested yet"
    low, high = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    if low[0] == 1:
        return "All requested records are released"
    if low[1] == high[1]:
        return f"Of {low[1]}, {_below(low[0])} of the requested records are released"
    return f"Of {low[1]}, {_below(low[0])} of the requested records are released, of {high[1]} {_below(high[0])}"


def _below(part: float) -> str:
    """Return a share in whole percent; less than 1 is never rounded up to 100%."""
    return f"{min(part, 0.99) if part < 1 else part:.0%}"


def _shares_of(counts: Ints) -> Floats:
    totals = np.maximum(counts.sum(axis=0), 1e-12)
    return np.asarray(counts / totals)


def _distribution_title(plan: Plan, counts: Ints, before: Ints | None, targets: Sequence[str]) -> str:
    now = np.nan_to_num(kullback_leibler(counts, plan.floats))
    if before is None:
        worst = int(now.argmax())
        return f"{targets[worst]} is farthest from the baseline: {now[worst]:.2g} bits"
    then = np.nan_to_num(kullback_leibler(before, plan.floats))
    worst = int(then.argmax())
    return f"{targets[worst]} is {then[worst]:.2g} bits from the baseline; its released records, {now[worst]:.2g} bits"


def _distribution_panel(
    plan: Plan,
    counts: Ints,
    before: Ints | None,
    target: int,
    values: Sequence[str],
    title: str,
    bars: str,
    top: float,
) -> Chart:
    positions = numbers(range(len(values)))
    edges = numbers(np.arange(len(values) + 1) - 0.5)
    marks: list[Bar | Step | Line] = [
        Bar(bars, positions, numbers(_shares_of(counts)[:, target])),
        Step("baseline", edges, numbers(plan.floats), "ink"),
    ]
    if before is not None:
        marks.append(
            Line("before", positions, numbers(_shares_of(before)[:, target]), "limit", dots=True, joined=False)
        )
    axis = Axis(kind="category", categories=tuple(values))
    return Chart(title, tuple(marks), axis, Axis("share of records", low=0, high=top, format="percent"), height=PANEL)
