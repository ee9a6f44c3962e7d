"""Figures that later runs are compared with: benchmarks/figures.json, committed, one entry for each case.

    python -m benchmarks noise start --keep       run, and store the figures of these benches
    python -m benchmarks compare                  print what became slower since then

Ratios to a peer or a floor of the same run are compared, in processor time where it is known, because machines differ and
are shared. Cases without a peer are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from benchmarks.measure import HERE, RESULTS

FIGURES = HERE / "figures.json"
SLOWER = 1.4  # times the stored ratio: two runs on a busy machine differ by less
Record = dict[str, Any]


def name_of(record: Record) -> str:
    return f"{record['bench']}: {record['case']}, {record['size']:,}"


def figures_of(record: Record) -> Record:
    """Return what is stored of a case."""
    ratios = {peer: record["cpu_ratio"].get(peer) or ratio for peer, ratio in record["ratio"].items()}
    return {
        "ratio": {peer: float(f"{ratio:.3g}") for peer, ratio in ratios.items()},
        "seconds": {name: float(f"{seconds:.3g}") for name, seconds in record["median_s"].items()},
        "commit": record["commit"],
        "machine": record["machine"],
    }


def load() -> dict[str, Record]:
    return json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}


def keep(records: Iterable[Record]) -> None:
    """Store the figures of these records; those of other cases stay."""
    figures = load() | {name_of(record): figures_of(record) for record in records if record["median_s"]}
    text = json.dumps(dict(sorted(figures.items())), indent=1, ensure_ascii=False)
    FIGURES.write_text(text + "\n", "utf-8")


def latest() -> dict[str, Record]:
    """Return the last record of each case in benchmarks/results."""
    records = [
        json.loads(line) for path in sorted(RESULTS.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]
    return {name_of(record): record for record in records}


def compare(records: dict[str, Record], figures: dict[str, Record]) -> tuple[list[str], int]:
    """Return a line for each ratio that became slower, the worst first, and the number of ratios that were compared."""
    changes = []
    for name, record in records.items():
        before = figures.get(name, {}).get("ratio", {})
        for peer, ratio in figures_of(record)["ratio"].items():
            if before.get(peer):
                changes.append((ratio / before[peer], f"{name}: {ratio:.3g} times {peer}, was {before[peer]:.3g}"))
    slower = sorted((change for change in changes if change[0] > SLOWER), reverse=True)
    return [f"{factor:.1f} times as slow  {text}" for factor, text in slower], len(changes)
