"""How many requests a second does one process of the service answer to 16 clients on loopback, and how long do they wait?

    python -m benchmarks service --full

A server of its own (SQLite ledger, one worker) and 16 clients in threads of this process, each with its own token and one
connection: previews, answers that were given before, fresh answers, the same previews after those, decisions on records,
batches of randomized reports. Beside the rate stands the processor time of the server for each request, which a busy machine
changes less.
The bench is only kept where the ledger's total is the sum of what the clients were told that they were charged.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import httpx

from benchmarks.measure import Run, peak_memory, tell
from tidegate.ledger.tokens import Tokens
from tidegate.policy import read_policy
from tidegate.policy.collection import operator_for
from tidegate.service.access.tokens import make_token
from tidegate.service.datasets import ServedDatasets

QUESTION = "How many requests a second, and how long do they take, with 16 clients on loopback?"
CLIENTS, PEOPLE, BATCH = 16, 20_000, 1_000
AIMS = {"previews": 500, "answers given before": 500, "previews after many answers": 500, "reports": 20_000}
POLICY = f"""version = 1
[dataset]
name = "people"
source = "people.csv"
unit = "row"
rows = {PEOPLE}
[attributes]
person = {{ kind = "key" }}
age = {{ kind = "integer", from = 18, to = 77, bins = [28, 38, 48, 58, 68] }}
town = {{ kind = "category", values = ["Aby", "Berg", "Ceder", "Dal"] }}
[promise.loss]
epsilon = 1000000
[promise.concealment.hq]
reveals = ["age"]
about = ["town"]
tests = ["kullback-leibler"]
significance = 0.2
baseline = [1, 1, 1, 1, 1, 1]
shares = [1, 1, 1, 1]
releases = ["person", "age", "town"]
[collection.shoppers]
questions.age = {{ attribute = "age", operator = "square-wave", epsilon = 2.0 }}
questions.town = {{ attribute = "town", operator = "randomized-response", epsilon = 2.0 }}
"""
SQL = "SELECT town, COUNT(*) FROM people GROUP BY town"


class Told(NamedTuple):
    """One response: how long it took, its status, what it said."""

    seconds: float
    status: int
    content: Any


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    many, fresh = (8_000, 2_000) if full else (320, 64)
    batches = 128 if full else 16
    with served() as (port, tokens, folder, server):
        timed = partial(measured, server=server)
        given: list[Told] = []
        base = "/data/people"
        asked = {"sql": SQL, "epsilon": 0.1}
        timed("signing in", port, tokens, CLIENTS, lambda n: (f"{base}/previews", asked), keep=False)
        yield timed("previews", port, tokens, many, lambda n: (f"{base}/previews", asked))[0]
        given += timed("answers given before", port, tokens, CLIENTS, lambda n: (f"{base}/answers", asked), keep=False)[
            1
        ]
        record, found = timed("answers given before", port, tokens, many, lambda n: (f"{base}/answers", asked))
        yield record
        record, more = timed(
            "fresh answers", port, tokens, fresh, lambda n: (f"{base}/answers", {"sql": SQL, "epsilon": f"1/{n + 11}"})
        )
        yield record
        charged(port, tokens[0], [*given, *found, *more])
        yield timed("previews after many answers", port, tokens, many, lambda n: (f"{base}/previews", asked))[0]
        timed("warm", port, tokens, 1, lambda n: (f"{base}/desks/hq/requests", {"keys": ["p0"]}), keep=False)
        yield timed(
            "release decisions", port, tokens, fresh, lambda n: (f"{base}/desks/hq/requests", {"keys": [f"p{n + 1}"]})
        )[0]
        sent = reports(folder, batches * BATCH)
        parts = [{"reports": sent[n * BATCH : (n + 1) * BATCH]} for n in range(batches)]
        path = f"{base}/collections/shoppers/reports"
        yield timed("reports", port, tokens, batches, lambda n: (path, parts[n]), each=BATCH)[0]


def at_once(port: int, made: list[bytes], clients: int, *, server: int = 0) -> tuple[list[Told], float, float]:
    """So many clients at once, each its share of the requests on one connection: what they were told, the seconds by the
    clock until the last was through, and those of the server's processor. All must be answered."""
    told: list[Told] = []
    start = threading.Barrier(clients + 1)

    def client(place: int) -> None:
        with Line(port) as line:
            start.wait()
            told.extend([line.ask(one) for one in made[place::clients]])

    threads = [threading.Thread(target=client, args=(place,)) for place in range(clients)]
    for thread in threads:
        thread.start()
    start.wait()
    began, worked = time.perf_counter(), processor_time(server)
    for thread in threads:
        thread.join()
    seconds, worked = time.perf_counter() - began, processor_time(server) - worked
    wrong = [one for one in told if one.status != 200]
    if len(told) != len(made) or wrong:
        raise RuntimeError(f"{len(told)} of {len(made)} answered; {wrong[:1]}")
    return told, seconds, worked


