"""False reports: the range contains the estimate of the honest reports for every forgery, and the worst one reaches its end."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import open_survey, reports

from tidegate.collect.baskets.recovery import channel, recover
from tidegate.collect.baskets.rules import RuleSet
from tidegate.collect.baskets.transitions import flip_moments
from tidegate.collect.poisoning import Poisoning, Scores, honest_range, itemset_scores, poisoning, share_scores
from tidegate.collect.reconstruct import shares
from tidegate.collect.result import Distribution
from tidegate.operators import Pure, RandomizedResponse, SubsetSelection, Support, Unary
from tidegate.operators.basket_plans import BasketPlan
from tidegate.operators.exact_draws import SeededBytes
from tidegate.operators.mask import Mask
from tidegate.policy import Collection, Question
from tidegate.policy.attributes import Items
from tidegate.policy.collection import operator_for

F = Fraction


@pytest.mark.parametrize(
    ("epsilon", "operator", "most", "least"),
    [
        (1, RandomizedResponse(2, epsilon=F(1)), 1.58, -0.58),
        (2, RandomizedResponse(2, epsilon=F(2)), 1.16, -0.16),
        (3, RandomizedResponse(2, epsilon=F(3)), 1.05, -0.05),
        (1, RandomizedResponse(20, epsilon=F(1)), 12.1, -0.58),
        (2, RandomizedResponse(20, epsilon=F(2)), 3.97, -0.16),
        (3, RandomizedResponse(20, epsilon=F(3)), 2.00, -0.05),
        (1, Unary(9, epsilon=F(1)), 3.16, -1.16),
        (2, Unary(9, epsilon=F(2)), 2.31, -0.31),
        (3, Unary(9, epsilon=F(3)), 2.10, -0.10),
        (1, SubsetSelection(20, epsilon=F(1)), 3.21, -1.00),
        (2, SubsetSelection(20, epsilon=F(2)), 2.49, -0.22),
        (3, SubsetSelection(20, epsilon=F(3)), 2.00, -0.05),
    ],
)
def test_scores_equal_the_table(epsilon: int, operator: Pure, most: float, least: float) -> None:
    scores = share_scores(operator.support())
    digits = 0.051 if most > 10 else 0.0051
    assert scores.most == pytest.approx(most, abs=digits)
    assert scores.least == pytest.approx(least, abs=0.0051)
    power = exp(epsilon)
    if isinstance(operator, RandomizedResponse):
        formula = (power + operator.values - 2) / (power - 1), -1 / (power - 1)
        assert (scores.most, scores.least) == pytest.approx(formula)
    if isinstance(operator, Unary):
        assert (scores.most, scores.least) == pytest.approx((2 * power / (power - 1), -2 / (power - 1)))


@pytest.mark.parametrize(
    ("epsilon", "prime", "most", "least"), [(1, 3, 2.75, -1.37), (2, 7, 2.10, -0.35), (3, 19, 2.00, -0.11)]
)
def test_scores_of_projective_geometry_equal_the_table(epsilon: int, prime: int, most: float, least: float) -> None:
    dimension, power = 12, exp(epsilon)
    points, plane, line = ((prime ** (dimension - less) - 1) / (prime - 1) for less in (0, 1, 2))
    base = 1 / (points + (power - 1) * plane)
    support = Support(power * base * plane, base * (power * line + plane - line), 0.0, 0.0)
    scores = share_scores(support)
    assert (scores.most, scores.least) == pytest.approx((most, least), abs=0.0051)
    formula = (power + prime - 1) / (power - 1), -(power + prime - 1) / ((prime - 1) * (power - 1))
    assert (scores.most, scores.least) == pytest.approx(formula, rel=1e-4)


def test_scores_of_a_sampled_question_are_those_of_one_question_times_their_number() -> None:
    binary = share_scores(RandomizedResponse(2, epsilon=F(1)).support())
    assert binary.times(5) == Scores(5 * binary.most, 5 * binary.least)
    assert binary.times(5).most == pytest.approx(5 * 1.58, abs=0.02)


def test_scores_of_itemsets_equal_their_formula() -> None:
    stay, come = F("0.8"), F("0.1")
    for items in (1, 2, 3):
        contrast = float(stay - come) ** items
        scores = [(0.9**seen) * ((-0.1) ** (items - seen)) / contrast for seen in range(items + 1)]
        found_scores = itemset_scores(flip_moments(stay, items), come, items)
        assert (found_scores.most, found_scores.least) == pytest.approx((max(scores), min(scores)))


PADDED = operator_for(
    Question("basket", Items(tuple("abcdef")), "cut-and-paste", cutoff=2, rho="0.2", largest=3, fixed=3)
)
OPERATORS: dict[str, Pure] = {
    "response": RandomizedResponse(4, epsilon=F(1)),
    "binary response": RandomizedResponse(2, epsilon=F(2)),
    "two layers": RandomizedResponse(3, epsilon=F(3), each=F(1)),
    "unary": Unary(4, epsilon=F(1)),
    "subset": SubsetSelection(5, epsilon=F("0.3")),
}


def supports(operator: Pure, sent: list[Any]) -> np.ndarray:
    """Return the number of reports that support each value."""
    counts = np.zeros(operator.values)
    for report in sent:
        counts[report] += 1
    return counts


@pytest.mark.parametrize("name", OPERATORS)
def test_range_contains_the_honest_estimate_for_every_forgery(name: str) -> None:
    operator, rng = OPERATORS[name], np.random.default_rng(7)
    every = list(operator.reports())
    support = operator.support()
    honest = [every[index] for index in rng.integers(len(every), size=40)]
    alone = shares(supports(operator, honest), total=40, support=support).raw
    reached_low, reached_high = np.zeros(operator.values, bool), np.zeros(operator.values, bool)
    for forged in combinations_with_replacement(every, 2):
        counts = supports(operator, [*honest, *forged])
        estimate = shares(counts, total=42, support=support).raw
        low, high = honest_range(estimate, 42, 2, share_scores(support))
        assert (low <= alone + 1e-12).all()
        assert (alone <= high + 1e-12).all()
        reached_low |= np.isclose(low, alone)
        reached_high |= np.isclose(high, alone)
    assert reached_low.all(), "some forgery raises each share as much as possible"
    assert reached_high.all()


@pytest.mark.parametrize("name", OPERATORS)
def test_range_for_one_percent_contains_the_honest_share(name: str) -> None:
    operator, rng = OPERATORS[name], np.random.default_rng(11)
    every = list(operator.reports())
    chances = operator.column(0)
    honest = [every[index] for index in rng.choice(len(every), size=1980, p=chances / chances.sum())]
    forged = [next(report for report in every if supports(operator, [report])[1] == 1)] * 20
    labels = [f"v{value}" for value in range(operator.values)]
    support = operator.support()
    estimate = shares(supports(operator, honest + forged), total=2000, support=support)
    alone = np.clip(shares(supports(operator, honest), total=1980, support=support).raw, 0, 1)
    effect = poisoning(estimate, labels)
    assert effect.false == 20
    assert (effect.low <= alone + 1e-12).all()
    assert (alone <= effect.high + 1e-12).all()
    forgotten = honest_range(estimate.raw, 2000, 18, share_scores(support))
    assert forgotten[0][1] > shares(supports(operator, honest), total=1980, support=support).raw[1], (
        "two fewer would not do"
    )


@pytest.mark.parametrize("operator", [Mask(6, keep="0.8"), PADDED])
def test_range_of_itemsets_contains_the_honest_support(operator: Any) -> None:
    """Forged reports show any number of the items of a pair."""
    honest = np.array([50.0, 30.0, 20.0])
    scores = itemset_scores(*channel(operator.operator, 3, 2), 2)
    alone = recover(operator.operator, {3: honest}).estimate
    ends = []
    for seen in range(3):
        counts = honest.copy()
        counts[seen] += 5
        low, high = honest_range(recover(operator.operator, {3: counts}).estimate, 105, 5, scores)
        assert low - 1e-12 <= alone <= high + 1e-12
        ends += [low, high]
    assert np.isclose(ends, alone).sum() >= 2


def test_decisive_number_of_false_reports_changes_the_order() -> None:
    operator = Unary(3, epsilon=F(1))
    support, labels = operator.support(), ["a", "b", "c"]
    counts = np.array([300.0, 283.0, 100.0])
    effect = poisoning(shares(counts, total=600, support=support), labels)
    assert (effect.first, effect.second, effect.decisive) == ("a", "b", 17)
    without = shares(counts - [17, 0, 0], total=583, support=support).raw
    assert without[0] == pytest.approx(without[1])
    one_less = shares(counts - [16, 0, 0], total=584, support=support).raw
    assert one_less[0] > one_less[1]
    level = poisoning(shares(np.array([5.0, 9.0, 9.0]), total=20, support=support), labels)
    assert level.decisive == 0
    assert str(level).endswith('"c" and "b" are level')
    assert str(effect) == (
        'The last column assumes that 1% of the reports (6) are false; 17 false reports could have put "a" ahead of "b"'
    )


def test_figures_of_the_specification_hold() -> None:
    """At epsilon 1, 1.58 false reports per honest one move 92% to 0, and 1.9% of the honest number turn 52:48."""
    support = RandomizedResponse(2, epsilon=F(1)).support()
    scores = share_scores(support)
    assert (0.92 + 1.58 * scores.least) / 2.58 == pytest.approx(0, abs=2e-3)
    honest = (support.false + (support.true - support.false) * np.array([0.52, 0.48])) * 100_000
    effect = poisoning(shares(honest, total=100_000, support=support), ["yes", "no"])
    assert effect.decisive / 100_000 == pytest.approx(0.019, abs=6e-4)


def test_all_false_reports_leave_no_bound() -> None:
    support = RandomizedResponse(2, epsilon=F(1)).support()
    low, high = honest_range(np.array([0.5]), 1, 1, Scores(1.5, -0.5))
    assert (low[0], high[0]) == (-np.inf, np.inf)
    effect = poisoning(shares(np.array([1.0, 0.0]), total=1, support=support), ["a", "b"])
    assert (effect.false, effect.low.tolist(), effect.high.tolist()) == (1, [0, 0], [1, 1])


def test_result_has_the_range_beside_each_interval(tmp_path: Path) -> None:
    session, survey = open_survey(f"{tmp_path}/l.ledger", tmp_path / "r")
    with session:
        survey.submit(reports(0, 500))
        town, age = survey.distribution("town"), survey.distribution("age")
    assert age.poisoning is None
    assert "low_poisoned" not in age.rows()[0]
    assert isinstance(town.poisoning, Poisoning)
    assert town.poisoning.false == 5
    for row, run in zip(town.rows(), town.runs(), strict=True):
        assert (row["low_poisoned"], row["high_poisoned"]) == (run.low_poisoned, run.high_poisoned)
        assert row["low_poisoned"] <= row["share"] <= row["high_poisoned"]
    again = Distribution.from_dict(town.to_dict())
    assert again.to_dict() == town.to_dict()
    older = {name: part for name, part in town.to_dict().items() if name not in ("poisoning", "support", "too_few")}
    older["runs"] = [{name: run[name] for name in ("label", "mass", "low", "high")} for run in older["runs"]]
    assert Distribution.from_dict(older).poisoning is None, "JSON of an older version is read"
    assert Counter(run.low_poisoned for run in Distribution.from_dict(older).runs()) == {None: 4}


@pytest.mark.parametrize("operator", ["mask", "select-a-size"])
def test_listed_itemsets_have_the_range_of_false_reports(operator: str, tmp_path: Path) -> None:
    """198 honest baskets and 2 forged ones that show all items, or none: the support of the honest ones is in the range."""
    items, plan = Items(("a", "b", "c", "d")), BasketPlan(2, (F(1, 10), F(2, 10), F(7, 10)), F(1, 5))
    parameters: dict[str, Any] = {"keep": 0.8} if operator == "mask" else {"plans": [plan]}
    collection = Collection("shop", {"basket": Question("basket", items, operator, **parameters)})
    forgeries = {"mask": ([], [0, 1, 2, 3]), "select-a-size": ([4], [0, 1, 2, 3, 4])}[operator]
    rule_sets = {}
    for name, forged in (("honest", None), *(zip(("none", "all"), forgeries, strict=True))):
        session, survey = open_survey(str(tmp_path / f"{name}.ledger"), tmp_path / name, collection)
        with session:
            client = survey.client(memory={})
            stream = SeededBytes("baskets")
            codes = [survey.operators["basket"].sample_basket([n % 2, 2], stream) for n in range(198)]  # type: ignore[attr-defined]
            codes += [] if forged is None else [forged] * 2
            template = client.randomize({"basket": ["a", "c"]})
            sent = [{**template, "answers": {"basket": c}, "id": f"{n:032x}"} for n, c in enumerate(codes)]
            assert survey.submit(sent).accepted == len(codes)
            rule_sets[name] = survey.rules(min_support=0.05, largest=2)
    honest = {itemset.items: itemset.support for itemset in rule_sets["honest"].mined.frequent()}
    for name in ("none", "all"):
        rule_set = rule_sets[name]
        assert RuleSet.from_dict(rule_set.to_dict()).to_dict() == rule_set.to_dict()
        for itemset in rule_set.mined.frequent():
            low, high = rule_set.poisoned(itemset) or (1, 0)
            if itemset.items in honest:
                assert low - 1e-9 <= min(1, honest[itemset.items]) <= high + 1e-9
                assert high - low < 0.2
