"""Baskets from the client to the rules: what is estimated from a survey's reports is what people had, within its error."""

from __future__ import annotations

from pathlib import Path

import pytest
from collect.surveys import open_survey

from tidegate.collect.client import Client
from tidegate.errors import Unsupported
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Items, Question
from tidegate.policy.collection import Collection

ITEMS = ("milk", "bread", "beer", "tea", "jam", "salt")
TOWN = Question("town", Category(("north", "south")), "randomized-response", epsilon=1)
QUESTIONS = {
    "mask": Question("basket", Items(ITEMS), "mask", keep="0.9", largest=3),
    "cut-and-paste": Question("basket", Items(ITEMS), "cut-and-paste", cutoff=3, rho="0.1", largest=3),
}
BASKETS = [["milk", "bread", "jam"], ["milk", "bread"], ["beer"], ["milk", "tea"], ["bread", "milk"]]
MANY = 3_000
SIX = 6.0  # standard errors: of some twenty estimates one goes beyond once in 25 million runs


@pytest.mark.one_in(2)
@pytest.mark.parametrize("operator", QUESTIONS)
def test_supports_and_rules_of_a_survey_match_its_people(operator: str, tmp_path: Path) -> None:
    collection = Collection("shop", {"basket": QUESTIONS[operator], "town": TOWN})
    session, survey = open_survey(str(tmp_path / "s.ledger"), tmp_path / "reports", collection)
    with session:
        reports = []
        for number in range(MANY):
            client = Client(collection, source=SeededBytes(f"{operator} {number}"))
            reports.append(client.randomize({"basket": BASKETS[number % 5], "town": "north"}))
        survey.submit(reports)
        rule_set = survey.rules("basket", min_support=0.15, min_confidence=0.5)
        truth = {("milk",): 0.8, ("bread",): 0.6, ("bread", "milk"): 0.6}
        shown = {tuple(sorted(rule_set.named(itemset.items))): itemset for itemset in rule_set.mined.frequent()}
        for items, share in truth.items():
            assert abs(shown[items].support - share) < SIX * shown[items].error
        rule = next(
            r for r in rule_set.rules if (rule_set.named(r.given), rule_set.named(r.then)) == (["bread"], ["milk"])
        )
        assert abs(rule.confidence - 1) < SIX * rule.confidence_error
        assert rule_set.to_dict()["reports"] == MANY
        with pytest.raises(Unsupported, match="is not about a basket"):
            survey.rules("town", min_support=0.1)


def test_rules_use_the_only_basket_question_or_require_a_name(tmp_path: Path) -> None:
    single = Collection("shop", {"town": TOWN, "basket": QUESTIONS["mask"]})
    double = Collection("two", {**single.questions, "other": QUESTIONS["mask"]})
    for collection in (single, double):
        session, survey = open_survey(str(tmp_path / f"{collection.name}.ledger"), tmp_path / "reports", collection)
        answers = {name: "north" if name == "town" else BASKETS[0] for name in collection.questions}
        with session:
            survey.submit([survey.client(memory={}).randomize(answers) for _ in range(50)])
            if collection is single:
                assert survey.rules(min_support=0.5).to_dict() == survey.rules("basket", min_support=0.5).to_dict()
            else:
                with pytest.raises(Unsupported, match="2 questions about a basket"):
                    survey.rules(min_support=0.5)
