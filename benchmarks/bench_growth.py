"""How does the time grow with rows, cells, columns, items, clients and waiting requests?

    python -m benchmarks [--full] growth

One curve for each: a private mean over rows of Parquet, a private count by cells, a synthetic table by columns, all pairs
of items in randomized baskets, previews by clients of the service, decisions by waiting requests. A second line shows
a floor written by hand, if there is one. CPU time if one process does all the work, wall-clock time otherwise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tidegate as tg
from benchmarks import bench_service
from benchmarks.bench_answer import by_hand, fresh_epsilon, rows_of, session_of
from benchmarks.bench_release import SETS, plan_for
from benchmarks.measure import SEED, Runs, peak_memory, take_turns, write_record
from benchmarks.people import people, policy

QUESTION = "How does the time grow with rows, cells, columns, items, clients and waiting requests?"
PREVIEW = {"sql": bench_service.SQL, "epsilon": 0.1}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    yield from by_rows((100_000, 1_000_000, 10_000_000, *((100_000_000,) if full else ())))
    yield from by_cells(1_000_000 if full else 200_000)
    yield from by_columns((2, 4, 8, 16), 5_000)
    yield from by_items((64, 256, 1024), 50_000 if full else 10_000)
    yield from by_waiting((0, 1_000, 10_000, 100_000))
    yield from by_clients((1, 4, 16, 64), 2_000 if full else 320)


def by_rows(sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for rows in sizes:
        with rows_of(rows, "x") as folder, session_of(folder, rows, "x") as session, by_hand(folder) as bare:
            runs = take_turns(
                {
                    "tidegate": lambda session=session: session.answer(tg.mean("x"), epsilon=fresh_epsilon()),
                    "SELECT avg": lambda bare=bare: bare("SELECT avg(x) FROM people"),
                }
            )
        yield report_point("rows", "a private mean", rows, runs)


def by_cells(rows: int) -> Iterator[dict[str, Any]]:
    for columns in ("region", "age", "town", "region, town", "town, age"):
        with people(rows, columns) as folder, tempfile.TemporaryDirectory() as ledger_folder:
            declared = policy(columns)
            cells = int(np.prod([declared.attributes[name].size for name in columns.split(", ")]))
            yield report_point(
                "cells",
                "a private count by cells",
                cells,
                _measure_counts(folder, declared, columns, Path(ledger_folder)),
            )


def _measure_counts(folder: Path, declared: tg.Policy, columns: str, ledger_folder: Path) -> Runs:
    spending = replace(declared, loss=tg.Loss(1_000_000), dataset=replace(declared.dataset, source=str(folder)))
    names = columns.split(", ")
    with tg.open(spending, ledger=str(ledger_folder / "growth.ledger")) as session, by_hand(folder) as bare:
        return take_turns(
            {
                "tidegate": lambda: session.answer(tg.count().by(*names), epsilon=fresh_epsilon()),
                "GROUP BY": lambda: bare(f"SELECT {columns}, count(*) FROM people GROUP BY {columns}"),
            }
        )


def by_columns(sizes: tuple[int, ...], rows: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(SEED)
    for columns in sizes:
        names = [f"c{n}" for n in range(columns)]
        numbers = {name: random.integers(0, 10, rows) for name in names}
        declared = tg.Policy(
            tg.Dataset("wide", rows=rows), {name: tg.Integer(0, 9) for name in names}, loss=tg.Loss(1_000_000)
        )

        def synthesize(declared: Any = declared, numbers: Any = numbers) -> None:
            with (
                tempfile.TemporaryDirectory() as ledger_folder,
                _session(declared, numbers, ledger_folder) as session,
            ):
                session.synthesize(epsilon=1.0)[0].to_arrow()

        yield report_point(
            "columns", f"a synthetic table of {rows:,} rows", columns, take_turns({"tidegate": synthesize}, runs=3)
        )


def by_items(sizes: tuple[int, ...], baskets: int) -> Iterator[dict[str, Any]]:
    from tidegate.collect.baskets.bitsets import Bitsets

    for items in sizes:
        rows = np.random.default_rng(SEED).integers(0, 2**64, (baskets, items // 64), np.uint64)
        sets = Bitsets.of(rows, vocabulary_size=items)
        runs = take_turns({"tidegate": lambda sets=sets: sets.pair_counts(threads=1)})
        yield report_point("items", f"all pairs of {baskets:,} randomized baskets", items, runs)


def by_waiting(sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    from tidegate.release.gate import Gate

    random = np.random.default_rng(SEED)
    plan = plan_for(random.integers(20, 200, 20), [1] * 20, SETS["default"])
    requests = random.integers(0, 400, 50_000)
    for waiting in sizes:
        gates: list[Any] = []

        def prepare_gate(waiting: int = waiting, gates: list[Any] = gates) -> None:
            gate = Gate(plan)
            if waiting:  # one cell is requested again and again: nearly all requests wait
                gate.decide(np.full(waiting, 3), np.arange(waiting))
            gates.append(gate)

        for _ in range(6):
            prepare_gate()

        def decide(waiting: int = waiting, gates: list[Any] = gates) -> None:
            gates.pop().decide(requests, np.arange(waiting, waiting + len(requests)))

        yield report_point("waiting", "50,000 decisions", waiting, take_turns({"tidegate": decide}))


def by_clients(sizes: tuple[int, ...], count: int) -> Iterator[dict[str, Any]]:
    with bench_service.running_server() as (port, tokens, *_):
        requests = [bench_service.encode_request(("/v1/data/people/previews", PREVIEW), token) for token in tokens]
        bench_service.send_concurrently(port, requests, len(tokens))  # every token is cached from here on
        for clients in sizes:
            _, seconds, _ = bench_service.send_concurrently(port, (requests * count)[:count], clients)
            more = {"axis": "clients", "what": f"{count:,} previews", "seconds": {"tidegate": seconds}}
            summary = f"{count / seconds:,.0f} a second"
            yield write_record(
                "growth",
                QUESTION,
                "previews, clients",
                size=clients,
                runs={},
                peak_mb=peak_memory(),
                found=summary,
                **more,
            )


def report_point(axis: str, what: str, size: int, runs: Runs) -> dict[str, Any]:
    """Record a point of each line: the median of its CPU seconds."""
    seconds = {name: float(np.median([run.cpu for run in task_runs])) for name, task_runs in runs.items()}
    summary = ", ".join(f"{name} {1000 * cpu:,.3g} ms" for name, cpu in seconds.items())
    more: dict[str, Any] = {"axis": axis, "what": what, "seconds": seconds, "found": f"{summary} of processor"}
    return write_record("growth", QUESTION, f"{what}, {axis}", size=size, runs=runs, peak_mb=peak_memory(), **more)


def _session(declared: tg.Policy, columns: dict[str, Any], ledger_folder: str) -> tg.Session:
    return tg.open(declared, table=pa.table(columns), ledger=f"{ledger_folder}/wide.ledger")
