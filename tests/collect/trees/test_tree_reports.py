"""The tree of a survey: from arrays of reports, from a real survey, and on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from collect.surveys import SHOPPERS, opened, policy_of, reports
from tidegate_papers.simulation.values import BulkBits, sample_many
from typer.testing import CliRunner

from tidegate.cli.collect import tree as tree_command
from tidegate.collect.trees.survey_tree import train, tree_of
from tidegate.errors import Unsupported
from tidegate.operators import Operator
from tidegate.policy import Category, Collection, Integer, Question, write_policy
from tidegate.policy.collection import operator_for

LABELS = ("randomized-response", "unary", "subset")


def asked(label: str) -> Collection:
    return Collection(
        "shoppers",
        {
            "age": Question("age", Integer(16, 75), "square-wave", epsilon=4),
            "town": Question("town", Category(("north", "south", "east")), "subset", epsilon=4),
            "buys": Question("buys", Category(("no", "yes")), label, epsilon=3),
        },
    )


@dataclass
class Arrays:
    """Reports that are at hand as arrays."""

    collection: Collection
    operators: dict[str, Operator]
    arrays: dict[str, np.ndarray]

    def codes(self, *questions: str) -> dict[str, Any]:
        return {name: self.arrays[name] for name in questions}


def reported(label: str, many: int = 60_000) -> Arrays:
    """Those younger than 36 buy, and everybody in the east."""
    collection, random = asked(label), np.random.default_rng(2)
    operators = {name: operator_for(question) for name, question in collection.questions.items()}
    true = {"age": random.integers(0, 60, many), "town": random.integers(0, 3, many)}
    true["buys"] = ((true["age"] < 20) | (true["town"] == 2)).astype(int)
    arrays = {name: sample_many(operators[name], codes, BulkBits(f"{label} {name}")) for name, codes in true.items()}
    return Arrays(collection, operators, arrays)


@pytest.mark.parametrize("label", LABELS)
def test_true_answers_are_classified_from_randomized_reports(label: str) -> None:
    found = tree_of(reported(label), "buys")
    answers = [{"age": age, "town": town} for age in (18, 30, 42, 70) for town in ("north", "south", "east")]
    expected = ["yes" if one["age"] < 36 or one["town"] == "east" else "no" for one in answers]
    assert found.predict(answers) == expected
    assert found.shares(answers).sum(axis=1) == pytest.approx(1)
    sure = found.shares([{"age": 25, "town": "north"}, {"age": 65, "town": "north"}])[:, 1]
    assert sure == pytest.approx([1, 0], abs=0.15)  # of true classes: reported ones would say 0.95 and 0.05 at most


def test_tree_is_described_as_text() -> None:
    found = tree_of(reported("randomized-response"), "buys", strategy="by-class")
    text = "\n".join(found.lines())
    assert "age up to" in text
    assert "town in north, south" in text
    assert "yes (" in text
    assert found.to_dict()["classes"] == ["no", "yes"]
    json.dumps(found.to_dict())


def test_arrays_are_enough_to_train() -> None:
    given = reported("subset", 5_000)
    found = train(given.arrays, given.operators, label="buys")
    assert found.n_features_in_ == 2


def test_invalid_requests_are_refused() -> None:
    given = reported("randomized-response", 500)
    with pytest.raises(Unsupported, match="is not a question of this collection"):
        tree_of(given, "buy")
    with pytest.raises(Unsupported, match="category"):
        tree_of(given, "age")
    with pytest.raises(Unsupported, match="questions other than"):
        tree_of(given, "buys", by=["buys"])
    with pytest.raises(Unsupported, match="Every record needs an answer"):
        tree_of(given, "buys").predict([{"age": 20}])


def test_survey_and_command_line_give_the_same_tree(tmp_path: Path) -> None:
    url, place = str(tmp_path / "ledger"), tmp_path / "reports"
    session, survey = opened(url, place)
    survey.submit(reports(0, 400))
    found = tree_of(survey, "town")
    assert found.reports == 400
    session.close()
    policy = tmp_path / "people.toml"
    policy.write_text(write_policy(policy_of()), "utf-8")
    app = typer.Typer()
    app.command()(tree_command)
    told = CliRunner().invoke(
        app, [str(policy), SHOPPERS.name, "--label", "town", "--ledger", url, "--reports", str(place), "--json"]
    )
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == found.to_dict()


def test_branch_lists_only_the_values_that_reach_it() -> None:
    """Towns 0, 2 and 4 buy: a tree over one category must split again below its first split."""
    towns = ("north", "south", "east", "west", "center")
    collection = Collection(
        "shoppers",
        {
            "town": Question("town", Category(towns), "randomized-response", epsilon=8),
            "buys": Question("buys", Category(("no", "yes")), "randomized-response", epsilon=8),
        },
    )
    operators = {name: operator_for(question) for name, question in collection.questions.items()}
    true = {"town": np.arange(60_000) % 5}
    true["buys"] = 1 - true["town"] % 2
    arrays = {name: sample_many(operators[name], codes, BulkBits(name)) for name, codes in true.items()}
    found = tree_of(Arrays(collection, operators, arrays), "buys", strategy="by-class")
    lines, path = found.lines(), [set(towns)]
    assert len(lines) > 4, "the tree must split below its first split, or this shows nothing"
    leaves = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        said = set(line.strip().removeprefix("town in ").partition(":")[0].split(", "))
        del path[depth + 1 :]
        assert said < path[depth], f"{line} names values that its branch excludes"
        path.append(said)
        leaves += sorted(said) if ":" in line else []
    assert sorted(leaves) == sorted(towns), "each value reaches one leaf"
