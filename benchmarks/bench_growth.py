"""How does the time grow with rows, cells, columns, items, clients and those who wait?

    python -m benchmarks [--full] growth

One curve for each: a private mean over rows of Parquet, a private count by cells, a synthetic table by columns, all pairs
of items in randomized baskets, previews by clients of the service, decisions by requests that wait already. A line beside
it where there is a floor written by hand. Processor time where one process does all of it, the clock where there are two.
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
from benchmarks.bench_release import SETS, planned
from benchmarks.measure import SEED, Runs, peak_memory, take_turns, tell
from benchmarks.people import people, policy

QUESTION = "How does the time grow with rows, cells, columns, items, clients and those who wait?"
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
        yield told("rows", "a private mean", rows, runs)


def by_cells(rows: int) -> Iterator[dict[str, Any]]:
    for columns in ("region", "age", "town", "region, town", "town, age"):
        with people(rows, columns) as folder, tempfile.TemporaryDirectory() as place:
            held = policy(columns)
            cells = int(np.prod([held.attributes[name].size for name in columns.split(", ")]))
            yield told("cells", "a private count by cells", cells, _counted(folder, held, columns, Path(place)))


def _counted(folder: Path, held: tg.Policy, columns: str, place: Path) -> Runs:
    spending = replace(held, loss=tg.Loss(1_000_000), dataset=replace(held.dataset, source=str(folder)))
    names = columns.split(", ")
    with tg.open(spending, ledger=str(place / "growth.ledger")) as session, by_hand(folder) as bare:
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
        given = {name: random.integers(0, 10, rows) for name in names}
        held = tg.Policy(
            tg.Dataset("wide", rows=rows), {name: tg.Integer(0, 9) for name in names}, loss=tg.Loss(1_000_000)
        )

        def made(held: Any = held, given: Any = given) -> None:
            with tempfile.TemporaryDirectory() as place, _session(held, given, place) as session:
                session.synthesize(epsilon=1.0)[0].to_arrow()

        yield told("columns", f"a synthetic table of {rows:,} rows", columns, take_turns({"tidegate": made}, runs=3))


def by_items(sizes: tuple[int, ...], baskets: int) -> Iterator[dict[str, Any]]:
    from tidegate.collect.baskets.bitsets import Bitsets

    for items in sizes:
        rows = np.random.default_rng(SEED).integers(0, 2**64, (baskets, items // 64), np.uint64)
        sets = Bitsets.of(rows, vocabulary_size=items)
        runs = take_turns({"tidegate": lambda sets=sets: sets.pair_counts(threads=1)})
        yield told("items", f"all pairs of {baskets:,} randomized baskets", items, runs)


def by_waiting(sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    from tidegate.release.gate import Gate

    random = np.random.default_rng(SEED)
    plan = planned(random.integers(20, 200, 20), [1] * 20, SETS["default"])
    asked = random.integers(0, 400, 50_000)
    for waiting in sizes:
        gates: list[Any] = []

        def prepared(waiting: int = waiting, gates: list[Any] = gates) -> None:
            gate = Gate(plan)
            if waiting:  # one cell asked for again and again: nearly all of it waits
                gate.decide(np.full(waiting, 3), np.arange(waiting))
            gates.append(gate)

        for _ in range(6):
            prepared()

        def decide(waiting: int = waiting, gates: list[Any] = gates) -> None:
            gates.pop().decide(asked, np.arange(waiting, waiting + len(asked)))

        yield told("waiting", "50,000 decisions", waiting, take_turns({"tidegate": decide}))


def by_clients(sizes: tuple[int, ...], many: int) -> Iterator[dict[str, Any]]:
    with bench_service.served() as (port, tokens, *_):
        asked = [bench_service.packed(("/data/people/previews", PREVIEW), token) for token in tokens]
        bench_service.at_once(port, asked, len(tokens))  # every token is known from here on
        for clients in sizes:
            _, seconds, _ = bench_service.at_once(port, (asked * many)[:many], clients)
            more = {"axis": "clients", "what": f"{many:,} previews", "seconds": {"tidegate": seconds}}
            found = f"{many / seconds:,.0f} a second"
            yield tell(
                "growth",
                QUESTION,
                "previews, clients",
                size=clients,
                runs={},
                peak_mb=peak_memory(),
                found=found,
                **more,
            )


def told(axis: str, what: str, size: int, runs: Runs) -> dict[str, Any]:
    """A point of each line: processor seconds, as the median of its runs."""
    seconds = {name: float(np.median([one.cpu for one in found])) for name, found in runs.items()}
    said = ", ".join(f"{name} {1000 * one:,.3g} ms" for name, one in seconds.items())
    more: dict[str, Any] = {"axis": axis, "what": what, "seconds": seconds, "found": f"{said} of processor"}
    return tell("growth", QUESTION, f"{what}, {axis}", size=size, runs=runs, peak_mb=peak_memory(), **more)


def _session(held: tg.Policy, columns: dict[str, Any], place: str) -> tg.Session:
    return tg.open(held, table=pa.table(columns), ledger=f"{place}/wide.ledger")
