"""How long does a private answer take, compared with the bare query and with other libraries?

    python -m benchmarks answer --full

Every query is new (its epsilon differs a little): charged, run, recorded in a SQLite ledger. Parquet files of
generated rows. Clamping is cheapest for DuckDB with one file and all values within the bounds ("mean"); the
cases with 4 files are more realistic. Libraries run in their own processes (peers/) and are charged the same
for the same neighbors; the charge that each reports is in `charged`.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import tidegate as tg
from benchmarks.measure import RUNS, Runs, median_seconds, peak_memory, take_turns, write_record
from benchmarks.peers import Peer, PeerUnavailable
from benchmarks.people import prepare
from tidegate.accounting import DiscreteLaplace
from tidegate.noise import SecureBits, discrete_laplace

MEAN = "How much longer does a private mean take than the bare query on the same Parquet file?"
LIBRARIES = "How long does a private mean take compared with other libraries, for the same charge?"
FIXED = "How many milliseconds does an answer take whatever the table: charge, noise, record?"
GROUPS = "How much longer does a private count of 10,000 groups take than the bare query, and how much of it is noise?"

FILE_ROWS = 10_000_000
KEYS = tuple(f"key {n:05d}" for n in range(10_000))
GROUP_NAMES = tuple(f"group {n}" for n in range(5))
WITHIN = tg.Integer(0, 100, missing="lowest")
KNOWN = {"x": WITHIN, "y": WITHIN, "k": tg.Category(KEYS), "g": tg.Category(GROUP_NAMES)}
ROWS = """
    SELECT (hash(i, 1) % 101)::INTEGER AS x, 'key ' || printf('%05d', (hash(i, 2) % 10000)::INTEGER) AS k,
           'group ' || (hash(i, 3) % 5) AS g, (hash(i, 4) % 141)::INTEGER - 20 AS y
    FROM range({start}, {stop}) AS numbers(i)
"""
NO_QUERY = {"ask": "nothing"}  # no statistic: nothing can be derived from its answer
numbers = itertools.count(1)


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    rows, at_once, keyed = (10_000_000, 1_000_000, 10_000_000) if full else (200_000, 20_000, 1_000_000)
    with rows_of(rows, "x") as folder:
        yield compare_query(folder, rows, "mean")
        yield compare_query_reopened(folder, rows)
        yield compare_libraries(folder, rows, ("OpenDP", "OpenDPPolars", "diffprivlib"))
    with rows_of(rows, "x, y", files=4) as folder:
        yield compare_query(folder, rows, "mean, in 4 files")
        yield compare_query(folder, rows, "mean, in 4 files, 3 in 10 outside the bounds", column="y")
    with rows_of(at_once, "x") as folder:  # it copies a data frame into SQLite for every query: minutes at full size
        yield compare_libraries(folder, at_once, ("SmartNoise",))
    with rows_of(1000, "x") as folder:
        yield fixed_cost(folder, 1000, times=50 if full else 5)
    with rows_of(keyed, "k") as folder:
        yield by_keys(folder, keyed)


def compare_query(folder: Path, rows: int, case: str, column: str = "x") -> dict[str, Any]:
    """Compare a warm session with a warm connection, as an analyst uses them."""
    with session_of(folder, rows, column) as session, by_hand(folder) as bare:
        tasks = {
            "tidegate": lambda: session.answer(tg.mean(column), epsilon=fresh_epsilon()),
            "SELECT avg": lambda: bare(f"SELECT avg({column}) FROM people"),
            "SELECT sum, count": lambda: bare(f"SELECT sum({column}), count({column}) FROM people"),
        }
        runs = take_turns(tasks)
        truth = bare(f"SELECT avg(greatest(0, least(100, {column}))) FROM people")[0][0]  # nothing is missing here
        off = abs(session.answer(tg.mean(column), epsilon=fresh_epsilon()).value - truth)
    return report_rate(MEAN, case, rows, runs, off=off)


def compare_query_reopened(folder: Path, rows: int) -> dict[str, Any]:
    """Open everything for each answer, so the public number of rows is checked too, as in a script with one query."""

    def ours() -> Any:
        with session_of(folder, rows, "x") as session:
            return session.answer(tg.mean("x"), epsilon=fresh_epsilon())

    def bare() -> Any:
        with by_hand(folder) as query:
            return query("SELECT avg(x) FROM people")

    return report_rate(MEAN, "mean, new session", rows, take_turns({"tidegate": ours, "SELECT avg": bare}))


def compare_libraries(folder: Path, rows: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Compare with libraries that have the column in memory or load it first (pyarrow); ours reads the file every time."""
    missing: dict[str, str] = {}
    with session_of(folder, rows, "x") as session, by_hand(folder) as bare, ExitStack() as stack:
        peers = []
        for name in names:
            try:
                peers.append(Peer(name, next(folder.glob("*.parquet")), rows, 1))
                stack.callback(peers[-1].close)
            except PeerUnavailable as problem:
                missing[name] = str(problem)
        tasks: dict[str, Callable[[], Any]] = {
            "tidegate": lambda: session.answer(tg.mean("x"), epsilon=fresh_epsilon())
        }
        of_peers = {f"{peer.name} {task}": (peer, task) for peer in peers for task in peer.tasks}
        runs = take_turns({**tasks, **{name: partial(peer.run_task, task) for name, (peer, task) in of_peers.items()}})
        runs.update({name: peer.runs[task][-RUNS:] for name, (peer, task) in of_peers.items()})
        truth = bare("SELECT avg(x) FROM people")[0][0]
    more = {
        "charged": {"tidegate": {"epsilon": 1, "neighbours": "replace one row"}}
        | {peer.name: peer.about["charged"] for peer in peers},
        "versions": {peer.name: peer.about["versions"] for peer in peers},
        "off": {name: abs(peer.values[task] - truth) for name, (peer, task) in of_peers.items()},
        "peak_mb_of": {peer.name: round(peer.peak_mb) for peer in peers},
        "missing": missing,
    }
    return report_rate(LIBRARIES, f"mean, beside {' and '.join(names)}", rows, runs, **more)


