"""What reports say: the distribution, how sure it is, and the picture; from the client to the estimate."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import SHOPPERS, open_survey, policy_of, report, reports
from tidegate_papers.simulation.values import BulkBits, sample_many

import tidegate as tg
from tidegate.collect.client import Client
from tidegate.collect.result import Distribution, estimate
from tidegate.errors import Unsupported
from tidegate.ledger.counts import Counted
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Boolean, Category, Collection, Date, Integer, Question, Time
from tidegate.policy.collection import operator_for
from tidegate.tables.segments import Column

N = 20_000


def count_reports(question: Question, truth: Any, seed: str) -> tuple[Any, Counted]:
    """The counts of the reports of true codes."""
    operator = operator_for(question)
    rows = sample_many(operator, np.asarray(truth), BulkBits(seed))
    packed = rows if operator.form == "code" else rows.view(np.uint8).reshape(len(rows), -1)
    return operator, Counted(len(rows), Column(operator.form, operator.report_size).count(packed))


def estimate_from(question: Question, truth: Any, seed: str = "survey", **options: Any) -> Distribution:
    return estimate("it", question, *count_reports(question, truth, seed), **options)


def ages(seed: int = 1, people: int = N) -> Any:
    return np.clip(np.random.default_rng(seed).normal(20, 6, people).round(), 0, 44).astype(int)


AGE = Question("age", Integer(16, 60), "square-wave", epsilon=2)


def test_estimates_of_dates_and_times_are_shown_as_dates_and_times() -> None:
    """The mean of 20,000 dates from May is in May; a normal error of the estimate is about two days."""
    year = Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31))
    joined = estimate_from(Question("joined", year, "square-wave", epsilon=2), 120 + np.arange(N) % 31)
    assert joined.labels[:2] == ("2024-01-01", "2024-01-02")
    assert joined.mean is not None
    assert joined.mean[1] < "2024-05-15" < joined.mean[2]
    assert f"The mean joined is {joined.mean[0]}, between" in joined.finding
    assert joined.mean[0] in joined.sure
    assert Distribution.from_dict(json.loads(json.dumps(joined.to_dict()))).mean == joined.mean
    assert "2024-01-01" in joined.plot().svg()
    months = Question("joined", Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "month"), "square-wave", epsilon=2)
    estimated = estimate_from(months, np.arange(N) % 12)
    assert estimated.labels[1] == "2024-02-01 to 2024-02-29"
    opened = Question("opened", Time(dt.time(8), dt.time(20), "15-minutes"), "randomized-response", epsilon=2)
    assert estimate_from(opened, np.arange(N) % 49).labels[1] == "08:15 to 08:29"
    married = Question("married", Boolean("value"), "randomized-response", epsilon=2)
    assert estimate_from(married, np.arange(N) % 3).labels == ("false", "true", "missing")


def test_runs_of_dates_name_their_first_and_last_day() -> None:
    quarters = Question("joined", Date(dt.date(2000, 1, 1), dt.date(2024, 12, 31), "quarter"), "square-wave", epsilon=2)
    runs = estimate_from(quarters, np.arange(N) % 100).runs(4)
    assert [run.label for run in runs][-1] == "2018-10-01 to 2024-12-31"


def test_from_the_client_to_the_estimate(tmp_path: Path) -> None:
    """Five hundred people; alpha below 1e-6: the share of north is off by less than 12 standard errors."""
    _, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    people = [{"age": 20 + n % 30, "town": "north" if n % 4 else "south", "shop": "east"} for n in range(500)]
    sent = [survey.client().randomize(person) for person in people[:20]]
    source = SeededBytes("survey")
    sent += [Client(SHOPPERS.public_dict(), source=source).randomize(person) for person in people[20:]]
    assert survey.submit(json.loads(json.dumps(sent))).accepted == 500
    town = survey.distribution("town")
    assert town.labels == ("north", "south", "east", "missing")
    assert abs(town.unbiased[0] - 0.75) < 12 * town.errors[0]
    estimates = survey.estimates()
    assert list(estimates) == ["age", "town", "shop"]
    assert all(
        abs(distribution.masses.sum() - 1) < 1e-9 and distribution.reports == 500 for distribution in estimates.values()
    )


TOWN = Question("town", Category(("a", "b", "c"), "dropped"), "unary", epsilon=1)


def test_values_that_are_equally_frequent_are_not_ranked() -> None:
    distribution = estimate_from(TOWN, np.arange(3_000) % 3)
    assert distribution.finding == "All values of town are equally frequent within the noise"
    assert distribution.to_dict()["finding"] == distribution.finding
    assert distribution.finding in distribution.plot().title


def test_value_above_all_others_is_called_the_most_frequent() -> None:
    distribution = estimate_from(TOWN, np.repeat([0, 1, 2], [16_000, 2_000, 2_000]))
    assert distribution.finding.startswith("The most frequent town is a: ")


def test_two_frequent_values_are_compared_with_the_third_only() -> None:
    distribution = estimate_from(TOWN, np.repeat([0, 1, 2], [9_500, 9_500, 1_000]))
    assert " is more frequent than c (difference " in distribution.finding


def test_rankings_of_equally_frequent_values_are_rare() -> None:
    """200 surveys: at most 5% may rank anything; 3 standard errors are allowed."""
    claimed = sum(
        "equally" not in estimate_from(TOWN, np.arange(600) % 3, seed=f"equal {n}").finding for n in range(200)
    )
    assert claimed / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize("operator", ["randomized-response", "unary", "subset"])
def test_shares_of_categories_are_estimated_within_their_errors(operator: str) -> None:
    """alpha 4e-9 in all: five shares each within 6.5 standard errors (normal; seeds are fixed)."""
    question = Question("town", Category(("a", "b", "c", "d"), "value"), operator, epsilon=1)
    known = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    distribution = estimate_from(question, np.repeat(np.arange(5), (known * N).astype(int)))
    assert np.all(np.abs(distribution.unbiased - known) < 6.5 * distribution.errors)
    assert np.all((distribution.low <= distribution.masses) & (distribution.masses <= distribution.high))
    assert distribution.low[0] < 0.5 < distribution.high[0]
    assert distribution.high[4] > distribution.errors[4], "a share that came out below zero is not sure to be zero"
    wrong = estimate_from(question, np.repeat(np.arange(5), (known[::-1] * N).astype(int)))
    assert not np.all(np.abs(wrong.unbiased - known) < 6.5 * wrong.errors)


def test_distribution_of_numbers_is_near_the_truth_and_raw_equals_the_reports() -> None:
    truth = ages()
    distribution = estimate_from(AGE, truth)
    known = np.bincount(truth, minlength=45) / N
    operator, counts = count_reports(AGE, truth, "survey")
    assert np.abs(distribution.masses - known).sum() < 0.15 < np.abs(distribution.masses - known[::-1]).sum()
    assert np.mean((distribution.low <= known) & (known <= distribution.high)) > 0.8
    assert distribution.raw.tolist() == (counts.counts / N).tolist()
    assert distribution.first == -(operator.report_size - 45) // 2
    assert distribution.mean[1] < 16 + truth.mean() < distribution.mean[2]
    assert distribution.mean[1] < distribution.mean[0] < distribution.mean[2]
    assert "the mean is" in distribution.sure


def test_published_methods_state_that_they_have_no_error_bounds() -> None:
    distribution = estimate_from(AGE, ages(), method="em")
    assert distribution.low is None
    assert distribution.mean is None
    assert "has no error bounds" in distribution.sure
    assert distribution.to_dict()["low"] is None
    assert distribution.runs(5)[0].low is None
    strict = estimate_from(AGE, ages(), method="em", band="strict")
    assert strict.low is not None
    assert np.all(strict.low <= strict.masses + 1e-6)


def test_listed_values_and_atoms_are_passed_on() -> None:
    truth = np.random.default_rng(2).choice([4, 24], N)
    listed = estimate_from(AGE, truth, values=[20, 40])
    assert np.flatnonzero(listed.masses).tolist() == [4, 24]
    atoms = estimate_from(AGE, truth, atoms=True)
    assert atoms.masses[[4, 24]].sum() > 0.9


def test_unequal_bins_have_their_own_labels() -> None:
    binned = Question("age", Integer(16, 60, (18, 25, 40)), "square-wave", epsilon=3)
    distribution = estimate_from(binned, np.random.default_rng(3).integers(0, 4, N))
    assert distribution.labels == ("16 to 17", "18 to 24", "25 to 39", "40 to 60")
    assert distribution.scale is None
    assert distribution.mean is None
    assert abs(distribution.masses - 0.25).max() < 0.05


def test_many_values_are_shown_in_few_rows() -> None:
    distribution = estimate_from(
        Question("income", Integer(0, 999), "square-wave", epsilon=3), np.repeat(np.arange(1000), 20)
    )
    rows = distribution.runs(10)
    assert [row.label for row in rows][:2] == ["0 to 99", "100 to 199"]
    assert abs(sum(row.mass for row in rows) - 1) < 1e-9
    assert all(row.low <= row.mass <= row.high for row in rows)
    towns = estimate_from(
        Question("town", Category(tuple(range(90))), "subset", epsilon=3), np.repeat(np.arange(90), 50)
    )
    assert [row.mass for row in towns.runs(7)] == sorted(towns.masses.tolist(), reverse=True)[:7]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bnak"}, "bank"),
        ({"confidence": 1.5}, "between 0 and 1"),
        ({"band": "wide"}, "Unknown kind of band"),
    ],
)
def test_unknown_questions_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Unsupported) as refused:
        estimate_from(AGE, ages(people=500), **options)
    assert message in str(refused.value)


def test_estimates_need_a_report(tmp_path: Path) -> None:
    _, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    with pytest.raises(Unsupported, match="no counted report yet"):
        survey.distribution("age")
    with pytest.raises(Unsupported, match="no counted report yet"):
        survey.codes("age")
    with pytest.raises(Unsupported) as refused:
        survey.distribution("agee")
    assert "age" in refused.value.do
    with pytest.raises(Unsupported, match="no collection called"):
        tg.open(policy_of(), ledger=str(tmp_path / "p.ledger")).collect("voters")


def test_reports_of_several_questions_stay_aligned(tmp_path: Path) -> None:
    _, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    survey.submit(reports(0, 40))
    survey.submit(reports(40, 25))
    codes = survey.codes("town", "age")
    bits = np.unpackbits(codes["town"], axis=1, bitorder="little", count=4)
    rows = sorted((age, np.flatnonzero(row).tolist()) for age, row in zip(codes["age"].tolist(), bits, strict=True))
    assert rows == sorted(
        (sent_report["answers"]["age"], sent_report["answers"]["town"]) for sent_report in reports(0, 65)
    )


@pytest.mark.spark
def test_spark_recount_equals_the_counts(spark: Any, tmp_path: Path) -> None:
    _, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    for first in (0, 200):
        survey.submit(reports(first, 200))
    for engine in ("spark", "duckdb"):
        again = survey.recount(engine)
        assert {name: counts.tolist() for name, counts in again.items()} == {
            name: survey.counts(name).tolist() for name in SHOPPERS.questions
        }
    assert survey.verify("spark") == []


def test_policy_states_where_reports_are_stored(tmp_path: Path) -> None:
    policy = policy_of(reports=str(tmp_path / "elsewhere"))
    assert "elsewhere" not in json.dumps(policy.public_dict())
    with tg.open(policy, ledger=str(tmp_path / "p.ledger")) as session:
        survey = session.collect()
        survey.submit([report(1)])
        assert Path(survey.files()[0]).is_relative_to(tmp_path / "elsewhere")
    with tg.open(policy_of(), ledger=str(tmp_path / "q.ledger")) as session:
        beside = session.collect()
        beside.submit([report(1)])
        assert Path(beside.files()[0]).is_relative_to(tmp_path / "q.ledger.reports")


@pytest.mark.long  # starts a process; test_extras.py tests imports
def test_reports_are_accepted_without_the_libraries_of_the_estimate(tmp_path: Path) -> None:
    """In a process of its own: opening and submitting load no scipy and no numba."""
    program = (
        "import sys; from collect.surveys import open_survey, reports;"
        f"survey = open_survey({str(tmp_path / 'p.ledger')!r}, {str(tmp_path / 'r')!r})[1];"
        "assert survey.submit(reports(0, 5)).accepted == 5;"
        "print([name for name in ('scipy', 'numba', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent
    )
    assert process.stdout.strip() == "[]"


# Pictures


@pytest.mark.parametrize("kind", ["numbers", "bins", "categories", "many categories"])
def test_chart_has_raw_reports_distribution_and_band(tmp_path: Path, kind: str) -> None:
    questions = {
        "numbers": Question("age", Integer(16, 60), "gaussian-noise", privacy=1),
        "bins": Question("age", Integer(16, 60, (18, 25, 40)), "square-wave", epsilon=3),
        "categories": Question("town", Category(("a", "b", "c")), "unary", epsilon=1),
        "many categories": Question("town", Category(tuple(range(80))), "subset", epsilon=4),
    }
    question = questions[kind]
    distribution = estimate_from(question, np.random.default_rng(4).integers(0, question.size, 3_000))
    distribution.plot(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert distribution._repr_svg_().startswith("<svg")
    labels = [mark.label for mark in distribution.plot().marks]
    assert len(labels) == 3
    assert "95%" in " ".join(labels)
    assert "3,000 randomized reports" in distribution.plot().title
    assert distribution.plot().table is not None


def test_chart_file_needs_a_known_suffix(tmp_path: Path) -> None:
    distribution = estimate_from(Question("town", Category(("a", "b", "c")), "unary", epsilon=1), [0, 1, 2])
    with pytest.raises(Unsupported, match=r"\.svg or \.png"):
        distribution.plot(tmp_path / "x.doc")
    with pytest.raises(tg.TidegateError, match="cannot be written"):
        distribution.plot(tmp_path / "no" / "x.png")


def test_distribution_converts_to_json_values() -> None:
    distribution = estimate_from(Collection("c", {"age": AGE}).questions["age"], ages(people=2_000))
    parsed = json.loads(json.dumps(distribution.to_dict()))
    assert len(parsed["masses"]) == len(parsed["labels"]) == len(parsed["low"]) == 45
    assert parsed["mean"]["low"] < parsed["mean"]["estimate"] < parsed["mean"]["high"]
    assert parsed["sure"] == distribution.sure
