"""Combining rules: one estimate and its variance from several synthetic tables.

m tables of ns rows each, made from n original rows, give estimates q_i with variances v_i (as if they were real). Their
mean estimates the number; b is the variance of the q_i between tables, v the mean of the v_i.

single       v (ns/n + 1/m). The synthetic rows are drawn from a model fitted to the original: v ns/n is the sampling
             error of the original, v/m that of drawing. It works with a single table. The noise added for privacy is
             not included: one table cannot show it. Raab, Nowok, Dibben 2017, J. Privacy and Confidentiality 7(3),
             Section 2.
between      v ns/n + b/m, t with (m-1) (1 + v (ns/n) m / b)^2 degrees of freedom. Each table comes from its own private
             model, and b includes both the drawing and the noise for privacy. Reiter 2003, Survey Methodology 29(2)
             (partially synthetic data), with ns/n for tables of another size. The default for several tables.
raghunathan  (1 + 1/m) b - v, t with (m-1) (1 - v / ((1 + 1/m) b))^2; where that is not above 0, v ns/n (Reiter 2002).
             For tables of multiple imputation, each from another draw of the posterior. Raghunathan, Reiter, Rubin
             2003, J. Official Statistics 19(1). Our models are chosen near the original's own fit and not drawn from
             its posterior: the rule treats the noise for privacy as sampling error of the original, most of which the
             mean of m tables averages out. In simulation its 95% intervals covered the truth in 96% to 100% of runs,
             so it is used only on request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidegate.errors import Unsupported
from tidegate.extras import extra

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import ndtri, stdtrit  # type: ignore[import-untyped]

Rule = Literal["auto", "single", "between", "raghunathan"]


@dataclass(frozen=True)
class Estimate:
    """A number with its variance. `freedom`: degrees of freedom of Student's t, infinite for the normal."""

    value: float
    variance: float
    freedom: float = math.inf

    @property
    def error(self) -> float:
        return math.sqrt(self.variance)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        tail = (1 + confidence) / 2
        width = ndtri(tail) if math.isinf(self.freedom) else stdtrit(self.freedom, tail)
        half = float(width) * self.error
        return self.value - half, self.value + half


def combine(estimates: Sequence[Estimate], *, rows: int, synthetic: int, rule: Rule = "auto") -> Estimate:
    """Return one estimate from those of m tables, by a rule of this file; "auto" is single for one table, between for more."""
    chosen = rule_for(len(estimates), rule)
    values = np.array([estimate.value for estimate in estimates])
    inside = float(np.mean([estimate.variance for estimate in estimates]))
    between = float(values.var(ddof=1)) if len(values) > 1 else 0.0
    variance, freedom = RULES[chosen](len(values), between, inside, synthetic / rows)
    return Estimate(float(values.mean()), variance, freedom)


def rule_for(tables: int, rule: Rule) -> str:
    """Return the rule to use, or refuse one that needs more tables."""
    chosen = {"auto": "between" if tables > 1 else "single"}.get(rule, rule)
    if chosen not in RULES:
        raise Unsupported(f'Unknown combining rule: "{rule}".', f"Use one of auto, {', '.join(RULES)}.")
    if tables < 2 and chosen != "single":
        raise Unsupported(f'The rule "{chosen}" needs at least two tables, but there is one.', 'Use rule="single".')
    return chosen


def overlap(left: tuple[float, float], right: tuple[float, float]) -> float | None:
    """Return how far two intervals overlap: 1 if they are equal, 0 if they touch, below 0 if they are apart.

    It is the mean of the common part of each interval, and None if an interval has no width.

    Reference:
        Karr, Kohnen, Oganian, Reiter, Sanil 2006, The American Statistician 60(3).
    """
    common = min(left[1], right[1]) - max(left[0], right[0])
    widths = (left[1] - left[0], right[1] - right[0])
    if not all(0 < width < math.inf for width in widths):
        return None
    return (common / widths[0] + common / widths[1]) / 2


def _single(m: int, between: float, inside: float, size: float) -> tuple[float, float]:
    return inside * (size + 1 / m), math.inf


def _between(m: int, between: float, inside: float, size: float) -> tuple[float, float]:
    freedom = (m - 1) * (1 + inside * size * m / between) ** 2 if between > 0 else math.inf
    return inside * size + between / m, freedom


def _raghunathan(m: int, between: float, inside: float, size: float) -> tuple[float, float]:
    whole = (1 + 1 / m) * between
    if whole <= inside:
        return inside * size, math.inf
    return whole - inside, (m - 1) * (1 - inside / whole) ** 2


RULES: dict[str, Callable[[int, float, float, float], tuple[float, float]]] = {
    "single": _single,
    "between": _between,
    "raghunathan": _raghunathan,
}
