"""Sampled claims on the results of polls: intervals cover, equal options are not ranked, and false reports stay in their range.

Each run is a poll of 800 to 1,000 people whose reports come from the exact channel. Coverage is the mean over options whose
share is at least 2 standard errors: the intervals of smaller ones are around 0 as well and cover more often.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from claims.probabilities import SEED
from collect.simulated_survey import SimulatedSurvey, draw, poll_of

from tidegate.collect.means import estimate_mean, mean_scores
from tidegate.collect.polls.estimates import estimate_question
from tidegate.collect.polls.question_result import QuestionResult
from tidegate.collect.reconstruct.heaping import rounding
from tidegate.operators import ChoiceOperator, Operator
from tidegate.policy.collection import operator_for

PEOPLE = 1_000
CHOICES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "randomized-response": (4, "randomized-response", {"epsilon": 1}),
    "random": (3, "randomized-response", {"random": "1/3"}),
    "subset": (5, "subset", {"epsilon": 1}),
    "unary": (5, "unary", {"epsilon": 2}),
    "projective-geometry": (13, "projective-geometry", {"epsilon": 3}),
    "privset": (5, "privset", {"epsilon": 2, "choose": 2}),
    "one-option": (4, "one-option", {"epsilon": 2}),
}
NUMBERS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "square-wave 1": (73, "square-wave", {"epsilon": 1}),
    "square-wave 3": (73, "square-wave", {"epsilon": 3}),
    "hybrid 1": (101, "hybrid", {"epsilon": 1}),
    "hybrid 2": (101, "hybrid", {"epsilon": 2}),
    "hybrid 4": (11, "hybrid", {"epsilon": 4}),
}


def rng_of(name: str) -> np.random.Generator:
    print(f"TIDEGATE_SEED={SEED}")
    return np.random.default_rng(list(f"{SEED}/{name}".encode()))


def truth_of(operator: Operator) -> dict[Any, float]:
    """Return the shares of values, falling by half; or of sets of options, with each share from .1 to .6."""
    if isinstance(operator, ChoiceOperator):
        sets = [s for size in range(min(2, operator.choose) + 1) for s in combinations(range(operator.items), size)]
        weights = [1 + 3 * (0 in chosen) + 1 * (1 in chosen) for chosen in sets]
        return {chosen: weight / sum(weights) for chosen, weight in zip(sets, weights, strict=True)}
    if operator.ordered:
        weights = np.exp(-np.linspace(0, 2, operator.values))
    else:
        weights = np.maximum(0.5 ** np.arange(operator.values), 0.01)
    return dict(enumerate((weights / weights.sum()).tolist()))


def shares_of(operator: Operator, truth: dict[Any, float]) -> np.ndarray:
    if not isinstance(operator, ChoiceOperator):
        return np.array(list(truth.values()))
    return np.array([sum(share for chosen, share in truth.items() if item in chosen) for item in range(operator.items)])


def estimates(case: tuple[int, str, dict[str, Any]], runs: int, name: str, truth: Any = None) -> list[QuestionResult]:
    collection, rng = poll_of(question=case), rng_of(name)
    operator = operator_for(collection.questions["question"])
    truth = truth or truth_of(operator)
    surveys = (SimulatedSurvey(collection, {"question": draw(operator, truth, PEOPLE, rng)}) for _ in range(runs))
    return [estimate_question(survey, "question") for survey in surveys]


def coverage(case: tuple[int, str, dict[str, Any]], runs: int, name: str) -> float:
    operator = operator_for(poll_of(question=case).questions["question"])
    shares, hits = shares_of(operator, truth_of(operator)), []
    for result in estimates(case, runs, name):
        assert not result.too_few
        for option, share in zip(result.options, shares, strict=True):
            if share >= 2 * float(option.error or 0):
                hits.append(float(option.low or 0) <= share <= float(option.high or 0))
    return float(np.mean(hits))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CHOICES)
def test_intervals_of_options_cover_in_60_runs(name: str) -> None:
    """At least 60 nearly independent intervals, 95% each: a coverage below .85 has a chance below 0.002."""
    assert coverage(CHOICES[name], 60, name) > 0.85


@pytest.mark.long
@pytest.mark.parametrize("name", CHOICES)
def test_intervals_of_options_cover_95_percent(name: str) -> None:
    """1,000 runs: coverage is in [.93, .97] but for a chance of 0.004 for each operator, if a run counted once."""
    assert coverage(CHOICES[name], 1_000, name) == pytest.approx(0.95, abs=0.02)


def mean_coverage(name: str, runs: int, *, heaped: bool = False) -> float:
    """Return how often the interval of a mean covers it; `heaped`: of numbers that 60% of the people round to multiples of 5."""
    collection, rng = poll_of(question=NUMBERS[name]), rng_of(name)
    operator = operator_for(collection.questions["question"])
    shares = np.array(list(truth_of(operator).values()))
    shares = rounding(list(range(operator.values)), 5, 0.6) @ shares if heaped else shares
    truth, mean = (
        dict(enumerate((shares / shares.sum()).tolist())),
        float(np.arange(shares.size) @ shares / shares.sum()),
    )
    surveys = (SimulatedSurvey(collection, {"question": draw(operator, truth, PEOPLE, rng)}) for _ in range(runs))
    means = [estimate_mean(survey, "question") for survey in surveys]
    return float(np.mean([float(estimate.low) <= mean <= float(estimate.high) for estimate in means]))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NUMBERS)
def test_intervals_of_means_cover_in_100_runs(name: str) -> None:
    """100 intervals, 95% each: a coverage below .86 has a chance below 3e-4."""
    assert mean_coverage(name, 100) >= 0.86


@pytest.mark.long
@pytest.mark.parametrize("heaped", [False, True], ids=["smooth", "heaped"])
@pytest.mark.parametrize("name", NUMBERS)
def test_intervals_of_means_cover_95_percent(name: str, heaped: bool) -> None:
    """1,000 runs: coverage is in [.93, .97] but for a chance of 0.004 for each operator. Rounded numbers change nothing."""
    assert mean_coverage(name, 1_000, heaped=heaped) == pytest.approx(0.95, abs=0.02)


def equal_shares(name: str) -> dict[Any, float]:
    operator = operator_for(poll_of(question=CHOICES[name]).questions["question"])
    if isinstance(operator, ChoiceOperator):
        pairs = list(combinations(range(operator.items), 2))
        return dict.fromkeys(pairs, 1 / len(pairs))
    return dict.fromkeys(range(operator.values), 1 / operator.values)


@pytest.mark.long
@pytest.mark.parametrize("name", CHOICES)
def test_equal_options_are_ranked_in_at_most_5_percent_of_polls(name: str) -> None:
    """1,000 polls: more than 76 with a ranked pair have a chance of 2e-4 at a rate of 5%."""
    ranked = sum(bool(result.clear) for result in estimates(CHOICES[name], 1_000, f"equal {name}", equal_shares(name)))
    assert ranked <= 76


def forged(operator: Operator, option: int, *, for_it: bool) -> Any:
    """Return the report that raises (or lowers) the share of an option most."""
    if operator.name == "one-option":
        return 2 * option + int(for_it)
    if operator.form == "code":
        reports = range(operator.report_size)
        if operator.name == "projective-geometry":
            chances = operator.column(option)
            return int(chances.argmax() if for_it else chances.argmin())
        return option if for_it else next(report for report in reports if report != option)
    sets = [tuple(report) for report in operator.reports()]  # type: ignore[arg-type]
    return next(report for report in sets if (option in report) == for_it)


@pytest.mark.parametrize("for_it", [True, False], ids=["raised", "lowered"])
@pytest.mark.parametrize("name", CHOICES)
def test_range_for_false_reports_contains_the_honest_share(name: str, for_it: bool) -> None:
    """1% forged reports, all against one option: the estimate of the honest ones is in the range of all, to rounding."""
    collection, rng = poll_of(question=CHOICES[name]), rng_of(name)
    operator = operator_for(collection.questions["question"])
    sent = draw(operator, truth_of(operator), 990, rng)
    honest = estimate_question(SimulatedSurvey(collection, {"question": sent}), "question")
    for option in range(len(honest.options)):
        report = forged(operator, option, for_it=for_it)
        poisoned = {**sent, report: sent.get(report, 0) + 10}
        result = estimate_question(SimulatedSurvey(collection, {"question": poisoned}), "question").options[option]
        raw = float(np.clip(float(honest.options[option].raw or 0), 0, 1))
        assert float(result.low_poisoned or 0) - 1e-9 <= raw <= float(result.high_poisoned or 0) + 1e-9
        end = result.low_poisoned if for_it else result.high_poisoned
        if 0 < raw < 1 and result.share == result.raw:
            assert end == pytest.approx(raw, abs=1e-9), "the bound is reached"


@pytest.mark.parametrize("for_it", [True, False], ids=["raised", "lowered"])
@pytest.mark.parametrize("case", [*NUMBERS.values(), (61, "square-wave", {"epsilon": 2})], ids=str)
def test_range_for_false_reports_contains_the_honest_mean(case: tuple[int, str, dict[str, Any]], for_it: bool) -> None:
    """1% forged reports at one end of all possible ones. The honest mean is that of the unbiased scores."""
    collection, rng = poll_of(question=case), rng_of(str(case))
    operator = operator_for(collection.questions["question"])
    scores = mean_scores(operator)
    assert scores is not None
    truth = truth_of(operator)
    for value in (0, operator.values // 3, operator.values - 1):
        assert float(scores @ operator.column(value)) == pytest.approx(value, abs=1e-6), "the scores are unbiased"
    sent = draw(operator, truth, 990, rng)
    honest = sum(scores[report] * number for report, number in sent.items()) / 990
    report = int(scores.argmax() if for_it else scores.argmin())
    poisoned = {**sent, report: sent.get(report, 0) + 10}
    mean = estimate_mean(SimulatedSurvey(collection, {"question": poisoned}), "question")
    low, high = float(mean.low_poisoned or 0), float(mean.high_poisoned or 0)
    assert low - 1e-6 <= honest <= high + 1e-6
    if low > 0 and high < operator.values - 1:
        assert (low if for_it else high) == pytest.approx(honest, abs=1e-6), "the bound is reached"


def test_mean_without_linear_scores_has_no_range_for_false_reports() -> None:
    """Laplace noise is clipped to the range, so that the expected report is not linear in the value."""
    collection, rng = poll_of(question=(61, "laplace-noise", {"epsilon": 2})), rng_of("laplace")
    operator = operator_for(collection.questions["question"])
    assert mean_scores(operator) is None
    sent = draw(operator, truth_of(operator), 500, rng)
    mean = estimate_mean(SimulatedSurvey(collection, {"question": sent}), "question")
    assert mean.low_poisoned is None
    assert mean.high_poisoned is None
