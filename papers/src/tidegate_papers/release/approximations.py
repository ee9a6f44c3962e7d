"""Figures 5, 7 and 10: how well chi-square fits the measures of independent records, and Dixon's critical values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.demo.soldiers import LOCATIONS, SHARES
from tidegate.release.plan import TOTAL
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.dixon import dixon_critical
from tidegate_papers.item import Result
from tidegate_papers.release.examples import plan_of
from tidegate_papers.release.paper import EXPECTED, ITEMS
from tidegate_papers.release.sequences import SEED

ITERATIONS, RECORDS, STREAM = 10_000, 5_000, 5
APPROXIMATE = 0.05  # the largest distance of two distribution functions that count as approximately equal
FEW = 50  # records at which a simulated critical value is compared with samples


@dataclass(frozen=True)
class Sample:
    """A rescaled measure over samples of independent records, and the degrees of freedom it should have."""

    name: str
    records: int
    freedom: int
    values: Floats

    def above(self, level: float) -> float:
        """Return the share above chi-square's point for a level."""
        return float((self.values > chi_square_critical(self.freedom, level)).mean())

    def apart(self) -> float:
        """Return the largest distance between the two distribution functions."""
        from scipy.special import chdtr  # type: ignore[import-untyped] # here: it is slow to load

        values = np.sort(self.values)
        below = np.arange(values.size) / values.size
        expected = chdtr(self.freedom, values)
        return float(np.maximum(expected - below, below + 1 / values.size - expected).max())


def samples() -> list[Sample]:
    """Draw Figure 5, and Figure 7 (a) to (e): 10,000 iterations each."""
    random = np.random.default_rng([SEED, STREAM])
    shares = np.array(SHARES) / sum(SHARES)
    columns = (EXPECTED.size - 1) * shares.size
    total = Sample("all", RECORDS, columns, rescaled(random.multinomial(RECORDS, shares, ITERATIONS), random))
    sizes = [int(RECORDS * share) for share in shares]
    alone = [
        Sample(name, size, EXPECTED.size - 1, rescaled(np.full((ITERATIONS, 1), size), random))
        for name, size in zip(LOCATIONS, sizes, strict=True)
    ]
    return [total, *alone]


def rescaled(sizes: NDArray[np.int64], random: np.random.Generator) -> Floats:
    """Return 2 N ln 2 times the information of independent records.

    Args:
        sizes: The records of each target, (samples, targets).
    """
    counts = random.multinomial(sizes, EXPECTED)
    inside = (counts * (np.log(np.maximum(counts, 1)) - np.log(EXPECTED))).sum(axis=(1, 2))
    return np.asarray(2 * (inside - (sizes * np.log(np.maximum(sizes, 1))).sum(axis=1)))


def figures_5_and_7(drawn: list[Sample]) -> dict[str, Result]:
    """Return means, tails and distances of the samples."""
    total, *alone = drawn
    results = {
        "fig5_mean": _mean(total),
        "fig5_above_20": _above(total, 0.2),
        "fig5_above_5": _above(total, 0.05),
        "fig5_apart": Result(total.apart(), holds=total.apart() <= APPROXIMATE),
    }
    for sample in alone:
        exact = RECORDS * SHARES[LOCATIONS.index(sample.name)] / sum(SHARES)
        results[f"fig7_{sample.name}_size"] = Result(exact)
        results[f"fig7_{sample.name}_mean"] = _mean(sample)
        results[f"fig7_{sample.name}_above_20"] = _above(sample, 0.2)
    return results


def _mean(sample: Sample) -> Result:
    """Return the mean beside chi-square's, which is its degrees of freedom."""
    mean, size = float(sample.values.mean()), sample.values.size
    return Result(mean, error=float(sample.values.std(ddof=1)) / size**0.5, size=size)


def _above(sample: Sample, level: float) -> Result:
    share, size = sample.above(level), sample.values.size
    note = f"distribution functions {sample.apart():.3f} apart at most"
    return Result(share, note, error=(level * (1 - level) / size) ** 0.5, size=size)


def figure_10() -> dict[str, Result]:
    """Return every critical value by quadrature."""
    chosen = [name for name in ITEMS if name.startswith("fig10_")]
    return {name: Result(dixon_critical(int(name.split("_")[2]), float(name.split("_")[1]))) for name in chosen}


def section_6() -> dict[str, Result]:
    """Return which quantile a simulated critical value is."""
    random = np.random.default_rng([SEED, STREAM, FEW])
    values = rescaled(random.multinomial(FEW, np.array(SHARES) / sum(SHARES), ITERATIONS), random)
    exceeded = float((values > plan_of("MIS", "0.2").tables[TOTAL].at(FEW)).mean())
    note = f"at 20% ours for {FEW} records is exceeded by {exceeded:.1%} of independent samples"
    near = min(
        ("the alpha-th percentile", 0.8),
        ("the (1 - alpha) quantile", 0.2),
        key=lambda candidate: abs(exceeded - candidate[1]),
    )
    return {"s6_percentile": Result(near[0], note)}
