"""Other libraries, each in its own environment under results/envs, which run tasks on request.

A script here is run by the peer's Python. It loads its data, describes itself (one JSON line), and then times one
task for every line that it reads (serve.py). A peer that does not install or start is reported with the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import HERE, RESULTS, Run, Runs

ENVIRONMENTS = RESULTS / "envs"
REQUIRED = {
    "OpenDP": None,  # it is in the project's own environment, at the version of the tests
    "OpenDPPolars": ("opendp[polars]==0.16.0",),
    "granian": ("granian==2.8.7",),  # it runs our packages: bench_servers.py
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "pyarrow==26.0.1"),
    "SmartNoise": ("smartnoise-sql==1.0.10", "pyarrow==26.0.1"),
    "Tumult": ("tmlt.analytics==0.21.0",),
    "mlxtend": ("mlxtend==0.23.4", "numpy==2.2.6", "pandas==2.2.3"),
    "efficientapriori": ("efficient-apriori==2.0.6",),
    "multifreqldpy": ("multi-freq-ldpy==0.2.5",),
    "pureldp": ("pure-ldp==1.2.0", "statsmodels==0.15.0", "scikit-learn==1.5.2"),  # it declares neither of the others
    "dpmm": ("dpmm==0.1.9", "pyarrow==16.1.0"),
    "SDMetrics": ("sdmetrics==0.32.0",),
    "datasynthesizer": ("DataSynthesizer==0.1.13", "numpy==1.26.4", "pandas==2.2.3", "pyarrow==16.1.0"),
}


class PeerUnavailable(Exception):
    """A peer did not install or did not start; the message gives the reason."""


class Peer:
    """A running peer. It times its own tasks, so communication is not counted."""

    def __init__(self, name: str, *arguments: Any, topic: str = "mean") -> None:
        script = HERE / "peers" / f"{topic}_{name.lower()}.py"
        command = [str(python_of(name)), "-W", "ignore", str(script), *map(str, arguments)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, **pipes)
        self.name = name
        try:
            self.about = self._line()
        except PeerUnavailable:
            self.close()
            raise
        self.tasks: list[str] = self.about.pop("tasks")
        self.runs: Runs = {task: [] for task in self.tasks}
        self.values: dict[str, float] = {}
        self.peak_mb = 0.0

    def run_task(self, task: str) -> None:
        """Run a task once and append its time to `runs`."""
        print(task, file=self.process.stdin, flush=True)
        result = self._line()
        self.runs[task].append(Run(result["clock"], result["cpu"]))
        self.values[task], self.peak_mb = result["value"], result["peak_mb"]

    def close(self) -> None:
        self.process.communicate()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line:
            return dict(json.loads(line))
        error_lines = (self.process.communicate()[1] or "").strip().splitlines()
        raise PeerUnavailable(f"stopped: {error_lines[-1] if error_lines else self.process.returncode}")


def python_of(name: str) -> Path:
    """Return the Python of a peer's environment. It is created on first use by the uv next to our own Python."""
    required = REQUIRED[name]
    if required is None:
        return Path(sys.executable)
    folder = ENVIRONMENTS / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists() or ready.read_text() != "\n".join(required):
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--quiet", "--python", str(python), *required)
        ready.write_text("\n".join(required))
    return python


def _uv(*arguments: str) -> None:
    try:
        command = [str(Path(sys.executable).with_name("uv")), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        problem = " ".join(done.stderr.split()) if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise PeerUnavailable(f"not installed: {problem[:300]}")
