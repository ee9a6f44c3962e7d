"""One run over all promises: the attacks that apply, their time, and the report."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from audit.faults import loss_policy, people

from tidegate.answer.spending import RequestedLoss
from tidegate.audit import Finding, audit
from tidegate.audit.answers.ask import FrontDoor
from tidegate.audit.answers.situations import situations
from tidegate.audit.fake_data import build_table, copy_policy, query_value
from tidegate.audit.report import UNTRIED, Audit
from tidegate.audit.run import ALPHA, VERBS, plan
from tidegate.audit.syntheses.neighbors import cached_counts, rehearsal, world
from tidegate.errors import Infeasible, Unsupported
from tidegate.policy import (
    Attribute,
    Boolean,
    Category,
    Collection,
    Concealment,
    Dataset,
    Date,
    Decimal,
    Identification,
    Integer,
    Loss,
    Policy,
    Question,
    Text,
    Time,
    Timestamp,
)
from tidegate.policy.predicates import col

HELD = Finding("answer", "a promise", "an attack", "all but one", "it held.", "held", "epsilon", 0.5, 1.0, 1e-5, 100)
BROKEN = replace(HELD, attack="a better attack", verdict="broken", bound=3.0, says="it broke <b>&amp;</b>.")
OBSERVED = replace(HELD, verb="release", verdict="observed", promised=None, unit="area", bound=0.9)
SKIPPED = replace(HELD, verb="synthesize", verdict="not tried", says="too few runs: only two.", bound=None)


def report_of(*findings: Finding) -> Audit:
    verbs = tuple(dict.fromkeys(finding.verb for finding in findings))
    return Audit("people", "0123456789abcdef" * 4, "2026-11-16T06:00:00+00:00", findings, 1e-3, 7, 12.0, verbs)


# The attacks that apply


def test_every_promise_is_attacked_by_its_own_attacks() -> None:
    concealed = {"camp": Concealment(reveals="pay", about="sex", baseline=(1, 1, 1, 1, 1))}
    whole = replace(people(), concealments=concealed)
    assert {attack.verb for attack in plan(whole)} == {"answer", "synthesize", "release", "ledger"}
    assert {attack.verb for attack in plan(loss_policy())} == {"answer", "synthesize", "ledger"}
    assert {attack.verb for attack in plan(replace(whole, identification=None))} == {"release", "ledger"}


def test_unknown_verb_is_refused() -> None:
    with pytest.raises(Unsupported, match="There is no verb"):
        audit(people(), verbs=["asnwer"])


def test_infeasible_promise_is_refused_before_anything_runs() -> None:
    policy = Policy(Dataset("d"), {"age": Integer(0, 3)}, Identification("0.2", protect=("age",)))
    with pytest.raises(Infeasible):
        audit(policy, seconds=1)


@pytest.mark.long  # test_audit_writes_its_report_and_changes_nothing_else stays
def test_run_of_two_verbs_holds_and_keeps_its_alpha() -> None:
    lines: list[str] = []
    report = audit(people(), seconds=3, verbs=["answer", "ledger"], seed=5, progress=lines.append)
    assert not report.broken, report.lines()
    assert {finding.verb for finding in report.findings} == {"answer", "ledger"}
    assert report.chance <= report.alpha == ALPHA
    assert report.seed == 5
    assert [line.partition(":")[0] for line in lines[1:]] == ["answer"] * 4 + ["ledger"]


@pytest.fixture
def witnessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    """A policy with a witness, beside one in the environment. Checkpoints of simulated ledgers would replace those of the
    user's own ledger, which would then be refused.
    """
    (tmp_path / "witnesses").mkdir()
    monkeypatch.setenv("TIDEGATE_WITNESS", str(tmp_path / "witnesses" / "environment.checkpoint"))
    dataset = replace(people().dataset, witness=(str(tmp_path / "witnesses" / "policy.checkpoint"),))
    return replace(people(), dataset=dataset)


def test_no_witness_receives_checkpoints_of_simulated_ledgers(witnessed: Policy, tmp_path: Path) -> None:
    (situation,) = situations(witnessed)
    front = FrontDoor(situation.policy, tmp_path)
    front.ask(
        build_table(situation.policy, situation.world(0).units),
        situation.questions()[:1],
        loss=RequestedLoss(Fraction(1)),
    )
    front.close()
    at = world(witnessed, ["sex"])
    with rehearsal(at, cached_counts(at.policy, at.table([0]))) as session:
        session.synthesize(epsilon=1)
    assert list((tmp_path / "witnesses").iterdir()) == []


@pytest.mark.long
def test_no_witness_receives_checkpoints_from_any_attack(witnessed: Policy, tmp_path: Path) -> None:
    poll = Collection("wave", {"sex": Question("sex", Category(("f", "m")), "randomized-response", epsilon=1)})
    report = audit(replace(witnessed, collections={"wave": poll}), seconds=2, seed=5)
    assert {finding.verb for finding in report.findings} == {"answer", "collect", "synthesize", "ledger"}
    assert list((tmp_path / "witnesses").iterdir()) == []


# The report


def test_verdict_names_broken_promises() -> None:
    assert report_of(HELD, HELD).verdict == "No promise was broken by 2 attacks."
    assert report_of(HELD, BROKEN).verdict == "1 promise is broken; 1 attack found nothing."
    alone = replace(HELD, verb="ledger")
    assert report_of(alone).verdict == "The ledger withstood 1 attack; no other promise was attacked."
    assert report_of(SKIPPED).verdict == "Nothing here could be attacked."
    assert report_of(HELD, BROKEN).broken == (BROKEN,)


def test_report_always_states_what_was_not_tried() -> None:
    notes = report_of(HELD, SKIPPED, SKIPPED).untried()
    assert notes[0] == "synthesize, too few runs: an attack, an attack."
    assert set(UNTRIED[""]) | set(UNTRIED["answer"]) | set(UNTRIED["synthesize"]) <= set(notes)
    assert not set(UNTRIED["release"]) & set(notes)
    assert set(UNTRIED) == {"", *VERBS}


def test_json_contains_every_finding() -> None:
    content = json.loads(json.dumps(report_of(HELD, BROKEN).to_dict()))
    assert content["broken"] == 1
    assert content["findings"][1]["verdict"] == "broken"
    assert {"promise", "attack", "knows", "bound", "alpha", "verdict"} <= set(content["findings"][0])
    assert content["not_tried"]


class _Page(HTMLParser):
    """Tags, links and open elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_self_contained_and_every_tag_is_closed() -> None:
    page = _Page(report_of(HELD, BROKEN, OBSERVED, SKIPPED).html())
    assert page.open == []
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)


