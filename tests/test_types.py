"""A type checker knows the public API: it accepts a user's script, and finds each planted misspelling."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import tidegate

ROOT = Path(__file__).parent.parent
SCRIPT = """
import tidegate as tg

policy = tg.Policy(tg.Dataset("people", rows=100), {"age": tg.Integer(18, 90)}, loss=tg.Loss(2))
session = tg.open(policy, table="people.csv")
answer: tg.Answer = session.answer(tg.mean("age"), epsilon=0.5)
several = session.answer([tg.count(), tg.mean("age")], rho=0.02)
before: tg.Preview = session.preview("SELECT COUNT(*) FROM people", error=3)
print(answer.value, several.charge.cost, before.cost)
"""
MISSPELT = {
    'tg.maen("age")': 'Module has no attribute "maen"',
    "session.answer(tg.count(), roh=0.02)": 'Unexpected keyword argument "roh"',
    "session.preview(tg.count(), epsilom=1)": 'Unexpected keyword argument "epsilom"',
    'session.answer(tg.count(), epsilon=1, confidence="high")': "No overload variant",
    "session.answr(tg.count(), epsilon=1)": 'has no attribute "answr"',
}


def test_misspellings_are_found_by_a_type_checker(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(MISSPELT) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", str(script)]  # in the root: with the cache of `make check`
    checked = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False).stdout
    first = SCRIPT.count("\n") + 1
    for line, problem in enumerate(MISSPELT.values(), first):
        assert any(f"script.py:{line}:" in told and problem in told for told in checked.splitlines()), checked
    wrong = {int(told.split(":")[1]) for told in checked.splitlines() if "script.py:" in told and "error" in told}
    assert wrong == set(range(first, first + len(MISSPELT))), checked


def test_type_checkers_are_told_that_the_package_has_types() -> None:
    assert Path(tidegate.__file__).with_name("py.typed").is_file()


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse(Path(tidegate.__file__).read_text("utf-8"))
    [checked] = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname or alias.name for node in imports for alias in node.names} == set(tidegate.__all__)
