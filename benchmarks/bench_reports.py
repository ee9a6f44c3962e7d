"""How many reports a second are accepted durably, one by one, from 1 to 64 clients?

    python -m benchmarks [--full] reports

`survey`: threads of this process call `survey.receive` with one report each; requests that arrive together share a commit.
`invited`: the same for an invited poll, where every report has a token whose signature is verified. `service`: clients on
loopback send one report per request to a separate server. `signatures`: invitation codes that become blind signatures.
`waiting`: 16 clients, with up to a hundred thousand reports that wait already.

The floor by hand is a bare insert and commit for each report (sqlite3, WAL, synchronous FULL, to the same disk) by as many
threads, which take turns. It checks nothing. For the service, the floor has no network either.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import bench_service
from benchmarks.measure import SEED, Run, Runs, median_seconds, peak_memory, take_turns, time_task, write_record

QUESTION = "How many reports a second are accepted durably, one by one?"
CLIENTS = (1, 4, 16, 64)
AIM = 1_000  # reports a second with 16 clients
Receive = Callable[[dict[str, Any]], None]


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    count = 2_000 if full else 400
    for clients in CLIENTS:
        yield by_survey(clients, count if clients > 1 else count // 4)
    for clients in (1, 16):
        yield by_survey(clients, count if clients > 1 else count // 4, invited=True)
    yield signatures(64 if full else 16)
    yield from through_service(count)
    for waiting in (1_000, 10_000, 100_000) if full else (1_000, 10_000):
        yield by_survey(16, count, waiting=waiting)


# Surveys


@contextmanager
def open_survey(*, invited: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield a survey over a temporary ledger on disk, and the key of its invitations (None if it has none)."""
    import tidegate as tg
    from tidegate.collect.invitation_keys import InvitationKey
    from tidegate.ledger import Ledger
    from tidegate.ledger.invitations import InvitationBook
    from tidegate.policy import Dataset, Policy

    with tempfile.TemporaryDirectory(prefix="tgbench") as name:
        folder = Path(name)
        url, key = str(folder / "people.ledger"), InvitationKey.generate() if invited else None
        if key is not None:
            ledger = Ledger(url)
            InvitationBook(ledger, "people/canteen").create_key(lambda: key.text)
            ledger.close()
        collection = _collection(key)
        attributes = {question.attribute: question.universe for question in collection.questions.values()}
        policy = Policy(Dataset("people"), attributes, collections={collection.name: collection})
        with tg.open(policy, ledger=url) as session:
            yield session.collect(collection.name, reports=str(folder / "reports")), key


def _collection(key: Any) -> Any:
    from tidegate.collect.invitations import to_text
    from tidegate.policy import Category, Collection, Integer, Question
    from tidegate.policy.poll import Poll, Wording

    questions = {
        "age": Question("age", Integer(18, 77), "square-wave", epsilon=2),
        "town": Question("town", Category(("Aby", "Berg", "Ceder", "Dal")), "randomized-response", epsilon=2),
    }
    wording = {"age": Wording({"en": "Age?"}), "town": Wording({"en": "Town?"})}
    text, closes = {"en": "Canteen"}, datetime(2100, 1, 1, tzinfo=UTC)
    public = to_text(key.public) if key else ""
    access: Any = "invited" if key else "open"
    return Collection("canteen", questions, poll=Poll(("en",), text, text, wording, access, closes, public))


def reports_of(collection: Any, key: Any) -> Iterator[dict[str, Any]]:
    """Yield valid reports with random answers, each under its own id, and with a token if there is a key."""
    from tidegate.policy.collection import operator_for

    sizes = {name: operator_for(question).report_size for name, question in collection.questions.items()}
    generator = random.Random(SEED)
    about = {"collection": collection.name, "fingerprint": collection.fingerprint, "version": collection.version}
    for number in itertools.count():
        report = {**about, "answers": {name: generator.randrange(size) for name, size in sizes.items()}}
        report["id"] = hashlib.sha256(f"{number}".encode()).hexdigest()[:32]
        yield {**report, "invitation": token_of(key, number)} if key else report


def token_of(key: Any, number: int) -> dict[str, str]:
    """Return a token as a device would get it for a code."""
    from tidegate.collect.blind_signatures import blind, finalize, prepare
    from tidegate.collect.invitations import to_text

    prepared = prepare(number.to_bytes(32, "big"))
    blinded, inverse = blind(key.public, prepared)
    return {"nonce": prepared.hex(), "signature": to_text(finalize(key.public, prepared, key.sign(blinded), inverse))}


