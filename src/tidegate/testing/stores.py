"""The contract of a store of the ledger: a charge is durable, made once, in order, and safe under concurrency."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

from tidegate.accounting import DiscreteLaplace
from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger
from tidegate.policy import Dataset, Integer, Loss, Policy
from tidegate.testing.contract import Contract

POLICY = Policy(Dataset("contract"), {"age": Integer(0, 9)}, loss=Loss(1))
TENTH = DiscreteLaplace(Fraction(1), Fraction(10))
CALLERS = 16


def check_store(address: str) -> Contract:
    """Check the contract of a store, at an address without a ledger. It leaves a small ledger there."""
    contract = Contract("store")
    if not contract.clause("a ledger opens at the address, and is empty", _empty, address):
        return contract
    contract.clause("a charge and its result persist after reopening", _kept, address)
    contract.clause("the same query is charged once and returns the same result", _once, address)
    contract.clause(f"{CALLERS} concurrent callers spend no more than the budget", _together, address)
    contract.clause("every entry is valid: hash, chain, price, sums", _verified, address)
    contract.clause("a ledger that is opened read-only does not change", _read_only, address)
    return contract


def _empty(address: str) -> str:
    ledger = Ledger(address)
    entries = sum(1 for entry in ledger.entries() if entry.number)
    ledger.open_account(POLICY)
    ledger.close()
    return f"{entries} entries exist already" if entries else ""


def _kept(address: str) -> str:
    ledger = Ledger(address)
    ledger.charge(POLICY, TENTH, question={"n": 0}).record({"cells": [1, 2]})
    ledger.close()
    again = Ledger(address)
    earlier = again.asked_before(POLICY, question={"n": 0})
    spent = again.open_account(POLICY).spent
    again.close()
    if earlier is None or earlier.stored != {"cells": [1, 2]}:
        return "the result is missing"
    return "" if spent.value == Fraction(1, 10) else f"{spent} is spent, not 0.1"


def _once(address: str) -> str:
    ledger = Ledger(address)
    before = ledger.open_account(POLICY).spent
    receipt = ledger.charge(POLICY, TENTH, question={"n": 0})
    after = ledger.open_account(POLICY).spent
    ledger.close()
    if before != after:
        return f"{after} is spent after it, {before} before"
    return "" if receipt.stored == {"cells": [1, 2]} else "a different result was returned"


def _together(address: str) -> str:
    ledger = Ledger(address)

    def ask(number: int) -> bool:
        try:
            ledger.charge(POLICY, TENTH, question={"n": number + 1}).record({"cells": [number]})
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(CALLERS) as callers:
        granted = sum(callers.map(ask, range(CALLERS)))
    account = ledger.open_account(POLICY)
    ledger.close()
    if account.spent.value > 1:
        return f"{account.spent} of 1 is spent"
    return "" if granted == 9 and account.spent.value == 1 else f"{granted} of 9 were granted, {account.spent} is spent"


def _verified(address: str) -> str:
    ledger = Ledger(address, read_only=True)
    verdict = ledger.verify()
    ledger.close()
    return "" if verdict.holds else str(verdict.problems[0])


def _read_only(address: str) -> str:
    ledger = Ledger(address, read_only=True)
    before = ledger.head()
    ledger.close()
    again = Ledger(address, read_only=True)
    after = again.head()
    again.close()
    return "" if before == after else "its head changed"