def test_page_shows_the_verdict_first_and_escapes_text() -> None:
    text = report_of(HELD, BROKEN, OBSERVED, SKIPPED).html()
    assert text.index("1 promise is broken") < text.index("A better attack") < text.index("An attack")
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in text
    assert "epsilon 3 proven, epsilon 1 promised" in text
    assert "What was not tried" in text
    assert "color-scheme: light dark" in text


def test_report_is_saved_as_two_files_or_refused(tmp_path: Path) -> None:
    written = report_of(HELD).save(tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["report.html", "report.json"]
    assert json.loads(written[1].read_text("utf-8"))["dataset"] == "people"
    (tmp_path / "file").write_text("")
    with pytest.raises(Unsupported, match="report cannot be written"):
        report_of(HELD).save(tmp_path / "file")


def test_simulated_tables_have_dates_times_booleans_and_decimals() -> None:
    """Each unit has its own code, and a query for a value finds exactly the units with that code. Text is left out."""
    kinds: dict[str, Attribute] = {
        "joined": Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "month"),
        "seen": Timestamp(dt.datetime(2024, 10, 27), dt.datetime(2024, 10, 27, 10), "hour", "Europe/Paris"),
        "opened": Time(dt.time(8), dt.time(20), "hour"),
        "price": Decimal("0.00", "5.00", "0.25"),
        "married": Boolean(),
        "coupon": Text(8),
    }
    policy = copy_policy(Policy(Dataset("kinds", rows=10), kinds, None, Loss(1)), units=10)
    assert "coupon" not in policy.attributes
    names = [name for name in kinds if name != "coupon"]
    units = [{name: code % kinds[name].size for name in names} for code in range(10)]
    table = build_table(policy, units)
    for name in names:
        counts = table.count([name]).tolist()
        assert counts == [sum(unit[name] == code for unit in units) for code in range(kinds[name].size)]
        value = query_value(kinds[name], 1)
        assert int(table.count([], where=col(name) == value)) == counts[1]
