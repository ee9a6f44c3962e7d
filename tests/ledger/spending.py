"""A process that opens a ledger and spends until nothing is left: `python -m ledger.spending URL WORKER PRICE`.

It says ``ready``, waits for a line, and prints what it got as JSON.
"""

from __future__ import annotations

import json
import sys
from itertools import count

from ledger.charges import charge
from people import people_policy

from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger


def main(url: str, worker: str, price: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    ledger, policy, numbers = Ledger(url), people_policy(), []
    ledger.open_account(policy)
    shared = charge(ledger, policy, "everybody asks this", price)
    result = shared.record({"from": worker})
    try:
        for turn in count():
            numbers.append(charge(ledger, policy, f"{worker}/{turn}", price).entry.number)
    except BudgetExceeded:
        ledger.close()
    print(json.dumps({"numbers": numbers, "shared": shared.entry.number, "result": result}))


if __name__ == "__main__":
    main(*sys.argv[1:])
