"""Changes of a policy in use: allowed, refused, and their descriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.errors import PolicyLoosened
from tidegate.policy import (
    Category,
    Collection,
    Concealment,
    Dataset,
    EachPerson,
    EachRow,
    Identification,
    Integer,
    Key,
    Loss,
    Policy,
    Question,
    Shape,
    Shapes,
)
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.concealment import Profile

AGE = Integer(17, 90)
PROFILES = {"young": Profile(prior="0.1", values=(3, 1))}
DRIFT: dict[str, Any] = {
    "reveals": ("sex",),
    "about": ("age",),
    "releases": ("sex", "age"),
    "tests": ("mutual-information", "posterior"),
    "significance": "0.2",
    "baseline": (1, 1),
    "profiles": PROFILES,
    "rho": "0.5",
}
BY_AGE = Question("age", AGE, "square-wave", epsilon=2)
OLD = Policy(
    Dataset("people", unit=EachPerson("person", 3), rows=1000),
    {"person": Key(), "age": AGE, "sex": Category(("f", "m"))},
    Identification("0.1", protect=("age", "sex")),
    Loss(2),
    {"drift": Concealment(**DRIFT)},
    {"shop": Collection("shop", {"age": BY_AGE})},
)


def drift(**parameters: Any) -> dict[str, Any]:
    return {"concealments": {"drift": Concealment(**{**DRIFT, **parameters})}}


def unit(unit: Any) -> dict[str, Any]:
    return {"dataset": replace(OLD.dataset, unit=unit)}


def shop(**parameters: Any) -> dict[str, Any]:
    return {"collections": {"shop": Collection("shop", **{"questions": {"age": BY_AGE}, **parameters})}}


LESS = Question("age", AGE, "square-wave", epsilon=1)
ATTRIBUTES = {**OLD.attributes, "other": Key()}
STRICTER: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a lower rho": {"identification": Identification("0.05", protect=("age", "sex"))},
    "more is protected": {"identification": Identification("0.1", protect=("sex", "age"))},
    "a lower loss": {"loss": Loss(1)},
    "the same person with more rows": unit(EachPerson("person", 5)),
    "about how many records there are": {"dataset": replace(OLD.dataset, records=500)},
    "one more test": drift(tests=("chi-square", "mutual-information", "posterior")),
    "a higher significance": drift(significance="0.3"),
    "fewer columns leave": drift(releases=("sex",)),
    "a lower rho of groups": drift(rho="0.4"),
    "one more profile": drift(profiles={**PROFILES, "old": Profile(prior="0.1", values=(1, 3))}),
    "a new concealment": {"concealments": {**OLD.concealments, "more": Concealment(reveals="sex", about="age")}},
    "a new version": shop(questions={"age": LESS}, version=2),
    "a collection that closes": shop(closed=True),
    "a collection that is gone": {"collections": {}},
}
LOOSER: dict[str, tuple[dict[str, Any], str]] = {
    "rows instead of persons": (unit(EachRow()), "the protected unit would change from one person per"),
    "another person": ({**unit(EachPerson("other", 3)), "attributes": ATTRIBUTES}, "the protected unit would change"),
    "a higher rho": (
        {"identification": Identification("0.2", protect=("age", "sex"))},
        "rho would rise from 0.1 to 0.2",
    ),
    "no identification": ({"identification": None}, "the identification promise would be removed"),
    "worlds of persons": (
        {"identification": Identification("0.1", worlds="persons", population=5000, protect=("age", "sex"))},
        'worlds would change from "values" to "persons"',
    ),
    "less is protected": (
        {"identification": Identification("0.1", protect=("sex",))},
        "age would no longer be protected",
    ),
    "a higher loss": ({"loss": Loss("2.5")}, "epsilon would rise from 2 to 2.5"),
    "no loss": ({"loss": None}, "the loss promise would be removed"),
    "no concealment": ({"concealments": {}}, "the concealment promise drift would be removed"),
    "one test less": (drift(tests=("posterior",)), "drift would be weaker"),
    "a lower significance": (drift(significance="0.1"), "drift would be weaker"),
    "a higher rho of groups": (drift(rho="0.6"), "drift would be weaker"),
    "no rho of groups": (drift(tests=("mutual-information",), rho=None, profiles={}), "drift would be weaker"),
    "another profile": (drift(profiles={"young": Profile(prior="0.1", values=(2, 1))}), "drift would be weaker"),
    "another baseline": (drift(baseline=(2, 1)), "drift would be weaker"),
    "other questions unsaid": (shop(questions={"age": LESS}), "shop would change without a new version (now 1)"),
}


@pytest.mark.parametrize("case", STRICTER)
def test_promises_can_become_stricter(case: str) -> None:
    refuse_loosening(OLD, replace(OLD, **STRICTER[case]))


@pytest.mark.parametrize("case", LOOSER)
def test_promises_cannot_become_looser(case: str) -> None:
    change, message = LOOSER[case]
    with pytest.raises(PolicyLoosened) as raised:
        refuse_loosening(OLD, replace(OLD, **change))
    assert message in raised.value.what
    assert "another name" in raised.value.do


def test_releasing_more_columns_is_weaker() -> None:
    few = replace(OLD, **drift(releases=("sex",)))
    with pytest.raises(PolicyLoosened, match="drift would be weaker"):
        refuse_loosening(few, OLD)


@pytest.mark.parametrize("case", [case for case in {**STRICTER, **LOOSER} if case != "nothing"])
def test_every_change_is_described_in_both_directions(case: str) -> None:
    change = STRICTER.get(case) or LOOSER[case][0]
    assert changes(OLD, replace(OLD, **change))
    assert changes(replace(OLD, **change), OLD)


def test_unchanged_or_relocated_policy_reports_no_changes() -> None:
    assert changes(OLD, OLD) == []
    assert changes(OLD, replace(OLD, dataset=replace(OLD.dataset, source="elsewhere.csv", ledger="x"))) == []


def test_changes_of_public_knowledge_are_described() -> None:
    attributes = {"person": Key(), "age": Integer(17, 99), "town": Category(("here",))}
    old = Policy(Dataset("d", rows=10), {"person": Key(), "age": AGE, "sex": Category(("f", "m"))})
    new = Policy(Dataset("d", unit=EachPerson("person", 1), edition="2027"), attributes, None, Loss(1))
    assert changes(old, new) == [
        'unit: one row per person -> one person per "person", counted with at most 1 row',
        "rows: 10 -> None",
        "edition: none -> 2027",
        "age: 74 whole numbers from 17 to 90 -> 83 whole numbers from 17 to 99",
        "sex: 2 listed values -> not declared",
        "town: not declared -> 1 listed value",
        "loss: not promised -> epsilon 1",
    ]
    assert changes(new, old)[2] == "edition: 2027 -> none"


def test_public_shapes_can_change_at_any_time() -> None:
    shaped = replace(OLD, synthesis=Shapes({"age": Shape(cells=5)}))
    refuse_loosening(OLD, shaped)
    assert [description.split(":")[0] for description in changes(OLD, shaped)] == ["synthesis"]
    assert changes(OLD, shaped)[0].startswith("synthesis: by default -> ")
