"""The test coverage of each part, from the output of `coverage json`: a table, and a failure below 90%.

python tests/coverage_report.py build/coverage.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = (
    "policy", "accounting", "noise", "ledger", "risk", "operators", "tables", "answer", "release", "collect", "synthesize"
)  # fmt: skip
MINIMUM = 90.0  # of the lines and of the branches, in each part


@dataclass
class Coverage:
    """The lines and branches of one part, and how many of them the tests run."""

    files: int = 0
    lines: int = 0
    lines_covered: int = 0
    branches: int = 0
    branches_covered: int = 0

    def add(self, summary: Mapping[str, Any]) -> None:
        self.files += 1
        self.lines += summary["num_statements"]
        self.lines_covered += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.branches_covered += summary["covered_branches"]

    @property
    def shares(self) -> tuple[float, float]:
        """Percent of the lines and of the branches; 0 for a part without any."""
        return 100 * self.lines_covered / max(1, self.lines), 100 * self.branches_covered / max(1, self.branches)

    @property
    def is_enough(self) -> bool:
        return min(self.shares) >= MINIMUM


def by_part(report: Mapping[str, Any]) -> dict[str, Coverage]:
    """Return the sums of a report by part, including parts without any file."""
    parts = {part: Coverage() for part in PARTS}
    for name, content in report["files"].items():
        part = name.replace("\\", "/").partition("tidegate/")[2].partition("/")[0]
        if part in parts:
            parts[part].add(content["summary"])
    return parts


def table(parts: Mapping[str, Coverage]) -> str:
    """Return the figures as a Markdown table."""
    rows = ["| part | files | lines | covered | branches | covered |", "|---|---:|---:|---:|---:|---:|"]
    for part, coverage in parts.items():
        lines, branches = coverage.shares
        rows.append(
            f"| {part} | {coverage.files} | {coverage.lines:,} | {lines:.1f}% | {coverage.branches:,} | {branches:.1f}% |"
        )
    return "\n".join(rows)


def main(path: str) -> int:
    parts = by_part(json.loads(Path(path).read_text("utf-8")))
    print(table(parts))
    low = [part for part, coverage in parts.items() if not coverage.is_enough]
    if low:
        print(
            f"Below {MINIMUM:g}%: {', '.join(low)}. To see the missing lines: python -m coverage report --show-missing"
        )
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
