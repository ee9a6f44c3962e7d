"""Hybrid: unbiased scores, the exact channel, the published variances, and means with their intervals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from collect.surveys import open_survey
from golden.papers import paper

from tidegate.collect.adviser import advise
from tidegate.collect.means import Mean
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.operators import Hybrid
from tidegate.operators.exact_draws import ONE, SeededBytes, exp_below
from tidegate.policy import Category, Collection, Grid, Integer, Question
from tidegate.testing.operators import check_operator

F = Fraction
PAY = Grid(0, 10, "0.5")


@pytest.mark.parametrize(("values", "epsilon"), [(2, F(1, 2)), (2, F(2)), (4, F(1))])
def test_contract_holds(values: int, epsilon: Fraction) -> None:
    operator = Hybrid(values, epsilon=epsilon)
    check_operator(operator, draws=4_000).refuse()
    assert operator.gamma * ONE <= exp_below(epsilon)


@pytest.mark.parametrize("values", [2, 3, 21, 1_500])
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(4)], ids=str)
def test_scores_are_unbiased_with_the_stated_variance(values: int, epsilon: Fraction) -> None:
    operator = Hybrid(values, epsilon=epsilon)
    scores = operator.scores()
    for value in {0, 1, values // 2, values - 1}:
        chances = operator.column(value)
        assert chances.sum() == pytest.approx(1)
        assert scores @ chances == pytest.approx(value, abs=1e-8 * values)
        assert (scores - value) ** 2 @ chances == pytest.approx(operator.noise_variance(value), rel=1e-9)
        assert operator.noise_variance(value) <= operator.variance() * (1 + 1e-12)
    assert scores[-1] == pytest.approx(float(operator.score(operator.report_size - 1)))
    assert scores[0] == pytest.approx(float(operator.score(0)))


@paper("Wang et al. 2019")
@pytest.mark.parametrize(("epsilon", "variance"), [(1, 4.29), (2, 1.04), (4, 0.219)])
@pytest.mark.parametrize("values", [2, 11, 101, 10_001])
def test_largest_variance_is_the_published_one(values: int, epsilon: int, variance: float) -> None:
    """On [-1, 1]. The grid of positions costs less than 1%."""
    operator = Hybrid(values, epsilon=F(epsilon))
    assert operator.variance() * (2 / (values - 1)) ** 2 == pytest.approx(variance, rel=0.01)


def covered(runs: int, seed: int) -> float:
    """How often the interval contains the mean of the population, for skewed values."""
    rng, hits = np.random.default_rng(seed), 0
    operator = Hybrid(21, epsilon=F(2))
    weights = rng.dirichlet(np.linspace(0.2, 3, 21))
    chances = weights @ np.array([operator.column(value) for value in range(21)])
    scores, truth = operator.scores(), float(weights @ np.arange(21))
    for _ in range(runs):
        counts = rng.multinomial(1_000, chances / chances.sum())
        mean = scores @ counts / 1_000
        spread = (scores - mean) ** 2 @ counts / 999
        hits += abs(mean - truth) <= 1.96 * np.sqrt(spread / 1_000)
    return hits / runs


def test_intervals_cover_the_mean() -> None:
    assert covered(400, 1) == pytest.approx(0.95, abs=0.04)


@pytest.mark.long
def test_intervals_cover_95_percent() -> None:
    assert covered(5_000, 2) == pytest.approx(0.95, abs=0.02)


def test_survey_estimates_the_mean_and_no_distribution(tmp_path: Path) -> None:
    questions = {
        "pay": Question("pay", PAY, "hybrid", epsilon=3),
        "hours": Question("hours", Integer(0, 9), "square-wave", epsilon=3),
        "binned": Question("age", Integer(0, 99, (18, 60)), "square-wave", epsilon=3),
        "town": Question("town", Category(("a", "b")), "randomized-response", epsilon=3),
    }
    poll = Collection("poll", questions)
    session, survey = open_survey(f"sqlite:///{tmp_path}/l.db", tmp_path / "r", poll)
    with session:
        with pytest.raises(Unsupported, match="no counted report"):
            survey.mean("pay")
        source, reports = SeededBytes("pay"), []
        for number in range(600):
            codes = {"pay": 6 if number % 3 else 18, "hours": 4, "binned": 1, "town": 0}
            drawn = {name: operator.sample(codes[name], source) for name, operator in survey.operators.items()}
            about = {"collection": "poll", "fingerprint": poll.fingerprint, "version": 1}
            reports.append({**about, "answers": drawn, "id": f"{number:032x}"})
        assert survey.submit(reports).accepted == 600
        mean = survey.mean("pay")
        assert mean.low < 5 < mean.high  # two thirds at 3, one third at 9
        assert mean.high - mean.low < 1.5
        assert str(mean).startswith("The mean pay is ")
        assert Mean.from_dict(json.loads(json.dumps(mean.to_dict()))) == mean
        assert "pay" not in survey.estimable
        with pytest.raises(Unsupported, match="a mean and no distribution"):
            survey.distribution("pay")
        assert survey.mean("hours").low <= 4 <= survey.mean("hours").high
        for name, problem in (("town", "not about a number"), ("binned", "has bins"), ("size", "not a question")):
            with pytest.raises(Unsupported, match=problem):
                survey.mean(name)
        texts = survey.client().tell({"pay": 3, "hours": 4, "binned": 30, "town": "a"})
        assert texts[0].startswith("pay: We will send ")


def test_bins_are_refused() -> None:
    with pytest.raises(PolicyUnreadable, match="has bins or is a date"):
        Question("age", Integer(0, 99, (18, 60)), "hybrid", epsilon=1)


def test_adviser_states_the_error_of_the_mean_without_features() -> None:
    advice = advise(PAY, clients=10_000, epsilon=1)
    [option] = [option for option in advice.options if option.operator == "hybrid"]
    assert option.features is None
    assert option.error == min(other.error for other in advice.options if other.error is not None)
    assert advice.best.operator == "square-wave"
