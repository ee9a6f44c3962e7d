"""The attack on hiding promises: correct code withstands it, every planted fault is detected.

Correct code is accused with probability at most ALPHA in each of 4 sampled tests, 4e-6 for the file. Planted faults are
searched for at DETECT, the level of a whole audit.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from audit.faults import FRESH, long
from audit.hiding_faults import (
    CoinsWithOwnShares,
    FirstComeFirstServed,
    LargestMixThatFits,
    MixOfFullGroups,
    RenewedDecoys,
    SecondDraw,
    choose_first,
    choose_too_many,
)

import tidegate as tg
from tidegate.answer import Query
from tidegate.audit.finding import Clock, Finding
from tidegate.audit.releases import equal_composition as each
from tidegate.audit.releases import hiding
from tidegate.audit.releases.equal_composition import RULE_AWARE, EqualComposition, HidingView, rank_in_cell
from tidegate.audit.releases.hiding import (
    attack_hiding,
    differing_mix,
    find_excess,
    first_difference,
    largest_area,
    recheck_selection,
    run_observers,
    simulate_plan,
)
from tidegate.audit.releases.observers import OBSERVERS, observe
from tidegate.audit.releases.worlds import NOBODY, ObservedRelease, World
from tidegate.audit.run import plan as plan_attacks
from tidegate.policy import Category, Concealment, Dataset, Date, EachPerson, Hiding, Integer, Key, Policy
from tidegate.release.plan import Plan
from tidegate.release.selection import Population, SelectionKey, quotas_of
from tidegate.session import Session
from tidegate.synthesize import plan as synthesis_plan

ALPHA, DETECT = 1e-6, 1e-3
DECLARED = ("0.1", "0.1", "0.1", "0.1")
OPTIONS: dict[str, Any] = {"alpha": ALPHA, "seconds": 0.4, "seed": FRESH}


def policy(*, values: int = 4, mix: Sequence[str] | str = "table", **more: Any) -> Policy:
    columns = {"person": Key(), "age": Integer(0, values - 1), "town": Category(tuple("abcde"))}
    promise = Hiding(reveals="age", about="town", releases=("person", "age", "town"), mix=mix, **more)  # type: ignore[arg-type]
    return Policy(Dataset("people"), columns, hidings={"camp": promise})


POLICIES: dict[str, dict[str, Any]] = {
    "table": {},
    "declared": {"mix": DECLARED},
    "one decoy": {"among": 2},
    "two decoys and a declared mix": {"among": 3, "mix": DECLARED},
}


@pytest.mark.claim
@pytest.mark.parametrize("name", POLICIES)
def test_correct_rule_withstands_the_attack(name: str) -> None:
    quotas, observers, answers = attack_hiding(policy(**POLICIES[name]), **OPTIONS)
    assert (quotas.verdict, observers.verdict, answers.verdict) == ("held", "held", "held"), observers.says
    assert quotas.tries > 100
    assert observers.tries >= hiding.FEWEST


def observe_fault(rule: Any, monkeypatch: pytest.MonkeyPatch, *, worlds: int = 120, **more: Any) -> Finding:
    monkeypatch.setattr(hiding, "MOST", worlds)
    joint_policy = policy(**more)
    assert joint_policy.hiding is not None
    simulated = simulate_plan(joint_policy, joint_policy.hiding)
    assert not isinstance(simulated, str)
    return run_observers("camp", joint_policy.hiding, *simulated, alpha=DETECT, clock=long(), seed=FRESH, rule=rule)


@pytest.mark.one_in(3)
@pytest.mark.claim
@pytest.mark.parametrize(
    ("rule", "worlds", "observer", "more"),
    [
        (FirstComeFirstServed, 60, "", {}),
        (FirstComeFirstServed, 120, "filled quotas", {"mix": DECLARED}),
        (MixOfFullGroups, 60, "smallest shares", {}),
        (SecondDraw, 150, "", {}),
        (LargestMixThatFits, 150, "smallest shares", {"margin": 0}),
        (CoinsWithOwnShares, 150, "variance of coins", {"values": 10, "at_most": "0.95", "margin": 1}),
        (RenewedDecoys, 300, "hidden set", {"among": 2}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_planted_fault_is_detected_by_an_observer(
    rule: Any, worlds: int, observer: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = observe_fault(rule, monkeypatch, worlds=worlds, **more)
    assert finding.broken, finding.says
    assert observer in finding.says


@pytest.mark.parametrize("choice", [choose_too_many, choose_first])
def test_faulty_choice_is_detected(choice: Any) -> None:
    quotas, *_ = attack_hiding(policy(), choice=choice, **{**OPTIONS, "seconds": 0})
    assert quotas.broken, quotas.says


def test_mix_of_full_groups_is_detected_by_counting_again() -> None:
    """The product's mix with a sample that is the whole group, where groups have different sizes."""
    promise = Hiding(reveals="age", about="town", mix="table", smallest=1)
    cells = {0: [f"a{n}" for n in range(60)], 1: [f"b{n}" for n in range(40)], 2: [f"c{n}" for n in range(80)],
             3: [f"d{n}" for n in range(320)]}  # fmt: skip
    population, key = Population(cells, 2, 2), SelectionKey(bytes(32), "mix")
    right = hiding.mix_of_table(key, 1, population, (0, 1), promise)
    assert differing_mix(key, population, (0, 1), promise, right) == ""
    assert "equal samples give" in differing_mix(key, population, (0, 1), promise, (Fraction(3, 20), Fraction(3, 10)))


