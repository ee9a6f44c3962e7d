"""Every worked number of the release-control paper, its errata, and its claims about distributions.

The expected numbers were computed by another route than the code under test; those under "simulated" and "merging_run"
come from a separate program and are not published.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims.probabilities import SEED
from golden.papers import golden, paper

from tidegate.risk.critical import chi_square_critical
from tidegate.risk.dixon import dixon_critical
from tidegate.risk.exposure import (
    dixon_coefficient,
    fit_baseline,
    kullback_leibler,
    merge_sparse_bins,
    mutual_information,
    pearson,
)
from tidegate.risk.simulation import CriticalTable, target_table, total_table

FACTS = golden("release")
WORKED = {entry["id"]: entry for entry in FACTS["worked"]}
TABLES = {name: np.array(rows) for name, rows in FACTS["data"].items() if name.startswith("FIG")}
BASELINE = [Fraction(int(row.sum()), 10_000) for row in TABLES["FIG2"]]
WEIGHTS = [Fraction(int(column.sum()), 10_000) for column in TABLES["FIG2"].T]
RULES = ["forward", "smaller-neighbour", "smallest-first"]
LN4 = 2 * math.log(2)


def prints_as(name: str, ours: Any) -> bool:
    """Return whether ours is the number computed independently, and within 5e-6 of the printed one."""
    entry = WORKED[name]
    np.testing.assert_allclose(ours, entry["ours"], rtol=1e-9)
    np.testing.assert_allclose(ours, entry["published"], rtol=0, atol=max(5e-6, entry["tol"]))
    return True


def columns(name: str) -> list[list[int]]:
    return TABLES[name].T.tolist()


@paper("Examples 4.1 and 5.4: mutual information of the whole table and of a safe release")
@pytest.mark.parametrize(("example", "table"), [("ex4.1", "FIG2"), ("ex5.4 I(FIG6)", "FIG6")])
def test_mutual_information_is_as_printed(example: str, table: str) -> None:
    assert prints_as(example, mutual_information(TABLES[table], BASELINE))


@paper("Examples 4.2, 5.8 and 5.13: distances of the five locations")
@pytest.mark.parametrize(
    ("example", "table"), [("ex4.2", "FIG2"), ("ex5.8 D(FIG8)", "FIG8"), ("ex5.13 D(FIG11)", "FIG11")]
)
def test_distances_are_as_printed(example: str, table: str) -> None:
    assert prints_as(example, kullback_leibler(TABLES[table], BASELINE))


@paper("Examples 4.3 and 5.11: Pearson's statistic; every merging rule gives what is printed")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("example", "table"), [("ex4.3/5.11 F(T)", "FIG2"), ("ex5.11 F(FIG9)", "FIG9")])
def test_pearson_statistic_is_as_printed(rule: Any, example: str, table: str) -> None:
    assert prints_as(example, [pearson(column, BASELINE, rule=rule)[0] for column in columns(table)])


@paper("Example 5.4: (10 - 1) x 5 = 45 degrees of freedom, those of the domain")
@pytest.mark.parametrize(
    ("example", "table", "significance"), [("ex5.4 crit FIG6 a=.2", "FIG6", 0.2), ("ex5.4 crit T a=.05", "FIG2", 0.05)]
)
def test_critical_mutual_information_is_as_printed(example: str, table: str, significance: float) -> None:
    assert prints_as(example, chi_square_critical(45, significance) / (TABLES[table].sum() * LN4))


@paper("Example 5.8: 9 degrees of freedom, also where a location lacks a value")
@pytest.mark.parametrize(
    ("example", "table", "significance"), [("ex5.8 crit FIG8 a=.2", "FIG8", 0.2), ("ex5.8 crit T a=.05", "FIG2", 0.05)]
)
def test_critical_distances_are_as_printed(example: str, table: str, significance: float) -> None:
    assert prints_as(example, chi_square_critical(9, significance) / (TABLES[table].sum(axis=0) * LN4))


@paper("Example 5.11: degrees of freedom after merging bins with fewer than 5 OBSERVED records")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("example", "table", "significance"),
    [("ex5.11 crit FIG9 a=.2", "FIG9", 0.2), ("ex5.11 crit T a=.05", "FIG2", 0.05)],
)
def test_critical_values_of_the_pearson_test_are_as_printed(
    rule: Any, example: str, table: str, significance: float
) -> None:
    freedom = [pearson(column, BASELINE, rule=rule)[1] for column in columns(table)]
    assert freedom == WORKED[example]["df"]
    assert prints_as(example, [chi_square_critical(each, significance) for each in freedom])


def test_merging_by_expected_counts_would_give_other_degrees_of_freedom() -> None:
    first = TABLES["FIG9"][:, 0]
    expected = [int(first.sum() * share) for share in BASELINE]  # the floor: at least 5 stays at least 5
    assert len(merge_sparse_bins(expected, rule="forward")) - 1 == 8 != WORKED["ex5.11 crit FIG9 a=.2"]["df"][0]


@paper("Example 5.13 and Figure 10: Dixon's test")
@pytest.mark.parametrize(
    ("example", "table", "significance"), [("ex5.13 Q(FIG11)", "FIG11", 0.2), ("ex5.13 Q(T)", "FIG2", 0.05)]
)
def test_dixon_coefficient_is_as_printed(example: str, table: str, significance: float) -> None:
    coefficient, number = dixon_coefficient(kullback_leibler(TABLES[table], BASELINE))
    assert number == 5
    assert prints_as(example, coefficient)
    for kind in ("printed", "exact"):
        assert (coefficient < dixon_critical(5, significance, table=kind)) == (table == "FIG11")
    assert dixon_critical(5, significance, table="printed") == WORKED[example]["crit"]


@paper("Figure 10, an older table: the exact values differ by up to 0.0024")
@pytest.mark.parametrize("significance", ["0.2", "0.1", "0.05", "0.01"])
def test_dixon_critical_values_are_as_printed(significance: str) -> None:
    entry = WORKED["fig10 Dixon r10 one-sided"]
    numbers = range(3, 11)
    printed = [dixon_critical(number, float(significance), table="printed") for number in numbers]
    exact = [dixon_critical(number, float(significance)) for number in numbers]
    assert printed == entry["published"][significance]
    np.testing.assert_allclose(exact, entry["ours"][significance], rtol=0, atol=5.1e-6)
    np.testing.assert_allclose(exact, printed, rtol=0, atol=entry["tol"])


@paper("Figure 18: the baseline fitted exactly")
def test_numbers_that_fit_the_baseline_are_as_printed() -> None:
    entry = WORKED["fig18"]
    most = fit_baseline(TABLES["FIG2"], BASELINE)
    assert [round(each) for each in most] == entry["published"]
    assert round(math.fsum(most)) == entry["total_published"]
    assert math.fsum(most) == pytest.approx(entry["total_unrounded_sum"], rel=1e-12)
    assert [math.floor(each) for each in most] == [500, 579, 952, 952, 952]


@paper("Errata")
def test_misprints_of_the_paper_are_known() -> None:
    right = {entry["where"]: (entry["printed"], entry["right"]) for entry in FACTS["errata"]}
    table = TABLES["FIG2"]
    distances = kullback_leibler(table, BASELINE).round(6)
    printed, least = right["Example 5.13"]
    assert min(distances) == least
    top, second = sorted(distances)[:-3:-1]
    assert (top - second) / (top - printed) == pytest.approx(1.0926, abs=5e-5)  # above 1: impossible
    assert (top - second) / (top - least) == pytest.approx(0.886263, abs=5e-7)
    assert (table[0, 0], table[0].sum()) == right["Example 3.2"]
    assert table[3, 1] == right["Section 7.2"][1] == round(0.0878 * table[:, 1].sum())
    rounded = [round(each) for each in fit_baseline(table, BASELINE)]
    assert (rounded[1], math.floor(fit_baseline(table, BASELINE)[1])) == right["Figure 18, L2"]
    assert sum(rounded) == right["Figure 18, total"][1]


# Merging rules


def requests() -> list[int]:
    cells = [cell for cell, count in enumerate(TABLES["FIG2"].ravel()) for _ in range(count)]
    return [cells[(k * 3571 + 17) % 10_000] for k in range(10_000)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("run", FACTS["merging_run"]["granted"])
def test_long_run_grants_what_the_rule_grants(run: str) -> None:
    rule, significance = run.split()
    counts = np.zeros((5, 10), np.int64)
    for cell in requests():
        x, y = divmod(cell, 5)
        counts[y, x] += 1
        statistic, freedom = pearson(counts[y].tolist(), BASELINE, rule=rule)  # type: ignore[arg-type]
        if freedom and not statistic < chi_square_critical(freedom, float(significance)):
            counts[y, x] -= 1
    assert counts.sum(axis=1).tolist() == FACTS["merging_run"]["granted"][run]


# Simulated critical values


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def table_of(
    kind: str, significance: float, cache: Path, monkeypatch: pytest.MonkeyPatch, *, published: bool = False
) -> CriticalTable:
    monkeypatch.setenv("TIDEGATE_CACHE", str(cache))
    if kind == "total":
        return total_table(BASELINE, WEIGHTS, significance, published=published)
    return target_table(BASELINE, significance, published=published)


def sample_statistic(kind: str, size: int, draws: int) -> np.ndarray:
    """Return the statistic over independent records, drawn by numpy: 2 N ln 2 times the information."""
    shares = np.array([float(share) for share in BASELINE])
    weights = np.array([float(share) for share in WEIGHTS]) if kind == "total" else np.ones(1)
    generator = np.random.default_rng([size, draws, *SEED.encode()])
    sizes = generator.multinomial(size, weights, size=draws)  # (draws, targets)
    counts = generator.multinomial(sizes, shares)  # (draws, targets, values)
    inside = (counts * (np.log(np.maximum(counts, 1)) - np.log(shares))).sum(axis=(1, 2))
    return 2 * (inside - (sizes * np.log(np.maximum(sizes, 1))).sum(axis=1))


@pytest.mark.one_in(4)
@paper("Section 6: the first 100 records (20 of each target) by simulation, then chi-square")
@pytest.mark.claim
@pytest.mark.parametrize("run", FACTS["simulated"])
def test_simulated_values_agree_with_those_of_another_program(
    run: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are quantiles of samples: each must have the level of the other within 6 deviations (ALPHA below 1e-6)."""
    kind, level = run.split()
    significance = float(level)
    theirs, table = FACTS["simulated"][run], table_of(kind, significance, cache, monkeypatch)
    assert table.sizes.tolist() == list(range(1, len(theirs) + 1))  # changes where the published rule does
    assert table.beyond == chi_square_critical(45 if kind == "total" else 9, significance)
    assert table == table_of(kind, significance, cache, monkeypatch, published=True)
    assert table.at(1) == pytest.approx(theirs[0], abs=1e-9)
    slack = 6 * math.sqrt(significance * (1 - significance) * (1 / 10_000 + 1 / 40_000))
    for size in (1, 2, 3, 5, 10, 15, 20, 40, 60, 100)[: 7 if kind == "target" else None]:
        sample = sample_statistic(kind, size, 40_000)
        for value in (theirs[size - 1], table.at(size)):
            assert (sample > value + 1e-6).mean() <= significance + slack
            assert (sample >= value - 1e-6).mean() >= significance - slack
        if size in (3, 5, 10, 15):  # a planted fault: the value of half as many records
            assert (sample >= table.at(size // 2)).mean() > significance + slack


@paper("Section 6: at significance 0.2 the first record has the value -2 ln 0.0851, that of the ages 40-44")
def test_first_simulated_value_is_that_of_one_age(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("total", "target"):
        assert table_of(kind, 0.2, cache, monkeypatch).at(1) == -2 * math.log(0.0851)
        assert table_of(kind, 0.05, cache, monkeypatch).at(1) == -2 * math.log(0.04)


@paper("Figures 5 and 7, N = 5000: the rescaled information follows chi-square with 45 degrees, the distances with 9")
@pytest.mark.claim
@pytest.mark.parametrize(
    ("kind", "size", "freedom"),
    [("total", 5000, 45), *(("target", round(5000 * float(share)), 9) for share in WEIGHTS)],
)
def test_statistic_of_five_thousand_records_is_close_to_chi_square(kind: str, size: int, freedom: int) -> None:
    """10,000 iterations as in the paper. It is close, not equal: the mean can be off by 0.12 deviations (0.05 for 9)."""
    sample = sample_statistic(kind, size, 10_000)
    deviation, error = math.sqrt(2 * freedom), 6 / math.sqrt(10_000)
    assert abs(sample.mean() - freedom) < (0.12 + error) * deviation
    assert abs(sample.std() / deviation - 1) < 0.06 + error
    for level in (0.5, 0.2, 0.05, 0.01):
        above = (sample > chi_square_critical(freedom, level)).mean()
        assert abs(above - level) < 0.04 + error * math.sqrt(level * (1 - level))
    assert abs(sample.mean() - (freedom - 9)) > (0.12 + error) * deviation  # 36 degrees, or none, would be detected
