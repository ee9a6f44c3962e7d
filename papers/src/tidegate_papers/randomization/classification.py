"""Section 2: trees from randomized records come within 5 to 15 points of those from true ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct import GaussianNoise, Noise, UniformNoise
from tidegate.collect.trees import Column, RandomizedTreeClassifier, atoms_column, noisy_column
from tidegate_papers.item import Found
from tidegate_papers.randomization.quest import ATTRIBUTES, FUNCTIONS, Attribute, balanced

RECORDS, TESTED, SEED = 100_000, 5_000, 2000
LEVELS = (0.25, 0.5, 1.0, 1.5, 2.0)
STRATEGIES = ("original", "randomized", "global", "by-class", "local", "best")
NOISES: dict[str, type[UniformNoise] | type[GaussianNoise]] = {"uniform": UniformNoise, "gaussian": GaussianNoise}
LEAST_POINTS, POINTS = 5.0, 15.0  # "within 5% - 15%": a smaller gap is better than the text says
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Accuracies:
    """Of one function and noise: percent of 5,000 test records that each strategy's tree gets right."""

    function: int
    noise: str
    level: float
    percent: dict[str, float]
    chosen: str = ""  # by "best"

    @property
    def gap(self) -> float:
        """How far the better of the two published strategies stays behind the tree of true records."""
        return self.percent["original"] - max(self.percent["by-class"], self.percent["local"])

    @property
    def own_gap(self) -> float:
        """The same of the default."""
        return self.percent["original"] - self.percent["best"]


def simulate(
    levels: Sequence[float] = (1.0,), *, records: int = RECORDS, strategies: Sequence[str] = STRATEGIES,
    functions: Sequence[int] = tuple(FUNCTIONS), progress: Progress | None = None,
) -> list[Accuracies]:  # fmt: skip
    """Every function under either noise at each privacy."""
    cells = [(level, noise, function) for level in levels for noise in NOISES for function in functions]
    found = []
    for done, (level, noise, function) in enumerate(cells):
        found.append(accuracies(function, noise, level, records=records, strategies=strategies))
        if progress is not None:
            progress(done + 1, len(cells))
    return found


def accuracies(
    function: int, noise: str, level: float, *, records: int = RECORDS, strategies: Sequence[str] = STRATEGIES
) -> Accuracies:
    """All strategies on the same people; the same people for every noise and level."""
    random = np.random.default_rng([SEED, function])
    given, classes = balanced(function, records, rng=random)
    asked, right = balanced(function, TESTED, rng=random)
    reports = randomized(given, noise, level, rng=np.random.default_rng([SEED, function, int(100 * level)]))
    columns, percent, chosen = columns_of(noise, level), {}, ""
    for strategy in strategies:
        tree = RandomizedTreeClassifier(columns=columns, strategy=strategy)
        tree.fit(given if strategy == "original" else reports, classes)
        percent[strategy] = 100 * float(tree.score(asked, right))
        chosen = tree.strategy_ if strategy == "best" else chosen
    return Accuracies(function, noise, level, percent, chosen)


def randomized(given: Floats, noise: str, level: float, *, rng: np.random.Generator) -> Floats:
    """Every value with noise of that privacy: a 95% interval as wide as that share of the attribute's range."""
    ranges = level * np.array([attribute.high - attribute.low for attribute in ATTRIBUTES])
    if noise == "uniform":
        return np.asarray(given + UniformNoise.at_privacy(1).half * ranges * rng.uniform(-1, 1, given.shape))
    return np.asarray(given + GaussianNoise.at_privacy(1).sigma * ranges * rng.standard_normal(given.shape))


def columns_of(noise: str, level: float) -> list[Column]:
    """The nine attributes in 100 intervals each, or their whole values."""
    return [_column(one, NOISES[noise].at_privacy(level * (one.high - one.low))) for one in ATTRIBUTES]


def _column(attribute: Attribute, noise: Noise) -> Column:
    if attribute.whole:
        return atoms_column(noise, np.arange(attribute.low, attribute.high + 1).tolist())
    return noisy_column(noise, attribute.low, attribute.high)


def section_2(found: Sequence[Accuracies]) -> dict[str, Found]:
    """For each function and noise at 100% the gap; for each level and noise the table."""
    told = {f"s2_gap_{one.noise}_{one.function}": _gap(one) for one in found if one.level == 1}
    for level, noise in sorted({(one.level, one.noise) for one in found}):
        rows = [one for one in found if (one.level, one.noise) == (level, noise)]
        told[f"s2_table_{noise}_{level:.0%}"] = _table(rows)
    return told


def _gap(one: Accuracies) -> Found:
    words = ", ".join(f"{name} {value:.1f}" for name, value in one.percent.items())
    note = f"{words}; best is {one.chosen}, {one.own_gap:.1f} points behind"
    gap = round(one.gap, 1)
    return Found(gap, note, holds=LEAST_POINTS <= gap <= POINTS, better=gap < LEAST_POINTS)


def _table(rows: Sequence[Accuracies]) -> Found:
    means = {name: float(np.mean([one.percent[name] for one in rows])) for name in STRATEGIES}
    value = {f"Fn{one.function}": [round(one.percent[name], 1) for name in STRATEGIES] for one in rows}
    note = "columns: " + ", ".join(f"{name} (mean {mean:.1f})" for name, mean in means.items())
    return Found(value, note, holds=min(means["by-class"], means["local"]) > means["randomized"])
