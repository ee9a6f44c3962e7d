"""Positions of marks: the ends of an axis, its ticks, the scale to pixels, and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tidegate.charts.chart import Axis, Band, Bar, Chart, Interval, Mark, Numbers, Rule, Step

MOST_POINTS = 2_000  # of a series
LONGEST = 26  # characters of a label
TEXT = 12  # pixels: the size of text

Scale: TypeAlias = Callable[[float], float]


def domain(chart: Chart, axis: Axis, *, position: bool) -> tuple[float, float]:
    """Return the ends of an axis."""
    if axis.kind == "category":
        return -0.5, len(axis.categories) - 0.5
    numbers = [number for mark in chart.marks for number in (_positions(mark) if position else _values(mark))]
    usable = [number for number in numbers if math.isfinite(number) and (axis.kind != "log" or number > 0)]
    low, high = (min(usable), max(usable)) if usable else (1.0, 10.0) if axis.kind == "log" else (0.0, 1.0)
    if not position and axis.kind == "linear":
        low, high = min(low, 0.0), max(high, 0.0)
        high, low = high + 0.05 * (high - low), low - (0.05 * (high - low) if low < 0 else 0.0)
    low, high = low if axis.low is None else axis.low, high if axis.high is None else axis.high
    if high > low:
        return low, high
    return (
        (low / 2, low * 2) if axis.kind == "log" and low > 0 else (low - 0.5, low + 0.5) if position else (low, low + 1)
    )


def _positions(mark: Mark) -> Numbers:
    if isinstance(mark, Step):
        return mark.edges
    if isinstance(mark, Bar) and mark.x:
        return (*mark.x, min(mark.x) - mark.width / 2, max(mark.x) + mark.width / 2)
    if isinstance(mark, Rule) and mark.upright:
        return mark.y
    return mark.x


def _values(mark: Mark) -> Numbers:
    if isinstance(mark, Band | Interval):
        return (*mark.low, *mark.high)
    if isinstance(mark, Rule) and mark.upright:
        return ()
    return mark.y


def make_scale(axis: Axis, low: float, high: float, start: float, end: float) -> Scale:
    """Return the function from numbers to pixels. Numbers outside are drawn at the edge; a gap stays a gap."""
    first, last = (math.log10(low), math.log10(high)) if axis.kind == "log" else (low, high)

    def to_pixel(number: float) -> float:
        if not is_drawable(number, axis):
            return math.nan
        value = math.log10(number) if axis.kind == "log" else number
        return start + (min(max(value, first), last) - first) / (last - first) * (end - start)

    return to_pixel


def ticks(axis: Axis, low: float, high: float, *, most: float) -> list[tuple[float, str]]:
    """Return the labeled numbers of an axis."""
    if axis.ticks:
        return list(axis.ticks)
    if axis.kind == "category":
        return [(float(i), short(name)) for i, name in enumerate(axis.categories)]
    if axis.kind == "log":
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1,) if len(decades) > 3 else (1, 2, 5)
        candidates = [step * 10.0**power for power in decades for step in steps]
        inside = [tick for tick in candidates if low * 0.999 <= tick <= high * 1.001]
        inside = inside[:: max(1, math.ceil(len(inside) / max(most, 2)))]
        return [(tick, _percent(tick, 0) if axis.format == "percent" else f"{tick:,.10g}") for tick in inside]
    step = _nice_step((high - low) / max(most, 2))
    step = max(step, 1.0) if axis.format == "whole" else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(i * step, _label(i * step, step, axis)) for i in range(first, last + 1)]


def _nice_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)


def _label(tick: float, step: float, axis: Axis) -> str:
    if axis.format == "percent":
        return _percent(tick, max(0, -math.floor(math.log10(100 * step) + 1e-9)))
    if step >= 1e7 or step < 1e-5:
        return f"{tick:.3g}"
    return f"{tick + 0.0:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f}%"


def number_text(number: float, axis: Axis) -> str:
    return f"{100 * number:.3g}%" if axis.format == "percent" else f"{number:,.6g}"


def position_text(axis: Axis, position: float) -> str:
    """Return the name of a position in a tip."""
    whole = round(position)
    if axis.kind == "category" and 0 <= whole < len(axis.categories):
        return axis.categories[whole]
    return f"{axis.title} {number_text(position, axis)}".strip()


def shown_indexes(at: Sequence[float], low: Numbers, high: Numbers, axis: Axis, *, gaps: bool = False) -> list[int]:
    """Return the indexes to draw: all, or for a long series the lowest and the highest of each pixel."""
    pixels, lows, highs = (np.asarray(part, np.float64) for part in (at, low, high))
    is_usable = np.isfinite(pixels) & np.isfinite(lows) & np.isfinite(highs)
    if axis.kind == "log":
        is_usable &= (lows > 0) & (highs > 0)
    shown = np.arange(pixels.size) if gaps else np.flatnonzero(is_usable)
    if shown.size <= MOST_POINTS:
        return [int(i) for i in shown]
    shown = np.flatnonzero(is_usable)
    wide = max(1.0, float(np.ptp(pixels[shown])) / (MOST_POINTS / 2 - 1))
    columns = np.floor((pixels[shown] - pixels[shown].min()) / wide)
    order = np.argsort(columns, kind="stable")
    indexes: set[int] = set()
    for inside in np.split(shown[order], np.flatnonzero(np.diff(columns[order])) + 1):
        indexes |= {int(inside[lows[inside].argmin()]), int(inside[highs[inside].argmax()])}
    return sorted(indexes)


def is_drawable(number: float, axis: Axis) -> bool:
    return math.isfinite(number) and (axis.kind != "log" or number > 0)


def short(text: str) -> str:
    """Return a label of at most `LONGEST` characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def fit(text: str, width: float) -> str:
    """Return a text cut to a width in pixels."""
    while text_width(text) > width and len(text) > 2:
        text = f"{text[:-2]}…"
    return text


def text_width(text: str) -> float:
    """Return the approximate width of a text of 12 pixels; an overestimate rather than an underestimate."""
    return TEXT * sum(
        0.38 if char in "ijlftr.,:;'|!()[] -1" else 0.9 if char in "mwMW%@" else 1.0 if ord(char) > 0x2E80 else 0.6
        for char in text
    )
