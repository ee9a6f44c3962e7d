"""The mechanism as published: Metropolis over theta, greedy trees for a score, sensitivity 1/n, ten tables for epsilon.

The chain starts at the best fit, which no private method may do: what is told is what its target would give, as far as a short
chain can tell.
"""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Facts
from tidegate_papers.baselines.metropolis import Metropolis, run_chain, synthetic, theta_of
from tidegate_papers.pmse.simulation import WIDE, line

TABLES = 10


def published_tables(
    values: Floats, epsilon: float, *, steps: int, depth: int = 30, cp: float = 0.01, seed: int = 1
) -> list[Floats]:
    """Ten tables from one chain, thinned evenly over its second half."""
    codes = WIDE.codes(values)
    model = Metropolis(score="greedy", steps=steps, depth=depth, cp=cp, seed=seed)
    energy = model.energy(Facts(WIDE.columns, len(values)), codes, epsilon / TABLES)
    random = np.random.default_rng([seed, 7])
    draws, _ = run_chain(_best(codes), lambda at: energy(theta_of(at)), WIDE.columns, steps, random)
    chosen = draws[np.linspace(steps // 2, steps - 1, TABLES).astype(int)]
    return [_made(theta_of(one), len(values), random) for one in chosen]


def _best(codes: Ints) -> Floats:
    """The best fit, as a chain's state: centres, slope, logarithms of scales."""
    values = codes.astype(np.float64)
    intercept, slope = line(values)
    rest = values[:, 1] - intercept - slope * values[:, 0]
    means = values.mean(0)
    return np.array([means[0], np.log(values[:, 0].std()), means[1], slope, np.log(rest.std())])


def _made(theta: Floats, rows: int, random: np.random.Generator) -> Floats:
    made = synthetic(random.standard_normal((rows, 2)), theta)
    return WIDE.low + made * WIDE.step
