"""A chart as a value: a title that states the finding, marks on two axes, and the table of its numbers.

A chart knows positions and values, not pixels or colors: svg.py places the marks, chart.css colors them by their tone.
Titles and marks state only what the noise supports; the functions that build a chart are responsible for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tidegate.errors import TidegateError, Unsupported

Tone = Literal["accent", "quiet", "soft", "limit", "ink"]
Dash = Literal["solid", "dashed", "dotted"]
Format = Literal["number", "percent", "whole"]
Numbers: TypeAlias = tuple[float, ...]  # nan is a gap

WIDE, NARROW = 680, 340  # pixels: a page shows the one that fits
FILE_TYPES = (".svg", ".png")


def numbers(values: Iterable[Any]) -> Numbers:
    """Return values as floats; None becomes a gap."""
    return tuple(math.nan if value is None else float(value) for value in values)


@dataclass(frozen=True)
class Axis:
    """One axis. `low` and `high` fix its ends, `ticks` fixes its labels; otherwise both follow the marks."""

    title: str = ""
    kind: Literal["linear", "log", "category"] = "linear"
    categories: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    format: Format = "number"
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Bar:
    """Bars from 0 to `y` at the positions `x`. `width` and `shift` are in units of the position axis."""

    label: str
    x: Numbers
    y: Numbers
    tone: Tone = "accent"
    width: float = 0.8
    shift: float = 0.0
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """A line through points; `dots` also marks each point, and `joined=False` marks only the points."""

    label: str
    x: Numbers
    y: Numbers
    tone: Tone = "accent"
    dash: Dash = "solid"
    dots: bool = False
    joined: bool = True
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A constant value between each pair of neighboring edges: one edge more than values."""

    label: str
    edges: Numbers
    y: Numbers
    tone: Tone = "accent"
    dash: Dash = "solid"
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Band:
    """The area between two curves; with `steps`, `x` are edges as of a Step."""

    label: str
    x: Numbers
    low: Numbers
    high: Numbers
    tone: Tone = "soft"
    steps: bool = False


@dataclass(frozen=True)
class Interval:
    """A whisker from `low` to `high` at each position, with a dot at `y` if it is set."""

    label: str
    x: Numbers
    low: Numbers
    high: Numbers
    y: Numbers = ()
    tone: Tone = "ink"
    shift: float = 0.0
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A level: across the whole plot, or a short tick at each of the positions `x`. `upright` draws it at a position instead."""

    label: str
    y: Numbers
    x: Numbers = ()
    tone: Tone = "limit"
    dash: Dash = "solid"
    width: float = 0.8
    upright: bool = False
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """Shaded cells of two category axes: the strength of the shade is the size of the value, at most 1."""

    label: str
    x: Numbers
    y: Numbers
    values: Numbers
    tips: tuple[str, ...] = ()


Mark: TypeAlias = Bar | Line | Step | Band | Interval | Rule | Cell


@dataclass(frozen=True)
class Table:
    """The numbers of a chart, for readers who cannot see it and for those who need more digits."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return columns and rows as JSON values."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Chart:
    """Marks on two axes, or several panels under one title and one legend.

    Attributes:
        x: The axis of positions.
        y: The axis of values.
        horizontal: Whether positions run downwards.
        height: Of the plot in pixels, without labels.
        notes: Warnings, shown in files; pages show them as text of their own.
        empty: Text shown instead of marks if there is nothing to plot.
    """

    title: str
    marks: tuple[Mark, ...] = ()
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    table: Table | None = None
    horizontal: bool = False
    height: int = 240
    panels: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    empty: str = ""

    def svg(self, width: int = WIDE, *, standalone: bool = False, dark: bool = True) -> str:
        """Return the chart as SVG.

        Args:
            standalone: Embed the style sheet, the title and the notes, for files and notebooks. A page must not use it:
                its Content Security Policy refuses embedded styles.
            dark: Let a standalone chart follow the reader's dark mode.
        """
        from tidegate.charts.svg import draw

        return draw(self, width, standalone=standalone, dark=dark)

    def __html__(self) -> str:
        """Return the chart for a page: a wide and a narrow drawing, of which chart.css shows the one that fits."""
        from tidegate.charts.svg import draw_pair

        return draw_pair(self)

    def __repr__(self) -> str:
        return f"Chart({self.title!r}): save it with save(path), or show it in a notebook"

    def _repr_svg_(self) -> str:
        return self.svg(standalone=True)

    def png(self, *, scale: float = 2.0) -> bytes:
        """Return the chart as PNG, in the light colors."""
        from tidegate.charts.png import render

        return render(self.svg(standalone=True, dark=False), scale=scale)

    def save(self, path: str | Path) -> Path:
        """Write the chart to a .svg or .png file and return its path."""
        file = Path(path)
        suffix = file.suffix.lower()
        if suffix not in FILE_TYPES:
            raise Unsupported(
                f'A chart is written as {" or ".join(FILE_TYPES)}, not as "{file.suffix}".',
                "Choose one of these endings.",
            )
        content = self.png() if suffix == ".png" else self.svg(standalone=True).encode()
        problem = ""
        try:
            file.write_bytes(content)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise TidegateError(f'"{file}" cannot be written: {problem}.', "Choose another file.")
        return file

    def to_dict(self) -> dict[str, Any]:
        """Return what a page needs, as JSON values: title, drawing and table."""
        table = self.table.to_dict() if self.table else None
        return {"title": self.title, "svg": self.__html__(), "table": table}