def by_survey(clients: int, count: int, *, invited: bool = False, waiting: int = 0) -> dict[str, Any]:
    """Measure `survey.receive` with one report for each call."""
    with open_survey(invited=invited) as (survey, key), floor() as insert, ThreadPoolExecutor(clients) as pool:
        reports = reports_of(survey.collection, key)
        for start in range(0, waiting, 10_000):
            survey.receive(list(itertools.islice(reports, min(10_000, waiting - start))))
        rounds = 3 if invited or clients == 1 else 5
        drawn = [list(itertools.islice(reports, count)) for _ in range(2 * (rounds + 1))]  # before the clock starts
        parts = iter(drawn)

        def receive(report: dict[str, Any]) -> None:
            if survey.receive([report]).accepted != 1:
                raise RuntimeError("a report was not accepted")

        def each(work: Receive) -> Callable[[], Any]:
            return lambda: list(pool.map(work, next(parts)))

        runs = take_turns({"tidegate": each(receive), "by hand": each(insert)}, runs=rounds)
        if survey._book.waiting != waiting + (rounds + 1) * count:
            raise RuntimeError("a report is missing")
    kind = "invited" if invited else "waiting" if waiting else "survey"
    more = f", {waiting:,} waiting" if waiting else ""
    return record(f"{kind}, {clients} client{'s' if clients > 1 else ''}{more}", count, runs, clients)


def signatures(count: int) -> dict[str, Any]:
    """Measure codes that become blind signatures, from 16 threads."""
    from tidegate.collect.blind_signatures import blind, prepare
    from tidegate.collect.invitations import to_text

    with open_survey(invited=True) as (survey, key), ThreadPoolExecutor(16) as pool:
        rounds = 3
        pairs = [(code, to_text(blind(key.public, prepare(bytes(32)))[0])) for code in survey.invite(rounds * count)]
        runs: Runs = {"tidegate": []}
        for start in range(0, len(pairs), count):
            part = pairs[start : start + count]
            runs["tidegate"].append(
                time_task(lambda part=part: list(pool.map(lambda pair: survey.sign(*pair), part)))[1]
            )
    return record("signatures, 16 clients", count, runs, 16)


# The service


def through_service(count: int) -> Iterator[dict[str, Any]]:
    """Measure single reports over loopback, with tokens: without one, an address has a lower limit."""
    with bench_service.running_server() as (port, tokens, folder, server), floor() as insert:
        sent = iter(bench_service.reports(folder, len(CLIENTS) * 4 * count))
        path = "/v1/data/people/collections/shoppers/reports"
        for clients in CLIENTS:
            runs: Runs = {"service": [], "by hand": []}
            size, cpu = count if clients > 1 else count // 4, 0.0
            for turn in range(4):  # the first is a warm-up
                part = list(itertools.islice(sent, size))
                requests = [
                    bench_service.encode_request((path, {"reports": [report]}), tokens[number % len(tokens)])
                    for number, report in enumerate(part)
                ]
                responses, seconds, used = bench_service.send_concurrently(port, requests, clients, server=server)
                if any(response.content["accepted"] != 1 for response in responses):
                    raise RuntimeError("a report was not accepted")
                with ThreadPoolExecutor(clients) as pool:
                    by_hand = time_task(lambda pool=pool, part=part: list(pool.map(insert, part)))[1]
                if turn:
                    runs["service"].append(Run(seconds, used))
                    runs["by hand"].append(by_hand)
                    cpu += used
            yield record(f"service, {clients} client{'s' if clients > 1 else ''}", size, runs, clients, cpu / 3 / size)


# The floor and the record


@contextmanager
def floor() -> Iterator[Receive]:
    """Yield a function that inserts a report into a bare table and commits. SQLite has one writer: threads wait for a lock."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as name:
        state, turn, path = threading.local(), threading.Lock(), f"{name}/floor.db"
        opened: list[sqlite3.Connection] = []

        def connection() -> sqlite3.Connection:
            if not hasattr(state, "connection"):
                state.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                state.connection.execute("PRAGMA journal_mode = WAL")
                state.connection.execute("PRAGMA synchronous = FULL")
                state.connection.execute(
                    "CREATE TABLE IF NOT EXISTS waiting (id BLOB PRIMARY KEY, body TEXT) WITHOUT ROWID"
                )
                opened.append(state.connection)
            return state.connection  # type: ignore[no-any-return]

        def insert(report: dict[str, Any]) -> None:
            row = (bytes.fromhex(report["id"]), json.dumps(report["answers"]))
            with turn:
                connection().execute("BEGIN IMMEDIATE")
                connection().execute("INSERT OR REPLACE INTO waiting VALUES (?, ?)", row)
                connection().execute("COMMIT")

        yield insert
        for stale in opened:
            stale.close()


def record(case: str, count: int, runs: Runs, clients: int, server_cpu: float = 0.0) -> dict[str, Any]:
    rates = {name: count / median_seconds(task_runs) for name, task_runs in runs.items()}
    summary = f"{next(iter(rates.values())):,.0f} a second"
    more: dict[str, Any] = {"per_second": rates, "clients": clients}
    if server_cpu:
        more["server_cpu_ms"] = 1000 * server_cpu
        summary += f"; {1000 * server_cpu:.2f} ms of the server's processor"
    if clients == 16 and "signatures" not in case:
        more["aim_per_second"] = AIM
    return write_record("reports", QUESTION, case, size=count, runs=runs, peak_mb=peak_memory(), **more, found=summary)
