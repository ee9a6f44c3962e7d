"""Section 2: reconstruction recovers the distribution behind the reports; EM is somewhat better than Bayes' rule.

Reports are drawn by their probabilities, as the counts of 100,000 people; the distributions are those of Agrawal and
Srikant: a plateau and triangles, on 100 intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct import GaussianNoise, UniformNoise, grid_channel, reconstruct
from tidegate_papers.item import LIMIT, Result

BINS, PEOPLE, SEED = 100, 100_000, 2002
AT = (np.arange(BINS) + 0.5) / BINS
SHAPES = {
    "plateau": 1.0 * ((AT > 0.25) & (AT < 0.75)),
    "triangle": 1 - np.abs(2 * AT - 1),
    "two triangles": 1 - np.abs(4 * (AT % 0.5) - 1),
}
NOISES: dict[str, type[UniformNoise] | type[GaussianNoise]] = {"uniform": UniformNoise, "gaussian": GaussianNoise}
METHODS = ("bayes", "em", "bank")
LEVELS = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class Curve:
    """A distribution, its reports on the same intervals, and each method's estimate."""

    shape: str
    noise: str
    level: float
    truth: Floats
    seen: Floats
    estimates: dict[str, Floats]

    def error(self, method: str = "") -> float:
        """Return the sum of absolute differences from the truth; of the reports, if no method is named."""
        return float(np.abs((self.estimates[method] if method else self.seen) - self.truth).sum())


def curves() -> list[Curve]:
    """Return every shape under either noise at each privacy; the default method only at 100%, which is plotted."""
    random = np.random.default_rng(SEED)
    return [
        curve(shape, noise, level, random, METHODS if level == 1 else METHODS[:2])
        for shape in SHAPES
        for noise in NOISES
        for level in LEVELS
    ]


def curve(
    shape: str, noise: str, level: float, random: np.random.Generator, methods: tuple[str, ...] = METHODS
) -> Curve:
    """Draw and reconstruct one distribution."""
    truth = SHAPES[shape] / SHAPES[shape].sum()
    channel = grid_channel(NOISES[noise].at_privacy(level), BINS)
    chances = channel.forward(truth)
    counts = random.multinomial(PEOPLE, chances / chances.sum()).astype(np.float64)
    more = (channel.reports - BINS) // 2
    inside = counts[more : more + BINS]
    estimates = {method: reconstruct(counts, channel, method=method).masses for method in methods}
    return Curve(shape, noise, level, truth, inside / inside.sum(), estimates)


def section_2(drawn: list[Curve]) -> dict[str, Result]:
    """Return for each shape and noise whether reconstruction comes closer, and whether EM beats Bayes' rule.

    The published method is EM. Where only the default of the product comes clearly closer, the statement is exceeded.
    """
    results = {}
    for curve in drawn:
        if curve.level == 1:
            errors = {"reports": curve.error(), **{method: curve.error(method) for method in curve.estimates}}
            name = f"s2_curve_{curve.shape.replace(' ', '_')}_{curve.noise}"
            nearer = {method: errors[method] < errors["reports"] / 2 for method in ("em", "bank")}
            results[name] = Result(errors, holds=nearer["em"], better=nearer["bank"] and not nearer["em"])
    return {**results, "s2_em_better": _gain([curve.error("bayes") - curve.error("em") for curve in drawn])}


def _gain(gains: Sequence[float]) -> Result:
    """Return the mean gain of EM over Bayes' rule. It must be more than chance explains."""
    mean, error = float(np.mean(gains)), float(np.std(gains, ddof=1)) / len(gains) ** 0.5
    words = f"mean error of Bayes' rule less EM's over {len(gains)} cells, standard error {error:.2g}; the largest of either "
    words += f"sign is {max(gains, key=abs):+.3f}"
    return Result(mean, words, holds=mean > LIMIT * error)
