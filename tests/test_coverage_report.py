"""The coverage report fails if one part has low coverage, even if the others are fully covered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from coverage_report import PARTS, by_part, main, table


def report(**low: dict[str, int]) -> dict[str, Any]:
    """Return a report of two fully covered files in each part; `low` changes the second file of a part."""
    good = {"num_statements": 50, "covered_lines": 50, "num_branches": 20, "covered_branches": 20}
    files = {f"src/tidegate/{part}/one.py": {"summary": good} for part in PARTS}
    files |= {f"src/tidegate/{part}/deep/two.py": {"summary": good | low.get(part, {})} for part in PARTS}
    return {"files": {**files, "src/tidegate/web/page.py": {"summary": dict.fromkeys(good, 0)}}}


def exit_code(content: dict[str, Any], folder: Path) -> int:
    path = folder / "coverage.json"
    path.write_text(json.dumps(content))
    return main(str(path))


def test_sufficient_coverage_of_all_parts_passes(tmp_path: Path) -> None:
    assert exit_code(report(), tmp_path) == 0
    assert exit_code(report(risk={"covered_branches": 16, "covered_lines": 40}), tmp_path) == 0  # 90% over both files


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("what", [{"covered_branches": 15}, {"covered_lines": 39}], ids=["branches", "lines"])
def test_part_with_low_coverage_fails_by_name(part: str, what: dict[str, int], tmp_path: Path, capsys: Any) -> None:
    assert exit_code(report(**{part: what}), tmp_path) == 1
    assert f"Below 90%: {part}." in capsys.readouterr().out


def test_part_without_coverage_data_fails(tmp_path: Path) -> None:
    content = report()
    content["files"] = {name: file_data for name, file_data in content["files"].items() if "/ledger/" not in name}
    assert exit_code(content, tmp_path) == 1


def test_table_has_one_row_per_part_with_sums_over_files() -> None:
    rows = table(by_part(report(policy={"covered_branches": 15}))).splitlines()
    assert len(rows) == 2 + len(PARTS)
    assert rows[2] == "| policy | 2 | 100 | 100.0% | 40 | 87.5% |"