def measured(
    case: str,
    port: int,
    tokens: list[str],
    many: int,
    request: Callable[[int], tuple[str, Any]],
    *,
    server: int = 0,
    each: int = 1,
    keep: bool = True,
) -> tuple[dict[str, Any], list[Told]]:
    """All clients at once, each its share of `many` requests; what that came to."""
    made = [packed(request(number), tokens[number % CLIENTS]) for number in range(many)]
    told, seconds, worked = at_once(port, made, CLIENTS, server=server)
    if not keep:
        return {}, told
    rate = each * many / seconds
    times = quantiles([one.seconds for one in told], n=100, method="inclusive")
    wait = {f"p{share}_ms": 1000 * times[share - 1] for share in (50, 95, 99)}
    found = f"{rate:,.0f} a second; {wait['p50_ms']:.0f} ms, {wait['p95_ms']:.0f} at 95%, {wait['p99_ms']:.0f} at 99%"
    more: dict[str, Any] = {"per_second": rate, "aim_per_second": AIMS.get(case), **wait, "clients": CLIENTS}
    more |= {
        "server_cpu_ms": 1000 * worked / many,
        "found": f"{found}; {1000 * worked / many:.2f} ms of the server's processor",
    }
    runs = {"service": [Run(seconds, 0.0)]}
    return tell("service", QUESTION, case, size=each * many, runs=runs, peak_mb=peak_memory(), **more), told


def processor_time(process: int) -> float:
    """Seconds that a process has worked so far, in all its threads; 0 where that is not told."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def charged(port: int, token: str, told: list[Told]) -> None:
    """The ledger's total is the sum of what clients were told."""
    sent = {"Authorization": f"Bearer {token}"}
    account = httpx.get(f"http://127.0.0.1:{port}/data/people", headers=sent, timeout=60).json()["account"]
    costs = sum((Fraction(one.content["cost"]) for one in told), Fraction(0))
    if Fraction(account["spent"]) != costs:
        raise RuntimeError(f"the ledger says {account['spent']}, clients were charged {float(costs)}")


class Line:
    """One connection that is kept. No library: the clients share two cores with the server."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> Told:
        began = time.perf_counter()
        self._socket.sendall(request)
        head, _, body = self._read(b"", lambda got: b"\r\n\r\n" in got).partition(b"\r\n\r\n")
        lower = head.lower()
        length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = self._read(body, lambda got: len(got) >= length)
        return Told(time.perf_counter() - began, int(head[9:12]), json.loads(body))

    def _read(self, got: bytes, whole: Callable[[bytes], bool]) -> bytes:
        while not whole(got):
            part = self._socket.recv(1 << 20)
            if not part:
                raise RuntimeError("the server hung up")
            got += part
        return got


def packed(request: tuple[str, Any], token: str) -> bytes:
    path, content = request
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def reports(folder: Path, many: int) -> list[dict[str, Any]]:
    """Reports as clients could have made them; which they are does not matter to the server."""
    collection = read_policy(folder / "people.toml").collections["shoppers"]
    sizes = {name: operator_for(question).report_size for name, question in collection.questions.items()}
    chance = random.Random(1)
    about = {"collection": collection.name, "fingerprint": collection.fingerprint, "version": collection.version}
    return [
        {
            **about,
            "answers": {name: chance.randrange(size) for name, size in sizes.items()},
            "id": hashlib.sha256(f"{number}".encode()).hexdigest()[:32],
        }
        for number in range(many)
    ]


@contextmanager
def served() -> Iterator[tuple[int, list[str], Path, int]]:
    """A server over a folder of its own, with a token for each client: its port, the tokens, the folder, its process."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as name:
        folder, chance = Path(name), random.Random(2)
        rows = "\n".join(
            f"p{n},{chance.randint(18, 77)},{chance.choice(('Aby', 'Berg', 'Ceder', 'Dal'))}" for n in range(PEOPLE)
        )
        (folder / "people.csv").write_text(f"person,age,town\n{rows}\n")
        (folder / "people.toml").write_text(POLICY)
        held = ServedDatasets.from_files([str(folder / "people.toml")])
        store = Tokens(held.ledger.store)
        tokens = [make_token(store, role="owner", name=f"client {n}")[0] for n in range(CLIENTS)]
        held.close()
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
        start = [
            sys.executable,
            "-c",
            "from tidegate.cli import main; main()",
            "serve",
            "people.toml",
            "--port",
            str(port),
        ]
        quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(start, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet)
        try:
            ready(port)
            yield port, tokens, folder, process.pid
        finally:
            process.terminate()
            process.wait(30)


def ready(port: int) -> None:
    for _ in range(600):
        try:
            httpx.get(f"http://127.0.0.1:{port}/ready", timeout=5).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError("the server does not start")
