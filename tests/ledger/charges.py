"""Charges of a known price, and checks of a ledger after them. Shared by the tests of the ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from time import monotonic
from typing import Any

from support.people import people_policy

from tidegate.accounting import Amount, DiscreteLaplace
from tidegate.errors import TidegateError
from tidegate.ledger import Entry, Ledger, Receipt, Verdict
from tidegate.policy import Policy

PATIENCE = 120  # seconds after which a test calls it a deadlock


def event_of_price(price: Fraction | int | str) -> DiscreteLaplace:
    """Return an event of this price."""
    return DiscreteLaplace(Fraction(1), 1 / Fraction(price))


def charge(ledger: Ledger, policy: Policy, name: Any, price: Fraction | int | str, **options: Any) -> Receipt:
    """Charge the query called `name`."""
    return ledger.charge(policy, event_of_price(price), question={"name": name}, **options)


def open_ledger(url: str) -> Ledger:
    """Return a ledger with one answered query."""
    ledger, policy = Ledger(url), people_policy()
    ledger.open_account(policy)
    charge(ledger, policy, "before", "0.1").record("stored")
    return ledger


def charges(ledger: Ledger, account: str = "people") -> list[Entry]:
    return [entry for entry in ledger.entries(account) if entry.kind == "charge"]


def verify_clean(ledger: Ledger, *, head: str = "") -> Verdict:
    """Return the verdict on a ledger, which must verify without notes."""
    verdict = ledger.verify(head=head)
    assert (verdict.problems, verdict.notes) == ([], [])
    return verdict


def assert_exhausted(ledger: Ledger, price: Amount, reported: list[int]) -> None:
    """Assert that the whole budget was spent, and that the charges are exactly the reported entries."""
    account = ledger.account("people")
    assert account is not None
    assert account.ceiling.grains % price.grains, "the test needs a limit that is not a multiple of the price"
    assert account.spent == Amount(price.grains * len(reported))
    assert account.spent <= account.ceiling < account.spent + price
    assert sorted(reported) == [entry.number for entry in charges(ledger)]
    assert verify_clean(ledger).spent["people"] == account.spent
    assert [entry.number for entry in ledger.entries()] == list(range(len(list(ledger.entries()))))


def has_one_sentence(error: TidegateError) -> bool:
    """Return whether an error states the problem in one sentence and what to do in another."""
    return error.what.endswith(".") and "\n" not in error.what and ". " not in error.what and bool(error.do)


def at_once(work: Callable[[int], None], *, threads: int) -> None:
    """Run `work` in threads that start together; fail on an exception or if a thread never ends."""
    start, problems = threading.Barrier(threads), []

    def run(worker: int) -> None:
        try:
            start.wait()
            work(worker)
        except BaseException as error:  # the test reports any exception
            problems.append(error)

    workers = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in range(threads)]
    end = monotonic() + PATIENCE
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(max(0.0, end - monotonic()))
    assert not any(thread.is_alive() for thread in workers), "deadlock"
    assert problems == [], problems
