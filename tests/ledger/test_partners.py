"""Accounts that share persons: a charge to one of them counts in all, also under concurrent writes and in `verify`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import at_once, charge, charges, verify_clean
from support.people import people_policy

from tidegate.accounting import Amount, DiscreteGaussian
from tidegate.errors import BudgetExceeded, PolicyLoosened, PolicyUnreadable, Unsupported
from tidegate.ledger import Ledger
from tidegate.ledger.backup import backup
from tidegate.ledger.charge import Charge, account_from_dict
from tidegate.ledger.restore import restore
from tidegate.policy import Dataset, Identification, Loss, Policy
from tidegate.policy.toml import parse_policy

ATTRIBUTES = people_policy().attributes


def policy_of(name: str, *partners: str, epsilon: str = "2") -> Policy:
    return Policy(Dataset(name, shares_persons_with=partners), ATTRIBUTES, loss=Loss(epsilon))


FIRST, SECOND = policy_of("first"), policy_of("second", "first")


@pytest.fixture
def ledger(ledger_url: str) -> Any:
    ledger = Ledger(ledger_url)
    for policy in (FIRST, SECOND):
        ledger.open_account(policy)
    yield ledger
    ledger.close()


def test_charge_to_either_account_counts_in_both(ledger: Ledger) -> None:
    """The policy of the first account does not name the second: one declaration is enough."""
    charge(ledger, FIRST, "a", "1.2")
    assert charge(ledger, SECOND, "b", "0.5").account.left == Amount.up("0.3")
    for policy in (FIRST, SECOND):
        name, other = policy.dataset.name, "second" if policy is FIRST else "first"
        assert ledger.account(name).left == Amount.up("0.3")
        with pytest.raises(BudgetExceeded) as refused:
            charge(ledger, policy, "c", "0.4")
        assert refused.value.what == (
            f'"{name}" shares persons with "{other}": together they have spent epsilon 1.7 of 2, the limit of "{name}", so 0.3 '
            "remains."
        )
        assert refused.value.do == "Request at most 0.3."
    charge(ledger, FIRST, "d", "0.3")
    with pytest.raises(BudgetExceeded, match="so 0 remains") as refused:
        charge(ledger, SECOND, "e", "0.1")
    assert refused.value.do == "Only stored answers are available."
    assert (ledger.account("first").spent, ledger.account("second").spent) == (Amount.up("1.5"), Amount.up("0.5"))
    verify_clean(ledger)


def test_lowest_limit_of_the_group_decides(ledger: Ledger) -> None:
    strict = policy_of("strict", "second", epsilon="0.5")
    ledger.open_account(strict)
    charge(ledger, FIRST, "a", "0.4")
    with pytest.raises(BudgetExceeded, match=r'spent epsilon 0\.4 of 0\.5, the limit of "strict"'):
        charge(ledger, SECOND, "b", "0.2")
    assert ledger.account("second").left == Amount.up("0.1")
    verify_clean(ledger)


def test_groups_with_a_common_account_are_one_group(ledger: Ledger) -> None:
    """The third account does not name the first; a person can be in all three."""
    third, alone = policy_of("third", "second"), policy_of("alone")
    for policy in (third, alone):
        ledger.open_account(policy)
    charge(ledger, FIRST, "a", "1.9")
    with pytest.raises(BudgetExceeded):
        charge(ledger, third, "b", "0.2")
    charge(ledger, alone, "b", "1.9")
    verify_clean(ledger)


def test_declaration_after_both_were_spent_leaves_nothing(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    for policy in (FIRST, policy_of("second")):
        ledger.open_account(policy)
        charge(ledger, policy, "a", "1.5")
    assert ledger.preview_account(SECOND).left == Amount.up("0")
    assert ledger.open_account(SECOND).left == Amount.up("0")
    with pytest.raises(BudgetExceeded, match="so 0 remains"):
        charge(ledger, FIRST, "b", "0.1")
    verify_clean(ledger)
    ledger.close()


def test_gaussian_noise_is_refused_if_an_account_of_the_group_limits_the_pure_loss(ledger: Ledger) -> None:
    average = Policy(
        Dataset("average", shares_persons_with=("first",)),
        ATTRIBUTES,
        identification=Identification("1/2", protect=("age",), guarantee="average"),
    )
    ledger.open_account(average)
    event = DiscreteGaussian(Fraction(1), Fraction(1), Fraction(100))
    with pytest.raises(Unsupported, match=r'"(first|second)" limits the pure loss \(epsilon\)'):
        ledger.charge(average, event, question={"name": "a"})
    verify_clean(ledger)


def test_declaration_cannot_be_withdrawn_after_a_charge(ledger: Ledger) -> None:
    ledger.open_account(policy_of("second"))
    assert ledger.account("second").group == ()
    ledger.open_account(SECOND)
    charge(ledger, SECOND, "a", "0.1")
    with pytest.raises(PolicyLoosened, match='its charges would no longer be added to those of "first"'):
        ledger.open_account(policy_of("second"))
    more = policy_of("second", "first", "third")
    ledger.open_account(more)
    assert ledger.policies("second")[-1].content()["changes"] == ["shares persons with: first -> first, third"]
    verify_clean(ledger)


def test_racing_charges_of_two_accounts_do_not_exceed_the_common_limit(ledger: Ledger) -> None:
    def spend(worker: int) -> None:
        for turn in range(4):
            try:
                charge(ledger, (FIRST, SECOND)[worker % 2], f"{worker} {turn}", "0.11")
            except BudgetExceeded:
                return

    at_once(spend, threads=8)
    assert len(charges(ledger, "first")) + len(charges(ledger, "second")) == 18
    verify_clean(ledger)


def test_verify_notices_a_charge_beyond_the_common_limit_and_changed_partners(ledger: Ledger) -> None:
    charge(ledger, FIRST, "a", "1.5")
    verify_clean(ledger)
    with ledger.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM tidegate_partners")
    problem = "The accounts that share persons do not follow from the policies."
    assert ledger.verify().problems == [problem]
    charge(ledger, SECOND, "b", "1")  # nothing stops it now
    assert ledger.verify().problems == [
        "Entry 4: it spends more than accounts with the same persons allow.",
        problem,
    ]


def test_result_shows_the_loss_of_a_person_in_both_accounts(ledger: Ledger) -> None:
    charge(ledger, FIRST, "a", "1.2")
    shown = Charge.of(charge(ledger, SECOND, "b", "0.5"), SECOND)
    content = shown.to_dict()
    assert content["left"] == "0.3"
    assert content["spent_on_persons"]["pure"] == "1.7"
    assert shown.yes_no()["after"] == pytest.approx(
        Charge.of(charge(ledger, FIRST, "c", "1e-9"), FIRST).yes_no()["after"]
    )
    account = account_from_dict(content, SECOND)
    assert (account.left, account.exposure) == (shown.account.left, shown.account.exposure)
    assert Charge.from_dict(content, SECOND).to_dict() == content


def test_restored_backup_keeps_the_group(ledger: Ledger, ledger_url: str, tmp_path: Path) -> None:
    backup(ledger, tmp_path / "b.ledger")
    ledger.open_account(policy_of("third", "first"))
    charge(ledger, policy_of("third", "first"), "a", "0.5")
    ledger.close()
    restore(tmp_path / "b.ledger", ledger_url, write_off=True)
    again = Ledger(ledger_url)
    assert dict(again.account("first").group).keys() == {"second", "third"}
    assert again.account("second").left == Amount.up("1.5")
    verify_clean(again)
    again.close()


TEXT = """
[dataset]
name = "second"
unit = "row"
shares_persons_with = {names}
[attributes]
sex = {{ kind = "category", values = ["f", "m"] }}
[promise.loss]
epsilon = 1
"""


def test_policy_file_names_partners_and_its_fingerprint_covers_them() -> None:
    policy = parse_policy(TEXT.format(names='["first", "third"]'))
    assert policy.dataset.shares_persons_with == ("first", "third")
    assert policy.public_dict()["dataset"]["shares_persons_with"] == ["first", "third"]
    alone = replace(policy, dataset=replace(policy.dataset, shares_persons_with=()))
    assert policy.fingerprint != alone.fingerprint
    assert "shares_persons_with" not in alone.to_dict()["dataset"]


@pytest.mark.parametrize("names", ['"first"', '["second"]', '["first", "first"]', '["a/b"]', '[""]', "[1]"])
def test_partners_that_are_not_names_of_other_accounts_are_refused(names: str) -> None:
    with pytest.raises(PolicyUnreadable):
        parse_policy(TEXT.format(names=names))
