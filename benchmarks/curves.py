"""How the time grows, as one picture: a panel for each axis, ticks where something was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from tidegate_papers.panels import ACCENT, INK, QUIET

SALT = "tidegate"  # the same picture is the same file
A_DECADE = 10.0  # of seconds at least: what hardly grows looks flat
Point = dict[str, Any]


def draw_growth(records: Iterable[Point], place: Path) -> None:
    """One panel for each axis, both scales logarithmic; zero stands a step before the first size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = SALT
    axes = [list(found) for _, found in groupby((r for r in records if "axis" in r), key=lambda r: r["axis"])]
    if not axes:
        return
    down = -(-len(axes) // 3)
    figure = Figure(figsize=(10, 3.1 * down), layout="constrained", facecolor="white")
    for place_of, found in enumerate(axes, 1):
        _panel(figure.add_subplot(down, 3, place_of), found)
    place.parent.mkdir(exist_ok=True)
    figure.savefig(place, metadata={"Date": None})


def _panel(panel: Any, found: list[Point]) -> None:
    places = [_place(one["size"], found) for one in found]
    for name, colour, above in zip(found[0]["seconds"], (ACCENT, QUIET), (8, -15), strict=False):
        seconds = [one["seconds"][name] for one in found]
        panel.plot(places, seconds, color=colour, marker="o", markersize=4, linewidth=2)
        if len(found[0]["seconds"]) > 1:
            at = (places[0], seconds[0])
            panel.annotate(name, at, xytext=(-4, above), textcoords="offset points", fontsize=8, color=INK)
    panel.set_yscale("log")
    panel.set_ylim(*_range([value for one in found for value in one["seconds"].values()]))
    panel.yaxis.set_major_formatter(lambda value, _: in_words(value))
    panel.yaxis.set_minor_formatter(lambda value, _: "")
    panel.set_xticks(places, [short(one["size"]) for one in found])
    panel.set_xlabel(found[0]["axis"], color=INK)
    panel.set_title(f"{found[0]['what']}\n{told(found)}", fontsize=8.5, color=INK, loc="left")
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.12)
    panel.grid(axis="y", alpha=0.25)


def told(found: list[Point]) -> str:
    """What came of it: how many times as much of the one, how many times as long."""
    ours = [next(iter(one["seconds"].values())) for one in found]
    first = next(place for place, one in enumerate(found) if one["size"])
    more, longer = found[-1]["size"] / found[first]["size"], ours[-1] / ours[first]
    return f"{more:,.0f} times the {found[0]['axis']}: {longer:.2g} times as long"


def short(size: int) -> str:
    """100000 as 100k."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size:,}"


def in_words(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


def _place(size: int, found: list[Point]) -> float:
    sizes = [one["size"] for one in found if one["size"]]
    return math.log10(size) if size else math.log10(sizes[0]) - 1


def _range(seconds: list[float]) -> tuple[float, float]:
    low, high = min(seconds) / 1.6, max(seconds) * 2.2
    wide = max(1.0, math.sqrt(A_DECADE * low / high))
    return low / wide, high * wide
