"""Explanations of a policy: every promise with its numbers, and problems."""

from __future__ import annotations

import math

import pytest
from support.people import people_policy

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


def findings_of(policy: Policy) -> dict[str, Finding]:
    return {finding.about: finding for finding in explain(policy)}


def test_explanation_states_worlds_and_limit_of_every_target() -> None:
    findings = findings_of(people_policy())
    assert findings["people"].says == "1,000 rows, one row per person."
    assert findings["identification by age"].says == (
        "At most 0.1. Among 74 possibilities, a random guess is right with probability 0.01351, "
        "so any larger rho can be promised. This one allows a total loss of epsilon 2.09, "
        "and a yes/no question about one person can be answered with certainty up to 0.89."
    )
    assert findings["together"].says == "All answers and synthetic tables can lose epsilon 2.09 in total."
    assert not any(finding.problem for finding in findings.values())


def test_explanation_states_feasible_rho_of_unprotected_columns() -> None:
    findings = findings_of(Policy(Dataset("d"), ATTRIBUTES, Identification("0.1", protect=("age",))))
    assert findings["d"].says == "One row per person."
    assert findings["not protected"].says == (
        "sex (rho above 0.5), state (never: one value). Their answers still count toward the protected columns."
    )


def test_nothing_is_unprotected_if_persons_or_all_columns_are_protected() -> None:
    persons = Identification("0.4", worlds="persons", population=2000)
    findings = findings_of(Policy(Dataset("d", rows=1000), ATTRIBUTES, persons))
    assert "not protected" not in findings
    assert "Among 1,001 possibilities" in findings["identification of a person"].says
    alone = Policy(Dataset("d"), {"age": Integer(17, 90)}, Identification("0.1", protect=("age",)))
    assert "not protected" not in findings_of(alone)


def test_infeasible_rho_is_a_problem_with_advice() -> None:
    findings = findings_of(Policy(Dataset("d"), ATTRIBUTES, Identification("0.1", protect=("sex",)), Loss(1)))
    problem = findings["identification by sex"]
    assert problem.problem
    assert "cannot be promised" in problem.says
    assert problem.do.startswith("Promise at least 0.5001, remove it")
    assert "together" not in findings


@pytest.mark.parametrize(
    ("policy", "certainty", "warned"),
    [
        (
            Policy(Dataset("d"), {"pay": Integer(0, 1_000_000)}, Identification("0.05", protect=("pay",)), version=1),
            "0.999981",
            True,
        ),
        (
            Policy(Dataset("d"), {"pay": Integer(0, 1_000_000)}, Identification("0.05", protect=("pay",))),
            "0.839",
            False,
        ),
        (Policy(Dataset("d"), ATTRIBUTES, None, Loss("2.19")), "0.899", False),
        (Policy(Dataset("d"), ATTRIBUTES, None, Loss("2.2")), "0.9", True),
        (Policy(Dataset("d"), ATTRIBUTES, None, Loss("800")), "1.000", True),
    ],
)
def test_explanation_warns_of_a_yes_no_certainty_above_0_9(policy: Policy, certainty: str, warned: bool) -> None:
    finding = findings_of(policy)["yes/no certainty"]
    assert f"certainty up to {certainty}" in finding.says
    assert (finding.warning, finding.problem) == (warned, False)
    assert finding.to_dict()["warning"] is warned
    assert ("rho" in finding.do) == (warned and policy.identification is not None), "advice about the promise it makes"


def test_explanation_states_a_loss_as_a_factor_of_the_odds() -> None:
    findings = findings_of(Policy(Dataset("d"), ATTRIBUTES, None, Loss("0.5")))
    assert f"by a factor of at most {math.exp(0.5):.2f}" in findings["loss"].says
    assert findings["together"].says.endswith("epsilon 0.5 in total.")
    assert "not protected" not in findings
    assert (
        "factor" in findings_of(Policy(Dataset("d"), ATTRIBUTES, None, Loss(10**6)))["loss"].says
    )  # e**1000000 overflows a float


def test_policy_without_promises_is_a_problem() -> None:
    unit = EachPerson("person", 3)
    bare = findings_of(Policy(Dataset("d", unit=unit), ATTRIBUTES))
    assert bare["answers"].problem
    assert "[promise.loss]" in bare["answers"].do
    assert bare["d"].says == 'One person per "person", counted with at most 3 rows.'
    for covered in ({"concealments": {"drift": DRIFT}}, {"collections": {"shop": ASKED}}):
        findings = findings_of(Policy(Dataset("d"), ATTRIBUTES, **covered))
        assert not findings["answers"].problem
        assert findings["answers"].do
        assert "together" not in findings


def test_explanation_covers_releases_and_collections() -> None:
    findings = findings_of(Policy(Dataset("d"), ATTRIBUTES, concealments={"drift": DRIFT}, collections={"shop": ASKED}))
    assert "The columns sex, age can be released" in findings["drift"].says
    assert "do not cover the order and timing of releases" in findings["drift"].says
    assert "One person loses at most epsilon 2, once" in findings["shop"].says
    assert "closed" not in findings["shop"].says
    closed = findings_of(Policy(Dataset("d"), ATTRIBUTES, collections={"shop": CLOSED}))
    assert closed["shop"].says.endswith("The collection is closed and accepts no more reports.")


def test_finding_converts_to_a_dictionary() -> None:
    assert Finding("answers", "none", "Add one.", problem=True).to_dict() == {
        "about": "answers",
        "says": "none",
        "do": "Add one.",
        "problem": True,
        "warning": False,
    }
    assert explain(people_policy())[0].to_dict()["problem"] is False


def test_explanation_states_how_often_a_single_response_exceeds_a_half() -> None:
    """(rho - 1/m) / (1/2 - 1/m), rounded up; nothing is stated if rho itself is at least a half."""
    promise = Identification("0.05", protect=("age",), guarantee="average")
    findings = findings_of(Policy(Dataset("d"), {"age": Integer(1, 99)}, promise))
    assert "It is above 1/2 with probability at most 0.0815." in findings["guarantee"].says
    likely = Identification("0.5", protect=("age",), guarantee="average")
    assert "above 1/2" not in findings_of(Policy(Dataset("d"), {"age": Integer(1, 99)}, likely))["guarantee"].says


def test_explanation_warns_of_a_release_desk_without_a_baseline() -> None:
    desks = {"drift": DRIFT, "open": Concealment(reveals="sex", about="age")}
    findings = findings_of(Policy(Dataset("d"), ATTRIBUTES, concealments=desks))
    assert not findings["drift"].warning
    assert (findings["open"].warning, findings["open"].problem) == (True, False)
    assert "no baseline for sex" in findings["open"].says
