"""A distribution as a picture: the raw reports, what was reconstructed from them, and how sure that is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import TidegateError, Unsupported
from tidegate.exact import say

if TYPE_CHECKING:
    from tidegate.collect.result import Distribution

ACCENT, QUIET, INK = "#1f6f8b", "#c3ccd1", "#333333"
MOST_SHOWN = 40  # categories, the largest first
ENDINGS = (".png", ".svg", ".pdf")


def draw(found: Distribution) -> Any:
    """A matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(QUIET)
    axes.tick_params(colors=INK, labelsize=9)
    _categories(axes, found) if found.errors is not None else _numbers(axes, found)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("share (%)", fontsize=9.5, color=INK)
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    figure.suptitle(title(found), x=0.01, ha="left", fontsize=12, color=INK)
    if found.warnings:
        figure.supxlabel("\n".join(_folded(found.warnings)), x=0.01, ha="left", fontsize=8.5, color="#8a4b00")
    return figure


def title(found: Distribution) -> str:
    """What was found, in a line."""
    return f"{found.finding}, from {found.reports:,} randomized reports"


def _numbers(axes: Any, found: Distribution) -> None:
    start, step = found.scale or (0.0, 1.0)
    kept = _worth_showing(found)
    raw = start + step * (found.first + kept.start + np.arange(kept.stop - kept.start + 1) - 0.5)
    edges = start + step * (np.arange(found.masses.size + 1) - 0.5)
    axes.stairs(100 * found.raw[kept], raw, fill=True, color=QUIET, alpha=0.6, label="reports, as they came")
    if found.low is not None and found.high is not None:
        label = f"{say(100 * found.confidence)}% band"
        axes.stairs(100 * found.high, edges, baseline=100 * found.low, fill=True, color=ACCENT, alpha=0.28, label=label)
    axes.stairs(100 * found.raw[kept], raw, baseline=None, color="#8d999f", linewidth=1)
    axes.stairs(
        100 * found.masses, edges, baseline=None, color=ACCENT, linewidth=1.8, label=f"reconstructed ({found.method})"
    )
    axes.margins(x=0.01)
    axes.set_xlabel(found.attribute, fontsize=9.5, color=INK)
    if found.scale is None:
        _name(axes, np.arange(len(found.labels)), found.labels)


def _worth_showing(found: Distribution) -> slice:
    """The reports from the first value to the last, and further out where one in a thousand lies."""
    below = np.cumsum(found.raw)
    start = min(-found.first, int(np.searchsorted(below, 0.0005)))
    end = max(found.masses.size - found.first, int(np.searchsorted(below, 0.9995)) + 1)
    return slice(max(0, start), min(found.raw.size, end))


def _categories(axes: Any, found: Distribution) -> None:
    shown = np.arange(len(found.labels))
    if shown.size > MOST_SHOWN:
        shown = np.argsort(-found.masses, kind="stable")[:MOST_SHOWN]
    places = np.arange(shown.size)
    masses = 100 * found.masses[shown]
    axes.bar(places - 0.2, 100 * found.raw[shown], 0.36, color=QUIET, label="reports that hold it")
    axes.bar(places + 0.2, masses, 0.36, color=ACCENT, label="reconstructed")
    if found.low is not None and found.high is not None:
        ends = np.abs([masses - 100 * found.low[shown], 100 * found.high[shown] - masses])
        label = f"{say(100 * found.confidence)}% interval"
        axes.errorbar(places + 0.2, masses, yerr=ends, fmt="none", ecolor=INK, capsize=3, elinewidth=1, label=label)
    few = f", the {MOST_SHOWN} most frequent of {len(found.labels):,}" if shown.size < len(found.labels) else ""
    axes.set_xlabel(f"{found.attribute}{few}", fontsize=9.5, color=INK)
    _name(axes, places, [found.labels[place] for place in shown])


def _name(axes: Any, places: Any, labels: Any) -> None:
    every = -(-len(labels) // MOST_SHOWN)
    names = [label if len(label) <= 24 else f"{label[:23]}…" for label in labels]
    long = len(labels) > 12 or max(map(len, names)) * len(names) > 90
    axes.set_xticks(places[::every], names[::every], rotation=50 if long else 0, ha="right" if long else "center")


def _folded(warnings: tuple[str, ...], width: int = 120) -> list[str]:
    import textwrap

    return [line for warning in warnings for line in textwrap.wrap(warning, width)]


def png(figure: Any) -> bytes:
    """The figure as a notebook shows it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def save(figure: Any, path: Path) -> None:
    """Write the figure; the ending says how."""
    if path.suffix.lower() not in ENDINGS:
        raise Unsupported(f"a picture is a {', '.join(ENDINGS)} file; this ends in {path.suffix or 'nothing'}.")
    problem = ""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f"{path} cannot be written: {problem}.", "Name another file.")
