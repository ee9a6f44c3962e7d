"""The drawing of a chart: scales, ticks, labels and marks. Only this file writes tags.

Guarantee:
    Every text is escaped, no element has a style attribute, and a series has at most 2,000 points.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from textwrap import wrap

from tidegate.charts.chart import NARROW, WIDE, Band, Bar, Cell, Chart, Interval, Line, Mark, Rule, Step
from tidegate.charts.scale import (
    TEXT,
    Scale,
    domain,
    fit,
    is_drawable,
    make_scale,
    number_text,
    position_text,
    shown_indexes,
    text_width,
    ticks,
)

MOST_TIPS = 40  # of a line
PAD, ROW = 8, 18  # pixels: margin, height of a line of text
LIGHT = {
    "ink": "#1d2327", "quiet": "#5a646b", "line": "#e1e3df", "accent": "#0b6470", "band": "#b5d5d9",
    "track": "#aab4b9", "wrong": "#b35c00", "card": "#ffffff",
}  # fmt: skip
DARK = {
    "ink": "#e7eaea", "quiet": "#a3adb2", "line": "#343d43", "accent": "#6cc6d2", "band": "#2b565d",
    "track": "#67747b", "wrong": "#f2bf63", "card": "#1c2225",
}  # fmt: skip


def draw_pair(chart: Chart) -> str:
    """Return the chart twice, for wide and for narrow screens."""
    return f'<div class="tg-wide">{draw(chart, WIDE)}</div><div class="tg-narrow">{draw(chart, NARROW)}</div>'


def draw(chart: Chart, width: int, *, standalone: bool = False, dark: bool = True) -> str:
    """Return the chart as one `svg` element."""
    parts, top = [], float(PAD)
    if standalone:
        for line in wrap(chart.title, int(width / 9.2)):
            parts.append(_text(PAD, top + 15, line, "title"))
            top += 21
        top += PAD
    panels = chart.panels or (chart,)
    columns = min(len(panels), 1 if width < WIDE else 3)
    panel_width = width / columns
    for start in range(0, len(panels), columns):
        row = panels[start : start + columns]
        drawn = [
            _Panel.of(panel, panel_width).draw(panel_width * index, top, named=bool(chart.panels))
            for index, panel in enumerate(row)
        ]
        parts += [text for text, _ in drawn]
        top += max(height for _, height in drawn) + PAD
    legend, top = _legend([mark for panel in panels for mark in panel.marks], width, top)
    parts += legend
    if standalone:
        for line in [line for note in chart.notes for line in wrap(note, int(width / 6.6))]:
            parts.append(_text(PAD, top + TEXT, line, "note"))
            top += ROW
    height = math.ceil(top)
    style = (
        f'<style>{style_sheet(dark=dark)}</style><rect class="paper" width="{width}" height="{height}"/>'
        if standalone
        else ""
    )
    size = f' xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"' if standalone else ""
    return (
        f'<svg class="tg-chart" viewBox="0 0 {width} {height}"{size} role="img" '
        f'aria-label="{escape(chart.title)}">{style}{"".join(parts)}</svg>'
    )


@cache
def style_sheet(*, dark: bool) -> str:
    """Return chart.css with the values of its colors, for a chart outside of our pages."""
    rules = (files("tidegate.charts") / "chart.css").read_text("utf-8").partition("*/")[2].partition("/* Pages */")[0]
    rules = rules.replace("width: 100%; height: auto; font-family: inherit", "font-family: system-ui, sans-serif")
    light, night = _fill_colors(rules, LIGHT), _fill_colors(rules, DARK)
    both = f"{light} @media (prefers-color-scheme: dark) {{{night}}}" if dark else light
    return " ".join(both.split())


def _fill_colors(rules: str, colors: dict[str, str]) -> str:
    return re.sub(r"var\(--([a-z]+)\)", lambda variable: colors[variable[1]], rules)


@dataclass(frozen=True)
class _Panel:
    """One plot with its axes. `left` and `below` are the space for labels on these sides."""

    chart: Chart
    width: float
    positions: tuple[float, float]
    values: tuple[float, float]
    left: float
    slanted: bool
    below: float

    @classmethod
    def of(cls, chart: Chart, width: float) -> _Panel:
        """Measure the labels and return the panel."""
        positions, values = domain(chart, chart.x, position=True), domain(chart, chart.y, position=False)
        across, down = (chart.y, chart.x) if chart.horizontal else (chart.x, chart.y)
        ends = (values, positions) if chart.horizontal else (positions, values)
        beside = [text_width(text) for _, text in ticks(down, *ends[1], most=chart.height / 45)]
        left = min(PAD + 6 + max(beside, default=0.0), 0.45 * width)
        labels = [text_width(text) for _, text in ticks(across, *ends[0], most=(width - left) / 70)]
        slot = (width - left - PAD) / max(len(labels), 1)
        ordered = all(re.fullmatch(r"[\d.,–-]+( to [\d.,–-]+)?", name) for name in across.categories[:3])
        slanted = across.kind == "category" and bool(labels) and max(labels) > slot - 4 and not ordered
        if slanted:
            left = max(left, min(0.71 * labels[0] - slot / 2 + PAD, 0.3 * width))
        below = (0.71 * max(labels) + TEXT + 4 if slanted else ROW) + (ROW if across.title else 0)
        return cls(chart, width, positions, values, left, slanted, below)

    def draw(self, x: float, y: float, *, named: bool) -> tuple[str, float]:
        """Return the plot at a point of the chart, and its height."""
        chart, top = self.chart, y
        parts = []
        if named and chart.title:
            parts.append(_text(x + PAD, top + TEXT, fit(chart.title, self.width - 2 * PAD), "name"))
            top += ROW + 4
        above = chart.x.title if chart.horizontal else chart.y.title
        if above:
            parts.append(_text(x + PAD, top + TEXT, fit(above, self.width - 2 * PAD), "quiet-text"))
            top += ROW
        if chart.empty:
            parts.append(_text(x + self.width / 2, top + chart.height / 2, chart.empty, "quiet-text", anchor="middle"))
            return "".join(parts), top + chart.height - y
        top += 6
        box = (x + self.left, top, x + self.width - PAD - 4, top + chart.height)
        to_position, to_value = self._scales(box)
        parts += self._axes(box, to_position, to_value)
        parts += [_mark(mark, chart, to_position, to_value, box) for mark in chart.marks]
        return "".join(parts), box[3] + self.below - y

    def _scales(self, box: tuple[float, float, float, float]) -> tuple[Scale, Scale]:
        left, top, right, bottom = box
        if self.chart.horizontal:
            return make_scale(self.chart.x, *self.positions, top, bottom), make_scale(
                self.chart.y, *self.values, left, right
            )
        ends = (top, bottom) if self.chart.y.kind == "category" else (bottom, top)
        return make_scale(self.chart.x, *self.positions, left, right), make_scale(self.chart.y, *self.values, *ends)

    def _axes(self, box: tuple[float, float, float, float], to_position: Scale, to_value: Scale) -> list[str]:
        chart, (left, top, right, bottom) = self.chart, box
        if chart.horizontal:
            across, down, ends, to_x, to_y = chart.y, chart.x, (self.values, self.positions), to_value, to_position
        else:
            across, down, ends, to_x, to_y = chart.x, chart.y, (self.positions, self.values), to_position, to_value
        parts, grid = [], []
        for tick, label in ticks(down, *ends[1], most=chart.height / 45):
            y = to_y(tick)
            if down.kind != "category":
                grid.append(f"M{left:.1f} {y:.1f}H{right:.1f}")
            parts.append(_text(left - 6, y + 4, fit(label, self.left - PAD), anchor="end"))
        shown = list(ticks(across, *ends[0], most=(right - left) / 70))
        gap = 13.0 if self.slanted else max([text_width(label) + 10 for _, label in shown], default=1.0)
        every = max(1, math.ceil(len(shown) * gap / max(right - left, 1.0))) if across.kind == "category" else 1
        for tick, label in shown[::every]:
            x = to_x(tick)
            if across.kind != "category":
                grid.append(f"M{x:.1f} {top:.1f}V{bottom:.1f}")
            if self.slanted:
                parts.append(_text(x + 4, bottom + TEXT + 2, label, anchor="end", turn=-45))
            else:
                half = text_width(label) / 2
                parts.append(_text(min(x, right + PAD - half), bottom + TEXT + 4, label, anchor="middle"))
        if across.title:
            parts.append(
                _text((left + right) / 2, bottom + self.below - 4, across.title, "quiet-text", anchor="middle")
            )
        base = f"M{left:.1f} {top:.1f}V{bottom:.1f}" if chart.horizontal else f"M{left:.1f} {bottom:.1f}H{right:.1f}"
        return [f'<path class="grid" d="{"".join(grid)}"/>', *parts, f'<path class="axis" d="{base}"/>']


def _mark(mark: Mark, chart: Chart, to_position: Scale, to_value: Scale, box: tuple[float, float, float, float]) -> str:
    """Return one mark. Points are (position, value) pairs, swapped at the end if the chart is horizontal."""
    elements: list[str]
    if isinstance(mark, Bar):
        kind, elements = "bar", _bars(mark, chart, to_position, to_value)
    elif isinstance(mark, Line):
        kind, elements = f"line {mark.dash}", _line(mark, chart, to_position, to_value)
    elif isinstance(mark, Step):
        kind, elements = f"step {mark.dash}", _steps(mark, chart, to_position, to_value)
    elif isinstance(mark, Band):
        kind, elements = "band", _band(mark, chart, to_position, to_value)
    elif isinstance(mark, Interval):
        kind, elements = "interval", _intervals(mark, chart, to_position, to_value)
    elif isinstance(mark, Rule):
        kind, elements = f"rule {mark.dash}{' tick' if mark.x else ''}", _rules(mark, chart, to_position, to_value, box)
    else:
        return "".join(_cells(mark, to_position, to_value))
    return f'<g class="{kind} {mark.tone}">{"".join(elements)}</g>'


def _bars(mark: Bar, chart: Chart, to_position: Scale, to_value: Scale) -> list[str]:
    base = to_value(max(0.0, chart.y.low or 0.0) if chart.y.kind != "log" else chart.y.low or 1.0)
    elements = []
    for i in shown_indexes([to_position(x) for x in mark.x], mark.y, mark.y, chart.y):
        start, end = sorted(
            (to_position(mark.x[i] + mark.shift - mark.width / 2), to_position(mark.x[i] + mark.shift + mark.width / 2))
        )
        low, high = sorted((base, to_value(mark.y[i])))
        size = (start, low, max(end - start, 0.5), high - low)
        x, y, width, height = (low, start, high - low, size[2]) if chart.horizontal else size
        tip = _tip(
            mark.tips,
            i,
            f"{position_text(chart.x, mark.x[i])}: {mark.label} {number_text(mark.y[i], chart.y)}",
        )
        elements.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">{tip}</rect>')
    return elements


def _line(mark: Line, chart: Chart, to_position: Scale, to_value: Scale) -> list[str]:
    pixels = [to_position(x) for x in mark.x]
    indexes = shown_indexes(pixels, mark.y, mark.y, chart.y, gaps=True)
    points = [(pixels[i], to_value(mark.y[i])) for i in indexes]
    elements = [f'<path d="{_path(points, chart)}"/>'] if mark.joined else []
    drawable = [i for i in indexes if is_drawable(mark.x[i], chart.x) and is_drawable(mark.y[i], chart.y)]
    shown = drawable if mark.dots else drawable[:: max(1, math.ceil(len(drawable) / MOST_TIPS))]
    for i in shown:
        x, y = _swap_axes(pixels[i], to_value(mark.y[i]), chart)
        look = f'r="{3 if mark.joined else 4}"' if mark.dots else 'class="hit" r="7"'
        tip = _tip(
            mark.tips,
            i,
            f"{position_text(chart.x, mark.x[i])}: {mark.label} {number_text(mark.y[i], chart.y)}",
        )
        elements.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}>{tip}</circle>')
    return elements


def _steps(mark: Step, chart: Chart, to_position: Scale, to_value: Scale) -> list[str]:
    pixels = [to_position(x) for x in mark.edges]
    indexes = shown_indexes(pixels[:-1], mark.y, mark.y, chart.y)
    points = [
        point for i in indexes for point in ((pixels[i], to_value(mark.y[i])), (pixels[i + 1], to_value(mark.y[i])))
    ]
    elements = [f'<path d="{_path(points, chart)}"/>']
    for i in indexes[:: max(1, math.ceil(len(indexes) / MOST_TIPS))]:
        x, y = _swap_axes((pixels[i] + pixels[i + 1]) / 2, to_value(mark.y[i]), chart)
        middle = (mark.edges[i] + mark.edges[i + 1]) / 2
        tip = _tip(
            mark.tips,
            i,
            f"{position_text(chart.x, middle)}: {mark.label} {number_text(mark.y[i], chart.y)}",
        )
        elements.append(f'<circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="7">{tip}</circle>')
    return elements


def _band(mark: Band, chart: Chart, to_position: Scale, to_value: Scale) -> list[str]:
    pixels = [to_position(x) for x in mark.x]
    upper: list[tuple[float, float]] = []
    lower: list[tuple[float, float]] = []
    for i in shown_indexes(pixels[: len(mark.low)], mark.low, mark.high, chart.y):
        ends = (pixels[i], pixels[i + 1]) if mark.steps else (pixels[i],)
        upper += [(x, to_value(mark.high[i])) for x in ends]
        lower += [(x, to_value(mark.low[i])) for x in ends]
    return [f'<path d="{_path(upper + lower[::-1], chart)}Z"/>'] if upper else []


def _intervals(mark: Interval, chart: Chart, to_position: Scale, to_value: Scale) -> list[str]:
    pixels = [to_position(x + mark.shift) for x in mark.x]
    elements = []
    for i in shown_indexes(pixels, mark.low, mark.high, chart.y):
        low, high, cap = to_value(mark.low[i]), to_value(mark.high[i]), 3.5 if len(pixels) <= 60 else 1.5
        if chart.horizontal:
            path = f"M{low:.1f} {pixels[i]:.1f}H{high:.1f}M{low:.1f} {pixels[i] - cap:.1f}v{2 * cap:g}M{high:.1f} {pixels[i] - cap:.1f}v{2 * cap:g}"
        else:
            path = f"M{pixels[i]:.1f} {low:.1f}V{high:.1f}M{pixels[i] - cap:.1f} {low:.1f}h{2 * cap:g}M{pixels[i] - cap:.1f} {high:.1f}h{2 * cap:g}"
        tip = _tip(
            mark.tips,
            i,
            f"{position_text(chart.x, mark.x[i])}: {mark.label} {number_text(mark.low[i], chart.y)} to {number_text(mark.high[i], chart.y)}",
        )
        dot = ""
        if mark.y and not math.isnan(mark.y[i]):
            x, y = _swap_axes(pixels[i], to_value(mark.y[i]), chart)
            dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        elements.append(f'<g><path d="{path}"/>{dot}{tip}</g>')
    return elements


def _rules(
    mark: Rule, chart: Chart, to_position: Scale, to_value: Scale, box: tuple[float, float, float, float]
) -> list[str]:
    left, top, right, bottom = box
    if not mark.x:
        scale = to_position if mark.upright else to_value
        levels = [scale(y) for y in mark.y if not math.isnan(y)]
        down = mark.upright != chart.horizontal
        lines = [
            f"M{pixel:.1f} {top:.1f}V{bottom:.1f}" if down else f"M{left:.1f} {pixel:.1f}H{right:.1f}"
            for pixel in levels
        ]
        tip = _tip(
            mark.tips,
            0,
            f"{mark.label} {', '.join(number_text(y, chart.x if mark.upright else chart.y) for y in mark.y)}",
        )
        return [f'<path d="{"".join(lines)}">{tip}</path>']
    elements = []
    for i in shown_indexes([to_position(x) for x in mark.x], mark.y, mark.y, chart.y):
        start, end = to_position(mark.x[i] - mark.width / 2), to_position(mark.x[i] + mark.width / 2)
        level = to_value(mark.y[i])
        path = f"M{level:.1f} {start:.1f}V{end:.1f}" if chart.horizontal else f"M{start:.1f} {level:.1f}H{end:.1f}"
        tip = _tip(
            mark.tips,
            i,
            f"{position_text(chart.x, mark.x[i])}: {mark.label} {number_text(mark.y[i], chart.y)}",
        )
        elements.append(f'<path d="{path}">{tip}</path>')
    return elements


def _cells(mark: Cell, to_position: Scale, to_value: Scale) -> Iterable[str]:
    width, height = abs(to_position(1) - to_position(0)), abs(to_value(1) - to_value(0))
    for i, size in enumerate(mark.values):
        shade = 0.04 + 0.96 * math.sqrt(min(1.0, abs(size))) if abs(size) > 0.004 else 0.03
        x, y = to_position(mark.x[i]) - width / 2, to_value(mark.y[i]) - height / 2
        tip = _tip(mark.tips, i, f"{mark.label} {size:.2f}")
        yield (
            f'<g class="cell {"limit" if size < 0 else "accent"}"><rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" '
            f'width="{width - 1:.1f}" height="{height - 1:.1f}" fill-opacity="{shade:.2f}">{tip}</rect></g>'
        )


def _legend(marks: Sequence[Mark], width: float, top: float) -> tuple[list[str], float]:
    """Return the legend below the plots, in as many lines as it needs, and the position of its lower end."""
    named = {mark.label: mark for mark in reversed(marks) if mark.label and not isinstance(mark, Cell)}
    entries = (
        [(mark.label, mark) for mark in dict.fromkeys(marks) if named.get(mark.label) is mark] if len(named) > 1 else []
    )
    known: set[str] = set()
    parts, x, y = [], float(PAD), top + PAD
    for label, mark in entries:
        if label in known:
            continue
        known.add(label)
        entry_width = 26 + text_width(label) + 16
        if x > PAD and x + entry_width > width:
            x, y = float(PAD), y + ROW + 2
        parts.append(_symbol(mark, x, y) + _text(x + 26, y + 11, fit(label, width - 34 - PAD)))
        x += entry_width
    return parts, (y + ROW + 2 if entries else top)


def _symbol(mark: Mark, x: float, y: float) -> str:
    if isinstance(mark, Bar | Band | Cell):
        kind = "band" if isinstance(mark, Band) else "bar"
        return f'<g class="{kind} {getattr(mark, "tone", "accent")}"><rect x="{x + 4}" y="{y:.1f}" width="13" height="13"/></g>'
    if isinstance(mark, Interval):
        return f'<g class="interval {mark.tone}"><path d="M{x + 10} {y - 1:.1f}v15M{x + 6.5} {y - 1:.1f}h7M{x + 6.5} {y + 14:.1f}h7"/></g>'
    if isinstance(mark, Line) and not mark.joined:
        return f'<g class="line {mark.tone}"><circle cx="{x + 10}" cy="{y + 7:.1f}" r="5"/></g>'
    kind = {"Line": "line", "Step": "step", "Rule": "rule"}[type(mark).__name__]
    tick = " tick" if isinstance(mark, Rule) and mark.x else ""
    return f'<g class="{kind} {mark.dash}{tick} {mark.tone}"><path d="M{x} {y + 7:.1f}h20"/></g>'


def _swap_axes(position: float, value: float, chart: Chart) -> tuple[float, float]:
    return (value, position) if chart.horizontal else (position, value)


def _path(points: Iterable[tuple[float, float]], chart: Chart) -> str:
    """Return a path through points that is interrupted at gaps."""
    commands, joined = [], False
    for position, value in points:
        if math.isnan(position) or math.isnan(value):
            joined = False
            continue
        x, y = _swap_axes(position, value, chart)
        commands.append(f"{'L' if joined else 'M'}{x:.1f} {y:.1f}")
        joined = True
    return "".join(commands)


# Text


def _tip(tips: tuple[str, ...], index: int, otherwise: str) -> str:
    return f"<title>{escape(tips[index] if tips else otherwise)}</title>"


def _text(x: float, y: float, text: str, kind: str = "", *, anchor: str = "start", turn: int = 0) -> str:
    transform = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    anchor_attribute = f' text-anchor="{anchor}"' if anchor != "start" else ""
    class_attribute = f' class="{kind}"' if kind else ""
    return f'<text{class_attribute} x="{x:.1f}" y="{y:.1f}"{anchor_attribute}{transform}>{escape(text)}</text>'
