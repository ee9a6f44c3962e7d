"""How many requests a second does the ledger take, and how fast is it verified?

    python -m benchmarks ledger --full

A request is a charge and its result, committed one after the other. The floor (ledger_floors.py) is the same two
commits by hand; `by hand in turn` lets one writer at a time, as a chain must. The ledger has 10,000 entries before
the first request is timed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

from benchmarks.ledger_floors import stores as open_stores
from benchmarks.measure import Runs, median_seconds, peak_memory, take_turns, write_record
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
    with open_stores() as stores:
        for store, (url, floors) in stores.items():
            ledger = Ledger(url)
            ledger.open_account(POLICY)
            yield measure_verify(store, ledger, entries)
            tasks = {"tidegate": lambda led=ledger: charge_and_record(led)}
            tasks.update(floors(charge_and_record(ledger), canonical(RESULT)))
            for threads in (1, THREADS):
                yield measure_requests(store, threads, size, tasks)
            ledger.close()


def charge_and_record(ledger: Ledger) -> Entry:
    """Charge a new query and record its answer."""
    question = {"verb": "answer", "ask": "count", "by": ["age"], "event": EVENT.to_dict(), "n": next(numbers)}
    receipt = ledger.charge(POLICY, EVENT, question=question, says="the number of rows by age", who="bench")
    receipt.record(RESULT)
    return receipt.entry


def measure_requests(store: str, threads: int, size: int, tasks: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Measure `size` requests by a number of threads, compared with the floors."""
    with ThreadPoolExecutor(threads) as pool:
        runs = take_turns({name: _repeat(pool, task, size) for name, task in tasks.items()})
    case = f"{store}, {'alone' if threads == 1 else f'{threads} threads'}"
    return report_rate(QUESTION, case, size, runs, "requests")


def _repeat(pool: ThreadPoolExecutor, task: Callable[[], Any], size: int) -> Callable[[], Any]:
    return lambda: list(pool.map(lambda _: task(), range(size)))


def measure_verify(store: str, ledger: Ledger, size: int) -> dict[str, Any]:
    """Measure `verify`. The floor reads, serializes and hashes the same entries, and checks nothing else."""
    for _ in range((size - 1) // 2):
        charge_and_record(ledger)

    def by_hand() -> None:
        with ledger.store.reading() as connection:
            for row in connection.exec_driver_sql("SELECT * FROM tidegate_entries ORDER BY number"):
                hashlib.sha256(canonical(row._asdict()).encode()).hexdigest()
            connection.exec_driver_sql("SELECT * FROM tidegate_results").fetchall()

    runs = take_turns({"tidegate": lambda: verify(ledger.entries(), ledger.payloads()).refuse(), "by hand": by_hand})
    return report_rate(VERIFYING, f"{store}, verify", sum(1 for _ in ledger.entries()), runs, "entries")


def report_rate(question: str, case: str, size: int, runs: Runs, what: str) -> dict[str, Any]:
    rates = {name: size / median_seconds(task_runs) for name, task_runs in runs.items()}
    summary = f"{rates['tidegate']:,.0f} {what} a second"
    return write_record(
        "ledger", question, case, size=size, runs=runs, peak_mb=peak_memory(), per_second=rates, found=summary
    )
