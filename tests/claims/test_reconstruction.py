"""Reconstruction measured: the published methods in their columns, the bank in its cells, the bands in their coverage.

Seeds are fixed in the ordinary run and fresh with TIDEGATE_SEED=fresh. Limits lie five or more standard errors above
what 48 fresh seeds gave (the nearest: plateau under the square wave, 5.3), so that true code passes; planted faults
fail. One published cell cannot be tested as listed: plateau under Gaussian noise of .5 was listed at .017 after eight
seeds, but its errors have a long tail (192 seeds: median below .02, mean .046, largest .32; means of 48 are .038 to .053; the
reports do not tell a plateau from a hill). A mean of .046 is at the limit, .0455, and half of all rounds are above it: the
cell is tested at .053, with 48 seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from claims.probabilities import bits
from collect.reconstruct.simulation import apart, channel, reports, truth
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


def columns(row: dict, seeds: int) -> dict[str, float]:
    """Mean errors of the published methods in one row of the table."""
    known, through = truth(row["density"]), channel(row["noise"], row["level"], centres=False)
    even, found = np.full(100, 0.01), {key: [] for key in ("raw", "bayes", "em", "em_1000", "em_smoothed")}
    for seed in range(seeds):
        counts = reports(known, through, total=PERSONS, rng=generator("published", name(row), seed))
        reach = (counts.size - 100) // 2
        inside = counts[reach : reach + 100]
        found["raw"].append(apart(inside / inside.sum(), known))
        found["em_1000"].append(apart(em(counts, through, start=even, least=1000, most=1000).masses, known))
        for key in ("bayes", "em", "em_smoothed"):
            estimate = reconstruct(counts, through, method=key.replace("_", "-"))
            found[key].append(apart(estimate.masses, known))
    return {key: float(np.mean(errors)) for key, errors in found.items()}


@pytest.mark.parametrize("row", FACTS["published"]["rows"], ids=name)
@paper("Agrawal & Srikant 2000, Agrawal & Aggarwal 2001, Li et al. 2020; errors of one run of a second implementation")
def test_the_published_methods_match_their_columns(row) -> None:
    """Means of 4 seeds against one published run. Farthest apart in 6 fresh rounds of 24 rows: raw .011, bayes .029,
    em .031, em_1000 .07, em_smoothed .034; on average over rows, none is .004 away."""
    found = columns(row, 4)
    for key, off in {"raw": 0.02, "bayes": 0.05, "em": 0.05, "em_1000": 0.14, "em_smoothed": 0.06}.items():
        assert abs(found[key] - row[key]) <= off, (key, found[key], row[key])


# ---- the bank


def mean_error(row: dict, *, seeds: int, method: Callable[..., np.ndarray]) -> float:
    known, through = truth(row["density"]), channel(row["noise"], row["level"])
    return float(
        np.mean(
            [
                apart(
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
    """The largest mean error allowed, and over how many seeds."""
    if (row["density"], row["noise"], row["level"]) == LONG_TAIL:
        return 1.5 * 0.053 + 0.02, 48
    return 1.5 * row["bank"] + 0.02, 8


@pytest.mark.long
@pytest.mark.parametrize("row", FACTS["bank"]["rows"], ids=name)
def test_the_bank_is_as_close_as_listed_in_every_cell(row) -> None:
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
def test_the_claim_about_the_bank_has_teeth(fault, cell) -> None:
    """Each fault was caught in 20 of 20 fresh runs; the nearest was 1.7 times the limit."""
    row = next(row for row in FACTS["bank"]["rows"] if (row["density"], row["noise"], row["level"]) == cell)
    assert mean_error(row, seeds=2, method=fault) > limit(row)[0]


# ---- the bands

POINTS = np.tri(100)[4:100:10]
BLOCKS = np.repeat(np.eye(10), 10, axis=1)
SMOOTH = ("plateau", "triangle", "two-tri", "lognorm", "uniform")
LOUD = (("uniform", 0.5), ("gauss", 0.5), ("laplace", 1.0), ("sw", 1.0), ("gauss", 1.0))
LEAST = {"bins": 0.95, "cdf": 0.95, "blocks": 0.95, "strict": 0.95}


def covered(density: str, noise: str, level: float, seed: int, *, shrunk: float = 1.0) -> dict[str, float]:
    """The share of truths inside each band, for one data set; `shrunk` bands are the planted fault."""
    known, through = truth(density), channel(noise, level)
    found = reconstruct(
        reports(known, through, total=PERSONS, rng=generator("band", density, noise, level, seed)), through
    )
    shares = {}
    for key, kind, rows in (
        ("bins", "default", np.eye(100)),
        ("cdf", "default", POINTS),
        ("blocks", "default", BLOCKS),
        ("strict", "strict", POINTS),
    ):
        band, middle = found.band(kind, of=rows), rows @ found.masses
        low, high = middle - shrunk * (middle - band.low), middle + shrunk * (band.high - middle)
        shares[key] = float(((low <= rows @ known + 1e-9) & (rows @ known <= high + 1e-9)).mean())
    return shares


def coverage(sets: int, *, shrunk: float = 1.0) -> dict[str, float]:
    """Mean coverage over data sets that go through densities and noises."""
    cells = [(density, *noise) for density in SMOOTH for noise in LOUD]
    found = [covered(*cells[i % len(cells)], seed=i // len(cells), shrunk=shrunk) for i in range(sets)]
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


@pytest.mark.long
def test_the_bands_cover_as_stated() -> None:
    """100 data sets, densities without atoms, nominal 95%. Least of 3 fresh rounds: .992 .985 .994 .987."""
    found = coverage(100)
    assert all(found[key] >= least for key, least in LEAST.items()), found


def test_bands_of_half_the_width_are_caught() -> None:
    """Most of 8 fresh rounds: .85 .80 .88 .85."""
    found = coverage(25, shrunk=0.5)
    assert all(found[key] < least for key, least in LEAST.items()), found


@pytest.mark.long
def test_the_strict_band_also_covers_atoms() -> None:
    """40 data sets of atoms and heaps, where the default band is not to be trusted (five atoms: .78)."""
    cells = [(density, *noise) for density in ("atoms5", "heap") for noise in LOUD]
    found = [covered(*cells[i % 10], seed=i // 10) for i in range(40)]
    assert np.mean([one["strict"] for one in found]) >= 0.9
