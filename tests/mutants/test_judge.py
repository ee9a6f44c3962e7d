"""The judge catches what a test detects and lets survive what none does, on a small project with real tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from mutants.__main__ import table
from mutants.copy import plant_fault
from mutants.faults import Fault, faults
from mutants.judge import CAUGHT, SURVIVED, UNTESTED, Verdict, choose_tests, judge
from mutants.reach import Reached, find_reach
from mutants.runs import pytest_on

SOURCE = """
LARGEST = 9

def within(number, low, high):
    if low == high:
        return number == low
    return low <= number <= high

def clipped(number):
    return min(number, LARGEST)

def doubled(number):
    return number * 2

def forgotten():
    return 1
"""
TESTS = """
import subprocess, sys
import pytest
from small.ranges import clipped, doubled, within

def test_the_ends_belong_to_a_range():
    assert within(1, 1, 3) and within(3, 1, 3)
    assert not within(0, 1, 3) and not within(4, 1, 3)

def test_a_range_of_one_number():
    assert within(2, 2, 2) and not within(1, 2, 2) and not within(3, 2, 2)

def test_another_process_clips():
    code = "from small.ranges import clipped; print(clipped(12), clipped(3))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["9", "3"]
    clipped(1)

def test_what_is_wrong_anyway():
    assert within(1, 1, 3) == doubled(5)

@pytest.fixture(scope="module")
def ten():
    return doubled(5)

def test_first_user(ten):
    pass

def test_second_user(ten):
    assert ten == 10
"""
FILE = "small/ranges.py"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Create a package and its tests. Imports of other plugins would take most of the time of a small run."""
    folder = tmp_path_factory.mktemp("small")
    for name, text in {f"src/{FILE}": SOURCE, "tests/test_ranges.py": TESTS, "pyproject.toml": "[tool.pytest]"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        yield folder


@pytest.fixture(scope="module")
def reach(project: Path) -> Reached:
    return find_reach(project / "src", project, [project / "tests"], record_path=project / "reach.json")


def fault(before: str, after: str) -> Fault:
    (match,) = [
        candidate for candidate in faults(SOURCE, file=FILE) if (candidate.before, candidate.after) == (before, after)
    ]
    return match


def names(tests: Iterable[str]) -> set[str]:
    return {test.removeprefix("tests/test_ranges.py::test_") for test in tests}


BRANCH = "if low == high:\n    return number == low"
WRONG = {
    "a boundary": ("low <= number <= high", "low < number <= high", "the_ends_belong_to_a_range"),
    "a branch": (BRANCH, BRANCH.replace("low == high", "True", 1), "the_ends_belong_to_a_range"),
    "in another process": ("min(number, LARGEST)", "max(number, LARGEST)", "another_process_clips"),
    "on import": ("9", "8", "another_process_clips"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", WRONG)
def test_fault_is_caught_by_the_test_that_detects_it(case: str, project: Path, reach: Reached) -> None:
    before, after, by = WRONG[case]
    verdict = judge(fault(before, after), reach, project)
    assert verdict.verdict == CAUGHT
    assert names([verdict.by]) == {by}


def test_fault_in_a_fixture_is_judged_by_all_its_users(project: Path, reach: Reached) -> None:
    verdict = judge(fault("number * 2", "number / 2"), reach, project)
    assert verdict.verdict == CAUGHT
    assert names([verdict.by]) == {"second_user"}
    assert verdict.tests == 2


def test_change_without_effect_survives(project: Path, reach: Reached) -> None:
    verdict = judge(fault(BRANCH, BRANCH.replace("low == high", "False", 1)), reach, project)
    assert (verdict.verdict, verdict.by, verdict.tests) == (SURVIVED, "", 2)


def test_only_passing_tests_that_reach_the_line_judge(reach: Reached) -> None:
    assert names(reach.tests) == {
        "the_ends_belong_to_a_range",
        "a_range_of_one_number",
        "another_process_clips",
        "first_user",
        "second_user",
    }
    assert names(choose_tests(fault("number == low", "number != low"), reach)) == {"a_range_of_one_number"}


def test_fault_without_tests_is_reported_as_untested(project: Path, reach: Reached) -> None:
    without_tests = Reached(reach.source, project, {})
    assert judge(fault("1", "2"), without_tests, project).verdict == UNTESTED


IMPORTS = {
    "src/small/_fast.py": "LARGEST = 9",
    "src/small/calling.py": "from small._fast import LARGEST",
    "src/small/other.py": "from small.calling import _faster",
    "tests/test_calling.py": "from small.calling import LARGEST",
    "tests/test_named.py": "from small._fast import LARGEST",
    "tests/test_packed.py": "from small import _fast, calling",
    "tests/test_other.py": "from small.other import _faster",
}


def test_compiled_file_is_judged_by_the_tests_of_its_importers(tmp_path: Path) -> None:
    for name, text in IMPORTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    lines = {"calling": {"small/calling.py": [1]}, "named": {}, "packed": {}, "other": {"small/other.py": [1]}}
    tests = {f"tests/test_{name}.py::test": {"seconds": 1, "lines": reaches} for name, reaches in lines.items()}
    tests_of_file = Reached(tmp_path / "src", tmp_path, tests).by_tests("small/_fast.py", 1)
    assert tests_of_file == {f"tests/test_{name}.py::test" for name in ("calling", "named", "packed")}


def test_recorded_lines_are_reused_until_a_file_changes(
    project: Path, reach: Reached, capsys: pytest.CaptureFixture[str]
) -> None:
    again = [project / "src", project, [project / "tests"]]
    assert find_reach(*again, record_path=project / "reach.json") == reach  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""
    (project / "tests" / "test_more.py").write_text(
        "from small.ranges import forgotten\ndef test_more(): forgotten()", "utf-8"
    )
    more = find_reach(*again, record_path=project / "reach.json")  # type: ignore[arg-type]
    (project / "tests" / "test_more.py").unlink()
    assert "tests of 1 files" in capsys.readouterr().out
    assert set(more.tests) - set(reach.tests) == {"tests/test_more.py::test_more"}


def test_endless_run_is_stopped(project: Path, tmp_path: Path) -> None:
    (tmp_path / "test_endless.py").write_text("import time\ndef test_endless(): time.sleep(600)", "utf-8")
    (tmp_path / "chosen.json").write_text('["test_endless.py::test_endless"]', "utf-8")
    arguments = (f"--rootdir={tmp_path}", tmp_path)
    code, _ = pytest_on(
        project / "src", tmp_path, *arguments, plugin="selection", limit=3.0, chosen=tmp_path / "chosen.json"
    )
    assert code is None


def test_planted_fault_leaves_the_source_unchanged_and_no_copy(project: Path) -> None:
    with plant_fault(project / "src", fault("9", "8")) as copy:
        assert "LARGEST = 8" in (copy / FILE).read_text("utf-8")
        assert "LARGEST = 9" in (project / "src" / FILE).read_text("utf-8")
    assert not copy.exists()


def test_table_counts_and_names_survivors() -> None:
    names_of_verdicts = [CAUGHT, CAUGHT, "out of time", SURVIVED, UNTESTED]
    verdicts = [Verdict(fault("1", "2"), verdict, "", 1, 1.0) for verdict in names_of_verdicts]
    rows = table("small", 1234, verdicts).splitlines()
    assert rows[2] == "| small | 1,234 | 5 | 3 | 1 | 2 |"
    assert rows[3:] == ["survived: small/ranges.py:16: 1  =>  2"] * 2