def test_difference_names_the_cell_that_exceeds_its_quota() -> None:
    promise = Hiding(reveals="age", about="town", mix=("0.2", "0.2"), smallest=1, at_most="0.5")
    population = Population({0: ["a", "b", "c"], 1: ["d", "e", "f", "g", "h", "i", "j"]}, 2, 1)
    quotas = quotas_of((Fraction(1, 5), Fraction(1, 5)), [10], [0], 1)
    assert first_difference(promise, population, quotas, {"a", "d", "e"}).startswith("value 0 of group 0 has 1 chosen")
    assert "more than `at_most`" in first_difference(promise, population, quotas, {"a", "b", "d", "e"})


# Rule-aware observers, computed by hand


def small_view(**more: Any) -> HidingView:
    """Groups A (4 records) and B (5 records), two values; the profile prefers the first, 8 to 2."""
    tested = Concealment(reveals="x", about="y", tests="kullback-leibler")
    plan = Plan(tested, (Fraction(1, 2), Fraction(1, 2)), (Fraction(4, 9), Fraction(5, 9)))
    fields: dict[str, Any] = {
        "values": np.array([0, 1, 0]), "targets": np.array([0, 0, 1]), "moments": np.array([0, 4, 7]),
        "sizes": np.array([4, 5]), "requests": np.array([0, 1, 1, 0, 0, 1, 1, 1, 0]),
        "mix": np.array([0.1875, 0.15]), "hidden": ((0, 1), (1,)), "at_most": 0.75,
    }  # fmt: skip
    return HidingView(plan, np.array([0.8, 0.2]), **{**fields, **more})


MORE, LESS = math.log(1.6), math.log(0.4)


def test_rule_aware_scores_equal_those_computed_by_hand() -> None:
    view = small_view()
    np.testing.assert_allclose(each.hidden_set(view), [1e9 + MORE + LESS, 2e9 + MORE])
    np.testing.assert_allclose(each.filled_quotas(view), [0.5 * MORE + 0 * LESS, (0.5 - 4 / 5) * MORE])
    np.testing.assert_allclose(each.smallest_shares(view), [-MORE, -LESS])  # 4 x 0.1875 / 0.75 = 1, 5 x 0.15 / 0.75 = 1
    assert set(RULE_AWARE) == {"hidden set", "filled quotas", "smallest shares", "variance of coins"}


def test_likelihood_of_coins_equals_the_sum_over_all_hidden_counts() -> None:
    view = small_view(mix=np.array([0.2, 0.0]))

    def chance(released: int, size: int, share: float) -> float:
        total = 0.0
        for count in range(1, size + 1):
            heads = min(1.0, 0.2 * size / count)
            drawn = math.comb(size, count) * share**count * (1 - share) ** (size - count)
            total += drawn * math.comb(count, released) * heads**released * (1 - heads) ** (count - released)
        return total

    expected = [math.log(chance(1, 4, 0.8) / chance(1, 4, 0.5)), math.log(chance(1, 5, 0.8) / chance(1, 5, 0.5))]
    np.testing.assert_allclose(each.variance_of_coins(view), expected, rtol=1e-6)


def test_rule_aware_observer_refuses_other_releases() -> None:
    view = small_view()
    plain = ObservedRelease(view.plan, view.profile, view.values, view.targets, view.moments, view.sizes)
    with pytest.raises(TypeError, match="hiding promise"):
        each.hidden_set(plain)


# The simulated rule


