"""Reports in: the good ones are counted once, the bad ones refused one by one, and the record holds."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import OPERATORS, SHOPPERS, open_survey, policy_of, report, reports, tally
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

import tidegate as tg
from tidegate.collect.request import refusal
from tidegate.collect.validation import REPLAYED, check, layout_of
from tidegate.errors import KeyReused, PolicyLoosened, StalePolicy, Unsupported
from tidegate.ledger import Ledger, explain_entries, verify
from tidegate.ledger.collection_book import CollectionBook
from tidegate.ledger.schema import metadata
from tidegate.policy import Collection, Question

Change = Callable[[dict[str, Any]], Any]


def put(*path: str, value: Any) -> Change:
    """The report with one part of it changed."""

    def change(body: dict[str, Any]) -> dict[str, Any]:
        at = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        return body

    return change


BAD: dict[str, tuple[Change, str]] = {
    "another version": (put("version", value=2), "another version"),
    "true for a version": (put("version", value=True), "another version"),
    "another fingerprint": (put("fingerprint", value="0" * 64), "fingerprint"),
    "another collection": (put("collection", value="voters"), "another collection"),
    "beyond the grid": (put("answers", "age", value=10_000), "outside"),
    "below the grid": (put("answers", "age", value=-1), "outside"),
    "a fraction": (put("answers", "age", value=3.0), "outside"),
    "true for a number": (put("answers", "age", value=True), "outside"),
    "text for a number": (put("answers", "age", value="3"), "outside"),
    "beyond 64 bits": (put("answers", "age", value=2**70), "outside"),
    "a set for a number": (put("answers", "age", value=[3]), "outside"),
    "a number for a set": (put("answers", "town", value=3), "outside"),
    "a set out of order": (put("answers", "town", value=[2, 1]), "outside"),
    "a set with one twice": (put("answers", "town", value=[1, 1]), "outside"),
    "a set beyond the grid": (put("answers", "town", value=[4]), "outside"),
    "a set of fractions": (put("answers", "town", value=[1.0]), "outside"),
    "a set of another size": (put("answers", "shop", value=[0, 1, 2]), "outside"),
    "an unknown question": (put("answers", "income", value=3), "malformed"),
    "no answers": (put("answers", value={}), "malformed"),
    "answers as a list": (put("answers", value=[1, 2]), "malformed"),
    "something beside it": (put("sent", value="2026-11-16T10:02"), "malformed"),
    "no id": (put("id", value=None), "malformed"),
    "a short id": (put("id", value="abc"), "malformed"),
    "an id in capitals": (put("id", value="A" * 32), "malformed"),
    "an id with a line": (put("id", value="a" * 31 + "\n"), "malformed"),
    "text": (lambda body: "a report", "malformed"),
    "nothing": (lambda body: None, "malformed"),
    "a list": (lambda body: [body], "malformed"),
}


@pytest.mark.parametrize("kind", BAD)
def test_invalid_reports_are_refused_and_valid_ones_of_the_batch_are_accepted(tmp_path: Path, kind: str) -> None:
    change, reason = BAD[kind]
    _, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "reports")
    batch = [report(1), change(report(2)), report(3)]
    receipt = survey.submit(batch)
    assert [outcome is None for outcome in receipt.reasons] == [True, False, True]
    assert reason in str(receipt.reasons[1])
    assert survey.counts("age").tolist() == tally([report(1), report(3)], "age")
    assert survey.reports == 2


@settings(max_examples=60)
@given(kinds=st.lists(st.sampled_from(["good", *BAD]), max_size=30))
def test_report_is_accepted_if_and_only_if_refusal_is_none(kinds: list[str]) -> None:
    batch = [report(n) if kind == "good" else BAD[kind][0](report(n)) for n, kind in enumerate(kinds)]
    checked = check(copy.deepcopy(batch), SHOPPERS, OPERATORS)
    assert checked.reasons == [refusal(entry, SHOPPERS, OPERATORS) for entry in batch]
    good = [entry for entry, kind in zip(batch, kinds, strict=True) if kind == "good"]
    assert [entry.hex() for entry in checked.ids] == [entry["id"] for entry in good]
    columns = checked.columns(layout_of(OPERATORS))
    assert columns["age"].tolist() == [entry["answers"]["age"] for entry in good]
    bits = np.unpackbits(columns["town"], axis=1, bitorder="little", count=4)
    assert [np.flatnonzero(row).tolist() for row in bits] == [entry["answers"]["town"] for entry in good]


def test_fast_check_covers_all_of_a_long_batch() -> None:
    batch = reports(0, 5_000)
    batch[4_321] = put("answers", "age", value=53_000)(batch[4_321])
    checked = check(batch, SHOPPERS, OPERATORS)
    assert [index for index, _ in checked.refused()] == [4_321]
    assert len(checked.ids) == 4_999


def test_closed_collection_refuses_reports_and_a_new_version_accepts_them(ledger_url: str, tmp_path: Path) -> None:
    _, survey = open_survey(ledger_url, tmp_path)
    survey.submit(reports(0, 3))
    survey.close(user="steward")
    survey.close()
    assert survey.closed
    refused = survey.submit(reports(3, 2))
    assert refused.accepted == 0
    assert list(refused.refused) == ['the collection "shoppers" is closed']
    session, next_one = open_survey(ledger_url, tmp_path, replace(SHOPPERS, version=2))
    assert next_one.submit([report(9, replace(SHOPPERS, version=2))]).accepted == 1
    assert next_one.reports == 1
    with pytest.raises(StalePolicy, match="Version 2"):
        survey.submit(reports(5, 1))
    assert verify(*session.ledger.snapshot()).problems == []


def test_closed_policy_closes_the_collection(tmp_path: Path) -> None:
    url = str(tmp_path / "p.ledger")
    _, survey = open_survey(url, tmp_path / "r")
    survey.submit(reports(0, 3))
    _, closing = open_survey(url, tmp_path / "r", replace(SHOPPERS, closed=True))
    assert closing.closed
    assert survey.submit(reports(3, 1)).accepted == 0
    assert survey.distribution("town").reports == 3


def test_other_questions_need_another_version(tmp_path: Path) -> None:
    url = str(tmp_path / "p.ledger")
    open_survey(url, tmp_path / "r")
    changed = replace(
        SHOPPERS, questions={"age": Question("age", SHOPPERS.questions["age"].universe, "square-wave", epsilon=9)}
    )
    with pytest.raises(PolicyLoosened, match="other questions"):
        open_survey(url, tmp_path / "r", changed)
    open_survey(url, tmp_path / "r", replace(changed, version=2))


# Idempotency


def test_repeated_batch_counts_nothing_and_returns_the_same_result(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path)
    batch = [*reports(0, 20), put("version", value=7)(report(20)), report(3)]
    first = survey.submit(batch)
    assert first.accepted == 20
    assert first.reasons[21] == REPLAYED
    head = session.ledger.head()
    again = survey.submit(batch)
    assert again.again
    assert again.reasons == first.reasons
    assert again.entry == first.entry
    assert session.ledger.head() == head
    assert survey.reports == 20
    assert survey.counts("town").tolist() == tally(reports(0, 20), "town")


def test_batch_id_identifies_one_list_of_reports(tmp_path: Path) -> None:
    _, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    survey.submit(reports(0, 5), batch="monday")
    assert survey.submit(reports(0, 5), batch="monday").again
    with pytest.raises(KeyReused):
        survey.submit(reports(5, 5), batch="monday")
    with pytest.raises(Unsupported):
        survey.submit(reports(5, 5), batch="m\x00")
    assert survey.reports == 5


def test_report_counts_once_in_any_batch(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path)
    survey.submit(reports(0, 10))
    mixed = survey.submit(reports(5, 10), batch="another")
    assert mixed.reasons == (REPLAYED,) * 5 + (None,) * 5
    head = session.ledger.head()
    assert survey.submit(reports(2, 9), batch="a third").refused == {REPLAYED: 9}
    assert session.ledger.head() == head, "replays leave no trace"
    assert len(survey.files()) == 2
    assert survey.counts("age").tolist() == tally(reports(0, 15), "age")


def test_empty_batch_changes_nothing(tmp_path: Path) -> None:
    session, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    assert survey.submit([]).accepted == 0
    assert [entry.kind for entry in session.ledger.entries()] == ["genesis", "collection"]


# What is kept


def test_neither_identity_nor_time_is_stored_with_a_report(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path)
    survey.submit(reports(0, 50))
    columns = {name: set(metadata.tables[name].columns.keys()) for name in ("tidegate_counts", "tidegate_report_ids")}
    assert columns == {
        "tidegate_counts": {"opened", "question", "reports", "counts"},
        "tidegate_report_ids": {"opened", "id"},
    }
    body = next(entry for entry in session.ledger.entries() if entry.kind == "reports").body
    assert not any(sent_report["id"] in body for sent_report in reports(0, 50))


def test_ledger_states_the_loss_of_one_person(tmp_path: Path) -> None:
    session, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    body = list(session.ledger.entries())[1].content()
    assert body["gives"] == {"questions": {"age": "2", "town": "1", "shop": "1"}, "in_all": "4", "each_report": "4"}
    assert body["description"] == SHOPPERS.public_dict()
    assert (
        "one person loses at most epsilon 4 (age 2, town 1, shop 1)"
        in list(explain_entries(session.ledger.entries()))[1][1]
    )
    assert sum(operator.lifetime_epsilon for operator in survey.operators.values()) <= 4


def test_unlimited_loss_and_second_layer_are_stated(tmp_path: Path) -> None:
    age, town = (SHOPPERS.questions[name].universe for name in ("age", "town"))
    noise = Collection("noise", {"age": Question("age", age, "uniform-noise", privacy=1)})
    _, survey = open_survey(str(tmp_path / "a.ledger"), tmp_path / "r", noise)
    assert survey.respondent_loss.in_all is None
    assert "an unlimited amount" in str(survey.respondent_loss)
    twice = Collection("twice", {"town": Question("town", town, "unary", epsilon=3, each=1)}, repeats="two-layers")
    _, survey = open_survey(str(tmp_path / "b.ledger"), tmp_path / "r", twice)
    assert (survey.respondent_loss.each_report, survey.respondent_loss.in_all) == (1, 3)
    operator = survey.operators["town"]
    assert operator.epsilon <= 1 < operator.lifetime_epsilon <= 3
    assert not math.isinf(operator.lifetime_epsilon)


def test_postgres_ledger_needs_a_location_for_reports(postgres_url: str) -> None:
    with (
        tg.open(policy_of(), ledger=postgres_url) as session,
        pytest.raises(tg.TidegateError, match="must be set"),
    ):
        session.collect()


# The record holds, and what is changed is found


def three_batches(tmp_path: Path) -> tuple[tg.Session, Any]:
    session, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    for first in (0, 30, 60):
        survey.submit([*reports(first, 30), put("version", value=9)(report(first + 1000))])
    return session, survey


def test_counts_equal_those_of_entries_and_segments(tmp_path: Path) -> None:
    session, survey = three_batches(tmp_path)
    verdict = verify(*session.ledger.snapshot())
    assert verdict.problems == []
    assert verdict.entries == 4
    assert survey.verify() == []
    assert {name: counts.tolist() for name, counts in survey.recount().items()} == {
        name: tally(reports(0, 90), name) for name in SHOPPERS.questions
    }


def tamper(session: tg.Session, statement: str) -> None:
    with session.ledger.store.writing() as connection:
        connection.execute(text(statement))


CHANGES = {
    "a count": "UPDATE tidegate_counts SET counts = zeroblob(length(counts)) WHERE question = 'age'",
    "the number of reports": "UPDATE tidegate_counts SET reports = reports + 1",
    "a question's counts gone": "DELETE FROM tidegate_counts WHERE question = 'town'",
    "counts of nothing": "INSERT INTO tidegate_counts VALUES (99, 'age', 1, x'00')",
    "the refusals": "UPDATE tidegate_results SET payload = '[]'",
    "the refusals gone": "DELETE FROM tidegate_results",
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_counted_reports_is_detected(tmp_path: Path, change: str) -> None:
    session, _ = three_batches(tmp_path)
    tamper(session, CHANGES[change])
    assert verify(*session.ledger.snapshot()).problems != []


def test_changed_or_missing_segment_is_detected(tmp_path: Path) -> None:
    _, survey = three_batches(tmp_path)
    first, second, third = map(Path, survey.files())
    original = first.read_bytes()
    first.write_bytes(second.read_bytes())
    assert len(survey.verify()) == 1
    first.write_bytes(original)
    assert survey.verify() == []
    third.unlink()
    assert "is missing or differs from its entry" in survey.verify()[0]


def test_orphan_segment_is_not_counted(tmp_path: Path) -> None:
    _, survey = three_batches(tmp_path)
    columns = check(reports(500, 40), SHOPPERS, OPERATORS).columns(layout_of(OPERATORS))
    survey.segments.write(columns, batch="of a process that was killed before its commit")
    assert survey.verify() == []
    assert int(survey.recount()["age"].sum()) == survey.reports == 90


def test_segments_reveal_fake_counts_with_valid_hashes(tmp_path: Path) -> None:
    """The chain cannot detect a server that is dishonest from the start; the segments can."""
    session, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    honest = survey._server.segments.columns["age"].count
    object.__setattr__(survey.segments, "columns", dict(survey.segments.columns))
    server, ages = survey._server, survey.segments.columns["age"]

    class Lying(type(ages)):  # type: ignore[misc]
        def count(self, values: Any) -> Any:
            return np.roll(honest(values), 1)

    server.segments.columns["age"] = Lying(ages.form, ages.size)
    survey.submit(reports(0, 30))
    server.segments.columns["age"] = ages
    assert verify(*session.ledger.snapshot()).problems == []
    assert survey.verify() == ['The counts of "age" differ from those of its segments.']


def test_older_ledger_is_migrated(tmp_path: Path) -> None:
    url = str(tmp_path / "p.ledger")
    ledger = Ledger(url)
    with ledger.store.writing() as connection:
        for table in (
            "counts",
            "report_ids",
            "tokens",
            "signins",
            "links",
            "token_uses",
            "jobs",
            "shares",
            "sources",
            "waiting",
            "source_states",
            "totals",
            "known_sources",
            "selection",
            "invitations",
            "spent_tokens",
            "tiles",
            "witnesses",
            "replies",
            "partners",
            "limits",
            "diaries",
            "leases",
            "library",
        ):
            connection.execute(text(f"DROP TABLE tidegate_{table}"))
        connection.execute(text("UPDATE tidegate_version SET version_num = '0002'"))
    ledger.close()
    _, survey = open_survey(url, tmp_path / "r")
    assert survey.submit(reports(0, 3)).accepted == 3


def test_books_of_different_datasets_are_separate(tmp_path: Path) -> None:
    session, survey = open_survey(str(tmp_path / "p.ledger"), tmp_path / "r")
    survey.submit(reports(0, 3))
    other = CollectionBook(session.ledger, SHOPPERS, dataset="others")
    other.open()
    assert other.counts() == {}
    assert other.known([bytes.fromhex(report(1)["id"])]) == set()
