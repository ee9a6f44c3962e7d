"""The command line in this process, and the demo's folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; return the exit code, the output, and the error output."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        result = capsys.readouterr()
        return int(left.value.code or 0), result.out, result.err

    return call


@pytest.fixture(scope="session")
def tour_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo tour that ran once for all tests."""
    folder = tmp_path_factory.mktemp("toured") / "demo"
    command = [sys.executable, "-c", "from tidegate.cli import main; main()", "demo", "--no-serve", "--folder", folder]
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture
def demo(tour_folder: Path, tmp_path: Path) -> Path:
    """A copy of the demo's folder after the tour."""
    return Path(shutil.copytree(tour_folder, tmp_path / "demo"))
