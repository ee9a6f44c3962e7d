"""Section 6, Figures 2 and 4: how far intercept and slope of private methods are from those of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tidegate.answer.mechanisms.regression import Regressions, Sums
from tidegate.answer.request import regression
from tidegate.arrays import Floats
from tidegate.noise import Bits, SeededBits
from tidegate.policy import Dataset, EachRow, Grid, Loss, Policy
from tidegate_papers.item import LIMIT, Result
from tidegate_papers.pmse.paper import DEPTHS
from tidegate_papers.pmse.similarity import Measured
from tidegate_papers.pmse.simulation import ROWS, Frame, bounded, line, original, published_tables

BOUNDS = (2, 4, 5, 10)
EPSILONS = (0.25, 0.5, 1.0)
SEED = 6
METHODS: tuple[Literal["functional", "k-norm"], ...] = ("functional", "k-norm")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Errors:
    """|private - data| of intercept and slope: (data sets, 2) by method, bound (or depth) and epsilon."""

    samples: dict[tuple[str, str, float], Floats] = field(default_factory=dict)

    def slopes(self, method: str, group: str, epsilon: float) -> Floats:
        return self.samples[method, group, epsilon][:, 1]

    def slope(self, method: str, group: str, epsilon: float) -> float:
        return float(self.slopes(method, group, epsilon).mean())


def simulate(
    times: int, *, bounds: Sequence[int] = BOUNDS, epsilons: Sequence[float] = EPSILONS, seed: int = SEED
) -> Errors:
    """Run both regression mechanisms at every bound."""
    samples: dict[tuple[str, str, float], list[Floats]] = {}
    for number in range(times):
        values = original(np.random.default_rng([seed, number]))
        for bound in bounds:
            for epsilon in epsilons:
                for method in METHODS:
                    bits = SeededBits(f"{seed}/{number}/{bound}/{epsilon}/{method}")
                    apart = np.abs(private_line(values, bound, epsilon, method, bits=bits) - line(values))
                    samples.setdefault((method, str(bound), epsilon), []).append(apart)
    return Errors({key: np.array(rows) for key, rows in samples.items()})


def by_depth(times: int, *, steps: int, epsilon: float = 1.0, progress: Progress | None = None) -> Errors:
    """Run the published mechanism with trees of every depth, cp = 0.01 as the paper states for this section."""
    samples: dict[tuple[str, str, float], list[Floats]] = {}
    for number in range(times):
        values = original(np.random.default_rng([SEED, number]))
        for name, depth in DEPTHS.items():
            tables = published_tables(values, epsilon, steps=steps, depth=depth, cp=0.01, seed=number)
            apart = np.abs(np.mean([line(table) for table in tables], axis=0) - line(values))
            samples.setdefault(("published", name, epsilon), []).append(apart)
            if progress is not None:
                progress(number * len(DEPTHS) + list(DEPTHS).index(name) + 1, times * len(DEPTHS))
    return Errors({key: np.array(rows) for key, rows in samples.items()})


def private_line(
    values: Floats, bound: float, epsilon: float, method: Literal["functional", "k-norm"], *, bits: Bits
) -> Floats:
    """Return intercept and slope by the mechanism of `answer`, from the same integers and with the same noise."""
    frame, query = bounded(bound), regression("x2 ~ x1", method=method)
    policy = _policy(frame)
    table: Any = _Counted(frame.codes(values), policy)
    event = Regressions().event(query, policy, epsilon=Fraction(epsilon))
    stored = Regressions().perturb(Regressions().exact(query, table), event, bits=bits)
    unit = Sums(query, policy).coefficients(np.array([stored["sums"]], np.float64))[0]
    slope = unit[1] * frame.step[1] / frame.step[0]  # from codes to values
    return np.array([frame.low[1] + unit[0] * frame.step[1] - slope * frame.low[0], slope])


def _policy(frame: Frame) -> Policy:
    """Return a policy with codes as values: integers from 0."""
    columns = {f"x{n + 1}": Grid(0, size - 1, 1, missing="lowest") for n, size in enumerate(frame.sizes)}
    return Policy(Dataset("simulation", unit=EachRow(), rows=ROWS), columns, None, Loss("100"))


@dataclass(frozen=True)
class _Counted:
    """Codes in memory with the one method of a table that a regression needs."""

    codes: NDArray[np.int64]
    policy: Policy

    def products(self, columns: Sequence[str], *, centers: Sequence[int], where: Any = None) -> NDArray[Any]:
        indexes = [int(name[1:]) - 1 for name in columns]
        rows = np.column_stack([np.ones(len(self.codes), np.int64), self.codes[:, indexes] - np.array(centers)])
        return np.asarray(rows.T @ rows)


def section_6(direct: Errors, depths: Errors, tables: Measured) -> dict[str, Result]:
    """Return the statements about Figures 2 and 4."""
    slopes = {name: depths.slope("published", name, 1.0) for name in DEPTHS}
    chains = f"chains on {len(depths.samples['published', '1', 1.0])} data sets"
    loose = {m: [round(direct.slope(m, str(b), 1.0), 4) for b in BOUNDS] for m in METHODS}
    ours = {e: tables.samples["exact", e][:, 2] for e in (0.25, 1.0)}
    box = {e: direct.slopes("k-norm", "4", e) for e in ours}
    best = min((direct.slopes(method, "4", 1.0) for method in METHODS), key=np.mean)
    return {
        "s6_depth": Result(slopes, chains, holds=_deeper_is_better(depths)),
        "s6_functional": Result(
            {"regression mechanisms": float(best.mean()), "published": slopes["unlimited"]},
            chains,
            holds=is_clearly_above(depths.slopes("published", "unlimited", 1.0), best),
        ),
        "s6_loose_bound": Result(
            loose,
            "bounds of 2, 4, 5 and 10 deviations",
            holds=all(is_clearly_above(direct.slopes(m, "10", 1.0), direct.slopes(m, "4", 1.0)) for m in METHODS),
        ),
        "s6_exact": Result(
            {f"epsilon {e:g}": [round(float(errors[e].mean()), 4) for errors in (ours, box)] for e in ours},
            "mean error of the slope: a whole table by our mechanism, and the estimate alone by the K-norm",
            holds=False,
            better=all(is_clearly_above(box[e], ours[e]) for e in ours),
        ),
    }


def is_clearly_above(first: Floats, second: Floats) -> bool:
    """Return whether one mean is above another one by more than chance explains."""
    if min(first.size, second.size) < 2:
        return False
    error = (first.var(ddof=1) / first.size + second.var(ddof=1) / second.size) ** 0.5
    return bool(first.mean() - second.mean() > LIMIT * error)


def _deeper_is_better(depths: Errors) -> bool:
    """Check both clauses of the statement.

    Errors fall from depth 1 to 2 to 5 by more than chance explains, and the step to unlimited depth is smaller than the last
    of these.
    """
    slopes = {name: depths.slopes("published", name, 1.0) for name in DEPTHS}
    steps = [slopes[first] - slopes[second] for first, second in (("1", "2"), ("2", "5"))]
    clear = all(step.size > 1 and step.mean() > LIMIT * step.std(ddof=1) / step.size**0.5 for step in steps)
    return clear and abs(float((slopes["unlimited"] - slopes["5"]).mean())) < float(steps[1].mean())
