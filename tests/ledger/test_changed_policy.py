"""A policy that changes: free before anything was spent, afterwards never looser, and the ceiling never rises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.charges import charge, verified
from support.people import people_policy

from tidegate.accounting import Amount, budget_of
from tidegate.errors import BudgetExceeded, Infeasible, PolicyLoosened, StalePolicy
from tidegate.ledger import Ledger
from tidegate.policy import Category, EachPerson, EachRow, Identification, Integer, Loss, Policy

OLD = people_policy(epsilon="2")
PERSONS = replace(OLD, identification=Identification("0.01", worlds="persons", population=5000))


def promising(policy: Policy, **changed: Any) -> Policy:
    """The policy with another identification promise."""
    old = policy.identification
    kept = {"worlds": old.worlds, "protect": old.protect, "population": old.population, "prior": old.prior}
    rho = changed.pop("rho", old.rho)
    return replace(policy, identification=Identification(rho, **{**kept, **changed}))


def over(policy: Policy, **attributes: Any) -> Policy:
    """The policy with other or more attributes."""
    return replace(policy, attributes={**policy.attributes, **attributes})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(str(tmp_path / "people.ledger"))
    yield opened
    opened.close()


def spent_under(ledger: Ledger, policy: Policy) -> Amount:
    """Spend a little and return the ceiling."""
    ledger.open_account(policy)
    return charge(ledger, policy, "before the change", "0.1").account.ceiling


WIDER = {
    "a wider universe": (OLD, over(OLD, age=Integer(17, 5000))),
    "a wider universe, and no other limit": (people_policy(), people_policy(high=5000)),
    "a larger population": (PERSONS, promising(PERSONS, population=10**9)),
    "fewer rows": (PERSONS, replace(PERSONS, dataset=replace(OLD.dataset, rows=10))),
    "one more column": (OLD, over(OLD, town=Category(("a", "b")))),
    "at most fewer rows of a person": (
        people_policy(unit=EachPerson("person", 5)),
        people_policy(unit=EachPerson("person", 1)),
    ),
}


@pytest.mark.parametrize("case", WIDER)
def test_a_wider_universe_is_an_entry_of_its_own_and_gives_nothing_back(ledger: Ledger, case: str) -> None:
    old, new = WIDER[case]
    ceiling = spent_under(ledger, old)
    account = ledger.open_account(new)
    assert account.ceiling == ceiling
    assert account.spent == Amount.up("0.1")
    *_, entry = ledger.entries()
    assert (entry.kind, entry.policy, entry.amount) == ("policy", new.fingerprint, "0")
    assert entry.content()["changes"]
    assert verified(ledger).entries == 3


STRICTER = {
    "a lower rho": promising(OLD, rho="0.05"),
    "a lower epsilon": replace(OLD, loss=Loss("0.5")),
    "one more protected": promising(over(OLD, town=Category(tuple("abcdefghijkl"))), protect=("age", "town")),
    "a narrower universe": over(OLD, age=Integer(17, 60)),
    "a likelier guess": promising(OLD, prior={"age": "0.05"}),
}


@pytest.mark.parametrize("case", STRICTER)
def test_a_stricter_policy_lowers_the_ceiling_for_good(ledger: Ledger, case: str) -> None:
    new, ceiling = STRICTER[case], spent_under(ledger, OLD)
    lowered = ledger.open_account(new).ceiling
    assert lowered == budget_of(new).ceiling < ceiling
    with pytest.raises(BudgetExceeded):
        charge(ledger, new, "more than that", lowered.value)
    assert charge(ledger, new, "all of that", lowered.minus(Amount.up("0.1")).value).account.left == Amount(0)
    assert verified(ledger).spent["people"] == lowered


LOOSER = {
    "rho up": (OLD, promising(OLD, rho="0.11")),
    "epsilon up": (OLD, replace(OLD, loss=Loss("2.01"))),
    "no loss promise": (OLD, people_policy()),
    "no identification promise": (OLD, replace(OLD, identification=None)),
    "one less protected": (STRICTER["one more protected"], over(OLD, town=Category(tuple("abcdefghijkl")))),
    "another one protected": (OLD, promising(over(OLD, sex=Integer(0, 99)), protect=("sex",))),
    "persons instead of values": (
        OLD,
        replace(OLD, identification=Identification("0.05", worlds="persons", population=10**6)),
    ),
    "a row instead of a person": (people_policy(unit=EachPerson("person", 1)), people_policy(unit=EachRow())),
    "a person instead of a row": (people_policy(), people_policy(unit=EachPerson("person", 3))),
}


@pytest.mark.parametrize("case", LOOSER)
def test_a_looser_policy_is_refused_and_leaves_no_entry(ledger: Ledger, case: str) -> None:
    old, new = LOOSER[case]
    spent_under(ledger, old)
    before = list(ledger.entries())
    with pytest.raises(PolicyLoosened):
        ledger.open_account(new)
    assert list(ledger.entries()) == before
    assert charge(ledger, old, "the old one goes on", "0.01").cost == Amount.up("0.01")


@pytest.mark.parametrize("case", {**LOOSER, **WIDER})
def test_before_anything_was_spent_every_change_is_free(ledger: Ledger, case: str) -> None:
    old, new = {**LOOSER, **WIDER}[case]
    ledger.open_account(old)
    assert ledger.open_account(new).ceiling == budget_of(new).ceiling
    assert verified(ledger).entries == 2


def test_a_loosening_in_two_steps_is_refused_as_well(ledger: Ledger) -> None:
    spent_under(ledger, OLD)
    ledger.open_account(promising(OLD, rho="0.05"))
    with pytest.raises(PolicyLoosened, match="rho"):
        ledger.open_account(OLD)


def test_a_ceiling_below_what_was_spent_stops_everything(ledger: Ledger) -> None:
    ledger.open_account(OLD)
    charge(ledger, OLD, "much", "1.5")
    stricter = replace(OLD, loss=Loss("1"))
    account = ledger.open_account(stricter)
    assert (account.ceiling, account.spent, account.left) == (Amount.up(1), Amount.up("1.5"), Amount(0))
    with pytest.raises(BudgetExceeded):
        charge(ledger, stricter, "a grain", Amount(1).value)
    verified(ledger)


def test_a_promise_that_nobody_could_keep_opens_no_account(ledger: Ledger) -> None:
    with pytest.raises(Infeasible):
        ledger.open_account(people_policy(rho="0.01"))
    assert [entry.kind for entry in ledger.entries()] == ["genesis"]


def test_a_session_with_the_policy_of_yesterday_is_told_so_and_charged_nothing(ledger_url: str) -> None:
    ledger, other = Ledger(ledger_url), Ledger(ledger_url)
    spent_under(ledger, OLD)
    with pytest.raises(PolicyLoosened):
        other.open_account(promising(OLD, rho="0.11"))
    other.open_account(promising(OLD, rho="0.05"))
    with pytest.raises(StalePolicy):
        charge(ledger, OLD, "under the old policy", "0.1")
    with pytest.raises(StalePolicy):
        charge(ledger, replace(OLD, dataset=replace(OLD.dataset, name="nobody")), "never opened", "0.1")
    assert charge(ledger, OLD, "before the change", "0.1").cost == Amount(0), "what was charged stays answered"
    assert verified(ledger).spent["people"] == Amount.up("0.1")
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
def test_the_ceiling_never_rises_over_any_changes(
    tmp_path_factory: pytest.TempPathFactory, changed: list[Policy]
) -> None:
    ledger = Ledger(str(tmp_path_factory.mktemp("changes") / "people.ledger"))
    ceilings = [spent_under(ledger, changed[0])]
    for policy in changed[1:]:
        try:
            ceilings.append(ledger.open_account(policy).ceiling)
        except PolicyLoosened:
            continue
    assert ceilings == sorted(ceilings, reverse=True)
    assert verified(ledger).spent["people"] == Amount.up("0.1")
    ledger.close()
