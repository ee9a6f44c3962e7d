"""The table of what the tests reach fails where one part falls behind, however good the others are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from coverage_report import PARTS, by_part, main, table


def report(**low: dict[str, int]) -> dict[str, Any]:
    """Two files in each part, all of which was reached; `low` says otherwise for the second file of a part."""
    good = {"num_statements": 50, "covered_lines": 50, "num_branches": 20, "covered_branches": 20}
    files = {f"src/tidegate/{part}/one.py": {"summary": good} for part in PARTS}
    files |= {f"src/tidegate/{part}/deep/two.py": {"summary": good | low.get(part, {})} for part in PARTS}
    return {"files": {**files, "src/tidegate/web/page.py": {"summary": dict.fromkeys(good, 0)}}}


def judged(found: dict[str, Any], folder: Path) -> int:
    path = folder / "coverage.json"
    path.write_text(json.dumps(found))
    return main(str(path))


def test_a_project_whose_parts_are_reached_passes(tmp_path: Path) -> None:
    assert judged(report(), tmp_path) == 0
    assert judged(report(risk={"covered_branches": 16, "covered_lines": 40}), tmp_path) == 0  # 90% over both files


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("what", [{"covered_branches": 15}, {"covered_lines": 39}], ids=["branches", "lines"])
def test_one_part_below_is_named_and_fails(part: str, what: dict[str, int], tmp_path: Path, capsys: Any) -> None:
    assert judged(report(**{part: what}), tmp_path) == 1
    assert f"Below 90%: {part}." in capsys.readouterr().out


def test_a_part_of_which_nothing_was_seen_fails(tmp_path: Path) -> None:
    found = report()
    found["files"] = {name: told for name, told in found["files"].items() if "/ledger/" not in name}
    assert judged(found, tmp_path) == 1


def test_the_table_has_a_row_for_each_part_with_its_files_added_up() -> None:
    rows = table(by_part(report(policy={"covered_branches": 15}))).splitlines()
    assert len(rows) == 2 + len(PARTS)
    assert rows[2] == "| policy | 2 | 100 | 100.0% | 40 | 87.5% |"
