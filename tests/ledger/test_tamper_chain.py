"""A forger who recomputes hashes: inconsistent forgeries are detected, and a noted head detects the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ledger.tampering import Record

from tidegate.accounting import Amount
from tidegate.ledger import Entry
from tidegate.ledger.entry import canonical

ENTRIES = 15  # with entry 0: the index of an entry is its number


@pytest.mark.parametrize("cut", range(1, ENTRIES + 1))
def test_noted_head_detects_a_truncated_tail(record: Record, cut: int) -> None:
    remaining = record.entries[:-cut]
    payloads = {number: payload for number, payload in record.payloads.items() if number < len(remaining)}
    assert record.verify(remaining, payloads).holds
    assert not record.verify(remaining, payloads, head=record.entries[-1].hash).holds
    if remaining:
        assert record.verify(remaining, payloads, head=remaining[-1].hash).holds


@pytest.mark.parametrize("since", range(ENTRIES))
def test_noted_head_detects_a_rewritten_tail(record: Record, since: int) -> None:
    forged = reseal(record.entries, since, at="2020-01-01T00:00:00.000+00:00")
    assert record.verify(forged).holds
    for noted, entry in enumerate(record.entries):
        assert record.verify(forged, head=entry.hash).holds == (noted < since)


@pytest.mark.parametrize("index", range(ENTRIES - 1))
def test_single_resealed_entry_is_detected(record: Record, index: int) -> None:
    forged = list(record.entries)
    forged[index] = replace(forged[index], at="2020-01-01T00:00:00.000+00:00").sealed()
    assert not record.verify(forged).holds


@pytest.mark.parametrize("index", range(ENTRIES))
def test_gap_in_the_numbers_is_detected_despite_new_hashes(record: Record, index: int) -> None:
    shifted = [replace(entry, number=entry.number + (n >= index)) for n, entry in enumerate(record.entries)]
    forged = reseal(tuple(shifted), index)
    assert not record.verify(forged).holds
    assert not record.verify(forged, {n + (n >= index): payload for n, payload in record.payloads.items()}).holds


def reseal(entries: tuple[Entry, ...], since: int, **changes: str) -> list[Entry]:
    """Return the entries with one of them changed and all later hashes recomputed."""
    forged = list(entries[:since])
    for entry in (replace(entries[since], **changes), *entries[since + 1 :]):
        previous = forged[-1].hash if forged else entry.previous
        forged.append(replace(entry, previous=previous).sealed())
    return forged


POLICIES, CHARGES, RESULTS = (1, 5, 8), (2, 4, 9, 12), (3, 7, 10, 14)  # indexes of entries of each kind
FORGED_FIELDS: dict[str, tuple[tuple[int, ...], dict[str, str]]] = {
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
DETECTED_LATER = {"another account", "another request"}  # consistent so far; later entries contradict them


@pytest.mark.parametrize("forgery", FORGED_FIELDS)
def test_inconsistent_field_is_detected_despite_new_hashes(record: Record, forgery: str) -> None:
    indexes, changes = FORGED_FIELDS[forgery]
    for index in indexes:
        forged = reseal(record.entries, index, **changes)
        assert not record.verify(forged).holds, index
        alone = {number: payload for number, payload in record.payloads.items() if number <= index}
        assert forgery in DETECTED_LATER or not record.verify(forged[: index + 1], alone).holds, index


FORGED_BODIES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
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


@pytest.mark.parametrize("forgery", FORGED_BODIES)
def test_inconsistent_body_is_detected_despite_new_hashes(record: Record, forgery: str) -> None:
    indexes, changes = FORGED_BODIES[forgery]
    for index in indexes:
        body = canonical({**record.entries[index].content(), **changes})
        assert not record.verify(reseal(record.entries, index, body=body)).holds, index


@pytest.mark.parametrize("index", POLICIES)
def test_policy_weaker_than_its_entry_is_detected(record: Record, index: int) -> None:
    body = record.entries[index].content()
    body["policy"]["promise"]["identification"]["rho"] = "0.5"
    assert not record.verify(reseal(record.entries, index, body=canonical(body))).holds


def test_overspending_is_detected_despite_new_hashes(record: Record) -> None:
    charge = record.entries[9]
    event = {"kind": "discrete-laplace/1", "sensitivity": "5", "scale": "1"}
    body = canonical({**charge.content(), "event": event})
    forged = reseal(record.entries[:10], 9, body=body, amount="5", spent="5.3")
    problems = record.verify(
        forged, {number: payload for number, payload in record.payloads.items() if number < 9}
    ).problems
    assert problems == ["Entry 9: it spends more than was allowed."]


@pytest.mark.parametrize("index", [*CHARGES, *RESULTS])
def test_second_charge_or_result_of_a_request_is_detected_despite_new_hashes(record: Record, index: int) -> None:
    entry, last = record.entries[index], record.entries[-1]
    totals = next(e for e in reversed(record.entries) if e.account == entry.account)
    state = {"policy": totals.policy, "spent": totals.spent, "ceiling": totals.ceiling}
    if entry.kind == "charge":
        state["spent"] = str(Amount.parse(totals.spent) + Amount.parse(entry.amount))
    again = replace(entry, number=ENTRIES, previous=last.hash, **state).sealed()
    payloads = {**record.payloads, **({ENTRIES: record.payloads[index]} if entry.kind == "result" else {})}
    (problem,) = record.verify((*record.entries, again), payloads).problems
    assert "before" in problem


@pytest.mark.parametrize("index", [POLICIES[1], CHARGES[1], RESULTS[1]])
@pytest.mark.parametrize("changes", [{"spent": "1/0"}, {"body": "[" * 100_000}], ids=["one by zero", "nested"])
def test_unreadable_field_is_detected_without_a_crash(record: Record, index: int, changes: dict[str, str]) -> None:
    assert not record.verify(reseal(record.entries, index, **changes)).holds


def test_scale_of_one_by_zero_is_detected_without_a_crash(record: Record) -> None:
    body = record.entries[2].content()
    body["event"]["scale"] = "1/0"
    assert not record.verify(reseal(record.entries, 2, body=canonical(body))).holds