def test_simulated_desk_releases_its_quotas() -> None:
    joint_policy = policy()
    assert joint_policy.hiding is not None
    plan, profile, records = simulate_plan(joint_policy, joint_policy.hiding)  # type: ignore[misc]
    world = hiding.draw_world(plan, profile, records, 1, np.random.default_rng([FRESH, 4]))
    desk = EqualComposition(joint_policy.hiding.promise, seed=3)
    view, again = desk.show(plan, profile, world), desk.show(plan, profile, world)
    assert view is not None
    assert again is not None
    assert desk.opened == [True, True]
    np.testing.assert_array_equal(view.moments, again.moments)
    for group, size in enumerate(view.sizes.tolist()):
        assert view.counts[:, group].tolist() == [math.floor(share * size + 1e-9) for share in view.mix]
    np.testing.assert_array_equal(view.requests, world.cells // plan.values)


def test_desk_that_does_not_open_is_counted_and_left_out() -> None:
    joint_policy = policy(mix=("0.3", "0.2", "0", "0.1"), smallest=1)
    assert joint_policy.hiding is not None
    tested = Concealment(reveals="age", about="town", tests="kullback-leibler")
    plan = Plan(tested, (Fraction(1, 4),) * 4, (Fraction(1, 2), Fraction(1, 2)))
    desk = EqualComposition(joint_policy.hiding.promise)
    assert desk.show(plan, plan.floats, World(np.arange(8), NOBODY)) is None
    assert observe(plan, [1, 1, 1, 1], worlds=3, records=80, control=desk) == []
    assert desk.opened == [False] * 7
    finding = run_observers("camp", joint_policy.hiding, plan, plan.floats, 80, alpha=0.1, clock=Clock(0), seed=1)
    assert finding.verdict == "not tried"
    assert "opened for 0 of" in finding.says


def test_rank_in_cell_counts_earlier_records_of_the_same_cell() -> None:
    cells = np.array([2, 0, 2, 2, 0])
    assert rank_in_cell(cells, np.arange(5)).tolist() == [0, 0, 1, 2, 1]
    assert rank_in_cell(cells, -np.arange(5)).tolist() == [2, 1, 1, 0, 0]


def test_comparison_inside_one_data_set_leaves_out_the_other() -> None:
    """Two groups: a share is 0, 1/2 or 1 inside one data set, and a quarter more finely with the other."""
    tested = Concealment(reveals="age", about="town", tests="kullback-leibler")
    plan = Plan(tested, (Fraction(1, 4),) * 4, (Fraction(1, 2), Fraction(1, 2)))
    options: dict[str, Any] = {"worlds": 1, "records": 600, "control": EqualComposition(
        Hiding(reveals="age", about="town", mix=DECLARED, smallest=1))}  # fmt: skip
    inside = observe(plan, [3, 3, 2, 2], same_data_set=True, **options)
    assert {observation.auc for observation in inside} <= {0.0, 0.5, 1.0}
    assert {observation.observer for observation in inside} == set(OBSERVERS)
    assert all(observation.significance is None for observation in inside)


def test_largest_area_is_that_of_the_specification() -> None:
    areas = [largest_area(Hiding(reveals="x", about="y", mix="table", among=k), 5) for k in (2, 3, 4, 5)]
    assert areas == [0.875, 0.75, 0.625, 0.5]
    everyone = Hiding(reveals="x", about="y", mix="table")
    assert largest_area(everyone, 5) == 0.5
    assert largest_area(everyone, 5, closed=0.2) == pytest.approx(1 / 1.8)


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"mix": ("0.75", "0", "0", "0")}, "sums to almost `at_most`"), ({"among": 6}, "nothing to hide among")],
)
def test_promise_that_cannot_be_simulated_is_not_tried(more: dict[str, Any], reason: str) -> None:
    finding, answers = attack_hiding(policy(**more), **OPTIONS)
    assert answers.verdict == "held"
    assert finding.verdict == "not tried"
    assert reason in finding.says


# The user's own ledger, and the audit


