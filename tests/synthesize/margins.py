"""An example of a user's own model in one class: columns drawn independently of each other from noisy counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise import Bits, discrete_laplace, scale_for
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.model import Learnt, Progress, Rows, Stage


class Margins:
    """Each column's cells, counted with noise; columns split the loss equally.

    Guarantee:
        One unit changes `reach` rows, so it changes the counts of a column by at most 2 * reach in all; discrete
        Laplace noise of scale 2 * reach / loss has that loss, and the columns' losses add up.
    """

    name: ClassVar[str] = "margins/1"

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        return (Stage("margins", Fraction(1), "count every column"),)

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Learnt:
        share = diary.epsilon / len(facts.columns)
        scale = scale_for(Fraction(2 * facts.reach), share)
        counts = []
        for done, column in enumerate(facts.columns):
            progress("margins", done, len(facts.columns))

            def measure(column=column) -> Ints:  # type: ignore[no-untyped-def]
                return rows.margin(column) + discrete_laplace(scale, size=column.cells, bits=bits)

            counts.append(diary.step(column.name, share, measure))
        return Independent(facts, counts)


@dataclass(frozen=True)
class Independent:
    """Draws cells by their noisy counts, and codes uniformly inside a cell."""

    facts: Facts
    counts: list[Ints]

    def draw(self, rows: int, *, seed: int) -> Ints:
        source = np.random.default_rng(seed)
        drawn = []
        for column, counts in zip(self.facts.columns, self.counts, strict=True):
            weights = np.maximum(counts, 0) + 1e-9
            cells = source.choice(column.cells, size=rows, p=weights / weights.sum())
            low, high = np.array(column.firsts)[cells], np.array(column.ends)[cells]
            drawn.append(source.integers(low, high))
        return np.stack(drawn, axis=1)
