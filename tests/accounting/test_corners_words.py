"""A policy explained: every promise in words with its numbers, and what is in the way."""

from __future__ import annotations

import math

import pytest
from people import people_policy

from tidegate.accounting.explain import Finding, explain
from tidegate.policy import (
    Category,
    Collection,
    Concealment,
    Dataset,
    EachPerson,
    Identification,
    Integer,
    Key,
    Loss,
    Policy,
    Question,
)

ATTRIBUTES = {"age": Integer(17, 90), "sex": Category(("f", "m")), "state": Category(("here",)), "person": Key()}
BY_AGE = {"age": Question("age", ATTRIBUTES["age"], "square-wave", epsilon=2)}
ASKED, CLOSED = (Collection("shop", BY_AGE, repeats="once", closed=closed) for closed in (False, True))
DRIFT = Concealment(reveals="sex", about="age", baseline=(1, 1))


def told(policy: Policy) -> dict[str, Finding]:
    return {finding.about: finding for finding in explain(policy)}


def test_every_target_is_told_with_its_worlds_and_its_limit() -> None:
    found = told(people_policy())
    assert found["people"].says == "1,000 rows, one row per person"
    assert found["identification by age"].says == (
        "at most 0.1; among 74 possibilities a blind guess is right with probability 0.01351, "
        "so any rho above that can be promised; this one allows a total loss of epsilon 2.09"
    )
    assert found["together"].says == "all answers and synthetic tables may lose epsilon 2.09 in total"
    assert not any(finding.problem for finding in found.values())


def test_columns_that_are_not_protected_are_told_the_rho_they_could_have() -> None:
    found = told(Policy(Dataset("d"), ATTRIBUTES, Identification("0.1", protect=("age",))))
    assert found["d"].says == "one row per person"
    assert found["not protected"].says == (
        "sex (rho above 0.5), state (never: one value); their answers still count for the protected ones"
    )


def test_nothing_is_unprotected_where_persons_are_protected_or_all_columns_are() -> None:
    persons = Identification("0.4", worlds="persons", population=2000)
    found = told(Policy(Dataset("d", rows=1000), ATTRIBUTES, persons))
    assert "not protected" not in found
    assert "among 1,001 possibilities" in found["identification of a person"].says
    alone = Policy(Dataset("d"), {"age": Integer(17, 90)}, Identification("0.1", protect=("age",)))
    assert "not protected" not in told(alone)


def test_a_rho_that_cannot_be_kept_is_a_problem_with_advice_and_no_total_is_told() -> None:
    found = told(Policy(Dataset("d"), ATTRIBUTES, Identification("0.1", protect=("sex",)), Loss(1)))
    problem = found["identification by sex"]
    assert problem.problem
    assert "cannot be promised" in problem.says
    assert problem.do.startswith("Promise at least 0.5001, leave it out")
    assert "together" not in found


@pytest.mark.parametrize(
    ("policy", "certainty", "warned"),
    [
        (
            Policy(Dataset("d"), {"pay": Integer(0, 1_000_000)}, Identification("0.05", protect=("pay",))),
            "0.999981",
            True,
        ),
        (Policy(Dataset("d"), ATTRIBUTES, None, Loss("2.19")), "0.899", False),
        (Policy(Dataset("d"), ATTRIBUTES, None, Loss("2.2")), "0.9", True),
        (Policy(Dataset("d"), ATTRIBUTES, None, Loss("800")), "1.000", True),
    ],
)
def test_check_states_the_yes_no_certainty_and_warns_above_nine_tenths(
    policy: Policy, certainty: str, warned: bool
) -> None:
    finding = told(policy)["yes/no certainty"]
    assert f"certainty up to {certainty}" in finding.says
    assert (finding.warning, finding.problem) == (warned, False)
    assert finding.to_dict()["warning"] is warned


def test_a_loss_is_told_as_the_factor_of_any_belief() -> None:
    found = told(Policy(Dataset("d"), ATTRIBUTES, None, Loss("0.5")))
    assert f"by a factor of {math.exp(0.5):.2f} at most" in found["loss"].says
    assert found["together"].says.endswith("epsilon 0.5 in total")
    assert "not protected" not in found
    assert "factor" in told(Policy(Dataset("d"), ATTRIBUTES, None, Loss(10**6)))["loss"].says  # e**1000000 is no float


def test_a_policy_that_promises_nothing_is_a_problem_unless_records_or_reports_are_covered() -> None:
    unit = EachPerson("person", 3)
    bare = told(Policy(Dataset("d", unit=unit), ATTRIBUTES))
    assert bare["answers"].problem
    assert "[promise.loss]" in bare["answers"].do
    assert bare["d"].says == 'one person per "person", counted with at most 3 rows'
    for covered in ({"concealments": {"drift": DRIFT}}, {"collections": {"shop": ASKED}}):
        found = told(Policy(Dataset("d"), ATTRIBUTES, **covered))
        assert not found["answers"].problem
        assert found["answers"].do
        assert "together" not in found


def test_records_and_reports_are_told_with_what_may_leave_and_what_one_person_gives() -> None:
    found = told(Policy(Dataset("d"), ATTRIBUTES, concealments={"drift": DRIFT}, collections={"shop": ASKED}))
    assert "sex, age may leave" in found["drift"].says
    assert "does not see the order and timing of releases" in found["drift"].says
    assert "one person gives epsilon 2 at most, once" in found["shop"].says
    assert "closed" not in found["shop"].says
    closed = told(Policy(Dataset("d"), ATTRIBUTES, collections={"shop": CLOSED}))
    assert closed["shop"].says.endswith("; closed, no more reports are taken")


def test_a_finding_is_the_same_as_data() -> None:
    assert Finding("answers", "none", "Add one.", problem=True).to_dict() == {
        "about": "answers",
        "says": "none",
        "do": "Add one.",
        "problem": True,
        "warning": False,
    }
    assert explain(people_policy())[0].to_dict()["problem"] is False
