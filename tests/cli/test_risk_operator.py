"""risk operator and risk advise: sentences for people, one JSON value for programs, errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Run

POLICY = """
[dataset]
name = "people"
unit = "row"

[attributes]
age  = { kind = "integer", from = 16, to = 60 }
town = { kind = "category", values = ["a", "b", "c"] }

[promise.loss]
epsilon = 1
"""


def test_operator_shows_all_measures(run: Run) -> None:
    code, out, _ = run("risk", "operator", "square-wave", "--values", 45, "--epsilon", 2)
    assert code == 0
    assert out.startswith("square-wave with epsilon 2: 45 values,")
    for word in ("epsilon of a report", "interval of the noise", "entropy loss", "breach, any prior", "most revealing"):
        assert word in out


def test_json_contains_the_measures(run: Run) -> None:
    _, out, _ = run("risk", "operator", "randomized-response", "--values", 4, "--epsilon", 1, "--json")
    measures = json.loads(out)
    assert measures["epsilon"] == pytest.approx(1, abs=1e-9)
    assert measures["most_revealing"]["after"] == pytest.approx(2.718281828 / 5.718281828, abs=1e-6)
    assert measures["breach"]["to_for_any_prior"] == pytest.approx(
        0.05 * 2.718281828 / (0.05 * 2.718281828 + 0.95), abs=1e-6
    )


def test_unlimited_loss_is_explained(run: Run) -> None:
    _, out, _ = run("risk", "operator", "gaussian-noise", "--values", 45, "--privacy", 1)
    assert "unlimited" in out
    assert "can rule out some values with certainty" in out
    _, out, _ = run("risk", "operator", "uniform-noise", "--values", 45, "--half-width", 20, "--json")
    assert json.loads(out)["epsilon"] == "unlimited"


def test_operator_accepts_a_prior_and_two_layers(run: Run) -> None:
    words = ("risk", "operator", "randomized-response", "--values", 3, "--epsilon", 2, "--each", 1)
    _, out, _ = run(*words, "--prior", "0.5,0.25,0.25", "--json")
    measures = json.loads(out)
    assert (measures["epsilon"], measures["lifetime_epsilon"]) == (pytest.approx(1), pytest.approx(2))
    assert measures["most_revealing"]["before"] == 0.5


def test_operator_uses_the_attribute_of_a_policy(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    file.write_text(POLICY)
    _, out, _ = run("risk", "operator", "subset", "--policy", file, "--attribute", "town", "--epsilon", 1, "--json")
    assert json.loads(out)["values"] == 3
    _, out, _ = run(
        "risk", "advise", "--policy", file, "--attribute", "age", "--clients", 5000, "--epsilon", 2, "--json"
    )
    assert json.loads(out)["recommended"] == 'operator = "square-wave", epsilon = 2'
    _, out, _ = run(
        "risk", "advise", "--policy", file, "--attribute", "town", "--clients", 5000, "--loss", "0.1", "--json"
    )
    assert {option["operator"] for option in json.loads(out)["options"]} == {
        "randomized-response",
        "unary",
        "subset",
        "projective-geometry",
        "hash-response",
    }


@pytest.mark.parametrize(
    "requirement", [("--epsilon", "2"), ("--interval", "1"), ("--breach", "0.05,0.5"), ("--loss", "0.3")]
)
def test_every_measure_can_be_a_requirement(run: Run, requirement: tuple[str, str]) -> None:
    code, out, _ = run("risk", "advise", "--values", 45, "--clients", 10_000, *requirement)
    assert code == 0
    assert 'Write operator = "square-wave", epsilon = ' in out
    assert "features of the distribution" in out


def test_advice_for_categories_states_the_error_in_percentage_points(run: Run) -> None:
    _, out, _ = run("risk", "advise", "--values", 20, "--categories", "--clients", 10_000, "--epsilon", 1)
    assert "percentage points" in out


WRONG = {
    "no size": (("operator", "unary", "--epsilon", "1"), "either `--values`, or `--policy` with `--attribute`"),
    "no parameter": (("operator", "unary", "--values", "5"), "unary needs one parameter"),
    "an unknown operator": (("operator", "squarewave", "--values", "5"), 'Did you mean "square-wave"'),
    "sets of items": (("operator", "cut-and-paste", "--values", "5"), "has no option `--values`"),
    "a basket without a size": (("operator", "mask", "--keep", "0.9"), "mask needs `--size`"),
    "no cutoff": (("operator", "cut-and-paste", "--rho", "0.1", "--size", "5"), "needs `--K`"),
    "an item too likely": (("operator", "mask", "--keep", "1.2", "--size", "2"), "probabilities from 0 to 1"),
    "shares beyond one": (("operator", "select-a-size", "--keep", "0.5,0.6", "--insert", "0.1"), "add up to 1"),
    "supports that rise": (
        ("operator", "mask", "--keep", "0.9", "--size", "2", "--supports", "0.1,0.2"),
        "must not increase",
    ),
    "a basket of values": (
        ("operator", "unary", "--values", "5", "--epsilon", "1", "--size", "3"),
        "has no option `--size`",
    ),
    "one value": (("operator", "unary", "--values", "1", "--epsilon", "1"), "`--values` must be from 2 to 65,536"),
    "a word": (("operator", "unary", "--values", "5", "--epsilon", "much"), "`--epsilon` must be a number"),
    "a prior too short": (("operator", "unary", "--values", "5", "--epsilon", "1", "--prior", "1"), "5 probabilities"),
    "no requirement": (("advise", "--values", "5", "--clients", "9"), "Exactly one privacy target"),
    "half a breach": (("advise", "--values", "5", "--clients", "9", "--breach", "0.1"), "two probabilities"),
    "no order": (("advise", "--values", "5", "--categories", "--clients", "9", "--interval", "1"), "no interval"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_exits_with_2(run: Run, case: str) -> None:
    words, says = WRONG[case]
    code, _, err = run("risk", *words)
    assert code == 2
    assert says in err


def test_basket_operator_shows_losses_and_breaches(run: Run) -> None:
    code, out, error = run("risk", "operator", "cut-and-paste", "--K", 3, "--rho", "0.1", "--size", 5)
    assert code == 0, error
    for word in (
        "epsilon, one item",
        "gamma",
        "interval",
        "entropy loss",
        "none reported",
        "some reported",
        "sent unrandomized",
    ):
        assert word in out
    measures = json.loads(run("risk", "operator", "cut-and-paste", "--K", 3, "--rho", "0.2", "--size", 5, "--json")[1])
    assert measures["epsilon"] == pytest.approx(5.049856007249537)  # golden/baskets.json, A
    assert measures["epsilon_one_item_replaced"] == pytest.approx(1.4733057381095205)
    assert [row["items"] for row in measures["breaches"]] == [1, 2, 3, 4, 5]
    assert measures["breaches"][0]["mixed"] is None
    assert measures["worst_breach"] == max(
        row[kind] or 0 for row in measures["breaches"] for kind in ("visible", "absent", "mixed")
    )


def test_mask_has_the_closed_form(run: Run) -> None:
    words = ("risk", "operator", "mask", "--keep", "0.9", "--size", 3, "--supports", "0.05,0.02,0.01", "--json")
    measures = json.loads(run(*words)[1])
    assert measures["epsilon"] == pytest.approx(2 * 3 * 2.1972245773362196)
    assert measures["item"]["odds_if_seen"] == pytest.approx(9)
    assert measures["breaches"][0]["visible"] == pytest.approx(0.05 * 0.9 / (0.05 * 0.9 + 0.95 * 0.1))
    assert measures["breaches"][0]["absent"] == pytest.approx(0.05 * 0.1 / (0.05 * 0.1 + 0.95 * 0.9))
    assert measures["size_sent"] is False


def test_basket_revealed_by_missing_items_is_in_the_absent_column(run: Run) -> None:
    """Every true item is dropped: reported items were not in the basket, and missing ones were."""
    words = ("risk", "operator", "select-a-size", "--keep", "1,0,0", "--insert", "0.9", "--json")
    measures = json.loads(run(*words)[1])
    assert measures["epsilon"] is None
    assert all(row["visible"] == 0 for row in measures["breaches"])
    assert measures["breaches"][1]["absent"] > 0.5


def test_measures_and_advice_for_chosen_options(run: Run) -> None:
    _, out, _ = run("risk", "operator", "privset", "--items", 8, "--choose", 3, "--epsilon", 2)
    assert out.startswith("privset with epsilon 2 and choose 3: 8 options.")
    _, out, _ = run("risk", "operator", "one-option", "--items", 8, "--epsilon", 2, "--json")
    measured = json.loads(out)
    assert measured["chosen"] == pytest.approx(7.389056 / 8.389056, abs=1e-6)
    assert measured["epsilon"] == pytest.approx(2)
    _, out, _ = run("risk", "advise", "--items", 8, "--choose", 3, "--clients", 2000, "--epsilon", 2, "--json")
    advice = json.loads(out)
    assert [option["operator"] for option in advice["options"]] == ["privset", "one-option"]
    assert advice["options"][0]["error_95_rare"] == pytest.approx(1.96 * 0.0189, abs=2e-4)
    _, out, _ = run("risk", "advise", "--items", 8, "--clients", 2000, "--epsilon", 2)
    assert "with choose = 3 the errors are" in out


CHOICES = {
    "no limit": (("operator", "privset", "--items", "8", "--epsilon", "2"), "needs choose"),
    "no options": (("operator", "privset", "--choose", "3", "--epsilon", "2"), "`--items` must be the number"),
    "values": (("operator", "one-option", "--items", "8", "--values", "3"), "has no option `--values`"),
    "a limit of values": (("operator", "unary", "--values", "8", "--choose", "3"), "has no option `--choose`"),
    "advice without epsilon": (("advise", "--items", "8", "--clients", "9"), "need `--epsilon`"),
    "advice for both": (("advise", "--items", "8", "--values", "9", "--clients", "9"), "cannot be used together"),
    "a limit without options": (("advise", "--values", "9", "--choose", "2", "--clients", "9"), "needs `--items`"),
    "too many options": (("advise", "--items", "1001", "--epsilon", "1", "--clients", "9"), "from 1 to 1,000"),
    "a limit above": (("advise", "--items", "3", "--choose", "4", "--epsilon", "1", "--clients", "9"), "from 1 to the"),
    "nobody": (("advise", "--items", "3", "--epsilon", "1", "--clients", "0"), "1 or more"),
    "a large epsilon": (("advise", "--items", "3", "--epsilon", "21", "--clients", "9"), "from 0.001 to 20"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_refused_options_of_choices_are_explained(case: str, run: Run) -> None:
    words, problem = CHOICES[case]
    code, _, error = run("risk", *words)
    assert code == 2
    assert problem in error


def test_advice_for_several_questions(run: Run) -> None:
    words = ("risk", "advise", "--values", 4, "--categories", "--clients", 2000, "--epsilon", 2)
    _, out, _ = run(*words, "--questions", 6)
    assert "Ask each person 1 of 6 questions with epsilon 2 each: the standard error is 3.54 percentage points" in out
    _, out, _ = run(*words, "--questions", 6, "--json")
    assert json.loads(out)["plan"]["each"] == 1
    _, out, _ = run("risk", "advise", "--values", 9, "--clients", 2000, "--epsilon", 4, "--questions", 6)
    assert "Ask each person 2 of 6 questions" in out
    code, _, error = run(*words, "--questions", 0)
    assert (code, "from 1 to 100" in error) == (2, True)
    code, _, error = run("risk", "advise", "--values", 9, "--clients", 9, "--loss", "0.1", "--questions", 2)
    assert (code, "needs `--epsilon`" in error) == (2, True)


def test_advice_for_rounds_counts_the_permanent_answers(run: Run) -> None:
    rounds = ["risk", "advise", "--values", 20, "--clients", 2000, "--epsilon", 2, "--each", 1]
    _, out, _ = run(*rounds, "--categories")
    assert 'Write operator = "hash-response", epsilon = 2, each = 1 and repeats = "two-layers".' in out
    _, out, _ = run(*rounds, "--categories", "--json")
    assert json.loads(out)["options"][0]["operator"] == "hash-response"
    code, _, error = run(*rounds)
    assert code
    assert "`--each` needs `--epsilon` and a category" in error
