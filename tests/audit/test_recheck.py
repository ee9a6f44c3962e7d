"""Released records are tested again at every moment, exactly; faulty gates are detected. Observers are only reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from audit.faults import FRESH

import tidegate as tg
from tidegate.audit.releases.recheck import attack_release, first_failure, profile_of, recheck, run_observers
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
OPTIONS: dict[str, Any] = {"alpha": 1e-6, "seconds": 0.5, "seed": FRESH}


def plan_of(policy: Policy) -> Plan:
    promise = policy.concealments["camp"]
    return make_plan(promise, promise.baseline, promise.shares or TOWNS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("concealing", POLICIES.values(), ids=POLICIES)
def test_released_records_pass_every_test_at_every_moment(concealing: Policy) -> None:
    rechecked, observed = attack_release(concealing, **OPTIONS)
    assert (rechecked.verdict, observed.verdict) == ("held", "observed")
    assert rechecked.tries > 100
    assert observed.promised is None


def lenient(plan: Plan) -> Gate:
    """Return a gate with a level of 1% although the promise requires 20%."""
    return Gate(make_plan(promise(*plan.promise.tests, baseline=AGES, significance="0.01"), AGES, TOWNS))


def off_by_one(plan: Plan) -> Any:
    """Return a gate that decides about a record from the earlier ones alone."""

    class Late:
        def __init__(self) -> None:
            self.gate, self.first = Gate(plan), True

        def decide(self, cells: Any, numbers: Any) -> Any:
            decisions = self.gate.decide(cells, numbers)
            extra = np.setdiff1d(numbers, decisions.released)[:1]
            return replace(
                decisions,
                released=np.concatenate([decisions.released, extra]),
                ends=np.append(decisions.ends[:-1], decisions.ends[-1] + extra.size),
            )

    return Late()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["distance", "all together", "fit and outliers"])
@pytest.mark.parametrize("fault", [Everything, lenient, off_by_one], ids=["no control", "lenient", "one too many"])
def test_faulty_gate_is_detected(name: str, fault: Any) -> None:
    findings = attack_release(POLICIES[name], control=fault, **OPTIONS)
    assert findings[0].broken
    assert "fails after record" in findings[0].says


def test_missing_control_is_detected_by_the_posterior_too() -> None:
    assert attack_release(POLICIES["posterior"], control=Everything, **OPTIONS)[0].broken


def test_history_is_tested_record_by_record() -> None:
    plan = plan_of(POLICIES["distance"])
    assert first_failure(plan, [], None) == ("", 0)
    failure, number = first_failure(plan, [0] * 40, None)  # one age of one town, repeatedly
    assert failure.startswith("kullback-leibler fails after record")
    assert 1 < number < 40


def test_profile_is_that_of_the_policy_or_tilted() -> None:
    np.testing.assert_allclose(profile_of(plan_of(POLICIES["posterior"])), np.array([9, 1, 1, 1]) / 12)
    tilted = profile_of(plan_of(POLICIES["distance"]))
    np.testing.assert_allclose(tilted, np.array([12, 9, 2, 1]) / 24)


def test_observers_are_reported_without_any_control() -> None:
    from audit.faults import long

    findings = run_observers(
        "camp", plan_of(POLICIES["distance"]), alpha=0.05, clock=long(), seed=FRESH, control=Everything
    )
    assert findings[0].verdict == "observed"
    assert (findings[0].bound or 0) > 0.9


def test_promise_without_a_baseline_yet_is_not_tried() -> None:
    later = Policy(
        Dataset("soldiers"),
        COLUMNS,
        concealments={"camp": promise("kullback-leibler", baseline_from_table_on="2020-01-01")},
    )
    (finding,) = attack_release(later, **OPTIONS)
    assert finding.verdict == "not tried"
    assert "not open yet" in finding.says


def test_released_records_of_the_user_are_tested_again(tmp_path: Path) -> None:
    later = Policy(
        Dataset("soldiers"),
        COLUMNS,
        concealments={"camp": promise("kullback-leibler", baseline_from_table_on="2020-01-01")},
    )
    random, count = np.random.default_rng(5), 200
    ages = random.choice(4, count, p=np.array(AGES) / 10)
    towns = random.choice(["a", "b", "c"], count)
    table = pa.table({"person": [f"p{n}" for n in range(count)], "age": ages, "town": towns})
    address = str(tmp_path / "own.ledger")
    with tg.Session(later, table=table, ledger=address) as session:
        session.release("camp").request_many([f"p{n}" for n in range(count)])
    before = Path(address).read_bytes()
    simulated, history, _ = attack_release(later, address=address, **OPTIONS)
    assert (simulated.verdict, history.verdict) == ("held", "held")
    assert history.tries > 100
    assert Path(address).read_bytes() == before


def test_one_data_set_is_tested_completely_without_any_time() -> None:
    from tidegate.audit.finding import Clock

    finding = recheck("camp", plan_of(POLICIES["distance"]), clock=Clock(0), seed=FRESH)
    assert finding.tries > 100
