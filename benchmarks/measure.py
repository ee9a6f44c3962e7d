"""Timing that compares: runs that take turns, medians with their spread, peak memory, machine and commit."""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

RUNS, FEW = 5, 2  # few: at the small size, where every run is a process that loads its engines anew
SEED = 20260101
GIT = ("git", "-C", str(Path(__file__).parent.parent))
MEASURED = ("src", "benchmarks", "locks", "pyproject.toml")
HERE = Path(__file__).parent
RESULTS = HERE / "results"


class Run(NamedTuple):
    """Seconds by the clock, and seconds of this process's processors."""

    clock: float
    cpu: float


Runs = dict[str, list[Run]]


def take_turns(tasks: dict[str, Callable[[], Any]], *, runs: int = RUNS) -> Runs:
    """Every run of every task, after one that does not count. Tasks alternate, and every other round goes backwards."""
    for task in tasks.values():
        task()
    found: Runs = {name: [] for name in tasks}
    for turn in range(runs):
        for name in list(tasks)[:: -1 if turn % 2 else 1]:
            gc.collect()
            found[name].append(timed(tasks[name])[1])
    return found


def timed(task: Callable[[], Any]) -> tuple[Any, Run]:
    """What a task returns and how long it took."""
    clock, cpu = perf_counter(), process_time()
    value = task()
    return value, Run(perf_counter() - clock, process_time() - cpu)


def typical(runs: list[Run]) -> float:
    """The median by the clock."""
    return median(run.clock for run in runs)


def tell(bench: str, question: str, case: str, *, size: int, runs: Runs, peak_mb: float, **more: Any) -> dict[str, Any]:
    """One run as a JSON line, printed and kept. The first of `runs` is ours, the others are what it is compared with.

    `ratio` says how much longer ours took; `cpu_ratio` how much more processor time in this process (a database
    server's is not in it), which a busy machine disturbs less. Both are medians over runs that were neighbours.
    """
    ours, others = next(iter(runs), ""), list(runs)[1:]  # no runs: `found` says why
    record = {
        "bench": bench,
        "question": question,
        "case": case,
        "size": size,
        "seed": SEED,
        "runs": len(runs.get(ours, ())),
        "median_s": {name: typical(found) for name, found in runs.items()},
        "spread_s": {name: [min(found).clock, max(found).clock] for name, found in runs.items()},
        "ratio": {name: median(a.clock / b.clock for a, b in _pairs(runs, name)) for name in others},
        "cpu_ratio": {name: median(a.cpu / b.cpu for a, b in _pairs(runs, name)) for name in others},
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


def _pairs(runs: Runs, other: str) -> Iterator[tuple[Run, Run]]:
    return zip(next(iter(runs.values())), runs[other], strict=True)


def records_of(bench: str, full: bool) -> list[dict[str, Any]]:
    """What a bench found. Lives here because a child process cannot import a package's __main__."""
    return list(import_module(f"benchmarks.bench_{bench}").run(full=full))


def not_run(bench: str, error: Exception) -> dict[str, Any]:
    """What is told of a bench that broke off."""
    found = f"did not run to its end: {type(error).__name__}, {error}"
    return tell(bench, "What was asked has no answer.", "none", size=0, runs={}, peak_mb=peak_memory(), found=found)


def in_child(work: Callable[..., Any], *arguments: Any, prepare: Callable[[], Any] | None = None) -> dict[str, Any]:
    """`work(*arguments)` in a fresh process: its value, its run, and its peak memory with and without the work.
    `prepare` runs before the clock does, to load what is loaded at first use."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments, prepare).result()


def _measured(
    work: Callable[..., Any], arguments: tuple[Any, ...], prepare: Callable[[], Any] | None
) -> dict[str, Any]:
    if prepare:
        prepare()
    before = peak_memory()
    value, run = timed(lambda: work(*arguments))
    return {"value": value, "run": run, "peak_mb": peak_memory(), "idle_mb": before}


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
    """The commit that was measured, marked where the code was changed since."""
    name = subprocess.run([*GIT, "describe", "--always", "--abbrev=12"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*GIT, "diff", "--quiet", "HEAD", "--", *MEASURED], check=False).returncode
    return f"{name.stdout.strip() or 'unknown'}{'-dirty' if changed else ''}"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
