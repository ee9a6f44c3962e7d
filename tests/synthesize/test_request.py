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

from tidegate.accounting import Amount, Filtered, FilteredGaussian, budget_of, epsilon_at_delta, event_from_dict
from tidegate.errors import Infeasible, UnknownColumn, Unsupported
from tidegate.policy import Dataset, EachPerson, Identification, Policy, Shapes
from tidegate.synthesize.diary import Loss
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


def average_policy(rho: str = "0.1", **changes: Any) -> Policy:
    """A policy that limits the average loss alone."""
    return replace(
        policy(rho=rho, **changes), identification=Identification(rho, protect=("age",), guarantee="average")
    )


@pytest.mark.parametrize("tables", [1, 3])
def test_rho_and_share_are_spent_as_z_under_the_average_guarantee(tables: int) -> None:
    about = average_policy()
    request = resolve_request(about, rho="0.05", tables=tables)
    target = budget_of(about).targets[0]
    assert request.epsilon is None
    assert isinstance(request.event, FilteredGaussian)
    assert float(target.identification(request.event.price)) == pytest.approx(0.05, rel=1e-9)
    assert request.event.price.z <= budget_of(about).loss_alone(Fraction(1, 20))
    half = resolve_request(about, share="0.5", tables=tables)
    assert float(half.event.price.z) == pytest.approx(float(budget_of(about).ceiling) / 2)
    assert half.event.price.z.value <= budget_of(about).ceiling.value / 2


@given(st.decimals("0.0001", "3", places=9), st.integers(1, 9))
def test_charge_never_exceeds_the_requested_z(z: Any, tables: int) -> None:
    request = resolve_request(average_policy(), z=z, tables=tables)
    price = request.event.price
    assert Fraction(z) * tables * (1 - Fraction(1, 10**20)) <= price.z.value <= Fraction(z) * tables
    assert price.zcdp.value == Fraction(12, 5) * price.z.value  # both in whole grains
    assert event_from_dict(request.event.to_dict()) == request.event


@given(st.decimals("0.001", "30", places=5), st.sampled_from(["1e-5", "1e-9", "0.01"]))
def test_epsilon_with_delta_shows_at_most_the_requested_epsilon(epsilon: Any, delta: str) -> None:
    request = resolve_request(average_policy(), epsilon=epsilon, delta=delta)
    price = request.event.price
    assert price.pure is None
    assert price.zcdp.value == 2 * price.z.value == request.limit.zcdp
    shown = epsilon_at_delta(price.zcdp, Fraction(delta))
    assert Fraction(shown) <= Fraction(epsilon)
    assert shown == pytest.approx(float(epsilon), rel=1e-6)


def test_rho_beside_a_limit_on_epsilon_gives_a_pure_loss() -> None:
    from tidegate.policy import Loss as Promise

    about = replace(average_policy(), loss=Promise(4))
    request = resolve_request(about, rho="0.05", tables=2)
    assert request.epsilon is not None
    target = budget_of(about).targets[0]
    assert float(target.identification(request.event.price)) == pytest.approx(0.05, rel=1e-9)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "neither epsilon nor rho": ({}, Unsupported, "exactly one of `epsilon`, `rho`, `z`, or `share`"),
    "both": ({"epsilon": 1, "rho": 0.1}, Unsupported, "exactly one of `epsilon`, `rho`, `z`, or `share`"),
    "z and share": ({"z": 1, "share": 0.1}, Unsupported, "exactly one of `epsilon`, `rho`, `z`, or `share`"),
    "z without the average guarantee": ({"z": "0.1"}, Unsupported, "`z` requires a policy that limits the average"),
    "delta without the average guarantee": ({"epsilon": 1, "delta": "1e-5"}, Unsupported, "`delta` requires a policy"),
    "delta alone": ({"rho": "0.1", "delta": "1e-5"}, Unsupported, "`delta` requires `epsilon`"),
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
    "an unknown model": ({"epsilon": 1, "model": "forrest/2"}, Unsupported, 'Did you mean "forest/2"'),
    "a model that left": ({"epsilon": 1, "model": "sequential"}, Unsupported, "Known: forest/2, forest/1"),
    "no choice of models": ({"epsilon": 1, "model": "auto"}, Unsupported, "Known: forest/2, forest/1"),
    "no model at all": ({"epsilon": 1, "model": 7}, Unsupported, "lacks name, stages, learn"),
    "a seed below 0": ({"epsilon": 1, "seed": -1}, Unsupported, "`seed` must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_request_is_refused_with_a_message(case: str) -> None:
    options, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        plan_for(resolve_request(policy(), **options), policy())


@pytest.mark.parametrize("wrong", [{"delta": 1}, {"delta": "1e-40"}, {"delta": 0}, {"delta": "1e-5", "epsilon": 10**7}])
def test_delta_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="delta"):
        resolve_request(average_policy(), **{"epsilon": 1, **wrong})


