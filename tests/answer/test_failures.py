"""A failure after the charge has one message, is recorded, and after three only the owner is answered."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.ledger.backup import export_lines
from tidegate.ledger.entry import FAILED, INSPECTED
from tidegate.ledger.remarks import refuse_suspended
from tidegate.ledger.verify import verify
from tidegate.session import Session
from tidegate.tables import Table

FAILURE = "The source could not be read; the charge stands and the same question costs nothing more."
SECRET = "HIV-positive"
POLICY = tg.Policy(tg.Dataset("people"), {"age": tg.Integer(18, 90), "sex": tg.Category(("f", "m"))}, loss=tg.Loss(10))
PEOPLE = pa.table({"age": [20, 30, 40] * 100, "sex": ["f", "m", "f"] * 100})
QUESTION, OTHER = tg.count().by("sex"), tg.sum("age")


@contextmanager
def broken_source(error: Exception) -> Iterator[None]:
    """The engine fails on rows. It works on a table without rows, as before the charge."""
    whole: Callable[..., Any] = Table._aggregate

    def fail(table: Table, *arguments: Any, **options: Any) -> Any:
        if "WHERE" in str(table.source.get_backend().compile(table.counted)):  # the table without rows
            return whole(table, *arguments, **options)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_aggregate", fail)
        yield


@pytest.fixture
def session(ledger_url: str) -> Iterator[Session]:
    with tg.open(POLICY, table=PEOPLE, ledger=ledger_url) as opened:
        yield opened


def fail(session: Session, query: tg.Query = QUESTION, error: Exception | None = None) -> SourceUnreadable:
    with broken_source(error or ValueError(SECRET)), pytest.raises(SourceUnreadable) as raised:
        session.answer(query, epsilon=1)
    return raised.value


def kinds(session: Session) -> list[str]:
    return [entry.kind for entry in session.ledger.entries("people")]


def test_message_is_the_same_whatever_failed(session: Session) -> None:
    errors: list[Exception] = [ValueError(SECRET), MemoryError(), ConnectionResetError(SECRET), OverflowError(SECRET)]
    errors += [SourceUnreadable(SECRET), tg.TidegateError(SECRET)]
    raised = [fail(session, error=error) for error in errors]
    assert {(error.what, error.do) for error in raised} == {(FAILURE, "")}
    assert all(error.__context__ is None for error in raised)
    assert not any(SECRET in "".join(traceback.format_exception(error)) for error in raised)
    assert SECRET not in "\n".join(export_lines(session.ledger))


def test_failure_is_charged_once_and_recorded(session: Session) -> None:
    fail(session)
    fail(session)
    assert (str(session.account.spent), kinds(session).count(FAILED)) == ("1", 2)
    assert str(session.answer(QUESTION, epsilon=1).cost) == "0"
    assert session.ledger.verify().holds


def test_others_are_refused_after_three_failures_of_one_query_until_an_inspection(session: Session) -> None:
    store = session.ledger.store
    for query in (QUESTION, OTHER, QUESTION, OTHER):
        fail(session, query)
        refuse_suspended(store, "people")
    fail(session)
    with pytest.raises(Unsupported, match='"people" answers only its owner'):
        refuse_suspended(store, "people")
    assert session.answer(OTHER, epsilon=1).value is not None, "the owner is answered"
    session.note_inspection()
    refuse_suspended(store, "people")
    session.note_inspection()
    assert kinds(session).count(INSPECTED) == 1, "without new failures there is nothing to record"
    assert session.ledger.verify().holds


def test_failure_that_names_another_charge_does_not_verify(session: Session) -> None:
    fail(session)
    entries = list(session.ledger.entries())
    assert (entries[-1].kind, verify(entries, {}).problems) == (FAILED, [])
    forged = replace(entries[-1], body='{"charge":1}').sealed()
    assert "names a charge that does not exist" in str(verify([*entries[:-1], forged], {}).problems)


def test_inspection_creates_no_ledger(tmp_path: Path) -> None:
    with tg.open(POLICY, table=PEOPLE, ledger=str(tmp_path / "none.ledger")) as session:
        session.note_inspection()
    assert not (tmp_path / "none.ledger").exists()
