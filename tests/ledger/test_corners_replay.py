"""Who left, who waits, and what was counted: every way in which entries and rows can contradict each other is told."""

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


def decided(released: Sequence[tuple[int, str]] = (), waiting: Sequence[tuple[int, str]] = ()) -> dict[str, Any]:
    return {
        "released": [[number, key, f"hash of {key}"] for number, key in released],
        "waiting": [[number, key, f"hash of {key}"] for number, key in waiting],
    }


def replayed(*batches: dict[str, Any]) -> tuple[Releases, list[str]]:
    """What the last of some batches has wrong with it."""
    releases, wrong = Releases(), []
    for batch in batches:
        wrong = releases.withdraw(batch, 1) if "withdrawn" in batch else releases.decide(batch, 1)
    return releases, wrong


def back(number: int, key: str) -> dict[str, Any]:
    return {"withdrawn": [number, key]}


FIRST = decided(released=[(1, "a"), (3, "c")], waiting=[(2, "b"), (4, "d")])
FITS = {
    "who waited leaves": decided(released=[(2, "b")]),
    "somebody new leaves": decided(released=[(5, "e")]),
    "somebody new waits": decided(waiting=[(5, "e")]),
    "who waits goes": back(2, "b"),
    "nobody moves": decided(),
}
WRONG = {
    "a request number 0": (decided(released=[(0, "z")]), "request 0 leaves"),
    "an old number": (decided(released=[(4, "e")]), "request 4 leaves"),
    "who left leaves again": (decided(released=[(1, "a")]), "request 1 leaves"),
    "a key that left": (decided(released=[(9, "a")]), "request 9 leaves"),
    "a key that waits": (decided(released=[(9, "b")]), "request 9 leaves"),
    "another's place": (decided(released=[(2, "d")]), "request 2 leaves"),
    "twice in one batch": (decided(released=[(5, "e"), (5, "e")]), "request 5 leaves"),
    "an old number waits": (decided(waiting=[(3, "e")]), "request 3 waits anew"),
    "who waits waits again": (decided(waiting=[(2, "b")]), "request 2 waits anew"),
    "a key that left waits": (decided(waiting=[(9, "a")]), "request 9 waits anew"),
    "the same waits twice": (decided(waiting=[(5, "e"), (5, "f")]), "request 5 waits anew"),
    "who left is taken back": (back(1, "a"), "request 1 is withdrawn, but does not wait"),
    "another is taken back": (back(2, "d"), "request 2 is withdrawn"),
    "nobody is taken back": (back(9, "z"), "request 9 is withdrawn"),
}


@pytest.mark.parametrize("case", FITS)
def test_decisions_that_follow_from_those_before_are_right(case: str) -> None:
    assert replayed(FIRST, FITS[case])[1] == []
    assert replayed(FIRST)[1] == []


@pytest.mark.parametrize("case", WRONG)
def test_decisions_that_contradict_those_before_are_told(case: str) -> None:
    given, says = WRONG[case]
    wrong = replayed(FIRST, given)[1]
    assert len(wrong) == 1
    assert says in wrong[0]


def test_requests_are_numbered_from_1() -> None:
    assert replayed(decided(released=[(1, "a")]))[1] == replayed(decided(waiting=[(1, "a")]))[1] == []
    assert "request 0 leaves" in replayed(decided(released=[(0, "a")]))[1][0]
    assert "request 0 waits anew" in replayed(decided(waiting=[(0, "a")]))[1][0]


def test_who_was_taken_back_may_ask_again_under_a_new_number_only() -> None:
    assert replayed(FIRST, back(2, "b"), decided(released=[(5, "b")]))[1] == []
    assert replayed(FIRST, back(2, "b"), decided(released=[(2, "b")]))[1]
    assert replayed(FIRST, back(4, "d"), decided(released=[(4, "d")]))[1]
    assert replayed(FIRST, back(4, "d"), decided(waiting=[(4, "d")]))[1]


def row(number: int, key: str, state: str, place: int | None) -> dict[str, Any]:
    record = "" if state == "withdrawn" else f'{{"{key}":1}}'
    kept = {"cells": f"[{number}]", "record": record, "nonce": f"nonce {number}", "entry": 2 if number == 3 else 1}
    return {"account": "people", "number": number, "key": key, "state": state, "place": place, **kept}


ROWS = [row(1, "a", "released", 1), row(2, "b", "waiting", None), row(3, "c", "withdrawn", None)]


def told() -> Releases:
    releases = Releases()
    releases.decide(
        {
            "released": [[1, "a", digest(ROWS[0])]],
            "waiting": [[2, "b", digest(ROWS[1])], [3, "c", digest({**ROWS[2], "state": "waiting"})]],
        },
        1,
    )
    releases.withdraw({**back(3, "c"), "remains": remains(ROWS[2])}, 2)
    return releases


def test_rows_that_stand_as_their_entries_say_are_right() -> None:
    assert compare({"people": told()}, ROWS) == []
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
def test_a_row_that_stands_otherwise_is_told(number: int, change: dict[str, Any]) -> None:
    old = ROWS[number - 1]
    if old == {**old, **change} or (number == 1 and "nonce" in change):  # it hid nothing: this record never waited
        return
    rows = [{**one, **change} if one["number"] == number else one for one in ROWS]
    assert compare({"people": told()}, rows) == [f"request {number} of people does not stand as its entries say."]


def test_rows_that_are_gone_or_came_from_nowhere_are_told_in_order() -> None:
    assert [one[:9] for one in compare({"people": told()}, [])] == ["request 1", "request 2", "request 3"]
    assert compare({"people": told()}, [*ROWS, row(9, "z", "released", 2)])[0].startswith("request 9 of people")
    assert compare({}, ROWS[:1])[0].startswith("request 1 of people")


