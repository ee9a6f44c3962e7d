"""A command line in this process, and the demo's folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit code, what it printed, what it said on the error stream."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return int(left.value.code or 0), told.out, told.err

    return call


@pytest.fixture
def demo(run: Run, tmp_path: Path) -> Path:
    """The demo's folder after it ran."""
    assert run("demo", "--no-serve", "--folder", tmp_path / "demo")[0] == 0
    return tmp_path / "demo"
