"""Section 7, Table 2 and Figure 3: the mean pMSE of every method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats
from tidegate_papers.baselines.bppd import Bppd
from tidegate_papers.baselines.plug_in import PlugIn
from tidegate_papers.baselines.sequential import Sequential
from tidegate_papers.baselines.smooth_histogram import SmoothHistogram
from tidegate_papers.item import Result
from tidegate_papers.pmse.paper import EPSILONS, FACTS
from tidegate_papers.pmse.simulation import (
    TABLES,
    WIDE,
    bounded,
    line,
    original,
    published_tables,
    similarity,
    synthesize,
)

SEED = 7
CELLS = 16  # per axis of the smooth histogram
METHODS = ("exact", "plug-in", "published", "bayes", "histogram")
Progress = Callable[[int, int], None]
Run = tuple[int, int]  # the seed and the number of the data set


@dataclass(frozen=True)
class Measured:
    """pMSE and errors of intercept and slope of each table: (data sets, 3) by method and epsilon."""

    samples: dict[tuple[str, float], Floats]

    def mean(self, method: str, epsilon: float) -> float:
        return float(self.samples[method, epsilon][:, 0].mean())

    def error(self, method: str, epsilon: float) -> float:
        """Return the standard error of that mean."""
        values = self.samples[method, epsilon][:, 0]
        return float(values.std(ddof=1) / values.size**0.5) if values.size > 1 else float("nan")

    def difference_error(self, method: str, epsilon: float) -> float:
        """Return the standard error of the difference from a mean over the paper's data sets, which vary as ours do."""
        size = len(self.samples[method, epsilon])
        return self.error(method, epsilon) * math.sqrt(1 + size / PUBLISHED_DATA_SETS)


def simulate(
    times: int,
    *,
    chains: int = 1,
    steps: int = 600,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] = METHODS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Measured:
    """Run every method on new data sets; `chains` of them with the published mechanism, which is slow."""
    samples: dict[tuple[str, float], list[Floats]] = {}
    for number in range(times):
        values = original(np.random.default_rng([seed, number]))
        for epsilon in epsilons:
            for method in methods:
                if method != "published" or number < chains:
                    samples.setdefault((method, epsilon), []).append(
                        _measure(method, values, epsilon, (seed, number), steps)
                    )
        if progress is not None:
            progress(number + 1, times)
    return Measured({key: np.array(rows) for key, rows in samples.items()})


def _measure(method: str, values: Floats, epsilon: float, run: Run, steps: int) -> Floats:
    """Return the mean pMSE of the method's tables, and the errors of their mean intercept and slope."""
    tables = MAKE[method](values, epsilon, run, steps)
    apart = np.abs(np.mean([line(table) for table in tables], axis=0) - line(values))
    return np.array([np.mean([similarity(values, table) for table in tables]), *apart])


def _exact(values: Floats, epsilon: float, run: Run, steps: int) -> list[Floats]:
    return [synthesize(Sequential(), values, WIDE, Fraction(epsilon), seed=run[1], run=str(run))]


def _plug_in(values: Floats, epsilon: float, run: Run, steps: int) -> list[Floats]:
    first = int(100_000 * epsilon) + TABLES * run[1]
    return [synthesize(PlugIn(), values, WIDE, Fraction(1), seed=first + n) for n in range(TABLES)]


def _bayes(values: Floats, epsilon: float, run: Run, steps: int) -> list[Floats]:
    part, first = Fraction(epsilon) / TABLES, TABLES * run[1]
    return [synthesize(Bppd(), values, bounded(4), part, seed=first + n, run=str(run)) for n in range(TABLES)]


def _histogram(values: Floats, epsilon: float, run: Run, steps: int) -> list[Floats]:
    frame = bounded(4, cells=CELLS)
    return [synthesize(SmoothHistogram(), values, frame, Fraction(epsilon), seed=run[1], run=str(run))]


def _published(values: Floats, epsilon: float, run: Run, steps: int) -> list[Floats]:
    return published_tables(values, epsilon, steps=steps, cp=0.001, seed=run[1])


MAKE: dict[str, Callable[[Floats, float, Run, int], list[Floats]]] = {
    "exact": _exact,
    "plug-in": _plug_in,
    "published": _published,
    "bayes": _bayes,
    "histogram": _histogram,
}
COLUMNS = {"exact": "exact", "plug-in": "nondp", "published": "pmse", "bayes": "bayes", "histogram": "histogram"}
PUBLISHED_DATA_SETS = 2_500


def section_7(done: Measured) -> dict[str, Result]:
    """Return Table 2, mean by mean; ours beside the mechanism's."""
    results = {}
    for (method, epsilon), rows in done.samples.items():
        name, mean = f"t2_{COLUMNS[method]}_{epsilon:g}", done.mean(method, epsilon)
        note = f"{len(rows)} data sets"
        if len(rows) > 1:
            note += f", standard error {done.error(method, epsilon):.2g}, variance {rows[:, 0].var(ddof=1):.2g}"
        if method == "exact":
            note += f"; one table for all of epsilon; without privacy {done.mean('plug-in', epsilon):.5f}"
        error = done.difference_error(method, epsilon)
        results[name] = Result(round(mean, 5), note, error=error, size=len(rows))
    return {**results, "t2_variances_2": _variances()}


def _variances() -> Result:
    """Return whether the printed row of epsilon 2 copies another row."""
    rows = FACTS["table_2_variances"]
    copies = [epsilon for epsilon, row in rows.items() if epsilon != "2" and row == rows["2"]]
    return Result(f"the variances of epsilon {copies[0]}" if copies else rows["2"])
