"""A forger who can make hashes: the lies that do not add up are found, and a noted head finds the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ledger.tampering import Record

from tidegate.accounting import Amount
from tidegate.ledger import Entry
from tidegate.ledger.entry import canonical

ENTRIES = 15  # with entry 0: the place of an entry is its number


@pytest.mark.parametrize("cut", range(1, ENTRIES + 1))
def test_only_a_noted_head_finds_a_tail_that_was_cut_off(record: Record, cut: int) -> None:
    kept = record.entries[:-cut]
    payloads = {number: payload for number, payload in record.payloads.items() if number < len(kept)}
    assert record.verify(kept, payloads).holds
    assert not record.verify(kept, payloads, head=record.entries[-1].hash).holds
    if kept:
        assert record.verify(kept, payloads, head=kept[-1].hash).holds


@pytest.mark.parametrize("since", range(ENTRIES))
def test_only_a_noted_head_finds_a_tail_that_was_written_anew(record: Record, since: int) -> None:
    forged = sealed_anew(record.entries, since, at="2020-01-01T00:00:00.000+00:00")
    assert record.verify(forged).holds
    for noted, entry in enumerate(record.entries):
        assert record.verify(forged, head=entry.hash).holds == (noted < since)


@pytest.mark.parametrize("place", range(ENTRIES - 1))
def test_an_entry_that_was_sealed_anew_on_its_own_is_found(record: Record, place: int) -> None:
    forged = list(record.entries)
    forged[place] = replace(forged[place], at="2020-01-01T00:00:00.000+00:00").sealed()
    assert not record.verify(forged).holds


@pytest.mark.parametrize("place", range(ENTRIES))
def test_a_gap_in_the_numbers_is_found_even_with_new_hashes(record: Record, place: int) -> None:
    shifted = [replace(entry, number=entry.number + (n >= place)) for n, entry in enumerate(record.entries)]
    forged = sealed_anew(tuple(shifted), place)
    assert not record.verify(forged).holds
    assert not record.verify(forged, {n + (n >= place): payload for n, payload in record.payloads.items()}).holds


def sealed_anew(entries: tuple[Entry, ...], since: int, **changed: str) -> list[Entry]:
    """The entries with one of them changed and all hashes from there on made again."""
    forged = list(entries[:since])
    for entry in (replace(entries[since], **changed), *entries[since + 1 :]):
        previous = forged[-1].hash if forged else entry.previous
        forged.append(replace(entry, previous=previous).sealed())
    return forged


POLICIES, CHARGES, RESULTS = (1, 5, 8), (2, 4, 9, 12), (3, 7, 10, 14)  # places of entries of each kind
LIES: dict[str, tuple[tuple[int, ...], dict[str, str]]] = {
    "a lower amount": (CHARGES, {"amount": "0.01"}),
    "an amount": (POLICIES + RESULTS, {"amount": "0.01"}),
    "no amount": (CHARGES + POLICIES + RESULTS, {"amount": ""}),
    "a lower total": (CHARGES + RESULTS, {"spent": "0"}),
    "a higher total": (CHARGES + POLICIES + RESULTS, {"spent": "0.7"}),
    "a total that is no amount": (CHARGES + POLICIES + RESULTS, {"spent": "00.1"}),
    "a higher ceiling": (CHARGES + POLICIES + RESULTS, {"ceiling": "5"}),
    "another account": (CHARGES + POLICIES + RESULTS, {"account": "elsewhere"}),
    "another kind": (CHARGES + POLICIES + RESULTS, {"kind": "gift"}),
    "another policy": (CHARGES + POLICIES + RESULTS, {"policy": "0" * 64}),
    "another question": (CHARGES, {"question": "0" * 64}),
    "another request": (CHARGES[:3] + RESULTS, {"request": "no key of ours"}),
    "no body": (CHARGES + POLICIES + RESULTS, {"body": ""}),
    "an empty body": (CHARGES + POLICIES + RESULTS, {"body": "{}"}),
    "a list for a body": (CHARGES + POLICIES + RESULTS, {"body": "[]"}),
    "nothing for a body": (CHARGES + POLICIES + RESULTS, {"body": "null"}),
}
LATER = {"another account", "another request"}  # true so far; the entries that follow speak against them


@pytest.mark.parametrize("lie", LIES)
def test_a_field_that_does_not_add_up_is_found_even_with_new_hashes(record: Record, lie: str) -> None:
    places, changed = LIES[lie]
    for place in places:
        forged = sealed_anew(record.entries, place, **changed)
        assert not record.verify(forged).holds, place
        alone = {number: payload for number, payload in record.payloads.items() if number <= place}
        assert lie in LATER or not record.verify(forged[: place + 1], alone).holds, place


BODIES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "a cheaper event": (CHARGES, {"event": {"kind": "discrete-laplace/1", "sensitivity": "1", "scale": "1000"}}),
    "a free event": (CHARGES, {"event": {"kind": "together/1", "parts": []}}),
    "an event of no known kind": (CHARGES, {"event": {"kind": "discrete-laplace/99"}}),
    "an event of no form": (CHARGES, {"event": 7}),
    "another question": (CHARGES, {"question": {"name": "harmless"}}),
    "a policy that allows more": (POLICIES, {"allows": "5"}),
    "no policy": (POLICIES, {"policy": None}),
    "another charge": (RESULTS, {"charge": 1}),
    "another hash": (RESULTS, {"sha256": "0" * 64}),
}


@pytest.mark.parametrize("lie", BODIES)
def test_a_body_that_does_not_add_up_is_found_even_with_new_hashes(record: Record, lie: str) -> None:
    places, changed = BODIES[lie]
    for place in places:
        body = canonical({**record.entries[place].content(), **changed})
        assert not record.verify(sealed_anew(record.entries, place, body=body)).holds, place


@pytest.mark.parametrize("place", POLICIES)
def test_a_policy_that_promises_less_than_its_entry_says_is_found(record: Record, place: int) -> None:
    body = record.entries[place].content()
    body["policy"]["promise"]["identification"]["rho"] = "0.5"
    assert not record.verify(sealed_anew(record.entries, place, body=canonical(body))).holds


def test_more_than_the_ceiling_cannot_be_spent_even_with_new_hashes(record: Record) -> None:
    charge = record.entries[9]
    event = {"kind": "discrete-laplace/1", "sensitivity": "5", "scale": "1"}
    body = canonical({**charge.content(), "event": event})
    forged = sealed_anew(record.entries[:10], 9, body=body, amount="5", spent="5.3")
    problems = record.verify(
        forged, {number: payload for number, payload in record.payloads.items() if number < 9}
    ).problems
    assert problems == ["entry 9: it spends more than was allowed."]


@pytest.mark.parametrize("place", [*CHARGES, *RESULTS])
def test_a_request_cannot_be_charged_or_answered_twice_even_with_new_hashes(record: Record, place: int) -> None:
    entry, last = record.entries[place], record.entries[-1]
    totals = next(e for e in reversed(record.entries) if e.account == entry.account)
    state = {"policy": totals.policy, "spent": totals.spent, "ceiling": totals.ceiling}
    if entry.kind == "charge":
        state["spent"] = str(Amount.parse(totals.spent) + Amount.parse(entry.amount))
    again = replace(entry, number=ENTRIES, previous=last.hash, **state).sealed()
    payloads = {**record.payloads, **({ENTRIES: record.payloads[place]} if entry.kind == "result" else {})}
    (problem,) = record.verify((*record.entries, again), payloads).problems
    assert "before" in problem


@pytest.mark.parametrize("place", [POLICIES[1], CHARGES[1], RESULTS[1]])
@pytest.mark.parametrize("changed", [{"spent": "1/0"}, {"body": "[" * 100_000}], ids=["one by zero", "nested"])
def test_a_field_that_cannot_be_read_is_found_and_no_crash(record: Record, place: int, changed: dict[str, str]) -> None:
    assert not record.verify(sealed_anew(record.entries, place, **changed)).holds


def test_a_scale_of_one_by_zero_is_found_and_no_crash(record: Record) -> None:
    body = record.entries[2].content()
    body["event"]["scale"] = "1/0"
    assert not record.verify(sealed_anew(record.entries, 2, body=canonical(body))).holds