def test_z_too_small_for_the_noise_is_refused() -> None:
    about = average_policy()
    with pytest.raises(Unsupported, match=r"A z of .* is too small to learn a table"):
        plan_for(resolve_request(about, z="1e-14", model=Margins()), about)


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


def test_question_includes_everything_except_rows_and_seed() -> None:
    def question(about: Policy | None = None, **changes: Any) -> Any:
        here = about or policy()
        return plan_for(resolve_request(here, **{"epsilon": 1, "model": Margins(), **changes}), here).question()

    plain = question()
    assert question(rows=5, seed=3) == plain
    others = [question(epsilon=2), question(tables=2), question(target="age"), question(columns=["age"])]
    averages = average_policy()
    plain_z = question(averages, epsilon=None, z=1)
    others += [plain_z, question(averages, epsilon=1, delta="1e-5")]
    assert question(averages, epsilon=None, z=1, rows=5, seed=3) == plain_z
    others += [question(replace(policy(), synthesis=Shapes())), question(policy(rows=7))]
    others += [question(replace(policy(), dataset=Dataset("people", rows=400, edition="2")))]
    assert all(other != plain for other in others)
    assert len({str(other) for other in others}) == len(others)


def test_question_of_the_old_model_is_that_of_old_ledgers() -> None:
    """The identity that forest/1 wrote: changing it would hide tables that were paid for."""
    request = resolve_request(policy(), epsilon="0.1", target="age", columns=["age", "zip"], tables=2)
    public = policy().public_dict()
    assert request.question(policy(), model="forest/1") == {
        "verb": "synthesize",
        "model": "forest/1",
        "event": {"kind": "filtered/1", "epsilon": "1/10", "times": 2},
        "target": "age",
        "split": {},
        "columns": ["age", "zip"],
        "of": public["attributes"],
        "shapes": public["synthesis"],
        "unit": "row",
        "rows": 400,
        "edition": "",
    }
    assert "split" not in request.question(policy(), model="forest/2")


def limits() -> dict[str, tuple[Policy, dict[str, Any]]]:
    averages = average_policy()
    return {
        "pure": (policy(), {"epsilon": "0.7"}),
        "z": (averages, {"z": "0.05"}),
        "pairwise": (averages, {"epsilon": "0.7", "delta": "1e-5"}),
    }


@pytest.mark.parametrize("case", limits())
@pytest.mark.parametrize("unit", [None, EachPerson("person", 3)])
@pytest.mark.parametrize("rows", [100, 10**6])
def test_size_and_model_never_spend_more_than_the_limit(case: str, unit: Any, rows: int) -> None:
    about, options = limits()[case]
    about = replace(about, dataset=replace(about.dataset, rows=rows, unit=unit or about.dataset.unit))
    plan = plan_for(resolve_request(about, model=Margins(), **options), about)
    limit, size, model = plan.request.limit, plan.size_loss, plan.model_loss
    assert not (size + model).exceeds(limit)
    assert (size != Loss(Fraction(0), Fraction(0), Fraction(0))) == (unit is not None)
    if unit is not None:
        assert size.zcdp == 4 * size.z  # a scalar, whose reference is the middle of its interval
    if limit.pure is None:
        assert model.zcdp / model.z == limit.zcdp / limit.z  # otherwise a model would charge its choices differently
    assert sum(stage.share for stage in plan.stages(400)) == 1
    assert (plan.stages(400)[0].name == "size") == (unit is not None)


def test_share_for_the_number_of_rows_keeps_its_noise_within_a_hundredth() -> None:
    few = policy(unit=EachPerson("person", 3), rows=1000)
    plan = plan_for(resolve_request(few, epsilon=8, model=Margins()), few)
    assert plan.size_loss.pure == Fraction(3, 10)  # noise of scale 10 = a hundredth of 1,000 persons
    crowd = policy(unit=EachPerson("person", 3), rows=10**6)
    assert plan_for(resolve_request(crowd, epsilon="0.7", model=Margins()), crowd).size_share == Fraction(1, 200)
    averages = average_policy(unit=EachPerson("person", 3), rows=1000)
    plan = plan_for(resolve_request(averages, z=1, model=Margins()), averages)
    assert plan.size_loss.zcdp == Fraction(9, 200)  # reach**2 / (2 * 10**2)


def test_request_is_described_in_words() -> None:
    request = resolve_request(policy(), epsilon=1, tables=2)
    assert request.says(model="forest/2", columns=1) == "for 2 synthetic tables of 1 column by forest/2"
