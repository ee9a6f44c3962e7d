"""Edge cases of the replay: every contradiction between entries and stored requests or counts is reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.accounting.respondent import respondent_loss
from tidegate.ledger import Ledger
from tidegate.ledger.collection_book import CollectionBook
from tidegate.ledger.entry import COLLECTING, Entry, canonical, sha256
from tidegate.ledger.replay import Collections, Releases, Standing, compare, counts_digest, digest, remains
from tidegate.policy import Collection, Integer, Question


def decisions(released: Sequence[tuple[int, str]] = (), waiting: Sequence[tuple[int, str]] = ()) -> dict[str, Any]:
    return {
        "released": [[number, key, f"hash of {key}"] for number, key in released],
        "waiting": [[number, key, f"hash of {key}"] for number, key in waiting],
    }


def replay(*batches: dict[str, Any]) -> tuple[Releases, list[str]]:
    """Replay batches; return the state and the problems of the last batch."""
    releases, wrong = Releases(), []
    for batch in batches:
        wrong = releases.withdraw(batch, 1) if "withdrawn" in batch else releases.decide(batch, 1)
    return releases, wrong


def withdrawal(number: int, key: str) -> dict[str, Any]:
    return {"withdrawn": [number, key]}


FIRST = decisions(released=[(1, "a"), (3, "c")], waiting=[(2, "b"), (4, "d")])
FITS = {
    "a waiting request is released": decisions(released=[(2, "b")]),
    "a new request is released": decisions(released=[(5, "e")]),
    "a new request waits": decisions(waiting=[(5, "e")]),
    "a waiting request is withdrawn": withdrawal(2, "b"),
    "an empty batch": decisions(),
}
WRONG = {
    "a request number 0": (decisions(released=[(0, "z")]), "request 0 is released"),
    "an old number": (decisions(released=[(4, "e")]), "request 4 is released"),
    "a second release": (decisions(released=[(1, "a")]), "request 1 is released"),
    "a released key": (decisions(released=[(9, "a")]), "request 9 is released"),
    "a waiting key": (decisions(released=[(9, "b")]), "request 9 is released"),
    "the number of another request": (decisions(released=[(2, "d")]), "request 2 is released"),
    "twice in one batch": (decisions(released=[(5, "e"), (5, "e")]), "request 5 is released"),
    "an old number waits": (decisions(waiting=[(3, "e")]), "request 3 is deferred, but was decided before"),
    "a waiting request waits again": (decisions(waiting=[(2, "b")]), "request 2 is deferred, but was decided before"),
    "a released key waits": (decisions(waiting=[(9, "a")]), "request 9 is deferred, but was decided before"),
    "the same waits twice": (decisions(waiting=[(5, "e"), (5, "f")]), "request 5 is deferred, but was decided before"),
    "a released request is withdrawn": (withdrawal(1, "a"), "request 1 is withdrawn, but was not waiting"),
    "another request is withdrawn": (withdrawal(2, "d"), "request 2 is withdrawn"),
    "an unknown request is withdrawn": (withdrawal(9, "z"), "request 9 is withdrawn"),
}


@pytest.mark.parametrize("case", FITS)
def test_consistent_decisions_have_no_problems(case: str) -> None:
    assert replay(FIRST, FITS[case])[1] == []
    assert replay(FIRST)[1] == []


@pytest.mark.parametrize("case", WRONG)
def test_contradicting_decisions_are_reported(case: str) -> None:
    batch, says = WRONG[case]
    wrong = replay(FIRST, batch)[1]
    assert len(wrong) == 1
    assert says in wrong[0]


def test_requests_are_numbered_from_1() -> None:
    assert replay(decisions(released=[(1, "a")]))[1] == replay(decisions(waiting=[(1, "a")]))[1] == []
    assert "request 0 is released" in replay(decisions(released=[(0, "a")]))[1][0]
    assert "request 0 is deferred, but was decided before" in replay(decisions(waiting=[(0, "a")]))[1][0]


def test_withdrawn_request_can_be_repeated_only_under_a_new_number() -> None:
    assert replay(FIRST, withdrawal(2, "b"), decisions(released=[(5, "b")]))[1] == []
    assert replay(FIRST, withdrawal(2, "b"), decisions(released=[(2, "b")]))[1]
    assert replay(FIRST, withdrawal(4, "d"), decisions(released=[(4, "d")]))[1]
    assert replay(FIRST, withdrawal(4, "d"), decisions(waiting=[(4, "d")]))[1]


def row(number: int, key: str, state: str, position: int | None) -> dict[str, Any]:
    record = "" if state == "withdrawn" else f'{{"{key}":1}}'
    content = {"cells": f"[{number}]", "record": record, "nonce": f"nonce {number}", "entry": 2 if number == 3 else 1}
    return {"account": "people", "number": number, "key": key, "state": state, "place": position, **content}


ROWS = [row(1, "a", "released", 1), row(2, "b", "waiting", None), row(3, "c", "withdrawn", None)]


def replayed_releases() -> Releases:
    releases = Releases()
    releases.decide(
        {
            "released": [[1, "a", digest(ROWS[0])]],
            "waiting": [[2, "b", digest(ROWS[1])], [3, "c", digest({**ROWS[2], "state": "waiting"})]],
        },
        1,
    )
    releases.withdraw({**withdrawal(3, "c"), "remains": remains(ROWS[2])}, 2)
    return releases


def test_rows_that_match_their_entries_have_no_problems() -> None:
    assert compare({"people": replayed_releases()}, ROWS) == []
    assert compare({}, []) == []


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "change",
    [
        *({"state": state} for state in ("released", "waiting", "withdrawn")),
        *({"key": "z"}, {"place": 7}, {"record": "{}"}, {"cells": "[9]"}, {"entry": 9}, {"nonce": "x"}),
    ],
    ids=str,
)
def test_row_that_differs_from_its_entries_is_reported(number: int, change: dict[str, Any]) -> None:
    old = ROWS[number - 1]
    if old == {**old, **change} or (
        number == 1 and "nonce" in change
    ):  # this record never waited, so its nonce hides nothing
        return
    rows = [{**item, **change} if item["number"] == number else item for item in ROWS]
    assert compare({"people": replayed_releases()}, rows) == [f"Request {number} of people differs from its entries."]


def test_missing_and_extra_rows_are_reported_in_order() -> None:
    assert [item[:9] for item in compare({"people": replayed_releases()}, [])] == [
        "Request 1",
        "Request 2",
        "Request 3",
    ]
    assert compare({"people": replayed_releases()}, [*ROWS, row(9, "z", "released", 2)])[0].startswith(
        "Request 9 of people"
    )
    assert compare({}, ROWS[:1])[0].startswith("Request 1 of people")


def test_hash_of_a_waiting_record_cannot_be_guessed_from_the_record() -> None:
    assert digest(ROWS[1]) != digest({**ROWS[1], "nonce": "another"})
    assert digest(ROWS[0]) == digest({**ROWS[0], "nonce": "another"})
    assert len(digest(ROWS[0])) == 32


# Collections


SURVEY = Collection("shop", {"age": Question("age", Integer(0, 9), "square-wave", epsilon=2)})


def entry(number: int, body: dict[str, Any], **fields: Any) -> Entry:
    names = {"account": "people/shop", "kind": "reports", "policy": "", "request": f"batch {number}", "question": ""}
    amounts = {"amount": "0", "spent": "0", "ceiling": "0", "previous": "", "at": ""}
    return Entry(number=number, **{**names, **amounts, **fields}, body=canonical(body))


def opening(collection: Collection = SURVEY, *, number: int = 1, **body: Any) -> Entry:
    content = {"description": collection.public_dict(), "gives": respondent_loss(collection).to_dict(), **body}
    return entry(number, content, kind=COLLECTING, policy=collection.fingerprint)


def batch(number: int, accepted: int, reports: int, **body: Any) -> Entry:
    defaults = {
        "opened": 1,
        "accepted": accepted,
        "reports": reports,
        "refused_sha256": "",
        "counts": f"digest {number}",
    }
    return entry(number, {**defaults, **body})


def replayed_collections() -> Collections:
    collections = Collections()
    assert collections.open(opening()) == []
    assert collections.take(batch(2, 5, 5), None) == []
    return collections


def test_opening_that_differs_from_its_description_is_reported() -> None:
    assert Collections().open(replace(opening(), account="people/other")) == ["it describes another collection"]
    assert Collections().open(replace(opening(), policy="0" * 64)) == ["its fingerprint differs from the description's"]
    assert Collections().open(opening(gives={})) == ["the loss of one person does not follow from its description"]


@pytest.mark.parametrize(("version", "wrong"), [(2, []), (1, ["its version is not a later one"])])
def test_collection_reopens_only_with_a_later_version(version: int, wrong: list[str]) -> None:
    again = opening(replace(SURVEY, version=version), number=3)
    assert replayed_collections().open(again) == wrong


REFUSED = '[[0,"late"]]'
BATCHES: dict[str, tuple[Entry, Any, list[str]]] = {
    "the next": (batch(3, 2, 7), None, []),
    "with refusals": (batch(3, 2, 7, refused_sha256=sha256(REFUSED)), REFUSED, []),
    "a wrong sum": (batch(3, 2, 8), None, ["its number of reports does not add up"]),
    "of nothing": (batch(3, 0, 5), None, ["its number of reports does not add up"]),
    "of another version": (batch(3, 2, 7, opened=9), None, ["it belongs to another version"]),
    "again": (replace(batch(3, 2, 7), request="batch 2"), None, ["its batch was counted before"]),
    "refusals gone": (batch(3, 2, 7, refused_sha256="x"), None, ["its refused reports are missing or were changed"]),
    "refusals changed": (
        batch(3, 2, 7, refused_sha256=sha256(REFUSED)),
        "[]",
        ["its refused reports are missing or were changed"],
    ),
    "refusals from nowhere": (batch(3, 2, 7), REFUSED, ["its refused reports are missing or were changed"]),
    "refusals that are no text": (
        batch(3, 2, 7, refused_sha256="x"),
        b"x",
        ["its refused reports are missing or were changed"],
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batch_that_does_not_follow_is_reported(case: str) -> None:
    next_batch, payload, wrong = BATCHES[case]
    assert replayed_collections().take(next_batch, payload) == wrong


def test_closed_collection_accepts_nothing_and_closes_once() -> None:
    collections = replayed_collections()
    assert collections.close(entry(3, {"reports": 4})) == ["it closes a collection that is not open"]
    collections = replayed_collections()
    assert collections.close(entry(3, {"reports": 5})) == []
    assert collections.close(entry(4, {"reports": 5})) == ["it closes a collection that is not open"]
    assert collections.take(batch(5, 1, 6), None) == ["its collection was closed before"]


def packed(*numbers: int) -> bytes:
    return np.array(numbers, "<i8").tobytes()


def stored_counts(**changes: Any) -> list[dict[str, Any]]:
    return [{"opened": 1, "question": "age", "reports": 5, "counts": packed(2, 3), **changes}]


def test_counts_that_differ_from_the_last_batch_are_reported() -> None:
    collections = replayed_collections()
    collections.versions[1].digest = counts_digest({"age": packed(2, 3)})
    says = ["The counts of the collection of entry 1 differ from its entries."]
    assert collections.compare(stored_counts()) == []
    assert collections.compare(stored_counts(reports=6)) == says
    assert collections.compare(stored_counts(counts=packed(3, 2))) == says
    assert collections.compare(stored_counts(question="town")) == says
    assert collections.compare([]) == says
    assert collections.compare([*stored_counts(), *stored_counts(question="town", reports=4)]) == says
    assert collections.compare([*stored_counts(), *stored_counts(opened=9)]) == [says[0].replace("entry 1", "entry 9")]


def test_version_without_a_batch_has_no_counts() -> None:
    fresh = Collections(versions={1: Standing(1)}, latest={"people/shop": 1})
    assert fresh.compare([]) == []
    assert fresh.compare(stored_counts(reports=0))


def test_unopened_collection_has_no_batches_and_no_counts(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    book = CollectionBook(ledger, SURVEY, dataset="people")
    assert (book.batches(), book.counts()) == (([], {}), {})
    ledger.close()
