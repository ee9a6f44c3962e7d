"""What one person gives, as sentences for every way of repeating, and as data."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tidegate.accounting.respondent import Gives, given_by_one, total
from tidegate.policy import Category, Collection, Integer, Question

F = Fraction
BOTH = {"age": F(1, 4), "town": F(3, 2)}


def test_losses_are_written_exactly_and_what_is_unlimited_as_nothing() -> None:
    assert Gives(BOTH, F(1, 3), "two-layers").to_dict() == {
        "questions": {"age": "0.25", "town": "1.5"},
        "in_all": "1.75",
        "each_report": "1/3",
    }
    assert Gives({"age": F(1), "town": None}, None, "once").to_dict() == {
        "questions": {"age": "1", "town": None},
        "in_all": None,
        "each_report": None,
    }


@pytest.mark.parametrize(
    ("repeats", "says"),
    [
        ("once", "one person gives epsilon 1.75 at most, once (age 0.25, town 1.5)"),
        (
            "memoised",
            "one person gives epsilon 1.75 at most (age 0.25, town 1.5), "
            "while the true values stay as they are; a changed one gives its part again",
        ),
        (
            "two-layers",
            "each report gives epsilon 0.5 at most; one person gives epsilon 1.75 at most (age 0.25, town 1.5), "
            "while the true values stay as they are; a changed one gives its part again",
        ),
    ],
)
def test_what_is_given_is_said_for_every_way_of_repeating(repeats: str, says: str) -> None:
    assert str(Gives(BOTH, F(1, 2), repeats)) == says


def test_one_unlimited_question_makes_all_of_it_unlimited() -> None:
    assert total([F(1), None, F(2)]) is None
    assert total([]) == 0
    gives = Gives({"age": F(1), "town": None}, None, "once")
    assert str(gives) == "one person gives epsilon without limit, once (age 1, town unlimited)"


def test_a_single_report_gives_what_its_fresh_layer_says_and_else_all_of_it() -> None:
    town = Category(tuple("abc"))
    asked = {
        "town": Question("town", town, "randomized-response", epsilon=2, each=1),
        "region": Question("region", town, "unary", epsilon=3, each="0.5"),
    }
    gives = given_by_one(Collection("survey", asked, repeats="two-layers"))
    assert (gives.questions, gives.each_report, gives.in_all) == ({"town": 2, "region": 3}, F(3, 2), 5)
    once = given_by_one(Collection("survey", {"age": Question("age", Integer(0, 9), "square-wave", epsilon=2)}))
    assert (once.each_report, once.in_clear) == (2, ())


def test_noise_told_by_its_width_gives_without_limit() -> None:
    noise = Question("age", Integer(0, 99), "gaussian-noise", privacy="0.5")
    assert given_by_one(Collection("survey", {"age": noise})).in_all is None
