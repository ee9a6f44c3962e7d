"""How long does a private answer take, beside the bare query and beside other libraries?

    python -m benchmarks answer --full

Every question is a new one (its epsilon differs a little): charged, run, recorded in a SQLite ledger. Parquet files of
generated rows. Clamping is cheapest for DuckDB where one file holds them and all lie within the bounds ("mean"); the
cases with 4 files are nearer to what is met. Libraries run in processes of their own (peers/) and are charged the same
for the same neighbours; what each says that it charged is in `charged`.
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
from benchmarks.measure import RUNS, Runs, peak_memory, take_turns, tell, typical
from benchmarks.peers import NotThere, Peer
from benchmarks.people import prepare
from tidegate.accounting import DiscreteLaplace
from tidegate.noise import SecureBits, discrete_laplace

MEAN = "How much longer does a private mean take than the bare query on the same Parquet file?"
LIBRARIES = "How long does a private mean take beside other libraries, for the same charge?"
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
numbers = itertools.count(1)


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    rows, at_once, keyed = (10_000_000, 1_000_000, 10_000_000) if full else (200_000, 20_000, 1_000_000)
    with rows_of(rows, "x") as folder:
        yield beside_query(folder, rows, "mean")
        yield beside_query_anew(folder, rows)
        yield beside_libraries(folder, rows, ("OpenDP", "diffprivlib"))
    with rows_of(rows, "x, y", files=4) as folder:
        yield beside_query(folder, rows, "mean, in 4 files")
        yield beside_query(folder, rows, "mean, in 4 files, 3 in 10 outside the bounds", column="y")
    with rows_of(at_once, "x") as folder:  # for every question it copies a data frame into SQLite: minutes at full size
        yield beside_libraries(folder, at_once, ("SmartNoise",))
    with rows_of(1000, "x") as folder:
        yield fixed_cost(folder, 1000, times=50 if full else 5)
    with rows_of(keyed, "k") as folder:
        yield by_keys(folder, keyed)


def beside_query(folder: Path, rows: int, case: str, column: str = "x") -> dict[str, Any]:
    """One session and one connection, both warm: how an analyst asks."""
    with session_of(folder, rows, column) as session, by_hand(folder) as bare:
        tasks = {
            "tidegate": lambda: session.answer(tg.mean(column), epsilon=fresh_epsilon()),
            "SELECT avg": lambda: bare(f"SELECT avg({column}) FROM people"),
            "SELECT sum, count": lambda: bare(f"SELECT sum({column}), count({column}) FROM people"),
        }
        runs = take_turns(tasks)
        truth = bare(f"SELECT avg(greatest(0, least(100, {column}))) FROM people")[0][0]  # nothing is missing here
        off = abs(session.answer(tg.mean(column), epsilon=fresh_epsilon()).value - truth)
    return told(MEAN, case, rows, runs, off=off)


def beside_query_anew(folder: Path, rows: int) -> dict[str, Any]:
    """Everything opened anew, so the public number of rows is checked as well: how a script asks once."""

    def ours() -> Any:
        with session_of(folder, rows, "x") as session:
            return session.answer(tg.mean("x"), epsilon=fresh_epsilon())

    def bare() -> Any:
        with by_hand(folder) as query:
            return query("SELECT avg(x) FROM people")

    return told(MEAN, "mean, opened anew", rows, take_turns({"tidegate": ours, "SELECT avg": bare}))


def beside_libraries(folder: Path, rows: int, names: tuple[str, ...]) -> dict[str, Any]:
    """The column lies in memory already, or is loaded first (pyarrow); ours reads the file every time."""
    missing: dict[str, str] = {}
    with session_of(folder, rows, "x") as session, by_hand(folder) as bare, ExitStack() as stack:
        peers = []
        for name in names:
            try:
                peers.append(Peer(name, next(folder.glob("*.parquet")), rows, 1))
                stack.callback(peers[-1].close)
            except NotThere as problem:
                missing[name] = str(problem)
        tasks: dict[str, Callable[[], Any]] = {
            "tidegate": lambda: session.answer(tg.mean("x"), epsilon=fresh_epsilon())
        }
        of_peers = {f"{peer.name} {task}": (peer, task) for peer in peers for task in peer.tasks}
        runs = take_turns({**tasks, **{name: partial(peer.ask, task) for name, (peer, task) in of_peers.items()}})
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
    return told(LIBRARIES, f"mean, beside {' and '.join(names)}", rows, runs, **more)


def fixed_cost(folder: Path, rows: int, *, times: int) -> dict[str, Any]:
    """Many answers about a table so small that reading it takes no time."""
    with session_of(folder, rows, "x") as session, by_hand(folder) as bare:
        session.answer(tg.mean("x"), epsilon=1)
        tasks = {
            "tidegate": lambda: session.answer(tg.mean("x"), epsilon=fresh_epsilon()),
            "the same question again": lambda: session.answer(tg.mean("x"), epsilon=1),
            "charge, noise, record alone": lambda: charged(session),
            "its table alone": lambda: session.table.moments("x", center=50, powers=(1,)),
            "SELECT avg": lambda: bare("SELECT avg(x) FROM people"),
        }
        runs = take_turns({name: partial(_many, task, times) for name, task in tasks.items()})
    each = {name: 1000 * typical(found) / times for name, found in runs.items()}
    found = f"{each['tidegate']:.1f} ms an answer, {each['charge, noise, record alone']:.1f} without a table, {each['the same question again']:.1f} again"
    return told(FIXED, "1,000 rows", rows, runs, found=found, answers=times, ms_each=each)


def by_keys(folder: Path, rows: int) -> dict[str, Any]:
    with session_of(folder, rows, "k") as session, by_hand(folder) as bare:
        query = tg.count().by("k")
        cells = session.table.count(["k"]).tolist()
        tasks = {
            "tidegate": lambda: session.answer(query, epsilon=fresh_epsilon()),
            "SELECT k, count GROUP BY k": lambda: bare("SELECT k, count(*) FROM people GROUP BY k"),
            "its table alone": lambda: session.table.count(["k"]),
            "its noise alone": lambda: noise(2 / fresh_epsilon(), len(KEYS)),
            "charge, record alone": lambda: charged(session, query.question(session.policy), cells, drawn=0),
        }
        runs = take_turns(tasks)
    parts = {name: typical(found) / typical(runs["tidegate"]) for name, found in runs.items()}
    found = f"{parts['its noise alone']:.1%} noise, {parts['its table alone']:.0%} table, {parts['charge, record alone']:.0%} ledger"
    return told(GROUPS, "count of 10,000 groups", rows, runs, found=found, share=parts)


def charged(session: tg.Session, asked: Any = "nothing", result: Any = 0, *, drawn: int = 1) -> None:
    """What an answer does without its table: a charge, noise, a record."""
    epsilon = fresh_epsilon()
    event = DiscreteLaplace(Fraction(100), 100 / epsilon)
    question = {"verb": "answer", "asks": [asked], "event": event.to_dict(), "n": next(numbers)}
    receipt = session.ledger.charge(session.policy, event, question=question, says="nothing", who="bench")
    noise(event.scale, drawn)
    receipt.record({"parts": [{"cells": result}]})


def noise(scale: Fraction, size: int) -> Any:
    return discrete_laplace(scale, size=size, bits=SecureBits())


def fresh_epsilon() -> Fraction:
    """About 1, and never the same."""
    return 1 + Fraction(next(numbers), 10**6)


def _many(task: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        task()


@contextmanager
def rows_of(rows: int, columns: str, *, files: int = 1) -> Iterator[Path]:
    """A folder of Parquet files with the named columns, gone afterwards; so many, or more where there are many rows."""
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
    """The number of rows is public, and there is more to spend than will be asked."""
    known = {name: KNOWN[name] for name in columns.split(", ")}
    return tg.Policy(tg.Dataset("numbers", rows=rows), known, loss=tg.Loss("1000000000"))


@contextmanager
def session_of(source: Any, rows: int, columns: str) -> Iterator[tg.Session]:
    """A session with a ledger of its own, both gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as folder:
        policy = policy_of(rows, columns)
        named = replace(policy, dataset=replace(policy.dataset, source=str(source)))
        with tg.open(named, ledger=str(Path(folder, "numbers.ledger"))) as session:
            yield session


@contextmanager
def by_hand(folder: Path) -> Iterator[Callable[[str], Any]]:
    """A bare DuckDB with the same files and settings."""
    with duckdb.connect() as connection:
        prepare(connection, folder)
        yield lambda query: connection.execute(query).fetchall()


def told(question: str, case: str, rows: int, runs: Runs, **more: Any) -> dict[str, Any]:
    rate = rows / typical(runs["tidegate"])
    found = {"found": f"{rate / 1e6:,.1f} million rows a second", **more}
    if found.get("missing"):
        found["found"] += "; missing: " + ", ".join(f"{name} ({why})" for name, why in found["missing"].items())
    return tell("answer", question, case, size=rows, runs=runs, peak_mb=peak_memory(), **found)
