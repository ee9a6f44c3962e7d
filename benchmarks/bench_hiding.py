"""How long does the opening of a selection take, and how many requests under a hiding promise are decided a second?

python -m benchmarks [--full] hiding

The opening is compared with a program by hand that makes no promise: it reads the same Parquet file, hashes every key, sorts
the hashes of each cell and inserts them into a new SQLite file. Decisions are compared with two bare commits of SQLite for
each group of requests. `16 requesters` share a desk, one request at a time each, so that requests share commits.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import SEED, peak_memory, take_turns, time_task, write_record

QUESTION = "How long does a selection take, and how many requests under a hiding promise are decided a second?"
REQUESTERS = 16


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    yield opening(1_000_000 if full else 100_000)
    yield from decisions(10_000, full)
    if full:
        yield from decisions(1_000_000, full)


def write_table(folder: Path, rows: int) -> Path:
    """Write a table of people in five places as Parquet; keys are shuffled."""
    import pyarrow as pa
    import pyarrow.parquet

    random = np.random.default_rng(SEED)
    table = {
        "name": [f"p{key:07d}" for key in random.permutation(rows)],
        "age": random.integers(16, 61, rows),
        "location": [f"L{1 + number}" for number in random.integers(0, 5, rows)],
    }
    path = folder / f"{rows}.parquet"
    pyarrow.parquet.write_table(pa.table(table), path)
    return path


def open_session(source: Path, rows: int, ledger: Path) -> Any:
    import tidegate as tg
    from tidegate.demo import soldiers

    policy = soldiers.hiding_policy(name="people")
    policy = replace(policy, dataset=replace(policy.dataset, source=str(source), rows=rows))
    return tg.open(policy, ledger=str(ledger))


def opening(rows: int) -> dict[str, Any]:
    """Measure the opening of a selection."""
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name), iter(range(1_000))
        source = write_table(folder, rows)

        def ours() -> None:
            with open_session(source, rows, folder / f"{next(number)}.ledger") as session:
                session.open_release()

        runs = take_turns(
            {"tidegate": ours, "by hand": lambda: open_by_hand(source, folder / f"{next(number)}.db")},
            runs=1 if rows > 200_000 else 3,
        )
        return write_record(
            "hiding",
            QUESTION,
            f"opening, {rows:,} records",
            size=rows,
            runs=runs,
            peak_mb=peak_memory(),
            found=f"{min(run.clock for run in runs['tidegate']):.1f} s by the clock",
        )


def open_by_hand(source: Path, target: Path) -> None:
    """Read, hash, sort and insert, without a promise."""
    import duckdb

    key, cells = bytes(32), {}
    for name, age, location in duckdb.sql(f"SELECT name, age, location FROM '{source}'").fetchall():
        hashed = hmac.digest(key, name.encode(), hashlib.sha256).hex()[:32]
        cells.setdefault((location, age // 5), []).append((hmac.digest(key, hashed.encode(), hashlib.sha256), hashed))
    rows = []
    for number, members in enumerate(cells.values()):
        members.sort()
        rows += [(hashed, number, position < len(members) // 2) for position, (_, hashed) in enumerate(members)]
    rows.sort()
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.execute("CREATE TABLE selection (key TEXT PRIMARY KEY, cell INTEGER, chosen INTEGER) WITHOUT ROWID")
        connection.executemany("INSERT INTO selection VALUES (?, ?, ?)", rows)


def decisions(rows: int, full: bool) -> Iterator[dict[str, Any]]:
    """Measure decisions in batches, one by one, and one by one by several requesters."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_table(folder, rows)
        names = iter(np.random.default_rng(SEED + 1).permutation([f"p{key:07d}" for key in range(rows)]).tolist())
        with open_session(source, rows, folder / "a.ledger") as session:
            session.open_release()
            desk = session.release()
            desk.request(next(names))
            single, batch = (400, 4_000) if full else (100, 2_000)
            cases: list[tuple[str, int, Callable[[list[str]], None], int]] = [
                ("1,000 under one entry", batch, lambda keys: desk.request_many(keys) and None, -(-batch // 1_000)),
                ("one by one", single, lambda keys: [desk.request(key) for key in keys] and None, single),
                (
                    f"{REQUESTERS} requesters",
                    3 * single,
                    lambda keys: ask_together(desk, keys),
                    3 * single // REQUESTERS,
                ),
            ]
            for case, count, work, commits in cases:
                keys = [next(names) for _ in range(count)]
                _, ours = time_task(lambda keys=keys, work=work: work(keys))
                _, floor = time_task(lambda commits=commits: commit_by_hand(folder / "floor.db", commits))
                yield write_record(
                    "hiding",
                    QUESTION,
                    f"{case}, table of {rows:,}",
                    size=count,
                    runs={"tidegate": [ours], "bare commits": [floor]},
                    peak_mb=peak_memory(),
                    found=f"{count / ours.clock:,.0f} decisions/s by the clock",
                )


def ask_together(desk: Any, keys: list[str]) -> None:
    """Let several threads request one record at a time from the same desk."""
    parts = [keys[number::REQUESTERS] for number in range(REQUESTERS)]
    threads = [threading.Thread(target=lambda part=part: [desk.request(key) for key in part]) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def commit_by_hand(path: Path, commits: int) -> None:
    """Commit single rows to SQLite with full synchronization, twice for each group of requests."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, body TEXT)")
        for _ in range(2 * commits):
            connection.execute("INSERT INTO entries (body) VALUES ('x')")
