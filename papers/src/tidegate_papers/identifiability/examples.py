"""The worked examples: Sections 3.5 and 4.1, Table 2 and Figure 1."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from tidegate.risk import equation_15, posterior, worst_risk
from tidegate.risk.worlds import STATISTICS, missing_rows, outputs
from tidegate_papers.item import Result

THIRD = Fraction(1, 3)
RHOS = ("0.15", "0.2", "0.25", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
EQUAL = 1e-9


def _whole(*values: int) -> list[Fraction]:
    return [Fraction(value) for value in values]


def section_3_5() -> dict[str, Result]:
    """Return the adversary's densities and confidence after the response 5.041."""
    universe, known, response, epsilon = _whole(1, 2, 3, 4, 5, 10), _whole(1, 2, 3), 5.041, 2
    sensitivity = _sensitivity(universe, rows=4)
    scale = float(sensitivity / epsilon)
    means = [float(x) for x in outputs(STATISTICS["mean"], missing_rows(universe, known), known)]
    densities = [math.exp(-abs(response - mean) / scale) / (2 * scale) for mean in means]
    results = {f"s35_pdf_w{number}": Result(density) for number, density in enumerate(densities, 1)}
    confidence = float(posterior(means, response, scale=scale)[-1])
    return {"s35_sensitivity": Result(sensitivity), **results, "s35_confidence": Result(confidence)}


def _sensitivity(universe: list[Fraction], *, rows: int) -> Fraction:
    """Return how far replacing one row can change the mean, over all databases with this number of rows."""
    largest = Fraction(0)
    for known in itertools.combinations(universe, rows - 1):
        means = outputs(STATISTICS["mean"], missing_rows(universe, known), known)
        largest = max(largest, Fraction(max(means)) - Fraction(min(means)))
    return largest


class Ten:
    """U = 1 .. 10, D = {1, 2, 3}, of which 1 and 3 are known; the missing row is the 2, the first of the worlds."""

    known = _whole(1, 3)
    missing = missing_rows(_whole(*range(1, 11)), known)

    def __init__(self, statistic: str) -> None:
        self.exact = [Fraction(x) for x in outputs(STATISTICS[statistic], self.missing, self.known)]
        self.outputs = [float(x) for x in self.exact]
        self.range = max(self.exact) - min(self.exact)

    def scale(self, rho: float | Fraction) -> float:
        """Return the scale of equation (15)."""
        return equation_15(float(self.range), worlds=len(self.exact), rho=float(rho))

    def risk(self, rho: float | Fraction) -> float:
        """Return Gamma(2): what the response 2 reveals about the 2, with the noise of equation (15)."""
        return float(posterior(self.outputs, 2.0, scale=self.scale(rho))[0])


def section_4_1() -> dict[str, Result]:
    """Return the example behind Table 2, its scale and its risks."""
    mean, median = Ten("mean"), Ten("median")
    worst = worst_risk(mean.outputs, scale=mean.scale(THIRD))
    return {
        "s4_worlds": Result(len(Ten.missing)),
        "s4_S_mean": Result(mean.range),
        "s4_lambda": Result(mean.scale(THIRD)),
        "s4_gamma2": Result(mean.risk(THIRD), f"no response gives any world more than {worst:.4f}"),
        "s4_S_median": Result(median.range),
        "s4_median_risk": Result(median.risk(THIRD)),
        "s4_theorem2": Result(max(_two_worlds(rho / 100) for rho in range(51, 100))),
    }


def _two_worlds(rho: float) -> float:
    """Return how far the worst risk is from rho if there are two worlds."""
    return abs(worst_risk([0.0, 1.0], scale=equation_15(1.0, worlds=2, rho=rho)) - rho)


def table_2() -> dict[str, Result]:
    """Return mean and median of every possible world."""
    worlds = {statistic: Ten(statistic).exact for statistic in ("mean", "median")}
    return {
        f"t2_w{number}_{statistic}": Result(value)
        for statistic, values in worlds.items()
        for number, value in enumerate(values, 1)
    }


def figure_1() -> dict[str, Result]:
    """Return the risk of I(2) by rho: below it for the mean, equal to it for the median."""
    mean, median = ({rho: Ten(name).risk(float(rho)) for rho in RHOS} for name in ("mean", "median"))
    return {
        "fig1_mean": Result(mean, holds=all(risk < float(rho) for rho, risk in mean.items())),
        "fig1_median": Result(median, holds=all(abs(risk - float(rho)) < EQUAL for rho, risk in median.items())),
    }


def curves() -> dict[str, tuple[list[float], list[float]]]:
    """Return Figure 1 as lines: rho and risk, for mean and median."""
    rhos = [float(rho) for rho in np.linspace(0.13, 0.95, 165)]  # a random guess is right with probability 1/8
    return {name: (rhos, [Ten(name).risk(rho) for rho in rhos]) for name in ("mean", "median")}
