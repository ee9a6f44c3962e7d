"""A plugin of pytest that records which lines of a folder each test reaches and how long it takes.

pytest -p mutants.reach_plugin, with MUTANTS_FOLDER (whose lines) and MUTANTS_NOTES (the file to write) in the environment.
A fixture that several tests share runs in the first of them; its lines are recorded for all that use it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

FOLDER = os.environ["MUTANTS_FOLDER"]


class Noting:
    """Lines by what ran: a test or a shared fixture."""

    def __init__(self) -> None:
        self.coverage = Coverage(data_file=None, source=[FOLDER], config_file=False)
        self.running = [""]
        self.seconds: dict[str, float] = defaultdict(float)
        self.asks: dict[str, list[str]] = {}
        self.failed: set[str] = set()

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        self.running.append(name)
        self.coverage.switch_context(name)
        yield
        self.running.pop()
        self.coverage.switch_context(self.running[-1])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.asks[item.nodeid] = [f"fixture {name}" for name in getattr(item, "fixturenames", ())]
        with self._within(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        shared = fixturedef.scope != "function"
        with self._within(f"fixture {fixturedef.argname}" if shared else self.running[-1]):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        Path(os.environ["MUTANTS_NOTES"]).write_text(json.dumps(self._notes()), "utf-8")

    def _notes(self) -> dict[str, Any]:
        """Return for each test its seconds, and its lines by file. A test that fails without a fault judges none."""
        lines = self._lines()
        return {
            test: {
                "seconds": round(self.seconds[test], 3),
                "lines": _join_lines([lines[name] for name in (test, *fixtures)]),
            }
            for test, fixtures in self.asks.items()
            if test not in self.failed
        }

    def _lines(self) -> dict[str, dict[str, set[int]]]:
        lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        data = self.coverage.get_data()
        for path in data.measured_files():
            for line, names in data.contexts_by_lineno(path).items():
                for name in names:
                    lines[name][Path(path).relative_to(FOLDER).as_posix()].add(line)
        return lines


def _join_lines(several: list[dict[str, set[int]]]) -> dict[str, list[int]]:
    return {
        file: sorted(set().union(*(lines.get(file, set()) for lines in several))) for lines in several for file in lines
    }


NOTING = Noting()
NOTING.coverage.start()  # before the folder is imported


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NOTING)
