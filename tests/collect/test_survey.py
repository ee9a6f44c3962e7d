"""What reports say: the distribution, how sure it is, and the picture; from the client to the estimate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import SHOPPERS, opened, policy_of, report, reports
from tidegate_papers.simulation.values import BulkBits, sample_many

import tidegate as tg
from tidegate.collect.client import Client
from tidegate.collect.result import Distribution, estimate
from tidegate.errors import Unsupported
from tidegate.ledger.counts import Counted
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Collection, Integer, Question
from tidegate.policy.collection import operator_for
from tidegate.tables.segments import Column

N = 20_000


def counted(question: Question, truth: Any, seed: str) -> tuple[Any, Counted]:
    """The counts of the reports of true codes."""
    operator = operator_for(question)
    made = sample_many(operator, np.asarray(truth), BulkBits(seed))
    packed = made if operator.form == "code" else made.view(np.uint8).reshape(len(made), -1)
    return operator, Counted(len(made), Column(operator.form, operator.report_size).count(packed))


def of(question: Question, truth: Any, seed: str = "survey", **wanted: Any) -> Distribution:
    return estimate("it", question, *counted(question, truth, seed), **wanted)


def ages(seed: int = 1, many: int = N) -> Any:
    return np.clip(np.random.default_rng(seed).normal(20, 6, many).round(), 0, 44).astype(int)


AGE = Question("age", Integer(16, 60), "square-wave", epsilon=2)


def test_from_the_client_to_the_estimate(tmp_path: Path) -> None:
    """Five hundred people; alpha below 1e-6: the share of north is off by less than 12 standard errors."""
    _, survey = opened(str(tmp_path / "p.ledger"), tmp_path / "r")
    people = [{"age": 20 + n % 30, "town": "north" if n % 4 else "south", "shop": "east"} for n in range(500)]
    sent = [survey.client().randomize(person) for person in people[:20]]
    source = SeededBytes("survey")
    sent += [Client(SHOPPERS.public_dict(), source=source).randomize(person) for person in people[20:]]
    assert survey.submit(json.loads(json.dumps(sent))).accepted == 500
    town = survey.distribution("town")
    assert town.labels == ("north", "south", "east", "missing")
    assert abs(town.unbiased[0] - 0.75) < 12 * town.errors[0]
    found = survey.estimates()
    assert list(found) == ["age", "town", "shop"]
    assert all(abs(one.masses.sum() - 1) < 1e-9 and one.reports == 500 for one in found.values())


TOWN = Question("town", Category(("a", "b", "c"), "dropped"), "unary", epsilon=1)


def test_values_that_are_equally_frequent_are_not_ranked() -> None:
    found = of(TOWN, np.arange(3_000) % 3)
    assert found.finding == "All values of town are equally frequent within the noise"
    assert found.to_dict()["finding"] == found.finding
    assert found.finding in found.plot().title


def test_value_above_all_others_is_called_the_most_frequent() -> None:
    found = of(TOWN, np.repeat([0, 1, 2], [16_000, 2_000, 2_000]))
    assert found.finding.startswith("The most frequent town is a: ")


def test_two_frequent_values_are_compared_with_the_third_only() -> None:
    found = of(TOWN, np.repeat([0, 1, 2], [9_500, 9_500, 1_000]))
    assert " is more frequent than c (difference " in found.finding


def test_rankings_of_equally_frequent_values_are_rare() -> None:
    """200 surveys: at most 5% may rank anything; 3 standard errors are allowed."""
    claimed = sum("equally" not in of(TOWN, np.arange(600) % 3, seed=f"equal {n}").finding for n in range(200))
    assert claimed / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize("operator", ["randomized-response", "unary", "subset"])
def test_shares_of_categories_are_estimated_within_their_errors(operator: str) -> None:
    """alpha 4e-9 in all: five shares each within 6.5 standard errors (normal; seeds are fixed)."""
    question = Question("town", Category(("a", "b", "c", "d"), "value"), operator, epsilon=1)
    known = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    found = of(question, np.repeat(np.arange(5), (known * N).astype(int)))
    assert np.all(np.abs(found.unbiased - known) < 6.5 * found.errors)
    assert np.all((found.low <= found.masses) & (found.masses <= found.high))
    assert found.low[0] < 0.5 < found.high[0]
    assert found.high[4] > found.errors[4], "a share that came out below zero is not sure to be zero"
    wrong = of(question, np.repeat(np.arange(5), (known[::-1] * N).astype(int)))
    assert not np.all(np.abs(wrong.unbiased - known) < 6.5 * wrong.errors)


def test_distribution_of_numbers_is_near_the_truth_and_raw_equals_the_reports() -> None:
    truth = ages()
    found = of(AGE, truth)
    known = np.bincount(truth, minlength=45) / N
    operator, counts = counted(AGE, truth, "survey")
    assert np.abs(found.masses - known).sum() < 0.15 < np.abs(found.masses - known[::-1]).sum()
    assert np.mean((found.low <= known) & (known <= found.high)) > 0.8
    assert found.raw.tolist() == (counts.counts / N).tolist()
    assert found.first == -(operator.report_size - 45) // 2
    assert found.mean[1] < 16 + truth.mean() < found.mean[2]
    assert found.mean[1] < found.mean[0] < found.mean[2]
    assert "the mean is" in found.sure


def test_published_methods_state_that_they_have_no_error_bounds() -> None:
    found = of(AGE, ages(), method="em")
    assert found.low is None
    assert found.mean is None
    assert "has no error bounds" in found.sure
    assert found.to_dict()["low"] is None
    assert found.runs(5)[0].low is None
    strict = of(AGE, ages(), method="em", band="strict")
    assert strict.low is not None
    assert np.all(strict.low <= strict.masses + 1e-6)


def test_listed_values_and_atoms_are_passed_on() -> None:
    truth = np.random.default_rng(2).choice([4, 24], N)
    listed = of(AGE, truth, values=[20, 40])
    assert np.flatnonzero(listed.masses).tolist() == [4, 24]
    atoms = of(AGE, truth, atoms=True)
    assert atoms.masses[[4, 24]].sum() > 0.9


def test_unequal_bins_have_their_own_labels() -> None:
    binned = Question("age", Integer(16, 60, (18, 25, 40)), "square-wave", epsilon=3)
    found = of(binned, np.random.default_rng(3).integers(0, 4, N))
    assert found.labels == ("16 to 17", "18 to 24", "25 to 39", "40 to 60")
    assert found.scale is None
    assert found.mean is None
    assert abs(found.masses - 0.25).max() < 0.05


def test_many_values_are_shown_in_few_rows() -> None:
    found = of(Question("income", Integer(0, 999), "square-wave", epsilon=3), np.repeat(np.arange(1000), 20))
    rows = found.runs(10)
    assert [row.label for row in rows][:2] == ["0 to 99", "100 to 199"]
    assert abs(sum(row.mass for row in rows) - 1) < 1e-9
    assert all(row.low <= row.mass <= row.high for row in rows)
    towns = of(Question("town", Category(tuple(range(90))), "subset", epsilon=3), np.repeat(np.arange(90), 50))
    assert [row.mass for row in towns.runs(7)] == sorted(towns.masses.tolist(), reverse=True)[:7]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"method": "bnak"}, "bank"),
        ({"confidence": 1.5}, "between 0 and 1"),
        ({"band": "wide"}, "Unknown kind of band"),
    ],
)
def test_unknown_questions_are_refused(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(Unsupported) as refused:
        of(AGE, ages(many=500), **wanted)
    assert said in str(refused.value)


def test_estimates_need_a_report(tmp_path: Path) -> None:
    _, survey = opened(str(tmp_path / "p.ledger"), tmp_path / "r")
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
    _, survey = opened(str(tmp_path / "p.ledger"), tmp_path / "r")
    survey.submit(reports(0, 40))
    survey.submit(reports(40, 25))
    found = survey.codes("town", "age")
    bits = np.unpackbits(found["town"], axis=1, bitorder="little", count=4)
    rows = sorted((age, np.flatnonzero(row).tolist()) for age, row in zip(found["age"].tolist(), bits, strict=True))
    assert rows == sorted((one["answers"]["age"], one["answers"]["town"]) for one in reports(0, 65))


@pytest.mark.spark
def test_spark_recount_equals_the_counts(spark: Any, tmp_path: Path) -> None:
    _, survey = opened(str(tmp_path / "p.ledger"), tmp_path / "r")
    for first in (0, 200):
        survey.submit(reports(first, 200))
    for engine in ("spark", "duckdb"):
        again = survey.recount(engine)
        assert {name: found.tolist() for name, found in again.items()} == {
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


def test_reports_are_accepted_without_the_libraries_of_the_estimate(tmp_path: Path) -> None:
    """In a process of its own: opening and submitting load no scipy and no numba."""
    program = (
        "import sys; from collect.surveys import opened, reports;"
        f"survey = opened({str(tmp_path / 'p.ledger')!r}, {str(tmp_path / 'r')!r})[1];"
        "assert survey.submit(reports(0, 5)).accepted == 5;"
        "print([name for name in ('scipy', 'numba', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent
    )
    assert told.stdout.strip() == "[]"


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
    found = of(question, np.random.default_rng(4).integers(0, question.size, 3_000))
    found.plot(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert found._repr_svg_().startswith("<svg")
    labels = [mark.label for mark in found.plot().marks]
    assert len(labels) == 3
    assert "95%" in " ".join(labels)
    assert "3,000 randomized reports" in found.plot().title
    assert found.plot().table is not None


def test_chart_file_needs_a_known_suffix(tmp_path: Path) -> None:
    found = of(Question("town", Category(("a", "b", "c")), "unary", epsilon=1), [0, 1, 2])
    with pytest.raises(Unsupported, match=r"\.svg or \.png"):
        found.plot(tmp_path / "x.doc")
    with pytest.raises(tg.TidegateError, match="cannot be written"):
        found.plot(tmp_path / "no" / "x.png")


def test_distribution_converts_to_json_values() -> None:
    found = of(Collection("c", {"age": AGE}).questions["age"], ages(many=2_000))
    told = json.loads(json.dumps(found.to_dict()))
    assert len(told["masses"]) == len(told["labels"]) == len(told["low"]) == 45
    assert told["mean"]["low"] < told["mean"]["estimate"] < told["mean"]["high"]
    assert told["sure"] == found.sure
