"""Figures that the papers share: exposure against its critical value, shares, distributions, fitting the baseline.

Every function returns a matplotlib figure; `save` writes it as PNG or SVG. Titles state the finding. Two colors that people
with any color vision can distinguish, and a dash for lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.release.plan import Plan
from tidegate.release.tracks import Track
from tidegate.risk.exposure import fit_baseline, kullback_leibler

ACCENT, LIMIT, QUIET, INK = "#1f6f8b", "#d55e00", "#c3ccd1", "#333333"


def exposure(tracks: Sequence[Track], *, targets: Sequence[str], title: str = "") -> Any:
    """Plot the tracks of one test: the measure and its critical value as records are released, a panel per target."""
    columns = min(len(tracks), 3)
    figure, panels = canvas(-(-len(tracks) // columns), columns, title or _exposure_title(tracks, targets), height=2.6)
    for axes, track in zip(panels, tracks, strict=False):
        _exposure(axes, track, targets)
    for empty in panels[len(tracks) :]:
        empty.axis("off")
    _key(panels[len(tracks)] if len(tracks) < len(panels) else panels[0], *panels[0].get_legend_handles_labels())
    return figure


def shares(requested: Sequence[int], released: Sequence[int], *, targets: Sequence[str], title: str = "") -> Any:
    """Plot how many of each target's records were released."""
    parts = np.array(released) / np.maximum(requested, 1)
    low, high = int(parts.argmin()), int(parts.argmax())
    finding = f"Of {targets[low]} {parts[low]:.0%} left, of {targets[high]} {parts[high]:.0%}"
    figure, (axes,) = canvas(1, 1, title or finding, height=0.9 + 0.34 * len(targets), width=7.5)
    places = np.arange(len(targets))
    axes.barh(places, requested, 0.68, color=QUIET, label="asked for")
    axes.barh(places, released, 0.68, color=ACCENT, label="released")
    for index, (part, whole) in enumerate(zip(parts, requested, strict=True)):
        axes.text(whole, index, f" {part:.1%}", va="center", fontsize=8.5, color=INK)
    axes.set_yticks(places, targets)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("records", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    return figure


def distributions(
    plan: Plan,
    counts: Ints,
    *,
    values: Sequence[str],
    targets: Sequence[str],
    before: Ints | None = None,
    bars: str = "released",
    title: str = "",
) -> Any:
    """Plot how each target's records are distributed over the values, beside the baseline; `before`: all records."""
    columns = min(len(targets), 3)
    figure, panels = canvas(
        -(-len(targets) // columns), columns, title or _distribution_title(plan, counts, before, targets), height=2.7
    )
    tops = [
        _distribution_panel(axes, plan, counts, before, y, values, bars)
        for y, axes in enumerate(panels[: len(targets)])
    ]
    for axes, name, column in zip(panels, targets, counts.T, strict=False):
        axes.set_ylim(0, 1.1 * max(tops))
        axes.set_title(f"{name}, {int(column.sum()):,} records", loc="left", fontsize=10, color=INK)
    for empty in panels[len(targets) :]:
        empty.axis("off")
    _key(panels[len(targets)] if len(targets) < len(panels) else panels[0], *panels[0].get_legend_handles_labels())
    return figure


def fitting(
    plan: Plan,
    counts: Ints,
    released: Ints,
    *,
    target: int,
    values: Sequence[str],
    targets: Sequence[str],
    title: str = "",
) -> Any:
    """Plot what would be released if every target had to fit the baseline exactly, beside what the tests release."""
    fits, left = fit_baseline(counts, plan.floats), released.sum(axis=0)
    gain = left.sum() / math.fsum(fits)
    finding = (
        f"Under {' and '.join(plan.promise.tests)} {gain:.1f} times as many records leave as fit the baseline exactly"
    )
    figure, (first, every) = canvas(1, 2, title or finding, height=3.4)
    places = np.arange(len(values))
    first.bar(places, counts[:, target], 0.8, color=QUIET, label=f"records of {targets[target]}")
    first.bar(places, fits[target] * plan.floats, 0.8, color=ACCENT, label="fit the baseline")
    first.set_xticks(places, values, rotation=45, ha="right")
    first.set_ylabel("records", fontsize=9, color=INK)
    narrowest = int((counts[:, target] / plan.floats).argmin())
    first.set_title(
        f"{targets[target]}: {math.floor(fits[target]):,} of {counts[:, target].sum():,}; {values[narrowest]} sets the limit",
        loc="left",
        fontsize=10,
        color=INK,
    )
    first.legend(frameon=False, fontsize=8.5)
    _side_by_side(every, counts.sum(axis=0), fits, left, targets)
    return figure


def save(figure: Any, path: Path) -> Path:
    """Write a figure; the suffix selects PNG or SVG."""
    figure.savefig(path, dpi=150)
    return path


def canvas(rows: int, columns: int, title: str, *, height: float = 2.7, width: float = 10.0) -> tuple[Any, list[Any]]:
    """Return an empty figure with a title and light axes."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    size = (width, height * rows + 0.6)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1), facecolor="white")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, color=INK)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(QUIET)
        axes.tick_params(colors=INK, labelsize=8.5)
    return figure, panels


def _exposure(axes: Any, track: Track, targets: Sequence[str]) -> None:
    shown = np.isfinite(track.critical)
    records, values, critical = track.records[shown], track.values[shown], track.critical[shown]
    wide = bool(critical.size) and critical.max() > 10 * critical.min() > 0  # use a logarithmic axis over decades
    axes.plot(records, values, color=ACCENT, linewidth=2.2, label="exposure")
    axes.plot(
        records,
        critical,
        color=LIMIT,
        linewidth=1.3,
        linestyle=(0, (4, 2)),
        drawstyle="default" if wide else "steps-post",
        label="critical value",
    )
    if wide:
        axes.set_yscale("log")
        axes.set_ylim(bottom=critical.min() / 6)
    _count_axis(axes, records)
    whose = "" if track.target is None else f" of {targets[track.target]}"
    axes.set_xlabel(f"released records{whose}", fontsize=9, color=INK)
    axes.set_ylabel(track.measure.replace(" (", "\n(").replace("cumulative ", "cumulative\n"), fontsize=9, color=INK)
    if not critical.size:
        _mark_untested(axes, track)
    elif not wide:
        axes.set_ylim(0, 1.12 * critical.max())


def _count_axis(axes: Any, records: Any) -> None:
    """Use a logarithmic axis of integers, starting at a power of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    if records.size:
        axes.set_xlim(10 ** math.floor(math.log10(records[0])) * 0.9, records[-1] * 1.2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _mark_untested(axes: Any, track: Track) -> None:
    words = f"{int(track.records[-1]):,} records,\ntoo few to be tested"
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", fontsize=9, color="#777777")
    axes.set_xticks([], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_yticks([])


def _exposure_title(tracks: Sequence[Track], targets: Sequence[str]) -> str:
    worst = max(tracks, key=lambda track: track.closest)
    whose = "" if worst.target is None else f" ({targets[worst.target]})"
    name = worst.measure.partition(" (")[0]
    name = name[0].upper() + name[1:]
    if worst.closest >= 1:
        return f"{name} went beyond its critical value{whose}"
    return f"{name} stays below its critical value; it came to {_below(worst.closest)} of it{whose}"


def _below(part: float) -> str:
    """Format a part below 1 in percent, never rounded up to the whole."""
    return "more than 99.9%" if part > 0.999 else f"{part:.1%}"


def _distribution_title(plan: Plan, counts: Ints, before: Ints | None, targets: Sequence[str]) -> str:
    now = np.nan_to_num(kullback_leibler(counts, plan.floats))
    if before is None:
        worst = int(now.argmax())
        return f"{targets[worst]} is farthest from the baseline: {now[worst]:.2g} bits"
    then = np.nan_to_num(kullback_leibler(before, plan.floats))
    worst = int(then.argmax())
    return (
        f"{targets[worst]} is {then[worst]:.2g} bits from the baseline; what is released of it, {now[worst]:.2g} bits"
    )


def _distribution_panel(
    axes: Any, plan: Plan, counts: Ints, before: Ints | None, y: int, values: Sequence[str], bars: str
) -> float:
    """Plot one target and return the height of the tallest bar."""
    places = np.arange(len(values))
    share = 100 * counts[:, y] / max(int(counts[:, y].sum()), 1)
    then = share if before is None else 100 * before[:, y] / max(int(before[:, y].sum()), 1)
    axes.bar(places, share, 0.8, color=ACCENT, alpha=0.85, label=bars)
    axes.stairs(100 * plan.floats, np.arange(len(values) + 1) - 0.5, color=INK, linewidth=1.4, label="baseline")
    if before is not None:
        axes.plot(places, then, "D", color=LIMIT, markersize=4.5, label="before")
    axes.set_xticks(places, values, rotation=60, ha="right", fontsize=7.5)
    axes.set_ylabel("share of records (%)", fontsize=9, color=INK)
    return float(max(share.max(), then.max(), 100 * plan.floats.max()))


def _side_by_side(axes: Any, totals: Any, fits: list[float], left: Any, targets: Sequence[str]) -> None:
    places = np.arange(len(targets))
    series = [("all", totals, QUIET), ("released under the tests", left, LIMIT), ("fit the baseline", fits, ACCENT)]
    for shift, (label, numbers, color) in enumerate(series):
        axes.bar(places + 0.27 * (shift - 1), numbers, 0.26, color=color, label=label)
    axes.set_xticks(places, targets)
    axes.set_ylabel("records", fontsize=9, color=INK)
    axes.margins(y=0.22)
    axes.set_title("every target", loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=8.5, ncols=3, loc="upper left", columnspacing=1.2, handlelength=1.2)


def _key(axes: Any, handles: Any, labels: Any) -> None:
    """Place the legend in an empty panel if there is one."""
    axes.legend(handles, labels, frameon=False, fontsize=9, loc="best" if axes.axison else "upper left")
