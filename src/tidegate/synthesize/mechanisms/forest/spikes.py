"""Spikes: single codes inside a wide cell that many rows hold get a cell of their own."""

from __future__ import annotations

import math

import numpy as np

from tidegate.arrays import Ints
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.measuring import Measuring
from tidegate.synthesize.mechanisms.forest.plan import FALSE_SPIKES, Plan
from tidegate.synthesize.model import Progress, Rows

MOST = 200  # spikes of one column


def split_at_spikes(
    facts: Facts, rows: Rows, measuring: Measuring, plan: Plan, progress: Progress
) -> tuple[Column, ...]:
    """The columns, those searched with their spikes cut out."""
    columns = list(facts.columns)
    share = plan.parts.get("spikes", 0) // max(len(plan.searched), 1)
    for done, place in enumerate(plan.searched if share else ()):
        progress("spikes", done, len(plan.searched))
        columns[place] = _split(columns[place], rows, measuring, share)
    return tuple(columns)


def _split(column: Column, rows: Rows, measuring: Measuring, parts: int) -> Column:
    """Every code that has no cell of its own is counted; false spikes are expected FALSE_SPIKES times in all."""
    inside = _without_a_cell(column)
    above = float(measuring.scale(parts)) * math.log(inside.size / (2 * FALSE_SPIKES))
    found = measuring.frequent(
        f"spikes of {column.name}", parts, lambda: rows.places(column)[inside], above=above, most=MOST
    )
    return column.cut_at(inside[found].tolist())


def _without_a_cell(column: Column) -> Ints:
    widths = np.diff([*column.starts, column.size])
    return np.flatnonzero(np.repeat(widths > 1, widths))
