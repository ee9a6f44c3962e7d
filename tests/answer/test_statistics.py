"""With so much loss that the noise vanishes, every statistic equals that of the reference implementation."""

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
OpenSession = Callable[..., Session]
CONDITIONS = {"all": None, "some": (col("age") >= 40) & (col("sex") == "f"), "few": col("town") == "Berg"}


def values(column: str, unit: Any, where: Any, sex: str | None = None) -> list[float]:
    """Return the clamped values of the counted rows."""
    people = policy(unit=unit)
    attribute: Any = people.attributes[column]
    clamped = []
    for row in reference.counted_rows(rows(), people):
        code = reference.code_of(row[column], attribute)
        if (
            code is not None
            and (where is None or reference.holds(where, row, people) is True)
            and sex in (None, row["sex"])
        ):
            clamped.append(float(attribute.value(code)))
    return clamped


TRUTH: dict[str, tuple[Callable[[str], Query], Callable[[list[float]], float]]] = {
    "sum": (sum, math.fsum),
    "mean": (mean, statistics.fmean),
    "variance": (variance, statistics.variance),
    "std": (std, statistics.stdev),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("column", ["age", "pay"])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("unit", UNITS)
def test_sums_means_and_variances_match_the_reference(
    open_session: OpenSession, unit: str, condition: str, column: str
) -> None:
    counted = {sex: values(column, UNITS[unit], CONDITIONS[condition], sex) for sex in (None, "f", "m")}
    with open_session(epsilon="1e9", unit=UNITS[unit]) as session:
        for name, (build, truth) in TRUTH.items():
            query = build(column) if CONDITIONS[condition] is None else build(column).where(CONDITIONS[condition])
            whole, grouped = session.answer([query, query.by("sex")], epsilon=NO_NOISE)
            assert whole.value == pytest.approx(truth(counted[None]), abs=1e-6), name
            for sex, value in zip("fm", grouped.values, strict=True):
                there = counted[sex]
                assert value == pytest.approx(truth(there) if there else grouped.values[1], abs=1e-6) or not there, name


@pytest.mark.parametrize("unit", UNITS)
def test_counts_and_histograms_match_the_reference(open_session: OpenSession, unit: str) -> None:
    people = policy(unit=UNITS[unit])
    with open_session(epsilon="1e9", unit=UNITS[unit]) as session:
        total, by_town, bins = session.answer(
            [count(), count().by("town"), histogram("age").by("sex")], epsilon=NO_NOISE
        )
    counted = reference.counted_rows(rows(), people)
    assert total.value == len(counted)
    assert by_town.labels == {"town": ["Aby", "Berg", "Ceder", None]}
    listed = [row["town"] if row["town"] in ("Aby", "Berg", "Ceder") else None for row in counted]
    assert by_town.values.tolist() == [listed.count(town) for town in by_town.labels["town"]]
    assert bins.labels["age"] == [18, 30, 60]
    ages = [(row["sex"], min_max(row["age"])) for row in counted if row["age"] is not None]
    expected = [
        [len([1 for sex, age in ages if sex == s and lo <= age < hi]) for lo, hi in ((18, 30), (30, 60), (60, 91))]
        for s in "fm"
    ]
    assert bins.values.tolist() == expected


def min_max(age: int) -> int:
    return sorted((18, age, 90))[1]


@pytest.mark.parametrize("share", ["0.5", "0.1", "0.95", "1/3"])
def test_quantiles_split_the_rows_at_their_share(open_session: OpenSession, share: str) -> None:
    from fractions import Fraction

    with open_session(epsilon="1e9") as session:
        value = session.answer(quantile("age", share), epsilon=NO_NOISE).value
    ages = values("age", UNITS["each row"], None)
    below, upto = len([a for a in ages if a < value]), len([a for a in ages if a <= value])
    assert below <= Fraction(share) * len(ages) <= upto


def test_median_minimum_and_maximum_match_the_reference(open_session: OpenSession) -> None:
    ages = values("age", UNITS["each row"], None)
    with open_session(epsilon="1e9") as session:
        middle, low, high = session.answer([median("age"), min("age"), max("age")], epsilon=NO_NOISE)
    assert (low.value, high.value) == (sorted(ages)[0], sorted(ages)[-1])
    assert statistics.median_low(ages) <= middle.value <= statistics.median_high(ages)


def test_noisy_minimum_states_the_rank_that_it_targets(open_session: OpenSession) -> None:
    with open_session(epsilon="100") as session:
        answer = session.answer(min("age"), epsilon=1)
    assert "it aims at number 9 from the lowest" in answer.caution
    assert answer.interval() is None
