"""Cells as fine as the noise allows: where rows and epsilon are few, neighbouring cells are counted as one.

A cell whose usual count is not well above its noise tells nothing of its own and costs a share of the loss. How far cells are
merged follows from public facts alone. Cells of a single code (atoms, spikes, short columns) stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.plan import Plan
from tidegate.synthesize.splits import PARTS

ABOVE_NOISE = 5  # scales of the noise that the usual count of a cell should reach
FEWEST = 16


def coarsened(columns: tuple[Column, ...], facts: Facts, plan: Plan) -> tuple[Column, ...]:
    """The columns with no more wide cells than their share of the loss can tell apart."""
    weights = margin_weights(columns)
    loss = float(plan.epsilon) * plan.parts.get("margins", 0) / PARTS / max(sum(weights), 1)
    most = [facts.rows * loss * weight / (2 * facts.reach * ABOVE_NOISE) for weight in weights]
    return tuple(_merged(column, max(int(limit), FEWEST)) for column, limit in zip(columns, most, strict=True))


def margin_weights(columns: Sequence[Column]) -> list[int]:
    """How the loss of the margins is shared: as the square root of the cells; a column of one cell needs none."""
    return [round(1000 * column.cells**0.5) if column.cells > 1 else 0 for column in columns]


def _merged(column: Column, most: int) -> Column:
    """Runs of neighbouring wide cells, so many in each that about `most` are left."""
    widths = [end - start for start, end in zip(column.starts, (*column.starts[1:], column.size), strict=True)]
    wide = sum(width > 1 for width in widths)
    if not column.ordered or wide <= most:
        return column
    together, starts, run = -(-wide // most), [], 0
    for start, width in zip(column.starts, widths, strict=True):
        run = run % together if width > 1 else 0
        if run == 0:
            starts.append(start)
        run = run + 1 if width > 1 else 0
    return replace(column, starts=tuple(starts))
