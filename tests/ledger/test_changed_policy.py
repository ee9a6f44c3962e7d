"""Changes of a policy: any change before the first charge, later never a looser one, and the limit never rises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.charges import charge, verify_clean
from support.people import people_policy

from tidegate.accounting import Amount, budget_of
from tidegate.errors import BudgetExceeded, Infeasible, PolicyLoosened, StalePolicy
from tidegate.ledger import Ledger
from tidegate.policy import Category, EachPerson, EachRow, Identification, Integer, Loss, Policy

OLD = people_policy(epsilon="2")
PERSONS = replace(OLD, identification=Identification("0.01", worlds="persons", population=5000))


def with_promise(policy: Policy, **changes: Any) -> Policy:
    """Return the policy with another identification promise."""
    old = policy.identification
    old_fields = {"worlds": old.worlds, "protect": old.protect, "population": old.population, "prior": old.prior}
    rho = changes.pop("rho", old.rho)
    return replace(policy, identification=Identification(rho, **{**old_fields, **changes}))


def with_attributes(policy: Policy, **attributes: Any) -> Policy:
    """Return the policy with other or more attributes."""
    return replace(policy, attributes={**policy.attributes, **attributes})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(str(tmp_path / "people.ledger"))
    yield opened
    opened.close()


def charge_under(ledger: Ledger, policy: Policy) -> Amount:
    """Charge a little under a policy and return the limit."""
    ledger.open_account(policy)
    return charge(ledger, policy, "before the change", "0.1").account.ceiling


WIDER = {
    "a wider universe": (OLD, with_attributes(OLD, age=Integer(17, 5000))),
    "a wider universe, and no other limit": (people_policy(), people_policy(high=5000)),
    "a larger population": (PERSONS, with_promise(PERSONS, population=10**9)),
    "fewer rows": (PERSONS, replace(PERSONS, dataset=replace(OLD.dataset, rows=10))),
    "one more column": (OLD, with_attributes(OLD, town=Category(("a", "b")))),
    "at most fewer rows of a person": (
        people_policy(unit=EachPerson("person", 5)),
        people_policy(unit=EachPerson("person", 1)),
    ),
}


@pytest.mark.parametrize("case", WIDER)
def test_wider_universe_is_recorded_and_refunds_nothing(ledger: Ledger, case: str) -> None:
    old, new = WIDER[case]
    ceiling = charge_under(ledger, old)
    account = ledger.open_account(new)
    assert account.ceiling == ceiling
    assert account.spent == Amount.up("0.1")
    *_, entry = ledger.entries()
    assert (entry.kind, entry.policy, entry.amount) == ("policy", new.fingerprint, "0")
    assert entry.content()["changes"]
    assert verify_clean(ledger).entries == 3


STRICTER = {
    "a lower rho": with_promise(OLD, rho="0.05"),
    "a lower epsilon": replace(OLD, loss=Loss("0.5")),
    "one more protected": with_promise(
        with_attributes(OLD, town=Category(tuple("abcdefghijkl"))), protect=("age", "town")
    ),
    "a narrower universe": with_attributes(OLD, age=Integer(17, 60)),
    "a likelier guess": with_promise(OLD, prior={"age": "0.05"}),
}


@pytest.mark.parametrize("case", STRICTER)
def test_stricter_policy_lowers_the_limit_permanently(ledger: Ledger, case: str) -> None:
    new, ceiling = STRICTER[case], charge_under(ledger, OLD)
    lowered = ledger.open_account(new).ceiling
    assert lowered == budget_of(new).ceiling < ceiling
    with pytest.raises(BudgetExceeded):
        charge(ledger, new, "more than that", lowered.value)
    assert charge(ledger, new, "all of that", lowered.minus(Amount.up("0.1")).value).account.left == Amount(0)
    assert verify_clean(ledger).spent["people"] == lowered


LOOSER = {
    "rho up": (OLD, with_promise(OLD, rho="0.11")),
    "epsilon up": (OLD, replace(OLD, loss=Loss("2.01"))),
    "no loss promise": (OLD, people_policy()),
    "no identification promise": (OLD, replace(OLD, identification=None)),
    "one less protected": (STRICTER["one more protected"], with_attributes(OLD, town=Category(tuple("abcdefghijkl")))),
    "another one protected": (OLD, with_promise(with_attributes(OLD, sex=Integer(0, 99)), protect=("sex",))),
    "persons instead of values": (
        OLD,
        replace(OLD, identification=Identification("0.05", worlds="persons", population=10**6)),
    ),
    "a row instead of a person": (people_policy(unit=EachPerson("person", 1)), people_policy(unit=EachRow())),
    "a person instead of a row": (people_policy(), people_policy(unit=EachPerson("person", 3))),
}


@pytest.mark.parametrize("case", LOOSER)
def test_looser_policy_is_refused_without_an_entry(ledger: Ledger, case: str) -> None:
    old, new = LOOSER[case]
    charge_under(ledger, old)
    before = list(ledger.entries())
    with pytest.raises(PolicyLoosened):
        ledger.open_account(new)
    assert list(ledger.entries()) == before
    assert charge(ledger, old, "the old one goes on", "0.01").cost == Amount.up("0.01")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", {**LOOSER, **WIDER})
def test_every_change_is_allowed_before_the_first_charge(ledger: Ledger, case: str) -> None:
    old, new = {**LOOSER, **WIDER}[case]
    ledger.open_account(old)
    assert ledger.open_account(new).ceiling == budget_of(new).ceiling
    assert verify_clean(ledger).entries == 2


def test_loosening_in_two_steps_is_refused(ledger: Ledger) -> None:
    charge_under(ledger, OLD)
    ledger.open_account(with_promise(OLD, rho="0.05"))
    with pytest.raises(PolicyLoosened, match="rho"):
        ledger.open_account(OLD)


def test_limit_below_past_spending_stops_all_charges(ledger: Ledger) -> None:
    ledger.open_account(OLD)
    charge(ledger, OLD, "much", "1.5")
    stricter = replace(OLD, loss=Loss("1"))
    account = ledger.open_account(stricter)
    assert (account.ceiling, account.spent, account.left) == (Amount.up(1), Amount.up("1.5"), Amount(0))
    with pytest.raises(BudgetExceeded):
        charge(ledger, stricter, "a grain", Amount(1).value)
    verify_clean(ledger)


def test_infeasible_promise_opens_no_account(ledger: Ledger) -> None:
    with pytest.raises(Infeasible):
        ledger.open_account(people_policy(rho="0.01"))
    assert [entry.kind for entry in ledger.entries()] == ["genesis"]


def test_session_with_a_stale_policy_is_refused_and_charged_nothing(ledger_url: str) -> None:
    ledger, other = Ledger(ledger_url), Ledger(ledger_url)
    charge_under(ledger, OLD)
    with pytest.raises(PolicyLoosened):
        other.open_account(with_promise(OLD, rho="0.11"))
    other.open_account(with_promise(OLD, rho="0.05"))
    with pytest.raises(StalePolicy):
        charge(ledger, OLD, "under the old policy", "0.1")
    with pytest.raises(StalePolicy):
        charge(ledger, replace(OLD, dataset=replace(OLD.dataset, name="nobody")), "never opened", "0.1")
    assert charge(ledger, OLD, "before the change", "0.1").cost == Amount(0), "a charged query stays available"
    assert verify_clean(ledger).spent["people"] == Amount.up("0.1")
    ledger.close()
    other.close()


policies = st.builds(
    lambda rho, high, epsilon: people_policy(rho=rho, high=high, epsilon=epsilon),
    st.sampled_from(["0.2", "0.1", "0.05", "0.03"]),
    st.integers(60, 5000),
    st.sampled_from([None, "1", "2"]),
)


@settings(max_examples=20)
@given(changed=st.lists(policies, min_size=2, max_size=6))
def test_limit_never_rises_over_any_changes(tmp_path_factory: pytest.TempPathFactory, changed: list[Policy]) -> None:
    ledger = Ledger(str(tmp_path_factory.mktemp("changes") / "people.ledger"))
    ceilings = [charge_under(ledger, changed[0])]
    for policy in changed[1:]:
        try:
            ceilings.append(ledger.open_account(policy).ceiling)
        except PolicyLoosened:
            continue
    assert ceilings == sorted(ceilings, reverse=True)
    assert verify_clean(ledger).spent["people"] == Amount.up("0.1")
    ledger.close()