OPENING: dict[str, Any] = {
    "epoch": 1, "mix": ["1/10", "1/5"], "sizes": [100, 205, 50], "hidden": [0, 2], "smallest": 100,
    "quotas": [[10, 20], None, [0, 0]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("openings", "released", "problem"),
    [
        ([OPENING], {"0,1": 10, "1,1": 20, "3,1": 205}, ""),
        ([OPENING, {**OPENING, "mix": ["1/20", "1/5"], "quotas": [[5, 20], None, [0, 0]]}], {"0,1": 10}, ""),
        ([OPENING], {"1,1": 21}, "value 1 of group 0 was released 21 times"),
        ([OPENING], {"4,1": 1}, "value 0 of group 2 was released 1 times"),
        ([OPENING], {"0,2": 1}, "selection 2 were released"),
        ([{**OPENING, "quotas": [[10, 21], None, [0, 0]]}], {}, "not those of its mix"),
        ([OPENING, {**OPENING, "epoch": 2, "hidden": [1, 2], "quotas": [None, [20, 41], [0, 0]]}], {}, "other groups"),
    ],
)
def test_contradictions_in_a_ledger_are_detected(openings: Any, released: dict[str, int], problem: str) -> None:
    assert problem in find_excess(openings, released)
    assert bool(find_excess(openings, released)) == bool(problem)


def test_released_records_of_the_user_are_counted_again(tmp_path: Path) -> None:
    random, count = np.random.default_rng(5), 1_500
    columns = {"person": [f"p{n}" for n in range(count)], "age": random.integers(0, 4, count),
               "town": random.choice(list("abcde"), count)}  # fmt: skip
    address, own = str(tmp_path / "own.ledger"), policy(mix=DECLARED)
    with tg.Session(own, table=pa.table(columns), ledger=address) as session:
        session.open_release()
        session.release("camp").request_many(columns["person"])
    before = Path(address).read_bytes()
    *_, history = attack_hiding(own, address=address, **{**OPTIONS, "seconds": 0})
    assert (history.attack, history.verdict) == ("released records, counted again", "held")
    assert history.tries > 500
    assert Path(address).read_bytes() == before
    assert len(attack_hiding(own, address=str(tmp_path / "none.ledger"), **{**OPTIONS, "seconds": 0})) == 3


def test_audit_attacks_hiding_promises() -> None:
    (attack,) = [attack for attack in plan_attacks(policy()) if attack.verb == "release"]
    findings = attack.run(policy(), alpha=ALPHA, seconds=0.2, seed=FRESH)
    assert [finding.verdict for finding in findings] == ["held", "held", "held"]
    assert attack_hiding(Policy(Dataset("d"), {"age": Integer(0, 3)}), **OPTIONS) == []


# Answers that would show the values of a group. Exact: no error rate.


class Open(Session):
    """A session that does not know the hiding promise."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(replace(policy, hidings={}))


def ask_all(promised: Policy, **options: Any) -> Finding:
    assert promised.hiding is not None
    return hiding.ask_for_composition("camp", promised, promised.hiding, **options)


def test_answers_that_combine_the_columns_are_refused_before_any_entry() -> None:
    person = policy()
    person = replace(person, dataset=replace(person.dataset, unit=EachPerson("person", 2)))
    dates = Policy(
        Dataset("days"),
        {"day": Date(dt.date(2026, 1, 1), dt.date(2026, 1, 31)), "rank": Integer(0, 3)},
        hidings={"camp": Hiding(reveals="day", about="rank", mix="table")},
    )
    for promised, requests in ((policy(), 14), (person, 14), (dates, 15)):
        finding = ask_all(promised)
        assert (finding.verdict, finding.tries, finding.alpha) == ("held", requests, None), finding.says


def test_session_that_answers_values_by_group_is_detected() -> None:
    finding = ask_all(policy(), door=Open)
    assert finding.broken
    assert "14 were not refused" in finding.says


def ignore_conditions(query: Any, of: Policy) -> set[str]:
    return {query.column, *query.terms, *query.groups} - {""}


def ignore_groups(query: Any, of: Policy) -> set[str]:
    return {query.column, *query.terms, *(query.condition.columns() if query.condition is not None else ())} - {""}


@pytest.mark.parametrize(("fault", "answered"), [(ignore_conditions, 4), (ignore_groups, 12)])
def test_refusal_that_overlooks_a_part_of_the_query_is_detected(
    fault: Any, answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Query, "bases", fault)
    finding = ask_all(policy())
    assert finding.broken
    assert f"{answered} were not refused" in finding.says


def test_synthetic_table_of_both_columns_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis_plan, "refuse_combination", lambda *_: None)
    assert "1 were not refused" in ask_all(policy()).says


def test_allowed_answers_are_not_tried() -> None:
    assert ask_all(policy(answers="allowed")).verdict == "not tried"


def test_selection_is_counted_again_completely_without_any_time() -> None:
    joint_policy = policy()
    assert joint_policy.hiding is not None
    simulated = simulate_plan(joint_policy, joint_policy.hiding)
    assert not isinstance(simulated, str)
    finding = recheck_selection("camp", joint_policy.hiding, *simulated, Clock(0), FRESH)
    assert finding.tries > 100
    assert "1 of 1 selections" in finding.says
