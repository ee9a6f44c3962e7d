"""A pytest plugin that measures the CPU seconds of each test, its fixtures and its child processes.

Clock times mean little when two processes share two cores with a browser and a database. Run it with

    PYTHONPATH=tests pytest -p cpu_times --cpu-times=build/cpu -n 2 --dist loadgroup -m "not long"
    PYTHONPATH=tests python -m cpu_times build/cpu

Each process of pytest writes one file into the folder; the second command prints the sums, the slowest tests, and how
long each process had no test left while another one still worked.
A child that outlives its test, such as a browser, is counted for the test during which it worked.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

SLOWEST = 50


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", metavar="FOLDER", help="write the CPU seconds of each test into this folder")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--cpu-times")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Recorder(Path(folder) / f"{os.getpid()}.jsonl"))


class Recorder:
    """One line of JSON per test: its name, its seconds, and when it ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = cpu_seconds()
        result = yield
        if self._file is None:
            self._file = self._path.open("w")
        self._file.write(json.dumps([item.nodeid, round(cpu_seconds() - before, 4), time.time()]) + "\n")
        self._file.flush()
        return result


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, of its finished children and of those that still run."""
    process = psutil.Process()
    times = process.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def read_times(folder: Path) -> dict[str, float]:
    """Return the seconds of each test that a run wrote."""
    return {name: seconds for lines in read_lines(folder) for name, seconds, _ in lines}


def read_lines(folder: Path) -> list[list[tuple[str, float, float]]]:
    """Return the lines of each process."""
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.glob("*.jsonl"))]


def idle_seconds(folder: Path) -> list[float]:
    """Return how long before the end of the run each process finished its last test."""
    ends = [lines[-1][2] for lines in read_lines(folder) if lines]
    return [max(ends) - end for end in ends]


def print_report(times: dict[str, float]) -> None:
    """Print the sum, the sums by folder and by file, and the slowest tests."""
    print(f"{sum(times.values()):.0f} s of CPU in {len(times):,} tests")
    files: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for name, seconds in times.items():
        path = Path(name.split("::")[0])
        files[str(path)] += seconds
        folders[str(path.parent)] += seconds
    for title, sums in (("Folders", folders), ("Files", files), ("Tests", Counter(times))):
        print(f"\n{title}")
        for name, seconds in sums.most_common(SLOWEST):
            print(f"{seconds:8.1f}  {name}")


if __name__ == "__main__":
    print_report(read_times(Path(sys.argv[1])))
    print(
        "\nIdle at the end, by process:", ", ".join(f"{seconds:.1f} s" for seconds in idle_seconds(Path(sys.argv[1])))
    )
