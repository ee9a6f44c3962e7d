"""The contract of a place for the ledger: what was charged stays charged, once, in order, whoever asks at the same time."""

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
    """The contract of a place for a ledger: an address where there is none yet. It leaves a small ledger behind."""
    contract = Contract("store")
    if not contract.clause("a ledger opens there, and is empty", _empty, address):
        return contract
    contract.clause("a charge and its result are there after opening it anew", _kept, address)
    contract.clause("the same question is charged once and gives the same", _once, address)
    contract.clause(f"{CALLERS} callers at once spend no more than there is", _together, address)
    contract.clause("every entry holds: hash, chain, price, sums", _verified, address)
    contract.clause("a ledger that is only read is not changed", _read_only, address)
    return contract


def _empty(address: str) -> str:
    ledger = Ledger(address)
    found = sum(1 for entry in ledger.entries() if entry.number)
    ledger.open_account(POLICY)
    ledger.close()
    return f"{found} entries are there already" if found else ""


def _kept(address: str) -> str:
    ledger = Ledger(address)
    ledger.charge(POLICY, TENTH, question={"n": 0}).record({"cells": [1, 2]})
    ledger.close()
    again = Ledger(address)
    earlier = again.asked_before(POLICY, question={"n": 0})
    spent = again.open_account(POLICY).spent
    again.close()
    if earlier is None or earlier.stored != {"cells": [1, 2]}:
        return "the result is not there"
    return "" if spent.value == Fraction(1, 10) else f"{spent} is spent, not 0.1"


def _once(address: str) -> str:
    ledger = Ledger(address)
    before = ledger.open_account(POLICY).spent
    receipt = ledger.charge(POLICY, TENTH, question={"n": 0})
    after = ledger.open_account(POLICY).spent
    ledger.close()
    if before != after:
        return f"{after} is spent after it, {before} before"
    return "" if receipt.stored == {"cells": [1, 2]} else "another result came"


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
    return "" if before == after else "its head moved"
