"""Many threads and processes on one account: no overspending, no lost charge, no deadlock."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest
from ledger.charges import PATIENCE, assert_exhausted, at_once, charge, charges, event_of_price, verify_clean
from ledger.children import Child, signal_all
from ledger.requesters import TABLE, ask_in_threads
from ledger.spenders import spend_all
from support.people import people_policy

import tidegate as tg
from tidegate.accounting import Amount
from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger

PRICE = Fraction(1, 97)  # about 200 of them fit


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = Ledger(ledger_url)
    opened.open_account(people_policy())
    yield opened
    opened.close()


def test_64_threads_spend_the_whole_budget_and_no_more(ledger: Ledger) -> None:
    policy, reported = people_policy(), []

    def spend(worker: int) -> None:
        for turn in count():
            try:
                reported.append(charge(ledger, policy, f"{worker}/{turn}", PRICE).entry.number)
            except BudgetExceeded:
                return

    at_once(spend, threads=64)
    assert_exhausted(ledger, event_of_price(PRICE).price.pure, reported)


def test_64_threads_that_race_for_the_last_charge_get_it_once(ledger: Ledger) -> None:
    policy, accounts, refused = people_policy(), [], []
    left = ledger.open_account(policy).left
    charge(ledger, policy, "nearly all", left.minus(Amount(3)).value)

    def last(worker: int) -> None:
        try:
            accounts.append(charge(ledger, policy, worker, Fraction(2, 10**30)).account)
        except BudgetExceeded as error:
            refused.append(error.facts["left"])

    at_once(last, threads=64)
    assert [account.left for account in accounts] == [Amount(1)]
    assert refused == [str(Amount(1))] * 63
    assert verify_clean(ledger).entries == 3


def test_concurrent_accounts_share_only_the_chain(ledger: Ledger) -> None:
    policies = [people_policy(), people_policy(rho="0.2"), people_policy(epsilon="0.5")]
    policies = [
        tg.Policy(tg.Dataset(f"people{n}"), p.attributes, p.identification, p.loss) for n, p in enumerate(policies)
    ]

    def spend(worker: int) -> None:
        policy = policies[worker % 3]
        ledger.open_account(policy)
        for turn in range(3):
            charge(ledger, policy, f"{worker}/{turn}", PRICE)

    at_once(spend, threads=24)
    spent = verify_clean(ledger).spent
    assert [spent[policy.dataset.name] for policy in policies] == [
        Amount(event_of_price(PRICE).price.pure.grains * 24)
    ] * 3


@pytest.mark.one_in(5)
@pytest.mark.parametrize("keys", ["one key", "a key each", "no key"])
def test_16_threads_with_the_same_query_are_charged_once_and_get_the_same_answer(ledger_url: str, keys: str) -> None:
    answers = []

    def ask(worker: int) -> None:
        key = {"one key": "k", "a key each": f"k{worker}", "no key": ""}[keys]
        with tg.open(people_policy(), table=TABLE, ledger=ledger_url) as session:
            answers.append(session.answer(tg.count().by("sex"), epsilon="0.1", key=key))

    at_once(ask, threads=16)
    ledger = Ledger(ledger_url)
    (charged,), (stored,) = charges(ledger), ledger.payloads().values()
    assert [[answer.stored] for answer in answers] == [json.loads(stored)["parts"]] * 16
    assert {answer.entry for answer in answers} == {charged.hash}
    assert sorted(answer.cost for answer in answers) == [Amount(0)] * 15 + [Amount.up("0.1")]
    assert verify_clean(ledger).spent["people"] == Amount.up("0.1")
    ledger.close()


def test_threads_can_share_a_session(tmp_path: Path) -> None:
    child = Child(ask_in_threads, str(tmp_path / "people.ledger"), 16)
    try:
        assert child.hear() == "ready"
        assert child.hear(patience=6) == "all answered"
    finally:
        child.kill()  # nothing else ends an interpreter that hangs


@pytest.mark.parametrize("processes", [3, pytest.param(8, marks=pytest.mark.long)])
def test_processes_on_one_new_ledger_never_overspend(ledger_url: str, processes: int) -> None:
    workers = [Child(spend_all, ledger_url, f"worker{n}", PRICE) for n in range(processes)]
    assert [worker.hear() for worker in workers] == ["ready"] * processes
    shared, spent = ([worker.hear() for worker in signal_all(workers)] for _ in ("create it", "spend it"))
    assert sum(bool(numbers) for numbers in spent) > 1, "the processes did not overlap, so nothing was tested"
    ledger = Ledger(ledger_url)
    (number,) = {number for number, _ in shared}
    assert_exhausted(
        ledger, event_of_price(PRICE).price.pure, [number, *(entry for numbers in spent for entry in numbers)]
    )
    (stored,) = ledger.payloads().values()
    assert [result for _, result in shared] == [json.loads(stored)] * processes
    ledger.close()


def test_forked_child_and_parent_continue_with_the_same_ledger(ledger: Ledger) -> None:
    policy = people_policy()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        try:
            for turn in range(20):
                charge(ledger, policy, f"child/{turn}", PRICE)
            os._exit(0)
        finally:
            os._exit(1)
    for turn in range(20):
        charge(ledger, policy, f"parent/{turn}", PRICE)
    assert os.waitpid(child, 0)[1] == 0
    assert len(charges(ledger)) == 40
    assert verify_clean(ledger).spent["people"] == Amount(event_of_price(PRICE).price.pure.grains * 40)