def fixed_cost(folder: Path, rows: int, *, times: int) -> dict[str, Any]:
    """Measure answers about a table so small that reading it takes no time."""
    with session_of(folder, rows, "x") as session, by_hand(folder) as bare:
        session.answer(tg.mean("x"), epsilon=1)
        tasks = {
            "tidegate": lambda: session.answer(tg.mean("x"), epsilon=fresh_epsilon()),
            "the same question again": lambda: session.answer(tg.mean("x"), epsilon=1),
            "charge, noise, record alone": lambda: charge_and_record(session),
            "its table alone": lambda: session.table.moments("x", center=50, powers=(1,)),
            "SELECT avg": lambda: bare("SELECT avg(x) FROM people"),
        }
        runs = take_turns({name: partial(_repeat, task, times) for name, task in tasks.items()})
    each = {name: 1000 * median_seconds(task_runs) / times for name, task_runs in runs.items()}
    summary = f"{each['tidegate']:.1f} ms an answer, {each['charge, noise, record alone']:.1f} without a table, {each['the same question again']:.1f} again"
    return report_rate(FIXED, "1,000 rows", rows, runs, found=summary, answers=times, ms_each=each)


def by_keys(folder: Path, rows: int) -> dict[str, Any]:
    with session_of(folder, rows, "k") as session, by_hand(folder) as bare:
        query = tg.count().by("k")
        cells = session.table.count(["k"]).tolist()
        tasks = {
            "tidegate": lambda: session.answer(query, epsilon=fresh_epsilon()),
            "SELECT k, count GROUP BY k": lambda: bare("SELECT k, count(*) FROM people GROUP BY k"),
            "its table alone": lambda: session.table.count(["k"]),
            "its noise alone": lambda: noise(2 / fresh_epsilon(), len(KEYS)),
            "charge, record alone": lambda: charge_and_record(session, query.question(session.policy), cells, draws=0),
        }
        runs = take_turns(tasks)
    parts = {name: median_seconds(task_runs) / median_seconds(runs["tidegate"]) for name, task_runs in runs.items()}
    summary = f"{parts['its noise alone']:.1%} noise, {parts['its table alone']:.0%} table, {parts['charge, record alone']:.0%} ledger"
    return report_rate(GROUPS, "count of 10,000 groups", rows, runs, found=summary, share=parts)


def charge_and_record(session: tg.Session, query: Any = NO_QUERY, result: Any = 0, *, draws: int = 1) -> None:
    """Do the work of an answer without its table: a charge, noise, a record."""
    epsilon = fresh_epsilon()
    event = DiscreteLaplace(Fraction(100), 100 / epsilon)
    question = {"verb": "answer", "asks": [query], "event": event.to_dict(), "n": next(numbers)}
    receipt = session.ledger.charge(session.policy, event, question=question, says="nothing", who="bench")
    noise(event.scale, draws)
    receipt.record({"parts": [{"cells": result}]})


def noise(scale: Fraction, size: int) -> Any:
    return discrete_laplace(scale, size=size, bits=SecureBits())


def fresh_epsilon() -> Fraction:
    """Return a loss of about 1, never the same twice."""
    return 1 + Fraction(next(numbers), 10**6)


def _repeat(task: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        task()


@contextmanager
def rows_of(rows: int, columns: str, *, files: int = 1) -> Iterator[Path]:
    """Yield a temporary folder of at least `files` Parquet files with the named columns."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as folder, duckdb.connect() as connection:
        prepare(connection)
        each = min(FILE_ROWS, -(-rows // files))
        for start in range(0, rows, each):
            chosen = ROWS.format(start=start, stop=min(rows, start + each))
            target = Path(folder, f"rows{start // each:04d}.parquet")
            connection.execute(f"COPY (SELECT {columns} FROM ({chosen})) TO '{target}' (FORMAT parquet)")
        connection.close()
        yield Path(folder)


def policy_of(rows: int, columns: str) -> tg.Policy:
    """Return a policy with a public number of rows and more budget than the bench needs."""
    known = {name: KNOWN[name] for name in columns.split(", ")}
    return tg.Policy(tg.Dataset("numbers", rows=rows), known, loss=tg.Loss("1000000000"))


@contextmanager
def session_of(source: Any, rows: int, columns: str) -> Iterator[tg.Session]:
    """Yield a session with a temporary ledger."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as folder:
        policy = policy_of(rows, columns)
        named = replace(policy, dataset=replace(policy.dataset, source=str(source)))
        with tg.open(named, ledger=str(Path(folder, "numbers.ledger"))) as session:
            yield session


@contextmanager
def by_hand(folder: Path) -> Iterator[Callable[[str], Any]]:
    """Yield a function that runs SQL in a bare DuckDB with the same files and settings."""
    with duckdb.connect() as connection:
        prepare(connection, folder)
        yield lambda query: connection.execute(query).fetchall()


def report_rate(question: str, case: str, rows: int, runs: Runs, **more: Any) -> dict[str, Any]:
    rate = rows / median_seconds(runs["tidegate"])
    summary = {"found": f"{rate / 1e6:,.1f} million rows a second", **more}
    if summary.get("missing"):
        summary["found"] += "; missing: " + ", ".join(f"{name} ({why})" for name, why in summary["missing"].items())
    return write_record("answer", question, case, size=rows, runs=runs, peak_mb=peak_memory(), **summary)
