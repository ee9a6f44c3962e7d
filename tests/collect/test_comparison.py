"""Differences instead of rankings, and nothing from too few answers."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from collect.surveys import open_survey, policy_of, reports
from typer.testing import CliRunner

import tidegate as tg
from tidegate.cli.app import app
from tidegate.collect.client import Client
from tidegate.collect.comparison import Difference, difference_errors, differences, too_few
from tidegate.collect.reconstruct import shares
from tidegate.operators import Pure, RandomizedResponse, SubsetSelection, Unary
from tidegate.policy import Category, Collection, Question
from tidegate.policy.toml import write_policy

F = Fraction
SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261117
OPERATORS: dict[str, Pure] = {
    "response": RandomizedResponse(4, epsilon=F(1)),
    "unary": Unary(4, epsilon=F(2)),
    "subset": SubsetSelection(4, epsilon=F("0.5")),
}


def simulated_shares(operator: Pure, truth: list[float], *, people: int, runs: int) -> np.ndarray:
    """Return unbiased shares of many runs, (runs, values), from reports drawn by the exact channel."""
    rng = np.random.default_rng(SEED)
    every = list(operator.reports())
    member = np.array([[value in np.atleast_1d(report) for value in range(operator.values)] for report in every])
    chances = np.array([operator.column(value) for value in range(operator.values)])
    mixture = np.array(truth) @ chances
    counts = rng.multinomial(people, mixture / mixture.sum(), size=runs)
    support = operator.support()
    return (counts @ member / people - support.false) / (support.true - support.false)


@pytest.mark.parametrize("name", OPERATORS)
def test_difference_error_equals_that_of_the_exact_channel(name: str) -> None:
    operator, truth = OPERATORS[name], np.array([0.4, 0.3, 0.2, 0.1])
    every = list(operator.reports())
    chances = np.array([operator.column(value) for value in range(4)]).T @ truth
    errors = difference_errors(truth, 100, operator.support())
    for first, second in ((0, 1), (0, 3), (2, 1)):
        gaps = np.array([int(first in np.atleast_1d(r)) - int(second in np.atleast_1d(r)) for r in every])
        variance = chances @ gaps**2 - (chances @ gaps) ** 2
        apart = operator.support().true - operator.support().false
        assert errors[first, second] == pytest.approx(np.sqrt(variance / 100) / apart)
    assert (np.diag(errors) == 0).all()


@pytest.mark.claim
@pytest.mark.parametrize("name", OPERATORS)
def test_interval_of_a_difference_covers_it_95_times_in_100(name: str) -> None:
    """1,000 runs: coverage is in [.93, .97] but for a chance of 0.004 for each operator."""
    operator, truth = OPERATORS[name], [0.4, 0.3, 0.2, 0.1]
    raw = simulated_shares(operator, truth, people=2000, runs=1000)
    support, covered = operator.support(), 0
    for estimate in raw:
        masses = shares((support.false + (support.true - support.false) * estimate) * 2000, total=2000, support=support)
        error = difference_errors(masses.masses, 2000, support)[0, 1]
        covered += abs(estimate[0] - estimate[1] - 0.1) <= 1.959964 * error
    assert 0.93 <= covered / 1000 <= 0.97


@pytest.mark.claim
def test_equal_options_are_ranked_in_at_most_5_percent_of_runs() -> None:
    """400 runs without any difference: more than 38 with a ranked pair have a chance of 2e-4 at a rate of 5%."""
    operator = OPERATORS["response"]
    raw = simulated_shares(operator, [0.25] * 4, people=1000, runs=400)
    errors = difference_errors(np.full(4, 0.25), 1000, operator.support())
    ranked = sum(any(gap.is_clear for gap in differences(estimate, errors, list("abcd"))) for estimate in raw)
    assert ranked <= 38
    narrow = sum(any(gap.is_clear for gap in differences(estimate, errors / 2, list("abcd"))) for estimate in raw)
    assert narrow > 38, "half the error is detected"


def test_options_are_ranked_only_if_the_interval_excludes_zero() -> None:
    operator = OPERATORS["response"]
    errors = difference_errors(np.array([0.5, 0.3, 0.19, 0.01]), 400, operator.support())
    gaps = differences(np.array([0.5, 0.3, 0.19, 0.01]), errors, list("abcd"))
    assert [(gap.first, gap.second) for gap in gaps] == [(x, y) for x, y in ("ab", "ac", "ad", "bc", "bd", "cd")]
    for gap in gaps:
        assert gap.is_clear == (gap.low > 0)
        assert gap.low < gap.estimate < gap.high
    assert [gap.is_clear for gap in gaps] == [False, False, True, False, True, False]
    assert str(Difference("a", "b", 0.2, 0.05, 0.35)) == "a is more frequent than b by 5 to 35 points"
    assert str(Difference("a", "b", 0.2, -0.05, 0.45)) == "a and b differ by -5 to 45 points, which includes 0"
    assert Difference.from_dict(gaps[0].to_dict()) == gaps[0]


def test_few_reports_or_wide_intervals_say_nothing() -> None:
    assert too_few(29, 0.1) == "Too few answers to say: 29 of at least 30."
    assert too_few(30, 0.6) == ""
    assert too_few(30, 0.61) == (
        "Too few answers to say: the widest interval spans 61 percentage points, more than 60."
    )


def test_result_of_too_few_answers_shows_no_shares(tmp_path: Path) -> None:
    session, survey = open_survey(f"{tmp_path}/l.ledger", tmp_path / "r")
    with session:
        survey.submit(reports(0, 20))
        few = survey.distribution("shop")
        survey.submit(reports(20, 3000))
        enough = survey.distribution("shop")
    assert few.finding == few.too_few.removesuffix(".") == "Too few answers to say: 20 of at least 30"
    assert few.to_dict()["too_few"] == few.too_few
    assert few.plot().empty == few.too_few
    assert (enough.too_few, enough.to_dict()["too_few"]) == ("", None)
    assert len(enough.differences()) == 6
    assert enough.to_dict()["differences"] == [gap.to_dict() for gap in enough.differences()]


def test_estimate_command_shows_differences_and_no_ranking(tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    town = Category(("north", "south", "east"))
    shoppers = Collection("shoppers", {"town": Question("town", town, "randomized-response", epsilon=4)})
    file.write_text(write_policy(policy_of(shoppers)), "utf-8")
    run = CliRunner().invoke
    answers = ["north"] * 14 + ["south"] * 6 + ["north"] * 280 + ["south"] * 120
    sent = [Client(shoppers.public_dict(), memory={}).randomize({"town": answer}) for answer in answers]
    with tg.open(file) as session:
        session.collect("shoppers").submit(sent[:20])
    few = " ".join(run(app, ["collect", "estimate", str(file), "shoppers", "town"]).output.split())
    assert "Too few answers to say: 20 of at least 30." in few
    assert "north" not in few
    with tg.open(file) as session:
        session.collect("shoppers").submit(sent[20:])
        clear = [gap for gap in session.collect("shoppers").distribution("town").differences() if gap.is_clear]
    output = " ".join(run(app, ["collect", "estimate", str(file), "shoppers", "town"]).output.split())
    assert "if 1% were false" in output
    assert "1% of the reports (5) are false" in output
    assert (clear[0].first, clear[0].second) == ("north", "south")
    assert f"Clear differences (95%, all pairs together): {clear[0]}" in output
