"""`verify` detects every changed, deleted, inserted or swapped part of the record."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ledger.tampering import TEXTS, Record, edits

from tidegate.ledger import Entry

ENTRIES = 15  # with entry 0: the index of an entry is its number


def test_unchanged_record_verifies(record: Record) -> None:
    assert len(record.entries) == ENTRIES
    assert {entry.kind for entry in record.entries} == {"genesis", "policy", "charge", "result"}
    assert record.verify(record.entries, head=record.entries[-1].hash).problems == []
    with record.open_copy() as copy:
        assert copy.holds
    with record.open_copy(loose=True) as copy:
        assert copy.holds


# one character ------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(data=st.data(), at=st.integers(0, ENTRIES - 1), field=st.sampled_from(TEXTS))
def test_changed_character_of_an_entry_is_detected(record: Record, data: st.DataObject, at: int, field: str) -> None:
    entries = list(record.entries)
    entries[at] = replace(entries[at], **{field: data.draw(edits(getattr(entries[at], field)))})
    assert not record.verify(entries).holds


@given(data=st.data())
def test_changed_character_of_a_result_is_detected(record: Record, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(sorted(record.payloads)))
    payload = data.draw(edits(record.payloads[number]))
    assert not record.verify(record.entries, {**record.payloads, number: payload}).holds


@pytest.mark.one_in(3)
@pytest.mark.parametrize("column", TEXTS)
@settings(max_examples=12)
@given(data=st.data(), at=st.integers(0, ENTRIES - 1))
def test_changed_character_of_a_column_is_detected(record: Record, column: str, data: st.DataObject, at: int) -> None:
    value = data.draw(edits(getattr(record.entries[at], column)))
    with record.open_copy() as copy:
        copy.run(f"UPDATE tidegate_entries SET {column} = ? WHERE number = ?", value, at)
        assert not copy.holds


@settings(max_examples=30)
@given(data=st.data())
def test_stored_result_changed_in_sql_is_detected(record: Record, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(sorted(record.payloads)))
    payload = data.draw(edits(record.payloads[number]))
    with record.open_copy() as copy:
        copy.run("UPDATE tidegate_results SET payload = ? WHERE number = ?", payload, number)
        assert not copy.holds


@pytest.mark.parametrize("table", ["tidegate_entries", "tidegate_results"])
@settings(max_examples=30)
@given(old=st.integers(0, ENTRIES - 1), new=st.integers(-(2**63), 2**63 - 1) | st.integers(-1, ENTRIES + 2))
def test_number_changed_in_sql_is_detected(record: Record, table: str, old: int, new: int) -> None:
    numbers = set(range(ENTRIES)) if table == "tidegate_entries" else set(record.payloads)
    assume(old in numbers and new not in numbers)
    with record.open_copy() as copy:
        copy.run(f"UPDATE {table} SET number = ? WHERE number = ?", new, old)
        assert not copy.holds


# whole entries ------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("with_result", [True, False])
@pytest.mark.parametrize("number", range(ENTRIES - 1))
def test_deleted_entry_is_detected(record: Record, number: int, with_result: bool) -> None:
    with record.open_copy() as copy:
        copy.run("DELETE FROM tidegate_entries WHERE number = ?", number)
        if with_result:
            copy.run("DELETE FROM tidegate_results WHERE number = ?", number)
        assert not copy.holds
        copy.run("UPDATE tidegate_entries SET number = -number")
        copy.run("UPDATE tidegate_entries SET number = -number - (-number > ?)", number)
        assert not copy.holds


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rest", ["unchanged", "renumbered", "resealed"])
@given(source=st.integers(0, ENTRIES - 1), at=st.integers(0, ENTRIES))
def test_inserted_copy_of_an_entry_is_detected(record: Record, rest: str, source: int, at: int) -> None:
    before, after = record.entries[:at], record.entries[at:]
    assume(rest != "resealed" or after)  # a resealed entry at the end is simply the next entry
    copied = record.entries[source]
    if rest != "unchanged":
        previous = before[-1].hash if before else copied.previous
        copied = replace(copied, number=at, previous=previous)
        after = tuple(replace(entry, number=entry.number + 1) for entry in after)
    if rest == "resealed":
        copied = copied.sealed()
    payloads = {n + (n >= at and rest != "unchanged"): payload for n, payload in record.payloads.items()}
    assert not record.verify((*before, copied, *after), payloads).holds
    assert not record.verify((*before, copied, *after)).holds


@pytest.mark.parametrize("fixed", [("number",), ("number", "previous"), ("number", "previous", "hash")], ids="-".join)
def test_swapped_contents_of_two_entries_are_detected(record: Record, fixed: tuple[str, ...]) -> None:
    for first, second in combinations(range(ENTRIES), 2):
        swapped = list(record.entries)
        swapped[first] = _swap_content(record.entries[second], record.entries[first], fixed)
        swapped[second] = _swap_content(record.entries[first], record.entries[second], fixed)
        assert not record.verify(swapped).holds, (first, second)


def _swap_content(content: Entry, position: Entry, fixed: tuple[str, ...]) -> Entry:
    return replace(content, **{name: getattr(position, name) for name in fixed})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("first", range(ENTRIES))
def test_swapped_numbers_of_two_entries_are_detected(record: Record, first: int) -> None:
    for second in range(first + 1, ENTRIES):
        with record.open_copy() as copy:
            for old, new in ((first, 99), (second, first), (99, second)):
                copy.run("UPDATE tidegate_entries SET number = ? WHERE number = ?", new, old)
            assert not copy.holds


def test_swapped_missing_and_extra_results_are_detected(record: Record) -> None:
    for first, second in permutations(record.payloads, 2):
        swapped = {**record.payloads, first: record.payloads[second], second: record.payloads[first]}
        assert record.verify(record.entries, swapped).holds == (record.payloads[first] == record.payloads[second])
        assert not record.verify(record.entries, {n: p for n, p in record.payloads.items() if n != first}).holds
    for number in {99, *range(ENTRIES)} - set(record.payloads):
        assert not record.verify(record.entries, {**record.payloads, number: record.payloads[3]}).holds
