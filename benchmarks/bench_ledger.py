"""How many requests a second does the ledger take, and how fast is it verified?

    python -m benchmarks ledger --full

A request is a charge and its result, committed one after the other. The floor (ledger_floors.py) is the same two
commits by hand; `by hand in turn` lets one writer at a time, as a chain must. The ledger holds 10,000 entries before
the first request is timed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

from benchmarks.ledger_floors import places
from benchmarks.measure import Runs, peak_memory, take_turns, tell, typical
from tidegate.accounting import DiscreteLaplace
from tidegate.ledger import Ledger, verify
from tidegate.ledger.entry import Entry, canonical
from tidegate.policy import Category, Dataset, Integer, Loss, Policy

QUESTION = "How many requests (charge, commit, result, commit) a second, beside the same two commits by hand?"
VERIFYING = "How many entries a second does verify read, hash, chain, price and add up again?"
THREADS = 16
POLICY = Policy(Dataset("people"), {"age": Integer(17, 90), "sex": Category(("f", "m"))}, loss=Loss("1000000000"))
EVENT = DiscreteLaplace(Fraction(2), Fraction(20))
RESULT = {"cells": list(range(100, 174)), "labels": {"age": list(range(17, 91))}, "scale": "20"}
numbers = itertools.count(1)


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    size, entries = (800, 10_000) if full else (32, 500)
    with places() as stores:
        for store, (url, floors) in stores.items():
            ledger = Ledger(url)
            ledger.open_account(POLICY)
            yield tell_verify(store, ledger, entries)
            tasks = {"tidegate": lambda led=ledger: one_request(led)}
            tasks.update(floors(one_request(ledger), canonical(RESULT)))
            for threads in (1, THREADS):
                yield tell_requests(store, threads, size, tasks)
            ledger.close()


def one_request(ledger: Ledger) -> Entry:
    """A question that nobody asked before, and its answer."""
    question = {"verb": "answer", "ask": "count", "by": ["age"], "event": EVENT.to_dict(), "n": next(numbers)}
    receipt = ledger.charge(POLICY, EVENT, question=question, says="the number of rows by age", who="bench")
    receipt.record(RESULT)
    return receipt.entry


def tell_requests(store: str, threads: int, size: int, tasks: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """`size` requests by so many threads, beside the floors."""
    with ThreadPoolExecutor(threads) as pool:
        runs = take_turns({name: _many(pool, task, size) for name, task in tasks.items()})
    case = f"{store}, {'alone' if threads == 1 else f'{threads} threads'}"
    return told(QUESTION, case, size, runs, "requests")


def _many(pool: ThreadPoolExecutor, task: Callable[[], Any], size: int) -> Callable[[], Any]:
    return lambda: list(pool.map(lambda _: task(), range(size)))


def tell_verify(store: str, ledger: Ledger, size: int) -> dict[str, Any]:
    """The floor reads, writes out and hashes the same entries, and checks nothing else."""
    for _ in range((size - 1) // 2):
        one_request(ledger)

    def by_hand() -> None:
        with ledger.store.reading() as connection:
            for row in connection.exec_driver_sql("SELECT * FROM tidegate_entries ORDER BY number"):
                hashlib.sha256(canonical(row._asdict()).encode()).hexdigest()
            connection.exec_driver_sql("SELECT * FROM tidegate_results").fetchall()

    runs = take_turns({"tidegate": lambda: verify(ledger.entries(), ledger.payloads()).refuse(), "by hand": by_hand})
    return told(VERIFYING, f"{store}, verify", sum(1 for _ in ledger.entries()), runs, "entries")


def told(question: str, case: str, size: int, runs: Runs, what: str) -> dict[str, Any]:
    rates = {name: size / typical(found) for name, found in runs.items()}
    found = f"{rates['tidegate']:,.0f} {what} a second"
    return tell("ledger", question, case, size=size, runs=runs, peak_mb=peak_memory(), per_second=rates, found=found)
