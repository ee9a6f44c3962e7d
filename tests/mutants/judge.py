"""Whether one of the tests that reach a fault's line fails."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mutants.copy import plant_fault
from mutants.faults import Fault
from mutants.reach import Reached
from mutants.runs import pytest_on

ENOUGH = 60.0  # seconds of tests for one fault, the quickest first
START = 6.0  # seconds until the first test runs
CAUGHT, SURVIVED, ENDLESS, UNTESTED = "caught", "survived", "out of time", "no test"
ALIVE = (SURVIVED, UNTESTED)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a fault; `by` names the first test that failed."""

    fault: Fault
    verdict: str
    by: str
    tests: int
    seconds: float


def choose_tests(fault: Fault, reach: Reached) -> list[str]:
    """Return the tests that judge a fault: the fastest that reach its line, those of one file together."""
    tests: list[str] = []
    total = 0.0
    for test in sorted(reach.by_tests(fault.file, fault.line), key=lambda test: (reach.seconds(test), test)):
        total += reach.seconds(test)
        if tests and total > ENOUGH:
            break
        tests.append(test)
    return _file_by_file(tests, reach)


def _file_by_file(tests: Iterable[str], reach: Reached) -> list[str]:
    """Group tests by file, so that shared fixtures are created once; the fastest file comes first."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        files[test.partition("::")[0]].append(test)
    return [
        test for group in sorted(files.values(), key=lambda group: expected_seconds(group, reach)) for test in group
    ]


def expected_seconds(tests: Iterable[str], reach: Reached) -> float:
    """Return the seconds that tests take if none fails."""
    return sum(map(reach.seconds, tests))


def judge(fault: Fault, reach: Reached, project: Path) -> Verdict:
    """Plant a fault and run its tests until one fails."""
    tests, start = choose_tests(fault, reach), time.monotonic()
    with plant_fault(reach.source, fault) as copy, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        names = Path(folder, "chosen.json")
        names.write_text(json.dumps(tests), "utf-8")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        arguments = [*files, "-x", f"--basetemp={folder}/tests"]
        limit = 90 + 3 * expected_seconds(tests, reach)  # compilation takes most of the 90
        code, printed = (
            pytest_on(copy, project, *arguments, plugin="selection", chosen=names, limit=limit) if tests else (5, "")
        )
    verdict = {None: ENDLESS, 0: SURVIVED, 5: UNTESTED}.get(code, CAUGHT)
    return Verdict(fault, verdict, _first_failed(printed), len(tests), round(time.monotonic() - start, 1))


def _first_failed(printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].partition(" ")[2].partition(" - ")[0] if lines else ""
