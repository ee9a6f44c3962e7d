"""Reports that arrive one by one: they wait without time and order, and count in batches under scheduled times."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.report_processes import lines, warm_up
from collect.surveys import SHOPPERS, open_survey, policy_of, report, reports, tally
from ledger.children import Child
from sqlalchemy import text
from typer.testing import CliRunner

import tidegate as tg
from tidegate.cli.app import app
from tidegate.collect.survey import Survey
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.ledger import Entry, arrivals, verify
from tidegate.policy.batches import BatchRule, read_batch
from tidegate.policy.toml import collection_from_dict, parse_policy, write_policy

DAY = timedelta(days=1)
LATER = datetime.now(UTC) + 2 * DAY  # tomorrow would be today in a run that passes midnight
MIDNIGHT = LATER.replace(hour=0, minute=0, second=0, microsecond=0)
SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261117


def batch_entries(session: tg.Session) -> list[Entry]:
    return [entry for entry in session.ledger.entries() if entry.kind == "reports"]


def problems(session: tg.Session, survey: Survey) -> list[str]:
    with session.ledger.store.reading() as connection:
        waiting = arrivals.problems(connection)
    return [*verify(*session.ledger.snapshot()).problems, *survey.verify(), *waiting]


def test_received_report_waits_and_counts_only_in_its_batch(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    sent = reports(0, 120)
    for sent_report in sent:
        assert survey.receive([sent_report]).reasons == (None,)
    assert (survey.reports, batch_entries(session)) == (0, [])
    assert survey.waiting == 100, "shown rounded down to a multiple of the minimum"
    again = survey.receive([sent[0]])
    assert (again.response().verdicts[0].verdict, again.again, again.batch, again.entry) == ("known", True, "", "")
    assert survey.flush_if_due(now=LATER) == 120
    assert survey.receive([sent[0]]).response().verdicts[0].verdict == "known"
    assert (survey.reports, survey.waiting) == (120, 0)
    for question in SHOPPERS.questions:
        assert survey.counts(question).tolist() == tally(sent, question)
    assert problems(session, survey) == []


def test_entry_has_the_scheduled_time_and_a_random_name(ledger_url: str, tmp_path: Path) -> None:
    names = []
    for folder in ("a", "b"):
        url = ledger_url if folder == "a" else str(tmp_path / "other.ledger")
        session, survey = open_survey(url, tmp_path / folder)
        survey.receive(reports(0, 100))
        survey.flush_if_due(now=LATER)
        [entry] = batch_entries(session)
        assert entry.at == entry.content()["scheduled"] == MIDNIGHT.isoformat(timespec="milliseconds")
        assert entry.question == ""
        assert len(bytes.fromhex(entry.request)) == 16
        assert not any(sent_report["id"][:8] in entry.line() for sent_report in reports(0, 100))
        names.append((entry.request, entry.content()["segment"]))
    assert names[0][0] != names[1][0], "the same reports get another name each time"
    assert names[0][1] != names[1][1]


def test_slot_counts_once_and_only_if_enough_reports_wait(ledger_url: str, tmp_path: Path) -> None:
    _, survey = open_survey(ledger_url, tmp_path / "r")
    survey.receive(reports(0, 99))
    assert survey.flush_if_due(now=LATER) == 0
    with pytest.raises(Unsupported, match="Fewer than 100 reports"):
        survey.flush()
    survey.receive(reports(99, 1))
    assert survey.flush_if_due(now=datetime.now(UTC)) == 0, "no slot began since the collection opened"
    assert survey.flush_if_due(now=LATER) == 100
    survey.receive(reports(100, 150))
    assert survey.flush_if_due(now=LATER) == 0, "this slot has its batch"
    assert survey.flush_if_due(now=LATER + DAY) == 150


def test_close_counts_the_remainder_and_receives_no_more(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r", replace(SHOPPERS, batch=read_batch("close")))
    batch = reports(0, 31, survey.collection)
    survey.receive(batch[:30])
    assert survey.flush_if_due(now=LATER) == 0
    with pytest.raises(Unsupported, match="counted when it closes"):
        survey.flush(now=LATER)
    survey.close(user="olga")
    assert [entry.kind for entry in session.ledger.entries()] == ["genesis", "collection", "reports", "closing"]
    assert survey.reports == 30
    assert "closed" in str(survey.receive(batch[30:]).reasons[0])
    assert problems(session, survey) == []


def test_new_version_counts_waiting_reports_of_the_old_one(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    survey.receive(reports(0, 7))
    later, survey_2 = open_survey(ledger_url, tmp_path / "r", replace(SHOPPERS, version=2))
    kinds = [(entry.kind, entry.content().get("accepted")) for entry in later.ledger.entries()]
    assert kinds == [("genesis", None), ("collection", None), ("reports", 7), ("collection", None)]
    assert problems(later, survey_2) == []
    assert survey_2.reports == 0
    session.close()


def test_bulk_batch_and_waiting_store_never_count_a_report_twice(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    survey.receive(reports(0, 150))
    receipt = survey.submit(reports(100, 100))
    assert (receipt.accepted, survey.reports) == (50, 50)
    assert survey.flush_if_due(now=LATER) == 150
    for question in SHOPPERS.questions:
        assert survey.counts(question).tolist() == tally(reports(0, 200), question)
    assert problems(session, survey) == []


def test_waiting_store_has_no_time_no_order_and_nothing_after_a_flush(tmp_path: Path) -> None:
    url = str(tmp_path / "people.ledger")
    _, survey = open_survey(url, tmp_path / "r")
    sent = reports(0, 300)
    random.Random(SEED).shuffle(sent)
    for start in range(0, 300, 3):
        survey.receive(sent[start : start + 3])
    with sqlite3.connect(url) as raw:
        columns = [(name, key) for _, name, _, _, _, key in raw.execute("PRAGMA table_info(tidegate_waiting)")]
        assert columns == [("collection", 1), ("id", 2), ("body", 0)]
        with pytest.raises(sqlite3.OperationalError, match="rowid"):
            raw.execute("SELECT rowid FROM tidegate_waiting")
        stored = [name.hex() for (name,) in raw.execute("SELECT id FROM tidegate_waiting")]
    assert stored == sorted(sent_report["id"] for sent_report in sent)
    survey.flush_if_due(now=LATER)
    assert Path(f"{url}-wal").stat().st_size == 0
    content = Path(url).read_bytes()
    assert not any(f'"age":{sent_report["answers"]["age"]},"shop"'.encode() in content for sent_report in sent), (
        "bodies are overwritten"
    )


def test_nothing_stored_correlates_with_arrival(tmp_path: Path) -> None:
    url = str(tmp_path / "people.ledger")
    _, survey = open_survey(url, tmp_path / "r")
    sent = reports(0, 4_000)
    arrival = {bytes.fromhex(sent_report["id"]): index for index, sent_report in enumerate(sent)}
    for start in range(0, len(sent), 100):
        survey.receive(sent[start : start + 100])
    survey.flush_if_due(now=LATER)
    with sqlite3.connect(url) as raw:
        order = [arrival[name] for (name,) in raw.execute("SELECT id FROM tidegate_report_ids")]
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 4 / np.sqrt(len(order))
    [segment] = survey.files()
    ages = survey.codes("age")["age"]
    first = np.array([sent_report["answers"]["age"] for sent_report in sent])
    assert abs(np.corrcoef(np.argsort(np.argsort(ages, kind="stable")), first)[0, 1]) < 4 / np.sqrt(len(first))
    assert Path(segment).exists()


def receive_on(pipe: Any, url: str, location: Path, out: Path, first: int) -> None:
    """Receive reports one by one and flush now and then; what is in `out` was answered."""
    stream = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    _, survey = open_survey(url, location)
    warm_up(survey, location.parent / "warm")
    pipe.send("ready")
    for number in range(first, 10**6):
        done = survey.receive([report(number)])
        os.write(stream, f'{{"number": {number}, "verdict": "{done.response().verdicts[0].verdict}"}}\n'.encode())
        if number % 5 == 4:
            survey._server.flush(at=MIDNIGHT)


@pytest.mark.long_for("postgres")
@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.long)])
def test_kills_lose_no_answered_report_and_count_none_twice(ledger_url: str, kills: int, tmp_path: Path) -> None:
    moments, location, out = random.Random(SEED), tmp_path / "r", tmp_path / "answered.jsonl"
    orphans = 0
    for _ in range(kills):
        answered = [line["number"] for line in lines(out)]
        child = Child(receive_on, ledger_url, location, out, answered[-1] if answered else 0)
        assert child.hear() == "ready"
        time.sleep(moments.uniform(0, 0.4))
        child.kill()
        session, survey = open_survey(ledger_url, location)
        assert problems(session, survey) == []
        orphans += len(list(location.rglob("*.parquet"))) - len(batch_entries(session))
        session.close()
    session, survey = open_survey(ledger_url, location)
    answered = sorted({line["number"] for line in lines(out)})
    survey.close()
    assert problems(session, survey) == []
    known = answered[-1] + 1 if answered else 0
    assert answered == list(range(known)), "each number was answered"
    assert survey.reports - known in (0, 1), "the last report may have been received without its answer"
    whole = reports(0, survey.reports)
    for question in SHOPPERS.questions:
        assert survey.counts(question).tolist() == tally(whole, question)
    print(f"seed {SEED}: {known} answered, {len(batch_entries(session))} batches, {orphans} orphan segments seen")


def flush_then_wait(pipe: Any, url: str, location: Path) -> None:
    """Die between the segment and the commit."""
    _, survey = open_survey(url, location)
    pipe.send("ready")
    make = survey._server._batches

    def write_then_wait(waiting: Any) -> Any:
        batches = make(waiting)
        pipe.send("written")
        time.sleep(600)
        return batches

    survey._book.flush(write_then_wait, at=MIDNIGHT)


def test_kill_after_the_segment_leaves_an_orphan_and_all_reports_waiting(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    survey.receive(reports(0, 120))
    child = Child(flush_then_wait, ledger_url, tmp_path / "r")
    assert [child.hear(), child.hear()] == ["ready", "written"]
    child.kill()
    assert len(list((tmp_path / "r").rglob("*.parquet"))) == 1
    assert (survey.reports, survey._book.waiting, batch_entries(session)) == (0, 120, [])
    assert survey.flush_if_due(now=LATER) == 120
    assert problems(session, survey) == []


def flush_often(pipe: Any, url: str, location: Path) -> None:
    _, survey = open_survey(url, location)
    pipe.send("ready")
    pipe.recv()
    pipe.send([survey.flush_if_due(now=LATER) for _ in range(3)])


@pytest.mark.long  # test_server_together.py has overlapping batches in every run
@pytest.mark.long_for("postgres")
def test_concurrent_flushes_write_one_batch(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    survey.receive(reports(0, 250))
    children = [Child(flush_often, ledger_url, tmp_path / "r") for _ in range(3)]
    assert [child.hear() for child in children] == ["ready"] * 3
    for child in children:
        child.tell("go on")
    counted = [number for child in children for number in child.hear()]
    for child in children:
        child.kill()
    assert sorted(counted) == [0] * 8 + [250]
    assert len(batch_entries(session)) == len(list((tmp_path / "r").rglob("*.parquet"))) == 1
    assert problems(session, survey) == []


def test_verify_detects_a_counted_report_that_still_waits(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path / "r")
    survey.submit(reports(0, 5))
    with session.ledger.store.writing() as connection:
        arrivals.add(connection, "people/shoppers/1", [(bytes.fromhex(report(2)["id"]), "{}")])
    assert problems(session, survey) == ["Reports of people/shoppers are waiting although they were counted."]
    with session.ledger.store.writing() as connection:
        connection.execute(text("UPDATE tidegate_waiting SET collection = 'people/shoppers/7'"))
    assert problems(session, survey) == ["Reports are waiting for version 7 of people/shoppers, which is not open."]


def test_batch_key_is_read_written_and_promised(tmp_path: Path) -> None:
    stated = replace(SHOPPERS, batch=read_batch({"at_least": 500, "every": "24 hours"}))
    assert stated.batch == BatchRule(500, 86_400)
    assert stated.fingerprint != SHOPPERS.fingerprint
    assert "batch" not in SHOPPERS.public_dict(), "a description without the key keeps its fingerprint"
    assert collection_from_dict(stated.public_dict()).batch == stated.batch
    policy = policy_of(stated)
    assert 'batch = { at_least = 500, every = "1 day" }' in write_policy(policy)
    assert parse_policy(write_policy(policy)).collections["shoppers"] == stated
    for wrong in ("daily", 5, {"at_least": 5, "every": "1 day"}, {"at_least": 100, "every": "1 second"}, {}):
        with pytest.raises((ValueError, PolicyUnreadable)):
            read_batch(wrong)


@pytest.mark.parametrize(
    ("least", "is_valid"), [(9, False), (10, True), (10**6, True), (10**6 + 1, False), (True, False), ("10", False)]
)
def test_least_number_of_reports_of_a_batch_has_bounds(least: Any, is_valid: bool) -> None:
    rule = {"at_least": least, "every": "1 day"}
    if is_valid:
        assert read_batch(rule) == BatchRule(least, 86_400)
    else:
        with pytest.raises(ValueError, match="from 10 to 1,000,000"):
            read_batch(rule)


def test_flush_command_counts_or_explains_why_not(tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    file.write_text(write_policy(policy_of()), "utf-8")
    with tg.open(file) as session:
        session.collect("shoppers").receive(reports(0, 99))
    run = CliRunner().invoke
    refused = run(app, ["collect", "flush", str(file)])
    assert refused.exit_code != 0
    assert "Fewer than 100 reports" in str(refused.exception)
    with tg.open(file) as session:
        session.collect("shoppers").receive(reports(99, 1))
    done = run(app, ["collect", "flush", str(file)])
    assert (done.exit_code, done.output) == (0, "100 reports counted in one batch. 100 in total.\n")
    assert run(app, ["ledger", "verify", str(file)]).exit_code == 0
