"""The work of a child process that spends the whole budget."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import count
from typing import Any

from ledger.charges import charge
from support.people import people_policy

from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger


def spend_all(pipe: Any, url: str, worker: str, price: Fraction) -> None:
    """Create or open a ledger, charge a query that all workers share, then spend until nothing is left."""
    pipe.send("ready")
    pipe.recv()
    ledger, policy, numbers = Ledger(url), people_policy(), []
    ledger.open_account(policy)
    shared = charge(ledger, policy, "a shared query", price)
    pipe.send((shared.entry.number, shared.record({"from": worker})))
    pipe.recv()
    try:
        for turn in count():
            numbers.append(charge(ledger, policy, f"{worker}/{turn}", price).entry.number)
            time.sleep(0.001)  # as long as a request takes, so that SQLite's busy loop lets other processes in
    except BudgetExceeded:
        ledger.close()
    pipe.send(numbers)
