"""Which tests reach a line: recorded once for each file of tests, and again when it or the source has changed."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants.copy import plant_fault
from mutants.runs import pytest_on


@dataclass(frozen=True)
class Reached:
    """The seconds of each test and the lines that it reaches."""

    source: Path
    project: Path
    tests: dict[str, Any]

    def seconds(self, test: str) -> float:
        return float(self.tests[test]["seconds"])

    def by_tests(self, file: str, line: int) -> set[str]:
        """Return the tests that reach a line.

        Lines that no tracer sees are judged by the tests of their file and of its importers: compiled functions, and what runs once
        on import (constants, defaults).
        """
        direct = {test for test in self._of(file) if line in self.tests[test]["lines"][file]}
        return direct or self._of(file) | self._beside(file)

    def _of(self, file: str) -> set[str]:
        return {test for test, record in self.tests.items() if file in record["lines"]}

    def _beside(self, file: str) -> set[str]:
        """Return the tests in files that import this one; if none reaches it, also those of sources that import it."""
        test_files = {test.partition("::")[0] for test in self.tests}
        importers = {name for name in test_files if _imports(self.project / name, file)}
        tests = {test for test in self.tests if test.partition("::")[0] in importers}
        paths = [] if self._of(file) else [path for path in self.source.rglob("*.py") if _imports(path, file)]
        return tests.union(*(self._of(path.relative_to(self.source).as_posix()) for path in paths))


def _imports(path: Path, file: str) -> bool:
    package, _, name = file.removesuffix(".py").replace("/", ".").rpartition(".")
    pattern = rf"^from {package}\.{name} import|^from {package} import .*\b{name}\b"
    return re.search(pattern, path.read_text("utf-8"), re.MULTILINE) is not None


def find_reach(source: Path, project: Path, tests: Sequence[Path], *, record_path: Path) -> Reached:
    """Return what the tests reach of the source, from the file of an earlier run if that is still valid."""
    notes: dict[str, Any] = json.loads(record_path.read_text("utf-8")) if record_path.exists() else {}
    files = sorted({file for path in tests for file in ([path] if path.is_file() else path.rglob("test_*.py"))})
    common = _digest([*source.rglob("*.py"), *(p for path in tests for p in path.rglob("*.py") if p not in files)])
    prints = {file.relative_to(project).as_posix(): common + _digest([file]) for file in files}
    stale = [name for name, now in prints.items() if notes.get(name, {}).get("print") != now]
    if stale:
        print(f"Recording which lines the tests of {len(stale)} files reach.", flush=True)
        records = _record_lines(source, project, stale)
        for name in stale:
            own = {test: record for test, record in records.items() if test.partition("::")[0] == name}
            notes[name] = {"print": prints[name], "tests": own}
        record_path.parent.mkdir(parents=True, exist_ok=True)
        record_path.write_text(json.dumps(notes), "utf-8")
    return Reached(source, project, {test: record for name in prints for test, record in notes[name]["tests"].items()})


def _record_lines(source: Path, project: Path, files: Sequence[str]) -> dict[str, Any]:
    """Record on a copy, as faults are judged: a test that fails there without any fault is left out and printed."""
    with plant_fault(source, None) as copy, tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes.json")
        code, printed = pytest_on(copy, project, *files, plugin="reach_plugin", folder=copy, notes=notes)
        if code not in (0, 5):
            print("Left out because they fail without any fault:", printed[-2000:], sep="\n", flush=True)
        return dict(json.loads(notes.read_text("utf-8")))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
