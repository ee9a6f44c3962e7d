"""What left is tested again at every moment, exactly; gates with a fault are found out. What observers see is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from audit.faults import FRESH

import tidegate as tg
from tidegate.audit.releases.recheck import attack_release, first_failure, profile_of, rechecked, watched_by
from tidegate.audit.releases.worlds import Everything
from tidegate.policy import Category, Concealment, Dataset, Integer, Key, Policy
from tidegate.policy.concealment import Profile
from tidegate.release.gate import Gate
from tidegate.release.plan import Plan, make_plan

COLUMNS = {"person": Key(), "age": Integer(0, 3), "town": Category(("a", "b", "c"))}
AGES, TOWNS = (4, 3, 2, 1), (1, 1, 1)


def promise(*tests: str, **more: Any) -> Concealment:
    return Concealment(reveals="age", about="town", releases=("person", "age", "town"), tests=tests, **more)


def policy(*tests: str, **more: Any) -> Policy:
    return Policy(Dataset("soldiers"), COLUMNS, concealments={"camp": promise(*tests, **{"baseline": AGES, **more})})


YOUNG = {"profiles": {"young": Profile(prior="0.1", values=(9, 1, 1, 1))}, "rho": "0.5"}
POLICIES = {
    "distance": policy("kullback-leibler"),
    "all together": policy("mutual-information", "kullback-leibler"),
    "fit and outliers": policy("chi-square", "dixon"),
    "posterior": policy("posterior", **YOUNG),
}
given: dict[str, Any] = {"alpha": 1e-6, "seconds": 0.5, "seed": FRESH}


def plan_of(one: Policy) -> Plan:
    made = one.concealments["camp"]
    return make_plan(made, made.baseline, made.shares or TOWNS)


@pytest.mark.parametrize("one", POLICIES.values(), ids=POLICIES)
def test_what_leaves_passes_every_test_at_every_moment(one: Policy) -> None:
    again, seen = attack_release(one, **given)
    assert (again.verdict, seen.verdict) == ("held", "observed")
    assert again.tries > 100
    assert seen.promised is None


def lenient(plan: Plan) -> Gate:
    """Decides at a level of 1% what the promise wants at 20%."""
    return Gate(make_plan(promise(*plan.promise.tests, baseline=AGES, significance="0.01"), AGES, TOWNS))


def off_by_one(plan: Plan) -> Any:
    """Lets a record out on what has left before it, without itself."""

    class Late:
        def __init__(self) -> None:
            self.gate, self.first = Gate(plan), True

        def decide(self, cells: Any, numbers: Any) -> Any:
            told = self.gate.decide(cells, numbers)
            held_back = np.setdiff1d(numbers, told.released)[:1]
            return replace(
                told,
                released=np.concatenate([told.released, held_back]),
                ends=np.append(told.ends[:-1], told.ends[-1] + held_back.size),
            )

    return Late()


@pytest.mark.parametrize("name", ["distance", "all together", "fit and outliers"])
@pytest.mark.parametrize("fault", [Everything, lenient, off_by_one], ids=["no control", "lenient", "one too many"])
def test_a_gate_with_a_fault_is_found_out(name: str, fault: Any) -> None:
    found = attack_release(POLICIES[name], control=fault, **given)
    assert found[0].broken
    assert "fails after record" in found[0].says


def test_no_control_is_found_by_the_posterior_too() -> None:
    assert attack_release(POLICIES["posterior"], control=Everything, **given)[0].broken


def test_a_history_is_looked_through_record_by_record() -> None:
    plan = plan_of(POLICIES["distance"])
    assert first_failure(plan, [], None) == ("", 0)
    told, number = first_failure(plan, [0] * 40, None)  # one age of one town, over and over
    assert told.startswith("kullback-leibler fails after record")
    assert 1 < number < 40


def test_the_profile_is_the_policys_or_a_tilt() -> None:
    np.testing.assert_allclose(profile_of(plan_of(POLICIES["posterior"])), np.array([9, 1, 1, 1]) / 12)
    tilted = profile_of(plan_of(POLICIES["distance"]))
    np.testing.assert_allclose(tilted, np.array([12, 9, 2, 1]) / 24)


def test_observers_are_told_of_even_where_nothing_is_controlled() -> None:
    from audit.faults import long

    found = watched_by("camp", plan_of(POLICIES["distance"]), alpha=0.05, clock=long(), seed=FRESH, control=Everything)
    assert found[0].verdict == "observed"
    assert (found[0].bound or 0) > 0.9


def test_a_baseline_that_is_not_taken_yet_is_not_tried() -> None:
    later = Policy(
        Dataset("soldiers"),
        COLUMNS,
        concealments={"camp": promise("kullback-leibler", baseline_from_table_on="2020-01-01")},
    )
    (found,) = attack_release(later, **given)
    assert found.verdict == "not tried"
    assert "not open yet" in found.says


def test_what_left_of_the_users_own_data_set_is_tested_again(tmp_path: Path) -> None:
    later = Policy(
        Dataset("soldiers"),
        COLUMNS,
        concealments={"camp": promise("kullback-leibler", baseline_from_table_on="2020-01-01")},
    )
    random, many = np.random.default_rng(5), 200
    ages = random.choice(4, many, p=np.array(AGES) / 10)
    towns = random.choice(["a", "b", "c"], many)
    table = pa.table({"person": [f"p{n}" for n in range(many)], "age": ages, "town": towns})
    address = str(tmp_path / "own.ledger")
    with tg.Session(later, table=table, ledger=address) as session:
        session.release("camp").request_many([f"p{n}" for n in range(many)])
    before = Path(address).read_bytes()
    again, left, _ = attack_release(later, address=address, **given)
    assert (again.verdict, left.verdict) == ("held", "held")
    assert left.tries > 100
    assert Path(address).read_bytes() == before


def test_one_data_set_is_gone_through_to_its_end_however_short_the_time() -> None:
    from tidegate.audit.finding import Clock

    found = rechecked("camp", plan_of(POLICIES["distance"]), clock=Clock(0), seed=FRESH)
    assert found.tries > 100
