"""Runs in a peer's environment: times a task for every line read. Imports only the standard library."""

import gc
import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time


def serve(tasks, *packages, **about):
    """Send a description, then run one task per line and send its seconds, its value and the peak memory."""
    versions = {name: version(name) for name in packages}
    send({"tasks": list(tasks), "versions": versions, **about})
    for line in sys.stdin:
        gc.collect()
        clock, cpu = perf_counter(), process_time()
        value = tasks[line.strip()]()
        run = {"clock": perf_counter() - clock, "cpu": process_time() - cpu}
        send({**run, "value": float(value), "peak_mb": peak_memory()})


def send(record):
    print(json.dumps(record), flush=True)


def peak_memory():
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024
