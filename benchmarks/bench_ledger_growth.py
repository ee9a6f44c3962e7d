"""Does a ledger with a million entries take more time for a charge, and how much time and memory to verify?

    python -m benchmarks ledger_growth --full

Entries are charges with their results, each of another query. `verify` runs in a new process; its memory includes the
libraries (`idle_mb`). By hand: read, serialize and hash the same entries, and check nothing. A charge is `charge` and
`record`; a desk request is one new name at a release desk with that many past requests. Both are compared with a small ledger:
a ratio near 1 means that they do not grow.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import tidegate as tg
from benchmarks.bench_ledger import charge_and_record
from benchmarks.large_ledgers import fill, fill_requests
from benchmarks.measure import peak_memory, run_in_child, take_turns, write_record
from tidegate.demo import soldiers
from tidegate.ledger import Ledger

QUESTION = "How much CPU time and memory does verify take for a ledger of this size?"
CHARGES = "How much longer does a charge with its result take in a large ledger than in one with 1,000 entries?"
REQUESTS = "How much longer does one desk request take after many past requests than after 10?"
AT_ONCE = 100  # charges or requests in one run
LIMITS = {"cpu_s": 60, "peak_mb": 200}  # at a million entries


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    sizes = (10_000, 100_000, 1_000_000) if full else (1_000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder) / f"{size}.ledger" for size in (1_000, *sizes)}
        for size, path in paths.items():
            ledger = Ledger(str(path))
            fill(ledger, size)
            ledger.close()
        for size in sizes:
            yield measure_verify(paths[size], size)
        yield measure_charges(paths[1_000], paths[sizes[-1]], sizes[-1])
        yield measure_requests(Path(folder), 100_000 if full else 5_000)


def measure_verify(path: Path, size: int) -> dict[str, Any]:
    ours, theirs = run_in_child(verify, path), run_in_child(by_hand, path)
    assert ours["value"] == theirs["value"] == size
    cpu, peak = ours["run"].cpu, ours["peak_mb"]
    runs = {"tidegate": [ours["run"]], "by hand": [theirs["run"]]}
    summary = f"{cpu:.1f} s of CPU, {peak:.0f} MB ({peak - ours['idle_mb']:.0f} MB above idle)"
    more = {"cpu_s": cpu, "idle_mb": ours["idle_mb"], "limits_at_1e6": LIMITS}
    case = f"verify, {size:,} entries"
    return write_record("ledger_growth", QUESTION, case, size=size, runs=runs, peak_mb=peak, found=summary, **more)


def verify(path: Path) -> int:
    verdict = Ledger(str(path), read_only=True).verify()
    verdict.refuse()
    return verdict.entries + 1


def by_hand(path: Path) -> int:
    connection, count = sqlite3.connect(f"file:{path}?mode=ro", uri=True), 0
    rows = connection.execute("SELECT * FROM tidegate_entries ORDER BY number")
    names = [column[0] for column in rows.description]
    for row in rows:
        hashlib.sha256(json.dumps(dict(zip(names, row, strict=True)), sort_keys=True).encode()).hexdigest()
        count += 1
    for (payload,) in connection.execute("SELECT payload FROM tidegate_results"):
        hashlib.sha256(payload.encode()).hexdigest()
    connection.close()
    return count


def measure_charges(small: Path, large: Path, size: int) -> dict[str, Any]:
    ledgers = {"tidegate": Ledger(str(large)), "with 1,000 entries": Ledger(str(small))}
    runs = take_turns({name: lambda ledger=ledger: _charge(ledger) for name, ledger in ledgers.items()})
    for ledger in ledgers.values():
        ledger.close()
    return _ratio(CHARGES, f"{AT_ONCE} charges, {size:,} entries", size, runs, "with 1,000 entries")


def _charge(ledger: Ledger) -> None:
    for _ in range(AT_ONCE):
        charge_and_record(ledger)


def measure_requests(folder: Path, past: int) -> dict[str, Any]:
    tasks = {}
    sessions = []
    for name, count in (("tidegate", past), ("after 10", 10)):
        url = str(folder / f"{name}.requests.ledger")
        ledger = Ledger(url)
        ledger.open_account(soldiers.policy())
        fill_requests(ledger, count, account="soldiers")
        ledger.close()
        session = tg.open(soldiers.policy(), table=pa.table(soldiers.records()), ledger=url)
        sessions.append(session)
        desk, names = session.release("headquarters"), iter(soldiers.records()["name"])
        tasks[name] = lambda desk=desk, names=names: _request(desk, names)
    runs = take_turns(tasks)
    for session in sessions:
        session.close()
    return _ratio(REQUESTS, f"20 desk requests, {past:,} past requests", past, runs, "after 10")


def _request(desk: Any, names: Iterator[str]) -> None:
    for _ in range(20):
        desk.request(next(names))


def _ratio(question: str, case: str, size: int, runs: Any, other: str) -> dict[str, Any]:
    ratios = [large.cpu / small.cpu for large, small in zip(runs["tidegate"], runs[other], strict=True)]
    summary = f"{sorted(ratios)[len(ratios) // 2]:.2f} times the CPU time {other}"
    return write_record("ledger_growth", question, case, size=size, runs=runs, peak_mb=peak_memory(), found=summary)
