"""A user never spends more than their share, even in a race, on both stores."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from ledger.charges import at_once, charge, charges, verify_clean
from support.people import people_policy

import tidegate as tg
from tidegate.accounting import Amount
from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger

SHARE = Amount.down("0.25")


def ledger_at(url: str) -> Ledger:
    ledger = Ledger(url)
    ledger.open_account(people_policy())
    return ledger


def test_share_can_be_spent_to_the_last_grain_but_not_beyond(ledger_url: str) -> None:
    ledger, policy = ledger_at(ledger_url), people_policy()
    charge(ledger, policy, "one", "0.2", who="ana", share=SHARE)
    with pytest.raises(BudgetExceeded) as refused:
        charge(ledger, policy, "two", Fraction(1, 20) + Fraction(1, 10**30), who="ana", share=SHARE)
    assert refused.value.facts == {
        "asked": "0.050000000000000000000000000001",
        "spent": "0.2",
        "left": "0.05",
        "share": "0.25",
    }
    charge(ledger, policy, "three", "0.05", who="ana", share=SHARE)
    assert ledger.spent_by("people", "ana") == SHARE
    assert len(charges(ledger)) == 2, "the refused request is not charged"
    verify_clean(ledger)
    ledger.close()


def test_shares_are_per_user_and_the_account_limit_still_applies(ledger_url: str) -> None:
    ledger, policy = ledger_at(ledger_url), people_policy()
    charge(ledger, policy, "of ana", "0.25", who="ana", share=SHARE)
    charge(ledger, policy, "of bob", "0.25", who="bob", share=SHARE)
    charge(ledger, policy, "of the owner", "1", who="owner")
    assert ledger.spent_by("people", "bob") == SHARE
    with pytest.raises(BudgetExceeded) as refused:
        charge(ledger, policy, "more than the account has", "100", who="eve", share=Amount.down(1000))
    assert "ceiling" in refused.value.facts
    ledger.close()


def test_repeated_query_costs_no_share(ledger_url: str) -> None:
    ledger, policy = ledger_at(ledger_url), people_policy()
    charge(ledger, policy, "asked", "0.5", who="owner")
    assert not charge(ledger, policy, "asked", "0.5", who="ana", share=Amount.down("0.01")).fresh
    assert not ledger.spent_by("people", "ana")
    ledger.close()


def test_racing_threads_and_ledgers_do_not_exceed_a_share(ledger_url: str) -> None:
    """Four ledgers on one database, two threads each: 0.25 allows eight charges of 0.03 and no ninth."""
    ledgers, policy = [ledger_at(ledger_url) for _ in range(4)], people_policy()

    def spend(worker: int) -> None:
        for turn in range(3):
            with suppress(BudgetExceeded):
                charge(ledgers[worker % 4], policy, f"{worker}/{turn}", "0.03", who="ana", share=SHARE)

    at_once(spend, threads=8)
    assert len(charges(ledgers[0])) == 8
    assert {str(ledger.spent_by("people", "ana")) for ledger in ledgers} == {"0.24"}
    for ledger in ledgers:
        ledger.close()


def test_session_applies_a_share_to_answers_and_tables(ledger_url: str) -> None:
    import pyarrow as pa

    table = pa.table({"person": list(range(1000)), "age": [20 + n % 40 for n in range(1000)], "sex": ["f", "m"] * 500})
    with tg.open(people_policy(), table=table, ledger=ledger_url) as session:
        session.answer(tg.count().by("sex"), epsilon="0.2", user="ana", budget_share=SHARE)
        with pytest.raises(BudgetExceeded, match="share"):
            session.answer(tg.mean("age"), epsilon="0.06", user="ana", budget_share=SHARE)
        with pytest.raises(BudgetExceeded, match="share"):
            session.synthesize(epsilon="0.06", user="ana", budget_share=SHARE)
        assert str(session.account.spent) == "0.2"
