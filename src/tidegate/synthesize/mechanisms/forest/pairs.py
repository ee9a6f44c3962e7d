"""A measured pair of columns: noisy counts on groups, shrunk toward the model where they do not contradict it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.selection import Candidate

DOUBT = 1.5  # a difference within this many noise scales is ignored
FITS = 30


@dataclass(frozen=True, eq=False)
class Pair:
    """Noisy counts of a candidate, scaled to all rows, and the scale of their noise."""

    candidate: Candidate
    noisy: Floats
    scale: float

    def refresh(self, margins: list[Margin]) -> None:
        """Update the margins of both columns."""
        variance = 2 * self.scale**2
        for index, grouping, axis in (
            (self.candidate.left, self.candidate.rows, 1),
            (self.candidate.right, self.candidate.columns, 0),
        ):
            margins[index] = margins[index].update(
                grouping.cells, self.noisy.sum(axis=axis), variance * self.noisy.shape[axis]
            )

    def against(self, model: Floats) -> Floats:
        """Return the model's counts, moved toward the measured ones where these differ beyond the noise (the garrote)."""
        difference = self.noisy - model
        doubt = (DOUBT * self.scale) ** 2 / np.maximum(difference**2, 1e-300)
        out: Floats = np.maximum(model + difference * np.maximum(1 - doubt, 0), 0)
        return out


def fit_table(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return a table with fixed sums of its rows and columns (iterative proportional fitting)."""
    out = table + 1e-9 * np.outer(rows, columns)  # so that an empty row or column can be filled
    for _ in range(FITS):
        out *= (rows / np.maximum(out.sum(1), 1e-300))[:, None]
        out *= columns / np.maximum(out.sum(0), 1e-300)
    return out
