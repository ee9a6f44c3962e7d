"""The paper's data, X1 ~ N(2, 10) and X2 ~ N(-2.5 + 0.5 x1, 3), 5,000 rows, and its mechanism as published.

The second number is read as a standard deviation. pMSE does not change with the units of a column, so that only the
correlation depends on the reading.

The published mechanism is Metropolis over theta with greedy trees for a score, sensitivity 1/n, and ten tables for epsilon.
Its chain starts at the best fit, which no private method can do: the result is what its target would give, as far as a
short chain can show.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.noise import SeededBits
from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Learnt, Model
from tidegate.synthesize.private_rows import ArrayRows
from tidegate_papers.baselines.metropolis import Metropolis, run_chain, synthetic, theta_of

ROWS = 5_000
MEANS, DEVIATIONS = np.array([2.0, -1.5]), np.array([10.0, 34.0**0.5])
MINSPLIT, MINBUCKET = 15, 5  # of the measuring trees; with them the method without privacy has the printed pMSE


def original(random: np.random.Generator, rows: int = ROWS) -> Floats:
    """Draw one data set."""
    first = 2 + 10 * random.standard_normal(rows)
    return np.column_stack([first, -2.5 + 0.5 * first + 3 * random.standard_normal(rows)])


@dataclass(frozen=True)
class Frame:
    """Public bounds and a step for both columns, to convert values and codes."""

    low: Floats
    step: Floats
    sizes: tuple[int, int]
    cells: int = 1

    @property
    def columns(self) -> tuple[Column, Column]:
        first, second = (self._column(name, size) for name, size in zip(("x1", "x2"), self.sizes, strict=True))
        return first, second

    def _column(self, name: str, size: int) -> Column:
        return Column(name, size, tuple(int(size * cell // self.cells) for cell in range(self.cells)), whole=False)

    def codes(self, values: Floats) -> Ints:
        near = np.rint((values - self.low) / self.step).astype(np.int64)
        return np.clip(near, 0, np.array(self.sizes) - 1)

    def values(self, codes: Ints) -> Floats:
        return np.asarray(self.low + codes * self.step)


WIDE = Frame(np.full(2, -1_000.0), np.full(2, 0.01), (200_001, 200_001))
"""A frame without useful bounds: two thousand units in hundredths."""


def bounded(deviations: float, *, cells: int = 1, size: int = 2_001) -> Frame:
    """Return a frame of a number of standard deviations on either side of the mean, as if both were public."""
    half = deviations * DEVIATIONS
    return Frame(MEANS - half, 2 * half / (size - 1), (size, size), cells)


def synthesize(model: Model, values: Floats, frame: Frame, epsilon: Fraction, *, seed: int, run: str = "") -> Floats:
    """Return one synthetic table by a model, in the data's own units. Data and noise are simulated and repeatable."""
    learned: Learnt = model.learn(
        Facts(frame.columns, len(values)),
        ArrayRows(frame.codes(values), frame.columns),
        Diary(epsilon),
        bits=SeededBits(f"{run}/{model.name}/{epsilon}/{seed}"),
        progress=_quiet,
    )
    return frame.values(learned.draw(len(values), seed=seed))


def similarity(values: Floats, synthetic_values: Floats) -> float:
    """Return pMSE as Section 7 must have measured it: rpart's classification tree with cp = 0.001."""
    return pmse_greedy(values, synthetic_values, cp=0.001, minsplit=MINSPLIT, minbucket=MINBUCKET)


def line(values: Floats) -> Floats:
    """Return intercept and slope of the second column on the first."""
    slope, intercept = np.polyfit(values[:, 0], values[:, 1], 1)
    return np.array([intercept, slope])


def _quiet(stage: str, done: int, of: int) -> None:
    pass


TABLES = 10


def published_tables(
    values: Floats, epsilon: float, *, steps: int, depth: int = 30, cp: float = 0.01, seed: int = 1
) -> list[Floats]:
    """Return ten tables from one chain, thinned evenly over its second half."""
    codes = WIDE.codes(values)
    model = Metropolis(score="greedy", steps=steps, depth=depth, cp=cp, seed=seed)
    energy = model.energy(Facts(WIDE.columns, len(values)), codes, epsilon / TABLES)
    random = np.random.default_rng([seed, 7])
    draws, _ = run_chain(_best(codes), lambda at: energy(theta_of(at)), WIDE.columns, steps, random)
    chosen = draws[np.linspace(steps // 2, steps - 1, TABLES).astype(int)]
    return [_draw_table(theta_of(state), len(values), random) for state in chosen]


def _best(codes: Ints) -> Floats:
    """Return the best fit as a chain's state: centers, slope, logarithms of scales."""
    values = codes.astype(np.float64)
    intercept, slope = line(values)
    rest = values[:, 1] - intercept - slope * values[:, 0]
    means = values.mean(0)
    return np.array([means[0], np.log(values[:, 0].std()), means[1], slope, np.log(rest.std())])


def _draw_table(theta: Floats, rows: int, random: np.random.Generator) -> Floats:
    codes = synthetic(random.standard_normal((rows, 2)), theta)
    return WIDE.low + codes * WIDE.step
