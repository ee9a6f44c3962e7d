"""The benches can be run, and what they find is told whole: what is lost as well."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
BENCHES = sorted(FOLDER.glob("bench_*.py"))


def record(**other: Any) -> dict[str, Any]:
    made = {"bench": "mean", "question": "How long?", "case": "a mean", "size": 10_000, "found": "5 a second"}
    made |= {"median_s": {"tidegate": 0.5, "peer": 0.25}, "ratio": {"peer": 2.0}, "cpu_ratio": {"peer": 1.5}}
    return {**made, **other}


@pytest.mark.parametrize("path", BENCHES, ids=lambda path: path.stem)
def test_a_bench_asks_a_question_says_its_command_and_can_be_run(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    told = ast.get_docstring(tree) or ""
    assert "?" in told.splitlines()[0]
    assert "python -m benchmarks" in told
    assert any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def test_the_report_names_what_is_lost_the_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks.report import losses

    told = losses([record(), record(case="a sum", ratio={"peer": 9.0}), record(case="a count", ratio={"peer": 0.5})])
    assert told.index("a sum") < told.index("a mean")
    assert "a count" not in told


def test_the_report_shows_every_case_and_every_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks.report import write

    point = record(bench="growth", axis="rows", what="a mean by rows", seconds={"tidegate": 0.1}, ratio={})
    failed = record(bench="other", median_s={}, ratio={}, found="missing: peer (it does not install)")
    place = write([record(), failed, point, {**point, "size": 20_000}], seconds=90.0, docs=tmp_path)
    told = place.read_text("utf-8")
    for text in (
        "| a mean | 10,000 | 500 ms | peer 2 (1.5) | 5 a second |",
        "it does not install",
        "| rows | 20,000 |",
    ):
        assert text in told
    assert (tmp_path / "pictures" / "growth.svg").stat().st_size > 1000


def test_a_bench_that_breaks_off_is_named_and_the_others_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks import __main__ as command
    from benchmarks import measure, report

    def asked(work: Any, name: str, full: bool) -> dict[str, Any]:
        if name == "ledger":
            raise OSError("no space left")
        return {"value": [{**record(bench=name), "peak_mb": 1}]}

    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "in_child", asked)
    monkeypatch.setattr(command, "write", lambda found, seconds: report.write(found, seconds=seconds, docs=tmp_path))
    monkeypatch.setattr("sys.argv", ["benchmarks", "--report", "answer", "ledger", "group_by"])
    with pytest.raises(SystemExit, match="did not run to their end: ledger"):
        command.main()
    told = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert "OSError, no space left" in told
    assert "`bench_answer`" in told
    assert "`bench_group_by`" in told
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.long
def test_the_service_is_measured_by_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks import bench_growth, measure

    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    found = list(bench_growth.by_clients((1, 3), 20))
    assert [one["size"] for one in found] == [1, 3]
    assert all(one["seconds"]["tidegate"] > 0 for one in found)
