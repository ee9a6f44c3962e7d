"""Requests are checked, priced and described before any row is read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.towns import policy
from synthesize.margins import Margins

from tidegate.accounting import Amount, Filtered, budget_of, event_from_dict
from tidegate.errors import Infeasible, UnknownColumn, Unsupported
from tidegate.policy import Dataset, EachPerson, Grid, Loss, Policy, Shapes
from tidegate.synthesize.plan import plan_for
from tidegate.synthesize.request import resolve_request


@given(st.fractions(Fraction(1, 10**6), 10), st.integers(1, 50))
def test_event_costs_epsilon_per_table_and_survives_json(epsilon: Fraction, times: int) -> None:
    event = Filtered(epsilon, times)
    assert event.price.pure == Amount.up(epsilon * times)
    assert event_from_dict(event.to_dict()) == event


@pytest.mark.parametrize("wrong", [{"epsilon": Fraction(0)}, {"times": 0}, {"times": True}, {"times": 1.5}])
def test_empty_event_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        Filtered(**{"epsilon": Fraction(1), **wrong})


@given(st.decimals("0.0001", "3", places=5), st.integers(1, 9))
def test_charge_never_exceeds_the_requested_epsilon(epsilon: Any, tables: int) -> None:
    request = resolve_request(policy(), epsilon=epsilon, tables=tables)
    assert request.event.price.pure.value <= Fraction(epsilon) * tables


def test_rho_covers_all_tables_together() -> None:
    request = resolve_request(policy(rho="0.1"), rho="0.05", tables=3)
    spent = request.event.price.pure
    target = budget_of(policy(rho="0.1")).targets[0]
    assert float(target.identification(spent)) == pytest.approx(0.05, abs=1e-12)
    assert target.identification(spent) <= 0.05


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "neither epsilon nor rho": ({}, Unsupported, "exactly one of `epsilon`, `rho`, or `share`"),
    "both": ({"epsilon": 1, "rho": 0.1}, Unsupported, "exactly one of `epsilon`, `rho`, or `share`"),
    "epsilon 0": ({"epsilon": 0}, Unsupported, "epsilon must be a number above 0"),
    "epsilon below 0": ({"epsilon": -1}, Unsupported, "above 0"),
    "epsilon as a word": ({"epsilon": "much"}, Unsupported, "above 0"),
    "epsilon below a grain": ({"epsilon": "1e-40"}, Unsupported, "too small"),
    "rho without an identification promise": ({"rho": 0.1}, Unsupported, "identification promise"),
    "no table": ({"epsilon": 1, "tables": 0}, Unsupported, "`tables` must be a whole number"),
    "half a table": ({"epsilon": 1, "tables": 1.5}, Unsupported, "`tables` must be a whole number"),
    "no rows": ({"epsilon": 1, "rows": 0}, Unsupported, "`rows` must be a whole number"),
    "an unknown target": ({"epsilon": 1, "target": "agee"}, UnknownColumn, 'Did you mean "age"'),
    "an unknown column": ({"epsilon": 1, "columns": ["agee"]}, UnknownColumn, 'Did you mean "age"'),
    "a target that is not learned": ({"epsilon": 1, "target": "person"}, Unsupported, "is not learned"),
    "nothing to learn": ({"epsilon": 1, "columns": ["person"]}, Unsupported, "no column to learn"),
    "an unknown model": ({"epsilon": 1, "model": "forrest"}, Unsupported, 'Did you mean "forest"'),
    "no model at all": ({"epsilon": 1, "model": 7}, Unsupported, "lacks name, stages, learn"),
    "a share above 1": ({"epsilon": 1, "split": {"margins": 2}}, Unsupported, "between 0 and 1"),
    "a seed below 0": ({"epsilon": 1, "seed": -1}, Unsupported, "`seed` must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_request_is_refused_with_a_message(case: str) -> None:
    options, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        plan_for(resolve_request(policy(), **options), policy())


def test_unattainable_rho_is_refused() -> None:
    with pytest.raises(Infeasible, match="right with probability"):
        resolve_request(policy(rho="0.1"), rho="0.001")


def test_policy_without_a_promise_allows_no_tables() -> None:
    bare = policy(epsilon=None)
    with pytest.raises(Unsupported, match="has no promise for synthetic tables"):
        plan_for(resolve_request(bare, epsilon=1), bare)


def test_asymptotic_model_is_refused() -> None:
    class Asymptotic(Margins):
        exact = False

    with pytest.raises(Unsupported, match="has no exact loss"):
        plan_for(resolve_request(policy(), epsilon=1, model=Asymptotic()), policy())


def test_auto_chooses_by_public_facts_and_gives_a_reason() -> None:
    chosen = plan_for(resolve_request(policy(), epsilon=1), policy())
    assert (chosen.model.name, chosen.why) == ("forest/1", "the default for tables of numbers and categories")
    fine = Policy(Dataset("d", rows=100), {"x": Grid(0, 10, "0.000001"), "y": Grid(0, 1, "0.0000001")}, None, Loss(1))
    chosen = plan_for(resolve_request(fine, epsilon=1), fine)
    assert chosen.model.name.startswith("sequential/")
    assert "too fine for cells" in chosen.why


def test_question_includes_everything_except_rows_and_seed() -> None:
    def question(about: Policy | None = None, **changes: Any) -> Any:
        here = about or policy()
        return plan_for(resolve_request(here, **{"epsilon": 1, "model": Margins(), **changes}), here).question()

    plain = question()
    assert question(rows=5, seed=3) == plain
    others = [question(epsilon=2), question(tables=2), question(target="age"), question(split={"margins": "0.5"})]
    others += [question(columns=["age"]), question(model="forest")]
    others += [question(replace(policy(), synthesis=Shapes())), question(policy(rows=7))]
    others += [question(replace(policy(), dataset=Dataset("people", rows=400, edition="2")))]
    assert all(other != plain for other in others)
    assert len({str(other) for other in others}) == len(others)


def test_shares_add_up_and_a_private_number_of_rows_is_charged() -> None:
    for unit in (None, EachPerson("person", 3)):
        about = policy(unit=unit, rows=10**6)
        plan = plan_for(resolve_request(about, epsilon="0.7"), about)
        stages = plan.stages(400)
        assert sum(stage.share for stage in stages) <= 1
        assert plan.size_loss + plan.model_loss == plan.request.epsilon
        assert (stages[0].name == "size") == (unit is not None)
    assert stages[0].share == Fraction(1, 200)
    few = policy(unit=EachPerson("person", 3), rows=1000)
    plan = plan_for(resolve_request(few, epsilon=8), few)
    assert plan.size_loss == Fraction(3, 10)  # noise of scale 10 = a hundredth of 1,000 persons
    plan = plan_for(resolve_request(few, epsilon=1, split={"size": "0.02"}), few)
    assert plan.size_loss == Fraction(1, 50)
    with pytest.raises(Unsupported, match="above 0 and below 1"):
        plan_for(resolve_request(few, epsilon=1, split={"size": 0}), few)


def test_request_is_described_in_words() -> None:
    request = resolve_request(policy(), epsilon=1, tables=2)
    assert request.says(model="forest/1", columns=1) == "for 2 synthetic tables of 1 column by forest/1"
