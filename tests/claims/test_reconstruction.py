"""Reconstruction: errors of the published methods, errors of the bank in every cell, and the coverage of the bands.

Seeds are fixed in the ordinary run and fresh with TIDEGATE_SEED=fresh. Limits are at least five standard errors above
the results of 48 fresh seeds (the nearest: plateau under the square wave, 5.3), so that correct code passes; planted faults
fail. One published cell cannot be tested as listed: plateau under Gaussian noise of 0.5 was listed at 0.017 after eight
seeds, but its errors have a long tail (192 seeds: median below 0.02, mean 0.046, largest 0.32; means of 48 are 0.038 to
0.053; the reports do not distinguish a plateau from a hill). A mean of 0.046 is at the limit, 0.0455, and half of all rounds
are above it: the cell is tested at 0.053, with 48 seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from claims.probabilities import bits
from collect.reconstruct.simulation import channel, l1_distance, reports, truth
from golden.papers import golden, paper

from tidegate.collect.reconstruct import Dense, reconstruct
from tidegate.collect.reconstruct.em import em

pytestmark = pytest.mark.claim

FACTS = golden("reconstruction")
PERSONS = 100_000
LONG_TAIL = ("plateau", "gauss", 0.5)


def generator(*name: object) -> np.random.Generator:
    return np.random.default_rng(bits(name).words(4))


def name(row: dict) -> str:
    return f"{row['density']} {row['noise']} {row['level']:g}"


# ---- the published methods


def published_errors(row: dict, seeds: int) -> dict[str, float]:
    """Return mean errors of the published methods in one row of the table."""
    known, through = truth(row["density"]), channel(row["noise"], row["level"], centers=False)
    even, errors_by_method = np.full(100, 0.01), {key: [] for key in ("raw", "bayes", "em", "em_1000", "em_smoothed")}
    for seed in range(seeds):
        counts = reports(known, through, total=PERSONS, rng=generator("published", name(row), seed))
        reach = (counts.size - 100) // 2
        inside = counts[reach : reach + 100]
        errors_by_method["raw"].append(l1_distance(inside / inside.sum(), known))
        errors_by_method["em_1000"].append(
            l1_distance(em(counts, through, start=even, least=1000, most=1000).masses, known)
        )
        for key in ("bayes", "em", "em_smoothed"):
            estimate = reconstruct(counts, through, method=key.replace("_", "-"))
            errors_by_method[key].append(l1_distance(estimate.masses, known))
    return {key: float(np.mean(errors)) for key, errors in errors_by_method.items()}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("row", FACTS["published"]["rows"], ids=name)
@paper("Agrawal & Srikant 2000, Agrawal & Aggarwal 2001, Li et al. 2020; errors of one run of a second implementation")
def test_published_methods_match_the_published_errors(row) -> None:
    """Means of 4 seeds compared with one published run. Largest differences in 6 fresh rounds of 24 rows: raw 0.011, bayes
    0.029, em 0.031, em_1000 0.07, em_smoothed 0.034; on average over rows, none is 0.004 away.
    """
    errors = published_errors(row, 4)
    for key, off in {"raw": 0.02, "bayes": 0.05, "em": 0.05, "em_1000": 0.14, "em_smoothed": 0.06}.items():
        assert abs(errors[key] - row[key]) <= off, (key, errors[key], row[key])


# ---- the bank


def mean_error(row: dict, *, seeds: int, method: Callable[..., np.ndarray]) -> float:
    known, through = truth(row["density"]), channel(row["noise"], row["level"])
    return float(
        np.mean(
            [
                l1_distance(
                    method(reports(known, through, total=PERSONS, rng=generator("bank", name(row), seed)), through),
                    known,
                )
                for seed in range(seeds)
            ]
        )
    )


def bank(counts: np.ndarray, through: Dense) -> np.ndarray:
    return reconstruct(counts, through).masses


def limit(row: dict) -> tuple[float, int]:
    """Return the largest allowed mean error, and the number of seeds."""
    if (row["density"], row["noise"], row["level"]) == LONG_TAIL:
        return 1.5 * 0.053 + 0.02, 48
    return 1.5 * row["bank"] + 0.02, 8


@pytest.mark.long
@pytest.mark.parametrize("row", FACTS["bank"]["rows"], ids=name)
def test_bank_has_the_listed_error_in_every_cell(row) -> None:
    most, seeds = limit(row)
    assert mean_error(row, seeds=seeds, method=bank) <= most


def one_bin_off(counts: np.ndarray, through: Dense) -> np.ndarray:
    return bank(np.roll(counts, 1), through)


def half_the_noise(counts: np.ndarray, through: Dense) -> np.ndarray:
    reach = (through.reports - 100) // 2
    weaker = channel("gauss", 0.25).matrix
    matrix = np.zeros_like(through.matrix)
    matrix[reach - (len(weaker) - 100) // 2 :][: len(weaker)] = weaker
    return bank(counts, Dense(matrix + 1e-9))


def reports_as_they_are(counts: np.ndarray, through: Dense) -> np.ndarray:
    reach = (through.reports - 100) // 2
    inside = counts[reach : reach + 100]
    return inside / inside.sum()


@pytest.mark.parametrize(
    ("fault", "cell"),
    [
        (one_bin_off, ("plateau", "uniform", 0.5)),
        (half_the_noise, ("two-tri", "gauss", 0.5)),
        (reports_as_they_are, ("two-tri", "gauss", 0.5)),
    ],
)
def test_planted_fault_in_the_bank_is_detected(fault, cell) -> None:
    """Each fault was detected in 20 of 20 fresh runs; the nearest was 1.7 times the limit."""
    row = next(row for row in FACTS["bank"]["rows"] if (row["density"], row["noise"], row["level"]) == cell)
    assert mean_error(row, seeds=2, method=fault) > limit(row)[0]


# ---- the bands

POINTS = np.tri(100)[4:100:10]
BLOCKS = np.repeat(np.eye(10), 10, axis=1)
SMOOTH = ("plateau", "triangle", "two-tri", "lognorm", "uniform")
LOUD = (("uniform", 0.5), ("gauss", 0.5), ("laplace", 1.0), ("sw", 1.0), ("gauss", 1.0))
LEAST = {"bins": 0.95, "cdf": 0.95, "blocks": 0.95, "strict": 0.95}


def band_coverage(density: str, noise: str, level: float, seed: int, *, shrunk: float = 1.0) -> dict[str, float]:
    """Return the share of true values inside each band, for one data set; `shrunk` bands are the planted fault."""
    known, through = truth(density), channel(noise, level)
    estimate = reconstruct(
        reports(known, through, total=PERSONS, rng=generator("band", density, noise, level, seed)), through
    )
    shares = {}
    for key, kind, rows in (
        ("bins", "default", np.eye(100)),
        ("cdf", "default", POINTS),
        ("blocks", "default", BLOCKS),
        ("strict", "strict", POINTS),
    ):
        band, middle = estimate.band(kind, of=rows), rows @ estimate.masses
        low, high = middle - shrunk * (middle - band.low), middle + shrunk * (band.high - middle)
        shares[key] = float(((low <= rows @ known + 1e-9) & (rows @ known <= high + 1e-9)).mean())
    return shares


def coverage(sets: int, *, shrunk: float = 1.0) -> dict[str, float]:
    """Return the mean coverage over data sets that cycle through densities and noises."""
    cells = [(density, *noise) for density in SMOOTH for noise in LOUD]
    coverages = [band_coverage(*cells[i % len(cells)], seed=i // len(cells), shrunk=shrunk) for i in range(sets)]
    return {key: float(np.mean([by_band[key] for by_band in coverages])) for key in coverages[0]}


@pytest.mark.long
def test_bands_have_the_stated_coverage() -> None:
    """100 data sets, densities without atoms, nominal 95%. Lowest of 3 fresh rounds: 0.992 0.985 0.994 0.987."""
    coverages = coverage(100)
    assert all(coverages[key] >= least for key, least in LEAST.items()), coverages


@pytest.mark.parametrize("sets", [7, pytest.param(25, marks=pytest.mark.long)])
def test_bands_of_half_the_width_are_detected(sets: int) -> None:
    """Highest of 8 fresh rounds with 25 data sets: 0.85 0.80 0.88 0.85."""
    coverages = coverage(sets, shrunk=0.5)
    assert all(coverages[key] < least for key, least in LEAST.items()), coverages


@pytest.mark.long
def test_strict_band_also_covers_atoms() -> None:
    """40 data sets of atoms and heaps, for which the default band is not reliable (five atoms: 0.78)."""
    cells = [(density, *noise) for density in ("atoms5", "heap") for noise in LOUD]
    coverages = [band_coverage(*cells[i % 10], seed=i // 10) for i in range(40)]
    assert np.mean([by_band["strict"] for by_band in coverages]) >= 0.9
