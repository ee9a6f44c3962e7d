"""How many requests a second does one process of the service answer to 16 clients on loopback, and how long do they wait?

    python -m benchmarks service --full

A separate server (SQLite ledger, one worker) and 16 clients in threads of this process, each with its own token and one
connection: previews, stored answers, fresh answers, the same previews after those, decisions on records,
batches of randomized reports. The CPU time of the server for each request is reported too, because a busy machine
disturbs it less. A bare FastAPI route on the same server and with the same clients is measured first; `times_bare` is the CPU time
of a request divided by that of the bare route.
The bench fails unless the ledger's total is the sum of the costs that the clients received.
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

from benchmarks.measure import HERE, Run, peak_memory, write_record
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
# one thread for each engine; no registry: it would know this table from the ledger of an earlier run
ALONE = {"OMP_NUM_THREADS": "1", "TIDEGATE_REGISTRY": ""}
SQL = "SELECT town, COUNT(*) FROM people GROUP BY town"


class Response(NamedTuple):
    """One response: its seconds, status and content."""

    seconds: float
    status: int
    content: Any


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    count, fresh = (8_000, 2_000) if full else (320, 64)
    batches = 128 if full else 16
    bare, bare_cpu = measure_bare(count)
    yield bare
    with running_server() as (port, tokens, folder, server):
        timed = partial(measure, server=server, bare_cpu=bare_cpu)
        responses: list[Response] = []
        base = "/v1/data/people"
        query = {"sql": SQL, "epsilon": 0.1}
        timed("signing in", port, tokens, CLIENTS, lambda n: (f"{base}/previews", query), keep=False)
        yield timed("previews", port, tokens, count, lambda n: (f"{base}/previews", query))[0]
        responses += timed(
            "answers given before", port, tokens, CLIENTS, lambda n: (f"{base}/answers", query), keep=False
        )[1]
        record, repeated = timed("answers given before", port, tokens, count, lambda n: (f"{base}/answers", query))
        yield record
        record, more = timed(
            "fresh answers",
            port,
            tokens,
            fresh,
            lambda n: (f"{base}/answers", {"sql": SQL, "epsilon": f"{n + 101}/10000"}),
        )
        yield record
        check_charges(port, tokens[0], [*responses, *repeated, *more])
        yield timed("previews after many answers", port, tokens, count, lambda n: (f"{base}/previews", query))[0]
        timed("warm", port, tokens, 1, lambda n: (f"{base}/desks/hq/requests", {"keys": ["p0"]}), keep=False)
        yield timed(
            "release decisions", port, tokens, fresh, lambda n: (f"{base}/desks/hq/requests", {"keys": [f"p{n + 1}"]})
        )[0]
        sent = reports(folder, batches * BATCH)
        parts = [{"reports": sent[n * BATCH : (n + 1) * BATCH]} for n in range(batches)]
        path = f"{base}/collections/shoppers/reports"
        yield timed("reports", port, tokens, batches, lambda n: (path, parts[n]), each=BATCH)[0]


def measure_bare(count: int) -> tuple[dict[str, Any], float]:
    """Measure a bare FastAPI route on the same server; return the record and its CPU milliseconds per request."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    code = f"from tidegate.service.server import run; run('benchmarks.bare_app:create_app', port={port})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=HERE.parent, env={**os.environ, **ALONE})
    try:
        wait_until_ready(port, "/health")
        timed = partial(measure, server=process.pid)
        timed("bare route", port, [""] * CLIENTS, count // 4, lambda n: ("/bare", {"n": n}), keep=False)
        record, _ = timed("bare route", port, [""] * CLIENTS, count, lambda n: ("/bare", {"n": n}))
    finally:
        process.terminate()
        process.wait(30)
    return record, float(record["server_cpu_ms"])


def send_concurrently(
    port: int, requests: list[bytes], clients: int, *, server: int = 0
) -> tuple[list[Response], float, float]:
    """Send requests by concurrent clients, each with one connection.

    Return the responses, the wall-clock seconds until the last one, and the CPU seconds of the server. Raise RuntimeError
    unless all requests succeed.
    """
    responses: list[Response] = []
    start = threading.Barrier(clients + 1)

    def client(number: int) -> None:
        with Connection(port) as connection:
            start.wait()
            responses.extend([connection.send(request) for request in requests[number::clients]])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    start.wait()
    began, cpu = time.perf_counter(), processor_time(server)
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - began, processor_time(server) - cpu
    wrong = [response for response in responses if response.status != 200]
    if len(responses) != len(requests) or wrong:
        raise RuntimeError(f"{len(responses)} of {len(requests)} answered; {wrong[:1]}")
    return responses, seconds, cpu


def measure(
    case: str,
    port: int,
    tokens: list[str],
    count: int,
    request: Callable[[int], tuple[str, Any]],
    *,
    server: int = 0,
    each: int = 1,
    keep: bool = True,
    bare_cpu: float = 0.0,
) -> tuple[dict[str, Any], list[Response]]:
    """Send `count` requests by all clients at once; return the record and the responses."""
    requests = [encode_request(request(number), tokens[number % CLIENTS]) for number in range(count)]
    responses, seconds, cpu = send_concurrently(port, requests, CLIENTS, server=server)
    if not keep:
        return {}, responses
    rate = each * count / seconds
    times = quantiles([response.seconds for response in responses], n=100, method="inclusive")
    wait = {f"p{share}_ms": 1000 * times[share - 1] for share in (50, 95, 99)}
    summary = f"{rate:,.0f} a second; {wait['p50_ms']:.0f} ms, {wait['p95_ms']:.0f} at 95%, {wait['p99_ms']:.0f} at 99%"
    more: dict[str, Any] = {"per_second": rate, "aim_per_second": AIMS.get(case), **wait, "clients": CLIENTS}
    more |= {
        "server_cpu_ms": 1000 * cpu / count,
        "found": f"{summary}; {1000 * cpu / count:.2f} ms of the server's processor",
    }
    if bare_cpu:
        more["times_bare"] = more["server_cpu_ms"] / bare_cpu
        more["found"] += f", {more['times_bare']:.1f} times a bare route"
    runs = {"service": [Run(seconds, 0.0)]}
    return write_record(
        "service", QUESTION, case, size=each * count, runs=runs, peak_mb=peak_memory(), **more
    ), responses


def processor_time(process: int) -> float:
    """Return the CPU seconds of a process and its children so far, in all their threads; 0 if unknown."""
    if not process:
        return 0.0
    children = [
        int(child) for path in Path(f"/proc/{process}/task").glob("*/children") for child in _read(path).split()
    ]
    fields = _read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0
    return own + sum(map(processor_time, children))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended, or this system has no such file
        return ""


def check_charges(port: int, token: str, responses: list[Response]) -> None:
    """Raise RuntimeError unless the ledger's total is the sum of the costs that clients received."""
    sent = {"Authorization": f"Bearer {token}"}
    account = httpx.get(f"http://127.0.0.1:{port}/v1/data/people", headers=sent, timeout=60).json()["account"]
    costs = sum((Fraction(response.content["cost"]) for response in responses), Fraction(0))
    if Fraction(account["spent"]) != costs:
        raise RuntimeError(f"the ledger says {account['spent']}, clients were charged {float(costs)}")


class Connection:
    """A persistent connection, without a library: the clients share two cores with the server."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: bytes) -> Response:
        began = time.perf_counter()
        self._socket.sendall(request)
        head, _, body = self._read(b"", lambda received: b"\r\n\r\n" in received).partition(b"\r\n\r\n")
        lower = head.lower()
        length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = self._read(body, lambda received: len(received) >= length)
        return Response(time.perf_counter() - began, int(head[9:12]), json.loads(body))

    def _read(self, received: bytes, is_complete: Callable[[bytes], bool]) -> bytes:
        while not is_complete(received):
            part = self._socket.recv(1 << 20)
            if not part:
                raise RuntimeError("the server closed the connection")
            received += part
        return received


def encode_request(request: tuple[str, Any], token: str) -> bytes:
    path, content = request
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def reports(folder: Path, count: int) -> list[dict[str, Any]]:
    """Return valid reports with random answers."""
    collection = read_policy(folder / "people.toml").collections["shoppers"]
    sizes = {name: operator_for(question).report_size for name, question in collection.questions.items()}
    generator = random.Random(1)
    about = {"collection": collection.name, "fingerprint": collection.fingerprint, "version": collection.version}
    return [
        {
            **about,
            "answers": {name: generator.randrange(size) for name, size in sizes.items()},
            "id": hashlib.sha256(f"{number}".encode()).hexdigest()[:32],
        }
        for number in range(count)
    ]


def prepare_folder(folder: Path) -> list[str]:
    """Write a policy with its table into a folder, and return a token for each client."""
    generator = random.Random(2)
    towns = ("Aby", "Berg", "Ceder", "Dal")
    rows = "\n".join(f"p{n},{generator.randint(18, 77)},{generator.choice(towns)}" for n in range(PEOPLE))
    (folder / "people.csv").write_text(f"person,age,town\n{rows}\n")
    (folder / "people.toml").write_text(POLICY)
    datasets = ServedDatasets.from_files([str(folder / "people.toml")])
    store = Tokens(datasets.ledger.store)
    tokens = [make_token(store, role="owner", name=f"client {n}")[0] for n in range(CLIENTS)]
    datasets.close()
    return tokens


@contextmanager
def running_server() -> Iterator[tuple[int, list[str], Path, int]]:
    """Run a server over a temporary folder; yield its port, a token for each client, the folder and the process id."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as name:
        folder = Path(name)
        tokens = prepare_folder(folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        start = [
            sys.executable,
            "-c",
            "from tidegate.cli import main; main()",
            "serve",
            "people.toml",
            "--port",
            str(port),
        ]
        quiet = {**os.environ, **ALONE}
        process = subprocess.Popen(start, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet)
        try:
            wait_until_ready(port)
            yield port, tokens, folder, process.pid
        finally:
            process.terminate()
            process.wait(30)


def wait_until_ready(port: int, path: str = "/ready") -> None:
    for _ in range(600):
        try:
            httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")
