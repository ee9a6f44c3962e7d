"""How much of each part the tests reach, from what `coverage json` wrote: a table, and a failure below 90%.

python tests/coverage_report.py build/coverage.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = ("policy", "accounting", "ledger", "risk", "answer", "release", "collect", "synthesize")
ENOUGH = 90.0  # of the lines and of the branches, in each part


@dataclass
class Reached:
    """Of one part: how many lines and branches there are, and how many were reached."""

    files: int = 0
    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0

    def add(self, summary: Mapping[str, Any]) -> None:
        self.files += 1
        self.lines += summary["num_statements"]
        self.lines_reached += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.branches_reached += summary["covered_branches"]

    @property
    def shares(self) -> tuple[float, float]:
        """Percent of the lines and of the branches; nothing at all is no success."""
        return 100 * self.lines_reached / max(1, self.lines), 100 * self.branches_reached / max(1, self.branches)

    @property
    def enough(self) -> bool:
        return min(self.shares) >= ENOUGH


def by_part(report: Mapping[str, Any]) -> dict[str, Reached]:
    """The figures of a report, added up by part. A part of which nothing was seen is there too."""
    found = {part: Reached() for part in PARTS}
    for name, told in report["files"].items():
        part = name.replace("\\", "/").partition("tidegate/")[2].partition("/")[0]
        if part in found:
            found[part].add(told["summary"])
    return found


def table(parts: Mapping[str, Reached]) -> str:
    """The figures as a Markdown table."""
    rows = ["| part | files | lines | reached | branches | reached |", "|---|---:|---:|---:|---:|---:|"]
    for part, told in parts.items():
        lines, branches = told.shares
        rows.append(f"| {part} | {told.files} | {told.lines:,} | {lines:.1f}% | {told.branches:,} | {branches:.1f}% |")
    return "\n".join(rows)


def main(path: str) -> int:
    parts = by_part(json.loads(Path(path).read_text("utf-8")))
    print(table(parts))
    low = [part for part, told in parts.items() if not told.enough]
    if low:
        print(f"Below {ENOUGH:g}%: {', '.join(low)}. What is missing: python -m coverage report --show-missing")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
