"""A type checker knows the public API: it accepts a user's script and detects each planted misspelling."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tidegate

ROOT = Path(__file__).parent.parent
SCRIPT = """
from typing import Any, assert_type

import tidegate as tg
from tidegate.answer.derive import Derived
from tidegate.collect.baskets.rules import RuleSet
from tidegate.collect.result import Distribution
from tidegate.collect.run import Submitted
from tidegate.collect.trees.survey_tree import SurveyTree
from tidegate.release.result import Outcome, Outcomes
from tidegate.session.jobs import SynthesisJob
from tidegate.session.protocol import CollectionSurvey, ReleaseDesk
from tidegate.session.remote import RemoteSession
from tidegate.synthesize.quality import PaidQuality
from tidegate.synthesize.result import SynthesisPreview

policy = tg.Policy(tg.Dataset("people", rows=100), {"age": tg.Integer(18, 90)}, loss=tg.Loss(2))
local = tg.open(policy, table="people.csv")
remote = tg.connect("http://127.0.0.1:8480", "tg_...")
assert_type(local, tg.Session)
assert_type(remote, RemoteSession)
assert_type(remote.syntheses(), list[SynthesisJob])
assert_type(remote.syntheses()[0].tables(), tg.SyntheticTables)


def use(session: tg.DataSession, desk: ReleaseDesk, survey: CollectionSurvey) -> None:
    assert_type(session.answer(tg.mean("age"), epsilon=0.5), tg.Answer)
    assert_type(session.answer([tg.count(), tg.mean("age")], rho=0.02), tg.Answers)
    assert_type(session.answer("SELECT COUNT(*) FROM people", error=3, key="once"), tg.Answer | tg.Answers)
    assert_type(session.preview("SELECT COUNT(*) FROM people", error=3), tg.Preview)
    assert_type(session.fit(tg.count()), tg.Preview)
    assert_type(session.derive(tg.count()), Derived | None)
    assert_type(session.preview(tg.count(), rho=0.02).rows(), list[dict[str, Any]])
    assert_type(session.account.rows(), list[dict[str, Any]])
    session.answer([tg.count()], rho=0.02).to_pandas(), session.policy.to_polars(), session.synthesize(1).to_arrow()
    assert_type(session.release("hq"), ReleaseDesk)
    assert_type(session.collect("shoppers"), CollectionSurvey)
    assert_type(session.synthesize(1, tables=2), tg.SyntheticTables)
    assert_type(session.preview_synthesis(rho="1/20"), SynthesisPreview)
    assert_type(session.paid_quality(session.synthesize(1), epsilon=1), PaidQuality)
    assert_type(desk.request(7), Outcome)
    assert_type(desk.request_many(["7"]), Outcomes)
    assert_type(desk.status(7), Outcome)
    assert_type(survey.submit([]), Submitted)
    assert_type(survey.distribution("age", band="strict"), Distribution)
    assert_type(survey.rules(min_support=0.1), RuleSet)
    assert_type(survey.tree("town"), SurveyTree)


for session in (local, remote):
    with session as opened:
        use(opened, opened.release(), opened.collect())
assert_type(local.answer(tg.mean("age"), epsilon=0.5, user="ana"), tg.Answer)
assert_type(remote.answer(tg.mean("age"), epsilon=0.5), tg.Answer)
assert_type(local.answer([tg.count()], rho=0.02), tg.Answers)
assert_type(remote.answer([tg.count()], rho=0.02), tg.Answers)
assert_type(local.answer("SELECT COUNT(*) FROM people", rho=0.02), tg.Answer | tg.Answers)
assert_type(remote.answer("SELECT COUNT(*) FROM people", rho=0.02), tg.Answer | tg.Answers)
"""
UNEXPECTED = "Unexpected keyword argument"
EACH_SESSION = {  # planted for both sessions
    "answer(tg.count(), roh=0.02)": f'{UNEXPECTED} "roh"',
    'answer(tg.count(), epsilon=1, confidence="high")': "No overload variant",
    'answer(tg.count(), epsilon=1, calibration="loose")': "No overload variant",
    "answr(tg.count(), epsilon=1)": 'has no attribute "answr"',
    "preview(tg.count(), epsilom=1)": UNEXPECTED,
    "fit(tg.count(), confidnce=0.9)": UNEXPECTED,
    "derive(tg.count(), epsilon=1)": UNEXPECTED,
    'release(promis="hq")': UNEXPECTED,
    'collect(nmae="shoppers")': UNEXPECTED,
    "synthesize(epsilon=1, table=2)": UNEXPECTED,
    "preview_synthesis(epsilon=1, colums=['age'])": UNEXPECTED,
    "paid_quality(tables, epsilom=1)": UNEXPECTED,
    "clos()": 'has no attribute "clos"',
    "release().request(7, usr='ana')": UNEXPECTED,
    "release().request_many([7], usr='ana')": UNEXPECTED,
    "release().status(key=7, now=True)": UNEXPECTED,
    "release().withdraw(7, usr='ana')": UNEXPECTED,
    "release().released(sinse=7)": UNEXPECTED,
    "collect().client(memry='m')": UNEXPECTED,
    "collect().submit([], bach='b')": UNEXPECTED,
    "collect().receive([], batch='b')": UNEXPECTED,
    "collect().distribution('age', metod='em')": UNEXPECTED,
    "collect().distribution('age', band='wide')": "has incompatible type \"Literal['wide']\"",
    "collect().estimates(confidnce=0.9)": UNEXPECTED,
    "collect().rules(min_suport=0.1)": UNEXPECTED,
    "collect().tree('town', stratgy='best')": UNEXPECTED,
    "collect().clos()": 'has no attribute "clos"',
}
MISSPELT = {
    'tg.maen("age")': 'Module has no attribute "maen"',
    "tables = local.synthesize(epsilon=1, modle='forest')": UNEXPECTED,
    **{f"{session}.{call}": problem for session in ("local", "remote") for call, problem in EACH_SESSION.items()},
    "remote.answer(tg.count(), epsilon=1, user='ana')": "No overload variant",
    "remote.make_collection('visitors', {}, repets='once')": UNEXPECTED,
    "remote.release().audit(world=3)": UNEXPECTED,
    "tables.quality(formla='a ~ b')": UNEXPECTED,
}


@pytest.mark.long  # `make check` and the other tests of this file stay in every run
def test_type_checker_detects_misspellings(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(MISSPELT) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", str(script)]  # in the root: with the cache of `make check`
    checked = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False).stdout
    first = SCRIPT.count("\n") + 1
    for number, problem in enumerate(MISSPELT.values(), first):
        assert any(f"script.py:{number}:" in line and problem in line for line in checked.splitlines()), checked
    wrong = {int(line.split(":")[1]) for line in checked.splitlines() if "script.py:" in line and "error" in line}
    assert wrong == set(range(first, first + len(MISSPELT))), checked


def test_package_is_marked_as_typed() -> None:
    assert Path(tidegate.__file__).with_name("py.typed").is_file()


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse(Path(tidegate.__file__).read_text("utf-8"))
    [checked] = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname or alias.name for node in imports for alias in node.names} == set(tidegate.__all__)
