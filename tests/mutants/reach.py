"""Which tests reach a line: noted once for each file of tests, and again when it or the source has changed."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants.copy import planted
from mutants.runs import pytest_on


@dataclass(frozen=True)
class Reached:
    """By test its seconds and the lines it reaches."""

    source: Path
    project: Path
    tests: dict[str, Any]

    def seconds(self, test: str) -> float:
        return float(self.tests[test]["seconds"])

    def by_tests(self, file: str, line: int) -> set[str]:
        """The tests that reach a line. What no tracer sees is judged by the tests of its file and of those that import it.

        Not seen are compiled functions, and what runs once on import: constants, defaults.
        """
        direct = {test for test in self._of(file) if line in self.tests[test]["lines"][file]}
        return direct or self._of(file) | self._beside(file)

    def _of(self, file: str) -> set[str]:
        return {test for test, told in self.tests.items() if file in told["lines"]}

    def _beside(self, file: str) -> set[str]:
        """The tests in files that import this one; where none reaches it, those of the sources that import it too."""
        written = {test.partition("::")[0] for test in self.tests}
        named = {name for name in written if _imports(self.project / name, file)}
        found = {test for test in self.tests if test.partition("::")[0] in named}
        paths = [] if self._of(file) else [path for path in self.source.rglob("*.py") if _imports(path, file)]
        return found.union(*(self._of(path.relative_to(self.source).as_posix()) for path in paths))


def _imports(path: Path, file: str) -> bool:
    package, _, name = file.removesuffix(".py").replace("/", ".").rpartition(".")
    told = rf"^from {package}\.{name} import|^from {package} import .*\b{name}\b"
    return re.search(told, path.read_text("utf-8"), re.MULTILINE) is not None


def reached(source: Path, project: Path, tests: Sequence[Path], *, kept: Path) -> Reached:
    """What the tests reach of the source, from the file of an earlier run where that still holds."""
    notes: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    files = sorted({file for path in tests for file in ([path] if path.is_file() else path.rglob("test_*.py"))})
    common = _digest([*source.rglob("*.py"), *(p for path in tests for p in path.rglob("*.py") if p not in files)])
    prints = {file.relative_to(project).as_posix(): common + _digest([file]) for file in files}
    stale = [name for name, now in prints.items() if notes.get(name, {}).get("print") != now]
    if stale:
        print(f"Looking which lines the tests of {len(stale)} files reach.", flush=True)
        found = _noted(source, project, stale)
        for name in stale:
            own = {test: told for test, told in found.items() if test.partition("::")[0] == name}
            notes[name] = {"print": prints[name], "tests": own}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(notes), "utf-8")
    return Reached(source, project, {test: told for name in prints for test, told in notes[name]["tests"].items()})


def _noted(source: Path, project: Path, files: Sequence[str]) -> dict[str, Any]:
    """On a copy as the faults are judged on: a test that fails there without any fault is left out and told."""
    with planted(source, None) as copy, tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes.json")
        code, printed = pytest_on(copy, project, *files, plugin="reach_plugin", folder=copy, notes=notes)
        if code not in (0, 5):
            print("Left out, they fail without any fault:", printed[-2000:], sep="\n", flush=True)
        return dict(json.loads(notes.read_text("utf-8")))


def _digest(files: Iterable[Path]) -> str:
    told = hashlib.sha256()
    for file in sorted(files):
        told.update(hashlib.sha256(file.read_bytes()).digest())
    return told.hexdigest()[:16]
