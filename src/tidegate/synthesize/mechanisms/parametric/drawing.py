"""Artificial rows from what was learnt: one column after the other, each from its regression. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Bools, Floats, Ints
from tidegate.synthesize.mechanisms.parametric.states import State, features


@dataclass(frozen=True)
class Regressions:
    """One regression a column, in order: a column's parents stand before it."""

    states: tuple[State, ...]

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Rows that are independent of each other, as codes."""
        random = np.random.default_rng(seed)
        values: list[Floats] = []
        present: list[Bools] = []
        for state in self.states:
            parents = [self.states[p] for p in state.parents]
            given = features(parents, [values[p] for p in state.parents], [present[p] for p in state.parents], rows)
            drawn, there = state.draw(given, random)
            values.append(drawn)
            present.append(there)
        return np.column_stack([s.codes(v, p) for s, v, p in zip(self.states, values, present, strict=True)])
