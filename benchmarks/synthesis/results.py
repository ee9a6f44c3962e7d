"""Stored results: one JSON file with every run, its date, machine, versions and command; and lines to print."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.measure import HERE, commit, machine
from benchmarks.synthesis.evaluation import MEASURES

STORED = HERE / "synthesis" / "results.json"
COSTS = ("seconds", "MB")
PROMISES = {
    "pure": "epsilon, one row replaced, discrete Laplace noise",
    "z": "(epsilon, 1e-5), one row replaced, discrete Gaussian noise",
}
Run = Mapping[str, Any]


class Key(NamedTuple):
    """A row of the results."""

    table: str
    epsilon: float
    method: str


def heading() -> str:
    names = "".join(f"{name:>8}" for name in (*MEASURES, *COSTS))
    return f"{'table':<13}{'eps':>5} {'method':<22}{names}"


def line(key: Key, runs: Sequence[Run]) -> str:
    """Return the means of the runs as one line; "-" where a measure does not apply."""
    cells = "".join(f"{text(mean(runs, name), name):>8}" for name in (*MEASURES, *COSTS))
    return f"{key.table:<13}{key.epsilon:>5g} {key.method:<22}{cells}"


def mean(runs: Sequence[Run], name: str) -> float | None:
    """Return the mean of a measure, or None if the runs do not have it."""
    values = [float(run[name]) for run in runs if run.get(name) is not None]
    return fmean(values) if values else None


def text(value: float | None, name: str) -> str:
    """Return a mean as it is printed: .0076, without the zero before the point."""
    if value is None:
        return "-"
    digits = {"corr": 3, "auc": 3, "fd": 3, "seconds": 1, "MB": 0}.get(name, 4)
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("0") if 0 <= value < 1 and digits > 1 else shown


def load() -> list[dict[str, Any]]:
    """Return all stored rows."""
    return list(json.loads(STORED.read_text("utf-8"))) if STORED.exists() else []


def store(key: Key, runs: Sequence[Run], *, note: str, **more: Any) -> None:
    """Store a row; a row with the same table, epsilon and method is replaced."""
    row = {
        **key._asdict(),
        "promise": note,
        "runs": [{name: _rounded(value) for name, value in run.items()} for run in runs],
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "commit": commit(),
        "versions": {name: version(name) for name in ("numpy", "scikit-learn")},
        "command": f"python -m benchmarks.synthesis {' '.join(sys.argv[1:])}",
        **more,
    }
    rows = [other for other in load() if tuple(other[name] for name in Key._fields) != key]
    rows = sorted([*rows, row], key=lambda item: [item[name] for name in Key._fields])
    STORED.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