def test_the_hash_of_a_waiting_record_cannot_be_guessed_from_the_record() -> None:
    assert digest(ROWS[1]) != digest({**ROWS[1], "nonce": "another"})
    assert digest(ROWS[0]) == digest({**ROWS[0], "nonce": "another"})
    assert len(digest(ROWS[0])) == 32


# Collections


SURVEY = Collection("shop", {"age": Question("age", Integer(0, 9), "square-wave", epsilon=2)})


def entry(number: int, body: dict[str, Any], **fields: Any) -> Entry:
    given = {"account": "people/shop", "kind": "reports", "policy": "", "request": f"batch {number}", "question": ""}
    amounts = {"amount": "0", "spent": "0", "ceiling": "0", "previous": "", "at": ""}
    return Entry(number=number, **{**given, **amounts, **fields}, body=canonical(body))


def opening(collection: Collection = SURVEY, *, number: int = 1, **body: Any) -> Entry:
    told = {"description": collection.public_dict(), "gives": respondent_loss(collection).to_dict(), **body}
    return entry(number, told, kind=COLLECTING, policy=collection.fingerprint)


def batch(number: int, accepted: int, reports: int, **body: Any) -> Entry:
    given = {"opened": 1, "accepted": accepted, "reports": reports, "refused_sha256": "", "counts": f"digest {number}"}
    return entry(number, {**given, **body})


def collected() -> Collections:
    found = Collections()
    assert found.open(opening()) == []
    assert found.take(batch(2, 5, 5), None) == []
    return found


def test_an_opening_that_is_not_its_description_s_is_told() -> None:
    assert Collections().open(replace(opening(), account="people/other")) == ["it describes another collection"]
    assert Collections().open(replace(opening(), policy="0" * 64)) == ["its fingerprint is not the description's"]
    assert Collections().open(opening(gives={})) == ["what one person gives does not follow"]


@pytest.mark.parametrize(("version", "wrong"), [(2, []), (1, ["its version is not a later one"])])
def test_a_collection_opens_again_in_a_later_version_only(version: int, wrong: list[str]) -> None:
    again = opening(replace(SURVEY, version=version), number=3)
    assert collected().open(again) == wrong


REFUSED = '[[0,"late"]]'
BATCHES: dict[str, tuple[Entry, Any, list[str]]] = {
    "the next": (batch(3, 2, 7), None, []),
    "with refusals": (batch(3, 2, 7, refused_sha256=sha256(REFUSED)), REFUSED, []),
    "a wrong sum": (batch(3, 2, 8), None, ["its number of reports does not add up"]),
    "of nothing": (batch(3, 0, 5), None, ["its number of reports does not add up"]),
    "of another version": (batch(3, 2, 7, opened=9), None, ["it belongs to another version"]),
    "once more": (replace(batch(3, 2, 7), request="batch 2"), None, ["its batch was taken before"]),
    "refusals gone": (batch(3, 2, 7, refused_sha256="x"), None, ["its refusals are gone or were changed"]),
    "refusals changed": (
        batch(3, 2, 7, refused_sha256=sha256(REFUSED)),
        "[]",
        ["its refusals are gone or were changed"],
    ),
    "refusals from nowhere": (batch(3, 2, 7), REFUSED, ["its refusals are gone or were changed"]),
    "refusals that are no text": (batch(3, 2, 7, refused_sha256="x"), b"x", ["its refusals are gone or were changed"]),
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_batch_follows_from_those_before_or_is_told(case: str) -> None:
    given, payload, wrong = BATCHES[case]
    assert collected().take(given, payload) == wrong


def test_a_closed_collection_takes_nothing_and_closes_once() -> None:
    found = collected()
    assert found.close(entry(3, {"reports": 4})) == ["it closes what is not open"]
    found = collected()
    assert found.close(entry(3, {"reports": 5})) == []
    assert found.close(entry(4, {"reports": 5})) == ["it closes what is not open"]
    assert found.take(batch(5, 1, 6), None) == ["its collection was closed before"]


def packed(*numbers: int) -> bytes:
    return np.array(numbers, "<i8").tobytes()


def counted(**changes: Any) -> list[dict[str, Any]]:
    return [{"opened": 1, "question": "age", "reports": 5, "counts": packed(2, 3), **changes}]


def test_counts_stand_as_the_last_batch_names_them_or_are_told() -> None:
    found = collected()
    found.versions[1].digest = counts_digest({"age": packed(2, 3)})
    says = ["the counts of the collection of entry 1 do not stand as its entries say."]
    assert found.compare(counted()) == []
    assert found.compare(counted(reports=6)) == says
    assert found.compare(counted(counts=packed(3, 2))) == says
    assert found.compare(counted(question="town")) == says
    assert found.compare([]) == says
    assert found.compare([*counted(), *counted(question="town", reports=4)]) == says
    assert found.compare([*counted(), *counted(opened=9)]) == [says[0].replace("entry 1", "entry 9")]


def test_a_version_without_a_batch_has_no_counts() -> None:
    fresh = Collections(versions={1: Standing(1)}, latest={"people/shop": 1})
    assert fresh.compare([]) == []
    assert fresh.compare(counted(reports=0))


def test_a_collection_that_was_never_opened_has_no_batches_and_no_counts(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    book = CollectionBook(ledger, SURVEY, dataset="people")
    assert (book.batches(), book.counts()) == (([], {}), {})
    ledger.close()
