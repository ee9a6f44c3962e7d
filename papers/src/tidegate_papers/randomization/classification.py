"""Section 2: trees from randomized records come within 5 to 15 points of those from true ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct import GaussianNoise, Noise, UniformNoise
from tidegate.collect.trees import Column, RandomizedTreeClassifier, atoms_column, noisy_column
from tidegate_papers.item import Result
from tidegate_papers.randomization.quest import ATTRIBUTES, FUNCTIONS, Attribute, balanced

RECORDS, TESTED, SEED = 100_000, 5_000, 2000
LEVELS = (0.25, 0.5, 1.0, 1.5, 2.0)
STRATEGIES = ("original", "randomized", "global", "by-class", "local", "best")
NOISES: dict[str, type[UniformNoise] | type[GaussianNoise]] = {"uniform": UniformNoise, "gaussian": GaussianNoise}
LEAST_POINTS, POINTS = 5.0, 15.0  # "within 5% - 15%": a smaller gap is better than the text states
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Accuracies:
    """Of one function and noise: percent of 5,000 test records that each strategy's tree classifies correctly."""

    function: int
    noise: str
    level: float
    percent: dict[str, float]
    chosen: str = ""  # the strategy that "best" chose

    @property
    def gap(self) -> float:
        """How far the better of the two published strategies stays behind the tree of true records."""
        return self.percent["original"] - max(self.percent["by-class"], self.percent["local"])

    @property
    def own_gap(self) -> float:
        """The same for the default."""
        return self.percent["original"] - self.percent["best"]


def simulate(
    levels: Sequence[float] = (1.0,), *, records: int = RECORDS, strategies: Sequence[str] = STRATEGIES,
    functions: Sequence[int] = tuple(FUNCTIONS), progress: Progress | None = None,
) -> list[Accuracies]:  # fmt: skip
    """Run every function under either noise at each privacy."""
    cells = [(level, noise, function) for level in levels for noise in NOISES for function in functions]
    accuracies_of_cells = []
    for done, (level, noise, function) in enumerate(cells):
        accuracies_of_cells.append(accuracies(function, noise, level, records=records, strategies=strategies))
        if progress is not None:
            progress(done + 1, len(cells))
    return accuracies_of_cells


def accuracies(
    function: int, noise: str, level: float, *, records: int = RECORDS, strategies: Sequence[str] = STRATEGIES
) -> Accuracies:
    """Run all strategies on the same people; the same people for every noise and level."""
    random = np.random.default_rng([SEED, function])
    people, classes = balanced(function, records, rng=random)
    test_people, right = balanced(function, TESTED, rng=random)
    reports = randomized(people, noise, level, rng=np.random.default_rng([SEED, function, int(100 * level)]))
    columns, percent, chosen = columns_of(noise, level), {}, ""
    for strategy in strategies:
        tree = RandomizedTreeClassifier(columns=columns, strategy=strategy)
        tree.fit(people if strategy == "original" else reports, classes)
        percent[strategy] = 100 * float(tree.score(test_people, right))
        chosen = tree.strategy_ if strategy == "best" else chosen
    return Accuracies(function, noise, level, percent, chosen)


def randomized(people: Floats, noise: str, level: float, *, rng: np.random.Generator) -> Floats:
    """Return every value with noise of that privacy: a 95% interval as wide as that share of the attribute's range."""
    ranges = level * np.array([attribute.high - attribute.low for attribute in ATTRIBUTES])
    if noise == "uniform":
        return np.asarray(people + UniformNoise.at_privacy(1).half * ranges * rng.uniform(-1, 1, people.shape))
    return np.asarray(people + GaussianNoise.at_privacy(1).sigma * ranges * rng.standard_normal(people.shape))


def columns_of(noise: str, level: float) -> list[Column]:
    """Return the nine attributes in 100 intervals each, or their integer values."""
    return [
        _column(attribute, NOISES[noise].at_privacy(level * (attribute.high - attribute.low)))
        for attribute in ATTRIBUTES
    ]


def _column(attribute: Attribute, noise: Noise) -> Column:
    if attribute.whole:
        return atoms_column(noise, np.arange(attribute.low, attribute.high + 1).tolist())
    return noisy_column(noise, attribute.low, attribute.high)


def section_2(measured: Sequence[Accuracies]) -> dict[str, Result]:
    """Return the gap of each function and noise at 100%, and the table of each level and noise."""
    results = {
        f"s2_gap_{accuracies.noise}_{accuracies.function}": _gap(accuracies)
        for accuracies in measured
        if accuracies.level == 1
    }
    for level, noise in sorted({(accuracies.level, accuracies.noise) for accuracies in measured}):
        rows = [accuracies for accuracies in measured if (accuracies.level, accuracies.noise) == (level, noise)]
        results[f"s2_table_{noise}_{level:.0%}"] = _table(rows)
    return results


def _gap(accuracies: Accuracies) -> Result:
    words = ", ".join(f"{name} {value:.1f}" for name, value in accuracies.percent.items())
    note = f"{words}; best is {accuracies.chosen}, {accuracies.own_gap:.1f} points behind"
    gap = round(accuracies.gap, 1)
    return Result(gap, note, holds=LEAST_POINTS <= gap <= POINTS, better=gap < LEAST_POINTS)


def _table(rows: Sequence[Accuracies]) -> Result:
    means = {name: float(np.mean([accuracies.percent[name] for accuracies in rows])) for name in STRATEGIES}
    value = {
        f"Fn{accuracies.function}": [round(accuracies.percent[name], 1) for name in STRATEGIES] for accuracies in rows
    }
    note = "columns: " + ", ".join(f"{name} (mean {mean:.1f})" for name, mean in means.items())
    return Result(value, note, holds=min(means["by-class"], means["local"]) > means["randomized"])
