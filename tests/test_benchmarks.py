"""The benchmarks run, and their report includes every result, losses too."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
BENCHES = sorted(FOLDER.glob("bench_*.py"))


def record(**other: Any) -> dict[str, Any]:
    fields = {"bench": "mean", "question": "How long?", "case": "a mean", "size": 10_000, "found": "5 a second"}
    fields |= {"median_s": {"tidegate": 0.5, "peer": 0.25}, "ratio": {"peer": 2.0}, "cpu_ratio": {"peer": 1.5}}
    return {**fields, **other}


@pytest.mark.parametrize("path", BENCHES, ids=lambda path: path.stem)
def test_every_bench_has_a_question_a_command_and_a_run_function(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    text = ast.get_docstring(tree) or ""
    assert "?" in text.splitlines()[0]
    assert "python -m benchmarks" in text
    assert any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def test_report_lists_losses_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks.report import losses

    text = losses([record(), record(case="a sum", ratio={"peer": 9.0}), record(case="a count", ratio={"peer": 0.5})])
    assert text.index("a sum") < text.index("a mean")
    assert "a count" not in text


def test_report_shows_every_case_and_every_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks.report import write

    point = record(bench="growth", axis="rows", what="a mean by rows", seconds={"tidegate": 0.1}, ratio={})
    failed = record(bench="other", median_s={}, ratio={}, found="missing: peer (it does not install)")
    path = write([record(), failed, point, {**point, "size": 20_000}], seconds=90.0, docs=tmp_path)
    text = path.read_text("utf-8")
    for line in (
        "| a mean | 10,000 | 500 ms | peer 2 (1.5) | 5 a second |",
        "it does not install",
        "| rows | 20,000 |",
    ):
        assert line in text
    assert (tmp_path / "pictures" / "growth.svg").stat().st_size > 1000


def test_slower_cases_are_listed_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks.figures import SLOWER, compare, figures_of, name_of

    stored = [
        record(commit="a", machine="m"),
        record(case="a sum", commit="a", machine="m"),
        record(case="a count", commit="a", machine="m"),
    ]
    figures = {name_of(case): figures_of(case) for case in stored}
    cpu = {"a mean": 1.5 * SLOWER * 1.1, "a sum": 1.5 * 5, "a count": 1.5 * SLOWER * 0.9, "new": 99.0}
    later = [record(case=case, cpu_ratio={"peer": ratio}, commit="b", machine="m") for case, ratio in cpu.items()]
    slower, count = compare({name_of(case): case for case in later}, figures)
    assert count == 3
    assert [line.split(": ")[1].split(",")[0] for line in slower] == ["a sum", "a mean"]
    assert "7.5 times peer, was 1.5" in slower[0]


def test_stored_figures_have_a_ratio_or_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks.figures import load

    figures = load()
    assert any(name.startswith("noise: ") for name in figures)
    assert any(name.startswith("start: ") for name in figures)
    assert all(figure["seconds"] and figure["commit"] for figure in figures.values())


def test_failed_bench_is_named_and_the_others_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks import __main__ as command
    from benchmarks import measure, report

    def run_bench(work: Any, name: str, full: bool) -> dict[str, Any]:
        if name == "ledger":
            raise OSError("no space left")
        return {"value": [{**record(bench=name), "peak_mb": 1}]}

    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "run_in_child", run_bench)
    monkeypatch.setattr(
        command, "write", lambda records, seconds: report.write(records, seconds=seconds, docs=tmp_path)
    )
    monkeypatch.setattr("sys.argv", ["benchmarks", "--report", "answer", "ledger", "group_by"])
    with pytest.raises(SystemExit, match="did not run to their end: ledger"):
        command.main()
    text = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert "OSError, no space left" in text
    assert "`bench_answer`" in text
    assert "`bench_group_by`" in text
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.long
def test_service_is_measured_with_several_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks import bench_growth, measure

    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    points = list(bench_growth.by_clients((1, 3), 20))
    assert [point["size"] for point in points] == [1, 3]
    assert all(point["seconds"]["tidegate"] > 0 for point in points)
