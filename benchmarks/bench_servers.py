"""Which server carries the service: uvicorn with our limits of connections, or granian?

    python -m benchmarks servers --full

Both run the same applications with one worker, and 16 clients on loopback: a bare FastAPI route, then previews, stored
answers and fresh answers of a service. Then: seconds from the start of the process until `/health` answers, whether an open request
is answered after SIGTERM, whether `/health` answers beside 1,500 clients that never finish their headers or their body,
and the size of the installed packages. Granian has its own environment (peers).
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks import bench_service
from benchmarks.measure import HERE, Run, Runs, peak_memory, write_record
from benchmarks.peers import PeerUnavailable, python_of
from tidegate.service.app import ENVIRONMENT
from tidegate.service.settings import Settings

QUESTION = "Which server carries the service: uvicorn with our limits, or granian?"
CLIENTS, HALF_OPEN = 16, 1_500
BARE = "benchmarks.bare_app:create_app"
BASE, SERVICE = "/v1/data/people", "tidegate.service.app:from_environment"
RUN = "import sys; from tidegate.service.server import run; run(sys.argv[1], port=int(sys.argv[2]))"
Command = Callable[[str, int], list[str]]
Servers = dict[str, tuple[Command, dict[str, str]]]


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    count, fresh = (8_000, 1_000) if full else (800, 64)
    _raise_limit()
    servers, missing = _servers()
    yield from compare_load(servers, count, fresh)
    for case, work in {"start": seconds_to_ready, "stop": stop_during_request}.items():
        yield record(case, 1, {name: [work(server)] for name, server in servers.items()}, missing)
    for case, start in {
        "headers": b"GET /health HT",
        "body": b"POST /bare HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{",
    }.items():
        seconds = {name: [beside_half_open(server, start)] for name, server in servers.items()}
        yield record(f"half-open {case}", HALF_OPEN, seconds, missing)
    yield sizes(servers)


def _servers() -> tuple[Servers, str]:
    """Return the command of each server with its environment, and which is missing and why."""
    folders = [str(HERE.parent), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join([*folders, sysconfig.get_paths()["purelib"]])
    own = {**os.environ, "PYTHONPATH": path, **bench_service.ALONE}
    servers: Servers = {"uvicorn": (lambda app, port: [sys.executable, "-c", RUN, app, str(port)], own)}
    try:
        python = str(python_of("granian"))
    except PeerUnavailable as error:
        return servers, f"; missing: granian ({error})"
    options = ["--interface", "asgi", "--factory", "--no-ws", "--host", "127.0.0.1"]
    servers["granian"] = (lambda app, port: [python, "-m", "granian", *options, "--port", str(port), app], own)
    return servers, ""


@contextmanager
def running(server: tuple[Command, dict[str, str]], app: str, *, folder: str = ".") -> Iterator[tuple[int, Any]]:
    """Run a server; yield its port and its process once it answers."""
    command, environment = server
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command(app, port), env=environment, cwd=folder, start_new_session=True, **quiet)
    try:
        until = time.monotonic() + 60
        while get(port, "/health") is None:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        yield port, process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its workers
        process.wait(30)


def get(port: int, path: str, *, timeout: float = 10.0) -> float | None:
    """Return the seconds until a response, or None if there is no response with status 200."""
    began = time.perf_counter()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as line:
            line.settimeout(timeout)
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            if not line.recv(1_000).startswith(b"HTTP/1.1 200"):
                return None
    except OSError:
        return None
    return time.perf_counter() - began


# Load


def compare_load(servers: Servers, count: int, fresh: int) -> Iterator[dict[str, Any]]:
    """Send the same requests to each server. The bare route comes first, then a service with its own ledger for each."""
    results: dict[str, dict[str, tuple[Run, dict[str, float]]]] = {}
    query = {"sql": bench_service.SQL, "epsilon": 0.1}
    for name, server in servers.items():
        with running(server, BARE) as (port, process):
            load = _load(port, process.pid, [""] * CLIENTS)
            load(400, lambda n: ("/bare", {"n": n}))
            results.setdefault("bare route", {})[name] = load(count, lambda n: ("/bare", {"n": n}))
        with tempfile.TemporaryDirectory(prefix="tgbench") as folder:
            tokens = bench_service.prepare_folder(Path(folder))
            settings = Settings((str(Path(folder) / "people.toml"),))
            command, environment = server
            served = (command, {**environment, ENVIRONMENT: settings.to_json()})
            with running(served, SERVICE, folder=folder) as (port, process):
                load = _load(port, process.pid, tokens)
                load(CLIENTS, lambda n: (f"{BASE}/previews", query))
                results.setdefault("previews", {})[name] = load(count, lambda n: (f"{BASE}/previews", query))
                load(CLIENTS, lambda n: (f"{BASE}/answers", query))
                results.setdefault("stored answers", {})[name] = load(count, lambda n: (f"{BASE}/answers", query))
                results.setdefault("fresh answers", {})[name] = load(
                    fresh, lambda n: (f"{BASE}/answers", {"sql": bench_service.SQL, "epsilon": f"1/{n + 11}"})
                )
    for case, by_server in results.items():
        size = fresh if case == "fresh answers" else count
        summary = "; ".join(
            f"{name} {size / timed.clock:,.0f} a second, {wait['p50_ms']:.1f} ms, {wait['p99_ms']:.1f} at 99%, "
            f"{1000 * timed.cpu / size:.2f} ms of processor"
            for name, (timed, wait) in by_server.items()
        )
        runs = {name: [timed] for name, (timed, _) in by_server.items()}
        yield write_record("servers", QUESTION, case, size=size, runs=runs, peak_mb=peak_memory(), found=summary)


def _load(port: int, process: int, tokens: list[str]) -> Callable[..., tuple[Run, dict[str, float]]]:
    def load(count: int, request: Callable[[int], tuple[str, Any]]) -> tuple[Run, dict[str, float]]:
        requests = [bench_service.encode_request(request(n), tokens[n % CLIENTS]) for n in range(count)]
        responses, seconds, cpu = bench_service.send_concurrently(port, requests, CLIENTS, server=process)
        times = quantiles([response.seconds for response in responses], n=100, method="inclusive")
        return Run(seconds, cpu), {f"p{share}_ms": 1000 * times[share - 1] for share in (50, 99)}

    return load


# Start, stop, slow clients


def seconds_to_ready(server: tuple[Command, dict[str, str]]) -> float:
    """Return the seconds from the start of the process until the bare application answers."""
    began = time.perf_counter()
    with running(server, BARE):
        return time.perf_counter() - began


def stop_during_request(server: tuple[Command, dict[str, str]]) -> float | None:
    """Return the seconds of a two-second request during which the server gets SIGTERM; None if it is not answered."""
    with running(server, BARE) as (port, process):
        seconds: list[float | None] = []
        client = threading.Thread(target=lambda: seconds.append(get(port, "/slow", timeout=20)))
        client.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        client.join()
        return seconds[0]


def beside_half_open(server: tuple[Command, dict[str, str]], start: bytes) -> float | None:
    """Return the seconds that `/health` takes beside clients that never finish; None if it is not answered in 10 s."""
    with running(server, BARE) as (port, _), contextlib.ExitStack() as stack:
        for _ in range(HALF_OPEN):
            line = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                line.settimeout(10)
                line.connect(("127.0.0.1", port))
                line.sendall(start)
        return get(port, "/health")


def record(case: str, size: int, seconds: dict[str, list[float | None]], missing: str) -> dict[str, Any]:
    """Write the seconds of each server; a server that did not answer has none."""
    says = {name: "no answer" if times[0] is None else f"{1000 * times[0]:,.0f} ms" for name, times in seconds.items()}
    runs: Runs = {name: [Run(times[0], 0.0)] for name, times in seconds.items() if times[0] is not None}
    summary = ", ".join(f"{name} {text}" for name, text in says.items()) + missing
    first = {name: runs[name] for name in list(runs)[:1]}  # no CPU time, so no ratio
    return write_record("servers", QUESTION, case, size=size, runs=first, peak_mb=peak_memory(), found=summary)


def sizes(servers: Servers) -> dict[str, Any]:
    """Write the installed size of each server with what only it needs."""
    ours = sum(_size_of(files(name) or []) for name in ("uvicorn", "httptools", "uvloop"))
    texts = [f"uvicorn with httptools and uvloop {ours / 2**20:.1f} MB"]
    if "granian" in servers:
        folder = Path(python_of("granian")).parent.parent
        package = sum(path.stat().st_size for path in folder.glob("lib/*/site-packages/granian/**/*") if path.is_file())
        texts.append(f"granian {package / 2**20:.1f} MB")
    return write_record("servers", QUESTION, "size", size=0, runs={}, peak_mb=peak_memory(), found=", ".join(texts))


def _size_of(paths: Any) -> int:
    return sum(path.locate().stat().st_size for path in paths if path.locate().is_file())


def _raise_limit() -> None:
    """Allow this process, and the servers that it starts, more open files if the system does."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8_192), most))
