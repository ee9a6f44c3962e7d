"""A chart of how the time grows: a panel for each axis, ticks at the measured sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from tidegate_papers.panels import ACCENT, INK, QUIET

SALT = "tidegate"  # equal charts are equal files
A_DECADE = 10.0  # at least a decade of seconds, so that slow growth looks flat
Point = dict[str, Any]


def draw_growth(records: Iterable[Point], path: Path) -> None:
    """Draw one panel for each axis, with logarithmic scales; size zero is one decade before the first size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = SALT
    axes = [list(group) for _, group in groupby((r for r in records if "axis" in r), key=lambda r: r["axis"])]
    if not axes:
        return
    panel_rows = -(-len(axes) // 3)
    figure = Figure(figsize=(10, 3.1 * panel_rows), layout="constrained", facecolor="white")
    for number, points in enumerate(axes, 1):
        _panel(figure.add_subplot(panel_rows, 3, number), points)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _panel(panel: Any, points: list[Point]) -> None:
    positions = [_position(point["size"], points) for point in points]
    for name, color, above in zip(points[0]["seconds"], (ACCENT, QUIET), (8, -15), strict=False):
        seconds = [point["seconds"][name] for point in points]
        panel.plot(positions, seconds, color=color, marker="o", markersize=4, linewidth=2)
        if len(points[0]["seconds"]) > 1:
            at = (positions[0], seconds[0])
            panel.annotate(name, at, xytext=(-4, above), textcoords="offset points", fontsize=8, color=INK)
    panel.set_yscale("log")
    panel.set_ylim(*_range([value for point in points for value in point["seconds"].values()]))
    panel.yaxis.set_major_formatter(lambda value, _: in_words(value))
    panel.yaxis.set_minor_formatter(lambda value, _: "")
    panel.set_xticks(positions, [short(point["size"]) for point in points])
    panel.set_xlabel(points[0]["axis"], color=INK)
    panel.set_title(f"{points[0]['what']}\n{growth_text(points)}", fontsize=8.5, color=INK, loc="left")
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.12)
    panel.grid(axis="y", alpha=0.25)


def growth_text(points: list[Point]) -> str:
    """Return how much the size grows and how much longer it takes."""
    ours = [next(iter(point["seconds"].values())) for point in points]
    first = next(index for index, point in enumerate(points) if point["size"])
    more, longer = points[-1]["size"] / points[first]["size"], ours[-1] / ours[first]
    return f"{more:,.0f} times the {points[0]['axis']}: {longer:.2g} times as long"


def short(size: int) -> str:
    """Return 100000 as 100k."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size:,}"


def in_words(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


def _position(size: int, points: list[Point]) -> float:
    sizes = [point["size"] for point in points if point["size"]]
    return math.log10(size) if size else math.log10(sizes[0]) - 1


def _range(seconds: list[float]) -> tuple[float, float]:
    low, high = min(seconds) / 1.6, max(seconds) * 2.2
    wide = max(1.0, math.sqrt(A_DECADE * low / high))
    return low / wide, high * wide
