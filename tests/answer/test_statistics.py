"""With so much loss that the noise vanishes, every statistic is the one that a slow twin computes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from answer.conftest import UNITS, policy, rows
from reference import tables as reference

from tidegate.answer import Query, count, histogram, max, mean, median, min, quantile, std, sum, variance
from tidegate.policy.predicates import col
from tidegate.session import Session

NO_NOISE = 10**7
Ask = Callable[..., Session]
CONDITIONS = {"all": None, "some": (col("age") >= 40) & (col("sex") == "f"), "few": col("town") == "Berg"}


def values(column: str, unit: Any, where: Any, sex: str | None = None) -> list[float]:
    """The clamped values that count, one by one."""
    rules = policy(unit=unit)
    attribute: Any = rules.attributes[column]
    found = []
    for row in reference.counted(rows(), rules):
        code = reference.code_of(row[column], attribute)
        if (
            code is not None
            and (where is None or reference.holds(where, row, rules) is True)
            and sex in (None, row["sex"])
        ):
            found.append(float(attribute.value(code)))
    return found


TRUTH: dict[str, tuple[Callable[[str], Query], Callable[[list[float]], float]]] = {
    "sum": (sum, math.fsum),
    "mean": (mean, statistics.fmean),
    "variance": (variance, statistics.variance),
    "std": (std, statistics.stdev),
}


@pytest.mark.parametrize("column", ["age", "pay"])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", TRUTH)
def test_sums_means_and_variances_are_right(ask: Ask, name: str, unit: str, condition: str, column: str) -> None:
    build, truth = TRUTH[name]
    query = build(column) if CONDITIONS[condition] is None else build(column).where(CONDITIONS[condition])
    with ask(epsilon="1e9", unit=UNITS[unit]) as session:
        whole, grouped = session.answer([query, query.by("sex")], epsilon=NO_NOISE)
    assert whole.value == pytest.approx(truth(values(column, UNITS[unit], CONDITIONS[condition])), abs=1e-6)
    for sex, found in zip("fm", grouped.values, strict=True):
        there = values(column, UNITS[unit], CONDITIONS[condition], sex)
        assert found == pytest.approx(truth(there) if there else grouped.values[1], abs=1e-6) or not there


@pytest.mark.parametrize("unit", UNITS)
def test_counts_and_histograms_are_right(ask: Ask, unit: str) -> None:
    rules = policy(unit=UNITS[unit])
    with ask(epsilon="1e9", unit=UNITS[unit]) as session:
        total, by_town, bins = session.answer(
            [count(), count().by("town"), histogram("age").by("sex")], epsilon=NO_NOISE
        )
    kept = reference.counted(rows(), rules)
    assert total.value == len(kept)
    assert by_town.labels == {"town": ["Aby", "Berg", "Ceder", None]}
    listed = [row["town"] if row["town"] in ("Aby", "Berg", "Ceder") else None for row in kept]
    assert by_town.values.tolist() == [listed.count(town) for town in by_town.labels["town"]]
    assert bins.labels["age"] == [18, 30, 60]
    ages = [(row["sex"], min_max(row["age"])) for row in kept if row["age"] is not None]
    wanted = [
        [len([1 for sex, age in ages if sex == s and lo <= age < hi]) for lo, hi in ((18, 30), (30, 60), (60, 91))]
        for s in "fm"
    ]
    assert bins.values.tolist() == wanted


def min_max(age: int) -> int:
    return sorted((18, age, 90))[1]


@pytest.mark.parametrize("share", ["0.5", "0.1", "0.95", "1/3"])
def test_quantiles_cut_the_rows_where_they_say(ask: Ask, share: str) -> None:
    from fractions import Fraction

    with ask(epsilon="1e9") as session:
        found = session.answer(quantile("age", share), epsilon=NO_NOISE).value
    ages = values("age", UNITS["each row"], None)
    below, upto = len([a for a in ages if a < found]), len([a for a in ages if a <= found])
    assert below <= Fraction(share) * len(ages) <= upto


def test_median_lowest_and_highest(ask: Ask) -> None:
    ages = values("age", UNITS["each row"], None)
    with ask(epsilon="1e9") as session:
        middle, low, high = session.answer([median("age"), min("age"), max("age")], epsilon=NO_NOISE)
    assert (low.value, high.value) == (sorted(ages)[0], sorted(ages)[-1])
    assert statistics.median_low(ages) <= middle.value <= statistics.median_high(ages)


def test_with_noise_the_lowest_aims_inside_and_says_where(ask: Ask) -> None:
    with ask(epsilon="100") as session:
        found = session.answer(min("age"), epsilon=1)
    assert "it aims at number 9 from the lowest" in found.caution
    assert found.interval() is None
