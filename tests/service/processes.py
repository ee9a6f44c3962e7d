"""A real server on loopback, started by the command line in its own folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from typer.testing import CliRunner

from tidegate.cli.app import app as commands

POLICY = """version = 1
[dataset]
name = "{name}"
source = "{name}.csv"
unit = "row"
rows = 60
[attributes]
person = {{ kind = "key" }}
age = {{ kind = "integer", from = 18, to = 90 }}
[promise.loss]
epsilon = 1000
"""
PATIENCE = 90.0
MAIN = "from tidegate.cli import main; main()"


def write_policies(folder: Path) -> Path:
    """Write two small policies, each over a table of its own."""
    for name, first in (("people", 20), ("others", 21)):
        rows = "\n".join(f"p{n},{first + n}" for n in range(60))
        (folder / f"{name}.csv").write_text(f"person,age\n{rows}\n")
        (folder / f"{name}.toml").write_text(POLICY.format(name=name))
    return folder


def command(*words: str) -> Any:
    result = CliRunner().invoke(commands, [*words, "--json"], catch_exceptions=False)
    return json.loads(result.stdout)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def run_server(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    port = free_port()
    start = [sys.executable, "-c", MAIN, "serve", *words, "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as under systemd
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            start,
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**environment, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                httpx.get(f"{url}/ready", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield url, process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers too
        process.wait(20)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
