"""Comparative timing: runs that take turns, medians with their spread, peak memory, machine and commit."""

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

RUNS, FEW = 5, 2  # FEW: at the small size, where every run is a new process that loads its engines
SEED = 20260101
GIT = ("git", "-C", str(Path(__file__).parent.parent))
MEASURED = ("src", "benchmarks", "locks", "pyproject.toml")
HERE = Path(__file__).parent
RESULTS = HERE / "results"


class Run(NamedTuple):
    """Wall-clock seconds, and CPU seconds of this process."""

    clock: float
    cpu: float


Runs = dict[str, list[Run]]


def take_turns(tasks: dict[str, Callable[[], Any]], *, runs: int = RUNS) -> Runs:
    """Return the runs of every task after a warm-up. Tasks alternate, and every other round is in reverse order."""
    for task in tasks.values():
        task()
    runs_by_task: Runs = {name: [] for name in tasks}
    for turn in range(runs):
        for name in list(tasks)[:: -1 if turn % 2 else 1]:
            gc.collect()
            runs_by_task[name].append(time_task(tasks[name])[1])
    return runs_by_task


def time_task(task: Callable[[], Any]) -> tuple[Any, Run]:
    """Return the value of a task and its time."""
    clock, cpu = perf_counter(), process_time()
    value = task()
    return value, Run(perf_counter() - clock, process_time() - cpu)


def median_seconds(runs: list[Run]) -> float:
    """Return the median of wall-clock seconds."""
    return median(run.clock for run in runs)


def write_record(
    bench: str, question: str, case: str, *, size: int, runs: Runs, peak_mb: float, **more: Any
) -> dict[str, Any]:
    """Print a result as a JSON line, append it to its file, and return it.

    The first of `runs` is ours; the others are compared with it. `ratio` is our time divided by theirs, `cpu_ratio` the
    same for CPU time of this process (without a database server), which a busy machine disturbs less. Both are medians
    over neighboring runs.
    """
    ours, others = next(iter(runs), ""), list(runs)[1:]  # without runs, `found` gives the reason
    record = {
        "bench": bench,
        "question": question,
        "case": case,
        "size": size,
        "seed": SEED,
        "runs": len(runs.get(ours, ())),
        "median_s": {name: median_seconds(task_runs) for name, task_runs in runs.items()},
        "spread_s": {name: [min(task_runs).clock, max(task_runs).clock] for name, task_runs in runs.items()},
        "ratio": {name: median(a.clock / b.clock for a, b in _pairs(runs, name)) for name in others},
        "cpu_ratio": {name: median(a.cpu / b.cpu for a, b in _pairs(runs, name)) for name in others},
        "peak_mb": round(peak_mb),
        **more,
        "machine": machine(),
        "commit": commit(),
    }
    line = json.dumps(_round(record), ensure_ascii=False)
    print(line, flush=True)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{bench}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return record


def _pairs(runs: Runs, other: str) -> Iterator[tuple[Run, Run]]:
    return zip(next(iter(runs.values())), runs[other], strict=True)


def records_of(bench: str, full: bool) -> list[dict[str, Any]]:
    """Return the results of a bench. It is here because a child process cannot import a package's __main__."""
    return list(import_module(f"benchmarks.bench_{bench}").run(full=full))


def failed_record(bench: str, error: Exception) -> dict[str, Any]:
    """Write and return the record of a bench that failed."""
    problem = f"did not run to its end: {type(error).__name__}, {error}"
    return write_record(bench, "No result.", "none", size=0, runs={}, peak_mb=peak_memory(), found=problem)


def run_in_child(work: Callable[..., Any], *arguments: Any, prepare: Callable[[], Any] | None = None) -> dict[str, Any]:
    """Run `work(*arguments)` in a new process; return its value, its run, and its peak memory with and without the work.

    `prepare` runs before the clock starts, to load modules that are imported on first use.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, work, arguments, prepare).result()


def _measure(work: Callable[..., Any], arguments: tuple[Any, ...], prepare: Callable[[], Any] | None) -> dict[str, Any]:
    if prepare:
        prepare()
    before = peak_memory()
    value, run = time_task(lambda: work(*arguments))
    return {"value": value, "run": run, "peak_mb": peak_memory(), "idle_mb": before}


def peak_memory() -> float:
    """Return the peak resident memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # not getrusage: on Linux its maximum is inherited from the parent
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


@cache
def machine() -> str:
    """Return processor, cores, memory, system with its first two numbers, and Python version."""
    info = Path("/proc/cpuinfo")
    models = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = models[0] if models else platform.processor() or platform.machine()
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GB, {system}, Python {platform.python_version()}"


@cache
def commit() -> str:
    """Return the measured commit, with a mark if the code has uncommitted changes."""
    name = subprocess.run([*GIT, "describe", "--always", "--abbrev=12"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*GIT, "diff", "--quiet", "HEAD", "--", *MEASURED], check=False).returncode
    return f"{name.stdout.strip() or 'unknown'}{'-dirty' if changed else ''}"


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_round(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
