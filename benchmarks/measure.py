"""Timing that compares: runs that take turns, medians with their spread, peak memory, machine and commit."""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

RUNS = 5
SEED = 20260101
HERE = Path(__file__).parent
RESULTS = HERE / "results"

Times = dict[str, list[float]]


def take_turns(tasks: dict[str, Callable[[], Any]], *, runs: int = RUNS, warm: bool = True) -> Times:
    """Seconds of every run of every task. Tasks alternate, and every other round goes backwards."""
    for task in tasks.values() if warm else ():
        task()
    times: Times = {name: [] for name in tasks}
    for turn in range(runs):
        for name in list(tasks)[:: -1 if turn % 2 else 1]:
            gc.collect()
            start = perf_counter()
            tasks[name]()
            times[name].append(perf_counter() - start)
    return times


def tell(
    bench: str, question: str, case: str, *, size: int, times: Times, peak_mb: float, **more: Any
) -> dict[str, Any]:
    """One run as a JSON line, printed and kept. The first of `times` is ours; `ratio` says how much longer it took."""
    ours, *others = times
    record = {
        "bench": bench,
        "question": question,
        "case": case,
        "size": size,
        "seed": SEED,
        "runs": len(times[ours]),
        "median_s": {name: median(found) for name, found in times.items()},
        "spread_s": {name: [min(found), max(found)] for name, found in times.items()},
        "ratio": {name: ratio(times[ours], times[name]) for name in others},
        "peak_mb": round(peak_mb),
        **more,
        "machine": machine(),
        "commit": commit(),
    }
    line = json.dumps(_rounded(record), ensure_ascii=False)
    print(line, flush=True)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{bench}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return record


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios of runs that were neighbours."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def records_of(bench: str, full: bool) -> list[dict[str, Any]]:
    """What a bench found. Lives here because a child process cannot import a package's __main__."""
    return list(import_module(f"benchmarks.bench_{bench}").run(full=full))


def in_child(work: Callable[..., Any], *arguments: Any, prepare: Callable[[], Any] | None = None) -> dict[str, Any]:
    """`work(*arguments)` in a fresh process: its value, its seconds, and its peak memory with and without the work.
    `prepare` runs before the clock does, to load what is loaded at first use."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments, prepare).result()


def _measured(
    work: Callable[..., Any], arguments: tuple[Any, ...], prepare: Callable[[], Any] | None
) -> dict[str, Any]:
    if prepare:
        prepare()
    before, start = peak_memory(), perf_counter()
    value = work(*arguments)
    return {"value": value, "seconds": perf_counter() - start, "peak_mb": peak_memory(), "idle_mb": before}


def peak_memory() -> float:
    """The most memory this process ever held (resident), in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # not getrusage: Linux hands its maximum on from the parent through fork and exec
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


@cache
def machine() -> str:
    """Processor, cores, memory, system, Python."""
    info = Path("/proc/cpuinfo")
    models = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = models[0] if models else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.release()}, Python {platform.python_version()}"


@cache
def commit() -> str:
    """The commit that was measured, marked where files were changed since."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
