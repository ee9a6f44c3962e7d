"""Runs of pytest in separate processes, on a copy of the source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]  # the folder of the plugins
NOT_HERE = ("-m", "not long and not spark", "-k", "not postgres")  # too slow for hundreds of runs


def pytest_on(
    source: Path, project: Path, *arguments: str | Path, plugin: str, limit: float | None = None, **facts: str | Path
) -> tuple[int | None, str]:
    """Return how pytest ended in `project` with `source` imported, None if not within the limit; and its output."""
    variables = {f"MUTANTS_{name.upper()}": str(value) for name, value in facts.items()}
    path = os.pathsep.join([str(source), str(HERE)])
    environment = {**os.environ, "PYTHONPATH": path, "COVERAGE_CORE": "ctrace", **variables}
    command = [sys.executable, "-m", "pytest", "-p", f"mutants.{plugin}", "--tb=no", *NOT_HERE, *map(str, arguments)]
    return _run(command, project, environment, limit)


def _run(
    command: Sequence[str], folder: Path, environment: dict[str, str], limit: float | None
) -> tuple[int | None, str]:
    """Run in a new process group, so that processes started by the tests end with it."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams) as process:  # type: ignore[call-overload]
        try:
            printed = process.communicate(timeout=limit)[0]
            return process.returncode, printed
        except subprocess.TimeoutExpired:
            return None, ""
        finally:  # also after an interrupt
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
