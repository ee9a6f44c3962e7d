"""How long does a command take from an empty process, compared with `tidegate --help`?

    python -m benchmarks start

Every run is a new process with cached bytecode. The processor time of the process is measured: the clock depends on who else
uses the machine. `--help` is the floor: Python, the command line, and nothing else. Releases and synthetic tables begin with
an empty folder of compiled kernels; "again" uses what the first run has left there.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import RUNS, Run, peak_memory, write_record
from tidegate import demo

QUESTION = "How much processor time does a command take from an empty process?"
MEAN = "SELECT sex, AVG(age) FROM people GROUP BY sex"
COLUMNS = "abcdefgh"
ROWS = 5_000


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for case, words in commands().items():
            yield measure_case(case, words, folder, runs=RUNS)
        for case, words in compiled_commands().items():
            yield measure_case(f"{case}, empty cache", words, folder, runs=2, is_cold=True)
            yield measure_case(f"{case}, again", words, folder, runs=2)


def commands() -> dict[str, Callable[[], list[str]]]:
    """Return the words of each command. A fresh answer has another loss in every run."""
    number = count()
    return {
        "check": lambda: ["check", "people.toml"],
        "ledger show": lambda: ["ledger", "show", "people.toml"],
        "init": lambda: ["init", "people.csv", "--out", f"draft{next(number)}.toml"],
        "answer --preview": lambda: ["answer", "people.toml", MEAN, "--rho", "0.02", "--preview"],
        "answer": lambda: ["answer", "people.toml", MEAN, "--epsilon", f"0.0{800 + next(number)}"],
    }


def compiled_commands() -> dict[str, Callable[[], list[str]]]:
    """Return commands whose loops can be compiled."""
    number = count(1)
    return {
        "release --key": lambda: ["release", "soldiers.toml", "--key", f"soldier {next(number):05}"],
        f"synthesize {ROWS:,} x {len(COLUMNS)}": lambda: [
            *("synthesize", "wide.toml", "--epsilon", f"1.{next(number)}", "--out", f"rows{next(number)}.csv"),
        ],
    }


def prepare(folder: Path) -> None:
    """Write the demo's data, a table of ROWS x COLUMNS, and a ledger with one answer."""
    demo.write(folder)
    rows = ([str((i * (7 + k) + i // (3 + k)) % 10) for k in range(len(COLUMNS))] for i in range(ROWS))
    (folder / "wide.csv").write_text("\n".join([",".join(COLUMNS), *map(",".join, rows)]) + "\n", "utf-8")
    attributes = "\n".join(f'{name} = {{ kind = "integer", from = 0, to = 9 }}' for name in COLUMNS)
    head = f'version = 1\n[dataset]\nname = "wide"\nsource = "wide.csv"\nunit = "row"\nrows = {ROWS}\n'
    (folder / "wide.toml").write_text(f"{head}[attributes]\n{attributes}\n[promise.loss]\nepsilon = 1000\n", "utf-8")
    time_command(folder, ["answer", "people.toml", MEAN, "--epsilon", "0.079"])


def measure_case(
    case: str, words: Callable[[], list[str]], folder: Path, *, runs: int, is_cold: bool = False
) -> dict[str, Any]:
    timed: dict[str, list[Run]] = {case: [], "tidegate --help": []}
    for turn in range(runs + 1):
        if is_cold:
            shutil.rmtree(folder / "kernels", ignore_errors=True)
        ours, floor = time_command(folder, words()), time_command(folder, ["--help"])
        if turn:  # the first round warms the disk's cache
            timed[case].append(ours)
            timed["tidegate --help"].append(floor)
    seconds = sorted(timing.cpu for timing in timed[case])[runs // 2]
    summary = f"{seconds:.2f} s of processor time"
    return write_record("start", QUESTION, case, size=1, runs=timed, peak_mb=peak_memory(), found=summary)


def time_command(folder: Path, words: list[str]) -> Run:
    """Run a command in a new process; return its time by the clock and by the processor."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"NUMBA_CACHE_DIR": str(folder / "kernels"), "TIDEGATE_REGISTRY": ""}
    start = [sys.executable, "-c", "from tidegate.cli import main; main()", *words]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run(start, cwd=folder, env=environment, capture_output=True, check=True)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    return Run(end - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
