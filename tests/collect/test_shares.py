"""Questions about sets: the two operators for chosen options, and the table of shares for every operator on sets."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import open_survey, policy_of
from golden.papers import paper

from tidegate.accounting.respondent import respondent_loss
from tidegate.audit.collections.value_pairs import value_pairs
from tidegate.collect.shares import ShareTable
from tidegate.collect.survey import Survey
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.operators import BasketOperator, ChoiceOperator, OneOption, PrivSet
from tidegate.operators.exact_draws import ONE, SeededBytes, exp_below
from tidegate.policy import Collection, Integer, Items, Question
from tidegate.testing.operators import check_operator

F = Fraction
FIVE = Items(tuple("abcde"))
N = 2_000


def sets_of(items: int, most: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(most + 1) for chosen in combinations(range(items), size)]


def points(operator: ChoiceOperator, share: float) -> float:
    """Return the standard error in percentage points for N people, with their sampling."""
    return 100 * math.sqrt(operator.share_variance(share) / N)


@pytest.mark.parametrize("epsilon", [F(1, 2), F(2), F(5)], ids=str)
@pytest.mark.parametrize(("items", "choose"), [(5, 2), (4, 1), (3, 3), (2, 1)])
def test_privset_keeps_epsilon_and_is_unbiased_for_every_set(items: int, choose: int, epsilon: Fraction) -> None:
    operator = PrivSet(items, epsilon=epsilon, choose=choose)
    reports, sets = list(operator.reports()), sets_of(items, choose)
    table = [[operator.probability_of(report, chosen) for chosen in sets] for report in reports]
    assert all(sum(column) == 1 for column in zip(*table, strict=True))
    assert max(max(row) / min(row) for row in table) == operator.gamma
    assert operator.gamma * ONE <= exp_below(epsilon)
    for index, chosen in enumerate(sets):
        for option in range(items):
            seen = sum(row[index] for row, report in zip(table, reports, strict=True) if option in report)
            assert seen == (operator.p if option in chosen else operator.q)


@pytest.mark.parametrize(
    "operator", [PrivSet(3, epsilon=F(1), choose=3), OneOption(4, epsilon=F(1))], ids=lambda o: o.name
)
def test_contract_holds(operator: ChoiceOperator) -> None:
    check_operator(operator, draws=4_000).refuse()


def test_privset_draws_its_channel() -> None:
    """8,000 draws of one set; the stream is fixed."""
    operator, source = PrivSet(9, epsilon=F("0.3"), choose=2), SeededBytes("privset")
    assert operator.size > 1
    drawn = [tuple(operator.sample_basket([4, 1], source)) for _ in range(8_000)]
    for report in operator.reports():
        expected = 8_000 * float(operator.probability_of(report, [1, 4]))
        assert abs(drawn.count(tuple(report)) - expected) < 5 * math.sqrt(expected)


@paper("Wang et al. 2018 and spec")
@pytest.mark.parametrize(
    ("items", "choose", "errors"),
    [(8, 3, (11.9, 5.1, 1.9, 0.5)), (20, 3, (14.5, 6.5, 2.2, 0.6)), (50, 5, (19.7, 9.0, 3.2, 0.7))],
)
def test_error_of_a_rare_option_of_privset(items: int, choose: int, errors: tuple[float, ...]) -> None:
    operators = [PrivSet(items, epsilon=F(epsilon), choose=choose) for epsilon in ("0.5", "1", "2", "4")]
    assert [points(operator, 0.0) for operator in operators] == pytest.approx(errors, abs=0.051)


def test_error_of_privset_by_share() -> None:
    """The measured numbers are for the respondents alone, without their sampling, from 40 runs."""
    operator = PrivSet(8, epsilon=F(2), choose=3)
    of_noise = [math.sqrt(points(operator, f) ** 2 - 1e4 * f * (1 - f) / N) for f in (0.02, 0.3, 0.5)]
    assert of_noise == pytest.approx((1.9, 2.9, 3.4), abs=0.08)


@pytest.mark.parametrize(
    ("epsilon", "errors"),
    [(1, (4.1, 5.3, 6.7, 10.6, 16.8)), (2, (2.4, 3.1, 4.0, 6.3, 9.9)), (4, (1.9, 2.4, 3.0, 4.8, 7.6))],
)
def test_error_of_one_option(epsilon: int, errors: tuple[float, ...]) -> None:
    operators = [OneOption(items, epsilon=F(epsilon)) for items in (3, 5, 8, 20, 50)]
    assert [points(operator, 0.3) for operator in operators] == pytest.approx(errors, abs=0.051)


PLANS = [{"size": size, "keep": [F(1, 5), *[0] * (size - 1), F(4, 5)], "insert": F(size, 20)} for size in (1, 2, 3)]
QUESTIONS: dict[str, dict[str, Any]] = {
    "privset": {"operator": "privset", "epsilon": 2, "choose": 3},
    "one option": {"operator": "one-option", "epsilon": 3},
    "mask": {"operator": "mask", "keep": "0.8", "insert": "0.1"},
    "padded": {"operator": "cut-and-paste", "cutoff": 3, "rho": "0.1", "largest": 3, "fixed": 3},
    "sizes in clear": {"operator": "cut-and-paste", "cutoff": 3, "rho": "0.1", "largest": 3},
    "plans": {"operator": "select-a-size", "plans": [{"size": 0, "keep": [1], "insert": 0}, *PLANS]},
}


def survey_of(folder: Path, name: str) -> tuple[Any, Survey]:
    settings = dict(QUESTIONS[name])
    question = Question("liked", FIVE, settings.pop("operator"), **settings)
    return open_survey(f"sqlite:///{folder}/{name}.db", folder / name, Collection("poll", {"liked": question}))


def baskets(people: int, rng: np.random.Generator) -> list[list[int]]:
    """At most three of five options; "a" is the most frequent, "e" is never chosen."""
    chances = np.array([0.5, 0.3, 0.2, 0.05, 0.0])
    drawn = rng.random((people, 5)) < chances
    return [np.flatnonzero(row)[:3].tolist() for row in drawn]


def reports_of(survey: Survey, chosen: Sequence[Sequence[int]], source: Any) -> list[dict[str, Any]]:
    operator, collection = survey.operators["liked"], survey.collection
    assert isinstance(operator, BasketOperator | ChoiceOperator)
    about = {"collection": "poll", "fingerprint": collection.fingerprint, "version": 1}
    answers = [operator.sample_basket(basket, source) for basket in chosen]
    return [{**about, "answers": {"liked": answer}, "id": f"{n:032x}"} for n, answer in enumerate(answers)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_table_of_shares_of_every_operator_on_sets(name: str, tmp_path: Path) -> None:
    session, survey = survey_of(tmp_path, name)
    with session:
        chosen = baskets(1_500, np.random.default_rng(3))
        with pytest.raises(Unsupported, match="no counted report"):
            survey.shares()
        assert survey.submit(reports_of(survey, chosen, SeededBytes(name))).accepted == 1_500
        table = survey.shares("liked")
        truth = np.array([sum(option in basket for basket in chosen) for option in range(5)]) / 1_500
        assert (np.abs(table.raw - truth) < 4 * table.errors).all()
        assert [row["option"] for row in table.rows()] == list("abcde")
        assert all(0 <= row["low"] <= row["share"] <= row["high"] <= 1 for row in table.rows())
        again = ShareTable.from_dict(json.loads(json.dumps(table.to_dict())))
        assert again.rows() == table.rows()
        assert again.errors.tolist() == table.errors.tolist()
        assert "a: " in str(table)
        assert list(table.to_pandas()["option"]) == list("abcde")
        if name in ("privset", "one option"):
            pair = value_pairs(survey.collection.questions["liked"], survey.operators["liked"])[0]
            assert pair.loss == pytest.approx(survey.operators["liked"].epsilon, abs=1e-9)
            assert respondent_loss(survey.collection).questions["liked"] == QUESTIONS[name]["epsilon"]
            with pytest.raises(Unsupported, match="no questions about a basket"):
                survey.rules(min_support=0.1)


def test_shares_need_an_identified_question_about_a_set(tmp_path: Path) -> None:
    blind = Question("liked", FIVE, "mask", keep="0.5", insert="0.5")
    number = Question("age", Integer(0, 9), "square-wave", epsilon=1)
    poll = Collection("poll", {"liked": blind, "age": number})
    session, survey = open_survey(f"sqlite:///{tmp_path}/l.db", tmp_path / "r", poll)
    with session:
        report = survey.client().randomize({"liked": ["a"], "age": 3})
        survey.submit([report])
        with pytest.raises(Unsupported, match="not identified"):
            survey.shares("liked")
        with pytest.raises(Unsupported, match="about one value"):
            survey.shares("age")
        with pytest.raises(Unsupported, match="between 0 and 1"):
            survey.shares("liked", confidence=1.0)
        with pytest.raises(Unsupported, match="not a question"):
            survey.shares("disliked")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"epsilon": 1}, "needs choose"),
        ({"epsilon": 1, "choose": 0}, "whole number from 1 to 5"),
        ({"epsilon": 1, "choose": 6}, "whole number from 1 to 5"),
        ({"epsilon": 21, "choose": 2}, "must be from 0.001 to 20"),
    ],
)
def test_invalid_limits_are_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyUnreadable) as refused:
        Question("liked", FIVE, "privset", **parameters)
    assert problem in str(refused.value)


def test_client_explains_its_report_and_refuses_too_many_options(tmp_path: Path) -> None:
    session, survey = survey_of(tmp_path, "privset")
    with session:
        client = survey.client()
        assert "One that you chose is on it with probability" in client.tell({"liked": ["a", "c"]})[0]
        with pytest.raises(Unsupported, match="At most 3 options"):
            client.randomize({"liked": list("abcd")})
    session, survey = survey_of(tmp_path, "one option")
    with session:
        assert "The option was drawn at random" in survey.client().tell({"liked": ["a", "c"]})[0]


def covered(operator: ChoiceOperator, runs: int, seed: int) -> float:
    """How often the interval of a chosen option contains its share in the population. Reports are drawn by class of set."""
    rng, hits = np.random.default_rng(seed), []
    sets = sets_of(5, 2)
    weights = rng.dirichlet(np.full(len(sets), 0.7))
    truth = np.array([sum(w for w, chosen in zip(weights, sets, strict=True) if o in chosen) for o in range(5)])
    channel = np.array([[float(operator.probability_of(z, chosen)) for z in operator.reports()] for chosen in sets])
    reports = list(operator.reports())
    for _ in range(runs):
        drawn = rng.multinomial(N, weights @ channel)
        counts = np.zeros(operator.report_size, np.int64)
        for report, number in zip(reports, drawn, strict=True):
            counts[report] += number
        supporting, total = map(np.array, operator.seen(counts.tolist(), N))
        p, q = float(operator.p), float(operator.q)
        raw = (supporting / total - q) / (p - q)
        seen = q + (p - q) * np.clip(raw, 0, 1)
        hits.append(np.abs(raw - truth) <= 1.96 * np.sqrt(seen * (1 - seen) / total) / (p - q))
    return float(np.mean(hits))


CHOICES = [PrivSet(5, epsilon=F(1), choose=2), OneOption(5, epsilon=F(2))]


@pytest.mark.parametrize("operator", CHOICES, ids=lambda operator: operator.name)
def test_intervals_cover_the_share(operator: ChoiceOperator) -> None:
    assert covered(operator, 60, 4) > 0.9  # 300 intervals


@pytest.mark.long
@pytest.mark.parametrize("operator", CHOICES, ids=lambda operator: operator.name)
def test_intervals_cover_95_percent(operator: ChoiceOperator) -> None:
    assert covered(operator, 2_000, 5) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("operator", CHOICES, ids=lambda operator: operator.name)
def test_variance_is_that_of_theory(operator: ChoiceOperator) -> None:
    """20,000 estimates of one option from single reports, so that the sample variance is within 2%."""
    rng = np.random.default_rng(6)
    reports = list(operator.reports())
    chances = [
        0.3 * float(operator.probability_of(z, [0])) + 0.7 * float(operator.probability_of(z, [1])) for z in reports
    ]
    drawn = rng.multinomial(N, chances, size=20_000)
    estimates = []
    for row in drawn:
        counts = np.zeros(operator.report_size, np.int64)
        for report, number in zip(reports, row, strict=True):
            counts[report] += number
        supporting, total = operator.seen(counts.tolist(), N)
        estimates.append((supporting[0] / total[0] - float(operator.q)) / float(operator.p - operator.q))
    assert np.var(estimates) * N == pytest.approx(operator.share_variance(0.3), rel=0.02)


def test_policy_states_the_limit(tmp_path: Path) -> None:
    question = Question("liked", FIVE, "privset", epsilon=1, choose=2)
    policy = policy_of(Collection("poll", {"liked": question}))
    assert str(policy.collections["poll"].questions["liked"]) == "liked by privset with epsilon 1 and choose 2"
