"""A tree from a survey's own reports."""

from __future__ import annotations

import random
from pathlib import Path

from collect.surveys import open_survey

from tidegate.collect.client import Client
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Integer, Question
from tidegate.policy.collection import Collection

COLLECTION = Collection(
    "shop",
    {
        "age": Question("age", Integer(16, 60), "square-wave", epsilon=4),
        "buys": Question("buys", Category(("yes", "no")), "randomized-response", epsilon=4),
    },
)


def test_survey_tree_learns_that_older_people_buy(tmp_path: Path) -> None:
    session, survey = open_survey(str(tmp_path / "s.ledger"), tmp_path / "reports", COLLECTION)
    chance = random.Random(3)
    with session:
        reports = []
        for number in range(3_000):
            age = chance.randrange(16, 61)
            client = Client(COLLECTION, source=SeededBytes(f"tree {number}"))
            reports.append(client.randomize({"age": age, "buys": "yes" if age >= 40 else "no"}))
        survey.submit(reports)
        tree = survey.tree("buys", by=["age"])
    assert tree.reports == 3_000
    assert any("age" in line for line in tree.lines())
