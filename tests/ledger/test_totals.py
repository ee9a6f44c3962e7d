"""Totals in three units: they follow from the entries, every limit is enforced, and older ledgers get them."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import charge, verify_clean
from ledger.test_file import older as older  # a fixture
from support.people import people_policy

from tidegate.accounting import (
    FREE,
    Amount,
    Choices,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    GaussianMoments,
    Price,
    budget_of,
    event_from_dict,
)
from tidegate.errors import BudgetExceeded, PolicyLoosened, Unsupported
from tidegate.ledger import Ledger, backup, restore
from tidegate.ledger.totals import Totals
from tidegate.policy import Identification, Loss, Policy

F = Fraction
COLUMNS = ("pure", "zcdp", "z", "pure_ceiling", "z_ceiling")
WORST = people_policy()
AVERAGE = replace(WORST, identification=Identification("0.1", protect=("age",), guarantee="average"))
BOTH = replace(AVERAGE, loss=Loss("0.5"))
LAPLACE = DiscreteLaplace(F(1), F(10))
GAUSSIAN = DiscreteGaussian(F(1, 4), F(1), F(5))
CHOICE = Exponential(F(1), F(1, 20))
EVENTS: dict[str, Event] = {
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "choice": CHOICE,
    "choices": Choices(F(1), F(1, 30), 3),
    "moments": GaussianMoments(-3, 3, 1, (F(20), F(60), None)),
}


def ask(ledger: Ledger, policy: Policy, event: Event, name: Any, **options: Any) -> Any:
    return ledger.charge(policy, event, question={"name": name}, **options)


def rows(ledger: Ledger) -> dict[str, tuple[str, ...]]:
    """Return the stored totals of every account."""
    with ledger.store.reading() as connection:
        stored = connection.exec_driver_sql(f"SELECT account, {', '.join(COLUMNS)} FROM tidegate_totals").all()
    return {account: tuple(row) for account, *row in stored}


def total(*events: Event) -> Price:
    return sum((event.price for event in events), FREE)


def entries(ledger: Ledger) -> int:
    return len(list(ledger.entries()))


# Charges


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("policy", "unit"), [(WORST, "epsilon"), (AVERAGE, "z"), (BOTH, "epsilon")], ids=["worst case", "average", "both"]
)
def test_totals_follow_the_charges_in_every_unit(ledger_url: str, policy: Policy, unit: str) -> None:
    ledger = Ledger(ledger_url)
    limits = budget_of(policy).ceilings
    account = ledger.open_account(policy)
    assert (account.unit, account.totals, account.ceilings) == (unit, FREE, limits)
    spent = FREE
    for name, event in EVENTS.items():
        if event.price.pure is None and limits.pure is not None:
            continue
        receipt = ask(ledger, policy, event, name)
        spent = spent + event.price
        assert receipt.price == event.price
        assert receipt.cost == (event.price.z if unit == "z" else event.price.pure)
        assert receipt.account.totals == spent
        assert ask(ledger, policy, event, name).price == FREE  # a repetition costs nothing
        again = ledger.account("people")
        assert (again.totals, again.ceilings) == (spent, limits)
        assert again.spent == (spent.z if unit == "z" else spent.pure)
        assert Totals.from_row(rows(ledger)["people"]) == Totals(spent, limits)
    assert (spent.pure is None) == (unit == "z")
    assert verify_clean(ledger).spent["people"] == (spent.z if unit == "z" else spent.pure)
    ledger.close()


def test_shares_are_in_the_unit_of_the_account(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(AVERAGE)
    share = Amount(2 * GAUSSIAN.price.z.grains)
    for name in (1, 2):
        ask(ledger, AVERAGE, GAUSSIAN, name, who="ann", share=share)
    with pytest.raises(BudgetExceeded):
        ask(ledger, AVERAGE, GAUSSIAN, 3, who="ann", share=share)
    assert ledger.spent_by("people", "ann") == share
    ask(ledger, AVERAGE, GAUSSIAN, 3, who="ben", share=share)
    assert verify_clean(ledger).problems == []
    ledger.close()


def test_each_account_has_its_own_totals(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    other = replace(WORST, dataset=replace(WORST.dataset, name="others"))
    ledger.open_account(AVERAGE)
    ledger.open_account(other)
    ask(ledger, AVERAGE, GAUSSIAN, 1)
    ask(ledger, other, LAPLACE, 1)
    assert ledger.account("people").totals == GAUSSIAN.price
    assert ledger.account("others").totals == LAPLACE.price
    assert set(rows(ledger)) == {"people", "others"}
    assert verify_clean(ledger).problems == []
    ledger.close()


# Tampering


@pytest.mark.one_in(3)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("policy", [AVERAGE, BOTH], ids=["average", "both"])
def test_changed_total_is_detected(ledger_url: str, policy: Policy, column: str) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(policy)
    ask(ledger, policy, LAPLACE, 1)
    before = rows(ledger)["people"][COLUMNS.index(column)]
    for value in ("", "0", "0.000001", "9"):
        if value == before:
            continue
        with ledger.store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE tidegate_totals SET {column} = '{value}'")
        assert any("totals of people" in problem for problem in ledger.verify().problems)
        with ledger.store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE tidegate_totals SET {column} = '{before}'")
    assert ledger.verify().problems == []
    ledger.close()


CHANGES = {
    "a row removed": "DELETE FROM tidegate_totals",
    "another account": "UPDATE tidegate_totals SET account = 'others'",
    "a row added": "INSERT INTO tidegate_totals VALUES ('others', '0', '0', '0', '', '9')",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CHANGES)
def test_changed_rows_of_totals_are_detected(ledger_url: str, case: str) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(AVERAGE)
    ask(ledger, AVERAGE, GAUSSIAN, 1)
    with ledger.store.writing() as connection:
        connection.exec_driver_sql(CHANGES[case])
    assert any("do not follow from its entries" in problem for problem in ledger.verify().problems)
    ledger.close()


# Limits


@pytest.mark.parametrize("policy", [WORST, BOTH, people_policy(epsilon="2")], ids=["worst case", "both", "loss"])
def test_event_without_pure_loss_is_refused_before_anything_is_written(ledger_url: str, policy: Policy) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(policy)
    ask(ledger, policy, LAPLACE, "before")
    before, stored = entries(ledger), rows(ledger)
    for event in (GAUSSIAN, EVENTS["moments"]):
        with pytest.raises(Unsupported, match="limits the pure loss"):
            ask(ledger, policy, event, "refused", who="ann")
    assert (entries(ledger), rows(ledger)) == (before, stored)
    assert ledger.spent_by("people", "ann") == Amount(0)
    assert ledger.account("people").fits(LAPLACE.price)
    assert not ledger.account("people").fits(GAUSSIAN.price)
    assert verify_clean(ledger).problems == []
    ledger.close()


def test_average_limit_is_reached_and_not_exceeded(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    limit = ledger.open_account(AVERAGE).ceiling
    assert limit == budget_of(AVERAGE).ceilings.z
    half = DiscreteGaussian(2 * limit.value / 2, 2 * limit.value, F(1))
    assert half.price.z == Amount.up(limit.value / 2)
    ask(ledger, AVERAGE, half, 1)
    left = ledger.account("people").left
    rest = DiscreteGaussian(2 * left.value, 4 * left.value, F(1))
    with pytest.raises(BudgetExceeded, match="Z"):
        ask(ledger, AVERAGE, replace(rest, squared_radius=2 * (left + Amount(1)).value), "a grain more")
    assert ask(ledger, AVERAGE, rest, 2).account.left == Amount(0)
    with pytest.raises(BudgetExceeded):
        ask(ledger, AVERAGE, DiscreteGaussian(F(1, 10**40), F(1, 10**40), F(1)), "the smallest charge")
    assert verify_clean(ledger).spent["people"] == limit
    ledger.close()


def test_both_limits_are_enforced(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    tight = replace(BOTH, loss=Loss(3))
    account = ledger.open_account(tight)
    limits = account.ceilings
    assert (limits.pure, limits.z) == (Amount.up(3), budget_of(AVERAGE).ceilings.z)
    big = DiscreteLaplace(F(1), F(1))  # z is 1/8
    charged = 0
    while limits.z.grains - charged >= big.price.z.grains:
        ask(ledger, tight, big, charged)
        charged += big.price.z.grains
    assert ledger.account("people").spent < limits.pure
    with pytest.raises(BudgetExceeded, match="costs Z"):
        ask(ledger, tight, big, "more than z")
    small = DiscreteLaplace(F(1), F(20))
    while ledger.account("people").fits(small.price):
        ask(ledger, tight, small, f"small {entries(ledger)}")
    assert verify_clean(ledger).problems == []
    final = ledger.account("people")
    assert final.totals.pure <= limits.pure
    assert final.totals.z <= limits.z
    ledger.close()


def test_pure_limit_beside_an_average_one_is_enforced(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(BOTH)
    charge(ledger, BOTH, 1, "0.25")
    charge(ledger, BOTH, 2, "0.25")
    with pytest.raises(BudgetExceeded, match="epsilon"):
        charge(ledger, BOTH, 3, "1e-30")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.5")
    ledger.close()


# Policies


def test_limit_of_each_unit_never_rises_after_a_charge(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(BOTH)
    charge(ledger, BOTH, 1, "0.1")
    stricter = replace(
        BOTH, loss=Loss("0.4"), identification=Identification("0.05", protect=("age",), guarantee="average")
    )
    lowered = ledger.open_account(stricter).ceilings
    assert (lowered.pure, lowered.z) == (Amount.up("0.4"), budget_of(stricter).ceilings.z)
    wider = replace(
        stricter, attributes={**stricter.attributes, "age": replace(stricter.attributes["age"], highest=95)}
    )
    assert ledger.open_account(wider).ceilings == lowered
    assert Totals.from_row(rows(ledger)["people"]) == Totals(total(DiscreteLaplace(F(1), F(10))), lowered)
    assert verify_clean(ledger).problems == []
    ledger.close()


def test_any_policy_is_allowed_before_the_first_charge(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    for policy in (WORST, AVERAGE, BOTH, AVERAGE):
        assert ledger.open_account(policy).ceilings == budget_of(policy).ceilings
    ask(ledger, AVERAGE, GAUSSIAN, 1)
    assert verify_clean(ledger).spent["people"] == GAUSSIAN.price.z
    ledger.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [(WORST, AVERAGE), (AVERAGE, WORST), (AVERAGE, BOTH)],
    ids=["to average", "to worst case", "to both"],
)
def test_guarantee_cannot_change_after_a_charge(ledger_url: str, old: Policy, new: Policy) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(old)
    ask(ledger, old, LAPLACE, 1)
    before, stored = entries(ledger), rows(ledger)
    with pytest.raises(PolicyLoosened):
        ledger.open_account(new)
    assert (entries(ledger), rows(ledger)) == (before, stored)
    ledger.close()


def test_average_promise_added_to_a_loss_promise_counts_earlier_charges(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    only_loss = replace(WORST, identification=None, loss=Loss(3))
    ledger.open_account(only_loss)
    charge(ledger, only_loss, 1, "0.9")
    both = replace(only_loss, identification=AVERAGE.identification)
    account = ledger.open_account(both)
    assert account.totals.z == Amount.up(F(81, 800))
    assert account.ceilings.z == budget_of(AVERAGE).ceilings.z
    with pytest.raises(BudgetExceeded, match="Z"):
        charge(ledger, both, 2, 2)
    assert verify_clean(ledger).problems == []
    ledger.close()


# Older ledgers


def expected(ledger: Ledger) -> dict[str, Price]:
    """Return the sum of the prices of all charges, by account, from the entries alone."""
    spent: dict[str, Price] = {}
    for entry in ledger.entries():
        if entry.kind == "charge":
            price = event_from_dict(entry.content()["event"]).price
            spent[entry.account] = spent.get(entry.account, FREE) + price
    return spent


def test_migrated_ledger_has_totals_and_verifies(older: Path) -> None:
    ledger = Ledger(str(older))
    assert ledger.verify().problems == []
    charged = expected(ledger)
    assert charged
    stored = {account: Totals.from_row(row) for account, row in rows(ledger).items()}
    assert {account: state.spent for account, state in stored.items() if state.spent} == charged
    for account, state in stored.items():
        assert state.ceilings.z is None
        assert ledger.account(account).ceiling == state.ceilings.main
        assert ledger.account(account).spent == state.spent.pure
    version_1 = replace(WORST, version=1)
    before = ledger.account("people").totals
    charge(ledger, version_1, "more", "0.1")
    assert ledger.account("people").totals == before + LAPLACE.price
    assert ledger.verify().problems == []
    ledger.close()


def test_older_ledger_that_is_only_read_shows_its_account(older: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ledger"
    shutil.copy(older, copy)
    reader = Ledger(str(older), read_only=True)
    account = reader.account("people")
    assert not reader.store.has_totals
    assert account is not None
    assert account.totals == expected(reader)["people"]
    assert reader.verify().problems == []
    assert reader.account("nobody") is None
    reader.close()
    migrated = Ledger(str(copy))
    assert migrated.account("people") == account
    migrated.close()


LATER_TABLES = [
    "tidegate_totals",
    "tidegate_known_sources",
    "tidegate_selection",
    "tidegate_invitations",
    "tidegate_spent_tokens",
    "tidegate_tiles",
    "tidegate_witnesses",
    "tidegate_replies",
    "tidegate_partners",
    "tidegate_limits",
    "tidegate_links",
    "tidegate_token_uses",
    "tidegate_diaries",
    "tidegate_leases",
    "tidegate_library",
]  # of schema 0008 and later
LATER_COLUMNS = [
    "tidegate_tokens.maker",
    "tidegate_tokens.identity",
    "tidegate_jobs.kind",
    "tidegate_jobs.attempts",
    "tidegate_jobs.report",
]


def test_ledger_of_the_schema_before_totals_is_completed(tmp_path: Path) -> None:
    """A file whose table of totals was removed, with the number of the schema before it."""
    path = tmp_path / "people.ledger"
    ledger = Ledger(str(path))
    ledger.open_account(AVERAGE)
    for name, event in EVENTS.items():
        ask(ledger, AVERAGE, event, name)
    account = ledger.account("people")
    ledger.close()
    with sqlite3.connect(path) as connection:
        for table in LATER_TABLES:
            connection.execute(f"DROP TABLE {table}")
        for column in LATER_COLUMNS:
            table, name = column.split(".")
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        connection.execute("UPDATE tidegate_version SET version_num = '0007'")
    connection.close()
    reader = Ledger(str(path), read_only=True)
    assert reader.account("people") == account
    reader.close()
    again = Ledger(str(path))
    assert again.account("people") == account
    assert again.verify().problems == []
    again.close()


# Restores


@pytest.mark.one_in(3)
@pytest.mark.parametrize("policy", [WORST, AVERAGE, BOTH], ids=["worst case", "average", "both"])
def test_write_off_never_lowers_a_total(ledger_url: str, tmp_path: Path, policy: Policy) -> None:
    ledger = Ledger(ledger_url)
    ledger.open_account(policy)
    ask(ledger, policy, LAPLACE, "before")
    backup(ledger, tmp_path / "b.ledger")
    for name, event in EVENTS.items():
        if event.price.pure is not None or policy is AVERAGE:
            ask(ledger, policy, event, name, who="ann")
    before = ledger.account("people")
    ledger.close()
    restore(tmp_path / "b.ledger", ledger_url, write_off=True)
    again = Ledger(ledger_url)
    after = again.account("people")
    assert (after.spent, after.ceiling, after.ceilings) == (before.spent, before.ceiling, before.ceilings)
    assert after.totals.zcdp >= before.totals.zcdp
    assert after.totals.z >= before.totals.z
    assert after.totals.pure == before.totals.pure
    assert again.spent_by("people", "ann") == after.spent.minus(
        LAPLACE.price.z if policy is AVERAGE else LAPLACE.price.pure
    )
    assert verify_clean(again).problems == []
    ask(again, policy, DiscreteLaplace(F(1), F(100)), "after")
    assert verify_clean(again).problems == []
    again.close()


def test_write_off_of_an_average_account_counts_an_unbounded_pure_loss(ledger_url: str, tmp_path: Path) -> None:
    """The lost charges can have been of any kind, so that nothing is known of their pure loss."""
    ledger = Ledger(ledger_url)
    ledger.open_account(AVERAGE)
    backup(ledger, tmp_path / "b.ledger")
    ask(ledger, AVERAGE, LAPLACE, 1)
    ledger.close()
    restore(tmp_path / "b.ledger", ledger_url, write_off=True)
    again = Ledger(ledger_url)
    spent = again.account("people").totals
    assert spent.pure is None
    assert spent.z == LAPLACE.price.z
    assert spent.zcdp >= LAPLACE.price.zcdp
    again.close()


def test_restored_backup_of_an_older_schema_has_totals(older: Path, tmp_path: Path) -> None:
    ledger = Ledger(str(older), read_only=True)
    charged = expected(ledger)["people"]
    backup(ledger, tmp_path / "b.ledger")
    ledger.close()
    restore(tmp_path / "b.ledger", str(tmp_path / "new.ledger"))
    again = Ledger(str(tmp_path / "new.ledger"))
    assert again.account("people").totals == charged
    assert again.verify().problems == []
    again.close()
