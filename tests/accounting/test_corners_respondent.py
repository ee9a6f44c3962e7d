"""The loss of one respondent, as text for every repeats setting and as data."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tidegate.accounting.respondent import RespondentLoss, respondent_loss, total
from tidegate.policy import Category, Collection, Integer, Question

F = Fraction
BOTH = {"age": F(1, 4), "town": F(3, 2)}


def test_losses_are_stored_exactly_and_unlimited_as_null() -> None:
    assert RespondentLoss(BOTH, F(1, 3), "two-layers").to_dict() == {
        "questions": {"age": "0.25", "town": "1.5"},
        "in_all": "1.75",
        "each_report": "1/3",
    }
    assert RespondentLoss({"age": F(1), "town": None}, None, "once").to_dict() == {
        "questions": {"age": "1", "town": None},
        "in_all": None,
        "each_report": None,
    }


@pytest.mark.parametrize(
    ("repeats", "text"),
    [
        ("once", "one person loses at most epsilon 1.75, once (age 0.25, town 1.5)"),
        (
            "memoised",
            "one person loses at most epsilon 1.75 (age 0.25, town 1.5), "
            "while the true values do not change; a changed value adds its part again",
        ),
        (
            "two-layers",
            "each report loses at most epsilon 0.5; one person loses at most epsilon 1.75 (age 0.25, town 1.5), "
            "while the true values do not change; a changed value adds its part again",
        ),
    ],
)
def test_text_covers_every_repeats_setting(repeats: str, text: str) -> None:
    assert str(RespondentLoss(BOTH, F(1, 2), repeats)) == text


def test_one_unlimited_question_makes_the_total_unlimited() -> None:
    assert total([F(1), None, F(2)]) is None
    assert total([]) == 0
    loss = RespondentLoss({"age": F(1), "town": None}, None, "once")
    assert str(loss) == "one person loses an unlimited amount, once (age 1, town unlimited)"


def test_single_report_loses_its_second_layer_or_everything() -> None:
    town = Category(tuple("abc"))
    questions = {
        "town": Question("town", town, "randomized-response", epsilon=2, each=1),
        "region": Question("region", town, "unary", epsilon=3, each="0.5"),
    }
    loss = respondent_loss(Collection("survey", questions, repeats="two-layers"))
    assert (loss.questions, loss.each_report, loss.in_all) == ({"town": 2, "region": 3}, F(3, 2), 5)
    once = respondent_loss(Collection("survey", {"age": Question("age", Integer(0, 9), "square-wave", epsilon=2)}))
    assert (once.each_report, once.in_clear) == (2, ())


def test_noise_set_by_width_has_unlimited_loss() -> None:
    noise = Question("age", Integer(0, 99), "gaussian-noise", privacy="0.5")
    assert respondent_loss(Collection("survey", {"age": noise})).in_all is None
