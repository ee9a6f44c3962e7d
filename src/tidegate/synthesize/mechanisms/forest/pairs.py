"""A measured pair of columns: noisy counts on groups, drawn towards what is believed where they do not contradict it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.selection import Candidate

DOUBT = 1.5  # scales of the noise within which a difference is not believed
FITS = 30


@dataclass(frozen=True, eq=False)
class Pair:
    """Noisy counts of a candidate, scaled to all rows, and the scale of their noise."""

    candidate: Candidate
    noisy: Floats
    scale: float

    def refresh(self, margins: list[Margin]) -> None:
        """Let both columns' margins know."""
        each = 2 * self.scale**2
        for place, grouping, axis in (
            (self.candidate.left, self.candidate.rows, 1),
            (self.candidate.right, self.candidate.columns, 0),
        ):
            margins[place] = margins[place].refreshed(
                grouping.cells, self.noisy.sum(axis=axis), each * self.noisy.shape[axis]
            )

    def against(self, model: Floats) -> Floats:
        """The garrote: the model's counts, moved towards the measured ones where these differ beyond the noise."""
        difference = self.noisy - model
        doubt = (DOUBT * self.scale) ** 2 / np.maximum(difference**2, 1e-300)
        out: Floats = np.maximum(model + difference * np.maximum(1 - doubt, 0), 0)
        return out


def fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """A table with given sums of its rows and columns (iterative proportional fitting)."""
    out = table + 1e-9 * np.outer(rows, columns)  # an empty line can be filled
    for _ in range(FITS):
        out *= (rows / np.maximum(out.sum(1), 1e-300))[:, None]
        out *= columns / np.maximum(out.sum(0), 1e-300)
    return out
