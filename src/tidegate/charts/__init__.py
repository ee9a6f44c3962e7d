"""Charts: one model, drawn as SVG for pages and notebooks and as PNG for files.

chart.py   the model: seven marks, axes, the table of numbers      svg.py   the drawing
scale.py   axes: ends, ticks, pixels                               png.py   SVG to PNG with the shipped font
chart.css  the look, for pages and for files
"""

from tidegate.charts.chart import (
    Axis,
    Band,
    Bar,
    Cell,
    Chart,
    Interval,
    Line,
    Mark,
    Rule,
    Step,
    Table,
    numbers,
)

__all__ = ["Axis", "Band", "Bar", "Cell", "Chart", "Interval", "Line", "Mark", "Rule", "Step", "Table", "numbers"]
