"""The tree of a survey: from arrays of reports, from a real survey, and on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from collect.surveys import SHOPPERS, open_survey, policy_of, reports
from tidegate_papers.simulation.values import BulkBits, sample_many
from typer.testing import CliRunner

from tidegate.cli.collect import tree as tree_command
from tidegate.collect.trees.survey_tree import train, tree_of
from tidegate.errors import Unsupported
from tidegate.operators import Operator
from tidegate.policy import Category, Collection, Integer, Question, write_policy
from tidegate.policy.collection import operator_for

LABELS = ("randomized-response", "unary", "subset")


def collection_with(label: str) -> Collection:
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


def make_reports(label: str, count: int = 60_000) -> Arrays:
    """Those younger than 36 buy, and everybody in the east."""
    collection, random = collection_with(label), np.random.default_rng(2)
    operators = {name: operator_for(question) for name, question in collection.questions.items()}
    true = {"age": random.integers(0, 60, count), "town": random.integers(0, 3, count)}
    true["buys"] = ((true["age"] < 20) | (true["town"] == 2)).astype(int)
    arrays = {name: sample_many(operators[name], codes, BulkBits(f"{label} {name}")) for name, codes in true.items()}
    return Arrays(collection, operators, arrays)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("label", LABELS)
def test_true_answers_are_classified_from_randomized_reports(label: str) -> None:
    tree = tree_of(make_reports(label), "buys")
    answers = [{"age": age, "town": town} for age in (18, 30, 42, 70) for town in ("north", "south", "east")]
    expected = ["yes" if answer["age"] < 36 or answer["town"] == "east" else "no" for answer in answers]
    assert tree.predict(answers) == expected
    assert tree.shares(answers).sum(axis=1) == pytest.approx(1)
    sure = tree.shares([{"age": 25, "town": "north"}, {"age": 65, "town": "north"}])[:, 1]
    assert sure == pytest.approx([1, 0], abs=0.15)  # of true classes: reported ones would say 0.95 and 0.05 at most


def test_tree_is_described_as_text() -> None:
    tree = tree_of(make_reports("randomized-response"), "buys", strategy="by-class")
    text = "\n".join(tree.lines())
    assert "age up to" in text
    assert "town in north, south" in text
    assert "yes (" in text
    assert tree.to_dict()["classes"] == ["no", "yes"]
    json.dumps(tree.to_dict())


def test_arrays_are_enough_to_train() -> None:
    survey = make_reports("subset", 5_000)
    classifier = train(survey.arrays, survey.operators, label="buys")
    assert classifier.n_features_in_ == 2


def test_invalid_requests_are_refused() -> None:
    survey = make_reports("randomized-response", 500)
    with pytest.raises(Unsupported, match="is not a question of this collection"):
        tree_of(survey, "buy")
    with pytest.raises(Unsupported, match="category"):
        tree_of(survey, "age")
    with pytest.raises(Unsupported, match="questions other than"):
        tree_of(survey, "buys", by=["buys"])
    with pytest.raises(Unsupported, match="Every record needs an answer"):
        tree_of(survey, "buys").predict([{"age": 20}])


def test_survey_and_command_line_give_the_same_tree(tmp_path: Path) -> None:
    url, location = str(tmp_path / "ledger"), tmp_path / "reports"
    session, survey = open_survey(url, location)
    survey.submit(reports(0, 400))
    tree = tree_of(survey, "town")
    assert tree.reports == 400
    session.close()
    policy = tmp_path / "people.toml"
    policy.write_text(write_policy(policy_of()), "utf-8")
    app = typer.Typer()
    app.command()(tree_command)
    result = CliRunner().invoke(
        app, [str(policy), SHOPPERS.name, "--label", "town", "--ledger", url, "--reports", str(location), "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == tree.to_dict()


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
    tree = tree_of(Arrays(collection, operators, arrays), "buys", strategy="by-class")
    lines, path = tree.lines(), [set(towns)]
    assert len(lines) > 4, "the tree must split below its first split, or this shows nothing"
    leaves = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        values = set(line.strip().removeprefix("town in ").partition(":")[0].split(", "))
        del path[depth + 1 :]
        assert values < path[depth], f"{line} names values that its branch excludes"
        path.append(values)
        leaves += sorted(values) if ":" in line else []
    assert sorted(leaves) == sorted(towns), "each value reaches one leaf"
