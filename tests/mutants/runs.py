"""Runs of pytest in processes of their own, on a copy of the source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]  # where the plugins are found
NOT_HERE = ("-m", "not long and not spark", "-k", "not postgres")  # too slow for hundreds of runs


def pytest_on(
    source: Path, project: Path, *given: str | Path, plugin: str, limit: float | None = None, **facts: str | Path
) -> tuple[int | None, str]:
    """How pytest ended in `project` with `source` imported, None if not within the limit; and what it printed."""
    known = {f"MUTANTS_{name.upper()}": str(value) for name, value in facts.items()}
    path = os.pathsep.join([str(source), str(HERE)])
    environment = {**os.environ, "PYTHONPATH": path, "COVERAGE_CORE": "ctrace", **known}
    command = [sys.executable, "-m", "pytest", "-p", f"mutants.{plugin}", "--tb=no", *NOT_HERE, *map(str, given)]
    return _ended(command, project, environment, limit)


def _ended(
    command: Sequence[str], folder: Path, environment: dict[str, str], limit: float | None
) -> tuple[int | None, str]:
    """A group of processes of its own: what the tests started ends with them."""
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **said) as process:  # type: ignore[call-overload]
        try:
            printed = process.communicate(timeout=limit)[0]
            return process.returncode, printed
        except subprocess.TimeoutExpired:
            return None, ""
        finally:  # also when somebody has had enough of waiting
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
