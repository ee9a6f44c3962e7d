"""Edge cases of the ledger: earlier answers, receipts, verdicts, explanations, and missing files."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger.charges import charge, open_ledger
from ledger.tampering import Record
from support.people import people_policy

from tidegate.accounting import ZERO, Amount
from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import Ledger, verify
from tidegate.ledger.backup import verify_export
from tidegate.ledger.charge import Charge
from tidegate.ledger.entry import Entry, canonical
from tidegate.ledger.explain import explain_entries, moment
from tidegate.ledger.jobs import Job, Jobs
from tidegate.ledger.tokens import Tokens


def test_answers_are_read_once_and_new_ones_are_added(tmp_path: Path) -> None:
    ledger, policy = open_ledger(str(tmp_path / "a.ledger")), people_policy()
    first = ledger.answered("people")
    assert [(entry.kind, result) for entry, result in first] == [("charge", "stored")]
    charge(ledger, policy, "unanswered", "0.1")
    charge(ledger, policy, "later", "0.1").record({"cells": [1]})
    assert [result for _, result in ledger.answered("people")] == ["stored", {"cells": [1]}]
    assert ledger.answered("people") == ledger.answered("people")
    assert ledger.answered("others") == []
    assert len(first) == 1, "an earlier result does not change"
    ledger.close()


def test_receipt_states_the_risk_before_and_after_and_a_repeat_is_free(tmp_path: Path) -> None:
    ledger, policy = Ledger(str(tmp_path / "a.ledger")), people_policy()
    ledger.open_account(policy)
    receipt = charge(ledger, policy, "q", "0.5")
    receipt.record(1)
    cost = Charge.of(receipt, policy)
    risk = cost.identification()["age"]
    assert (risk["before"], risk["ceiling"]) == (pytest.approx(1 / 74), 0.1)
    assert risk["after"] == pytest.approx(1 / (1 + 73 * 2.718281828459045**-0.5))
    assert cost.to_dict() == {
        "cost": "0.5",
        "spent": "0.5",
        "left": str(receipt.account.ceiling.minus(Amount.up("0.5"))),
        "ceiling": str(receipt.account.ceiling),
        "policy": policy.fingerprint,
        "unit": "epsilon",
        "cost_by_unit": {"pure": "0.5", "zcdp": "0.125", "z": "0.03125"},
        "spent_by_unit": {"pure": "0.5", "zcdp": "0.125", "z": "0.03125"},
        "epsilon_at_delta": 0.5,
        "guarantee": "worst-case",
        "identification": cost.identification(),
        "yes_no": cost.yes_no(),
        "entry": receipt.entry.hash,
        "stored": None,
        "source": "unknown",
    }
    assert cost.says().startswith(
        "cost 0.5, 1.59 remaining     identification of age at most 0.0221     yes/no certainty at most 0.622     entry "
    )
    again = Charge.of(charge(ledger, policy, "q", "0.5"), policy)
    assert again.cost == ZERO
    assert again.identification()["age"]["before"] == again.identification()["age"]["after"] == risk["after"]
    ledger.close()


def test_refusal_names_the_first_problem_and_their_number(record: Record) -> None:
    verify(record.entries, record.payloads).refuse()
    without = verify(record.entries[1:], record.payloads)
    with pytest.raises(LedgerBroken) as broken:
        without.refuse()
    assert without.problems[0] in broken.value.what
    assert f"({len(without.problems)} problems)" in broken.value.what
    assert broken.value.facts["problems"] == without.problems[:20]
    with pytest.raises(LedgerBroken) as single:
        verify(record.entries, {**record.payloads, 99: "forged"}).refuse()
    assert single.value.what == "The ledger does not verify: A stored result belongs to no entry (number 99)."


def test_noted_head_is_found_anywhere_in_the_chain(record: Record) -> None:
    for entry in (record.entries[0], record.entries[-1]):
        assert verify(record.entries, record.payloads, head=entry.hash).holds
    cut = verify(record.entries[:-1], record.payloads, head=record.entries[-1].hash)
    assert f"The noted head {record.entries[-1].hash[:12]} is not in the chain" in cut.problems[-1]


def test_missing_export_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="No such file"):
        verify_export(tmp_path / "none.jsonl")
    with pytest.raises(LedgerUnavailable, match="Is a directory"):
        verify_export(tmp_path)


def test_chain_of_a_new_ledger_begins_with_genesis(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    (genesis,) = ledger.entries()
    assert (genesis.number, genesis.kind, genesis.previous) == (0, "genesis", "0" * 64)
    assert ledger.head() == genesis.hash
    ledger.open_account(people_policy())
    assert ledger.head() == list(ledger.entries())[1].hash
    assert ledger.snapshot()[:4] == (list(ledger.entries()), {}, [], [])
    ledger.close()


def test_secret_of_a_ledger_is_created_once_and_has_256_bits(tmp_path: Path) -> None:
    ledgers = [Ledger(str(tmp_path / name)) for name in ("a.ledger", "a.ledger", "b.ledger")]
    secret, same, other = (Tokens(ledger.store).secret() for ledger in ledgers)
    assert secret == same == Tokens(ledgers[0].store).secret() != other
    assert len(secret) == 32
    for ledger in ledgers:
        ledger.close()


def test_jobs_are_listed_page_by_page_in_order_of_creation(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    jobs = Jobs(ledger.store)
    for name in ("1", "2", "3"):
        jobs.add(Job(name, "people", "ana", name, "{}", name))
    jobs.add(Job("4", "others", "ana", "1", "{}", "4"))
    assert [job.id for job in jobs.of("people")] == ["1", "2", "3"]
    assert [job.id for job in jobs.of("people", limit=2)] == ["1", "2"]
    assert [job.id for job in jobs.of("people", after="2")] == ["3"]
    assert jobs.find("others", "1") is None
    ledger.close()


def explain(kind: str, body: object, **changes: str) -> str:
    fields = {"account": "people", "policy": "abcdefgh" * 8, "request": "", "question": "", "amount": "0", "spent": "0"}
    totals = {"ceiling": "2", "previous": "", "at": "2026-11-15T10:02:03.000+00:00"}
    entry = Entry(number=1, kind=kind, **{**fields, **totals, **changes}, body=canonical(body))
    assert moment(entry) == "15 Nov 2026 10:02"
    return next(says for _, says in explain_entries([entry]))


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        ("policy", {"changes": [], "targets": {}}, "Policy abcdefgh opened: the total budget is 2."),
        (
            "policy",
            {"changes": ["rows: 1 -> 2", "loss: gone"], "targets": {}},
            "Policy changed to abcdefgh (rows: 1 -> 2; loss: gone): the total budget is 2.",
        ),
        ("charge", {"who": "", "says": ""}, "Unknown user queried the data: 0 charged, 0 of 2 spent."),
        ("charge", {"who": "Ann", "says": "a mean"}, "Ann queried a mean: 0 charged, 0 of 2 spent."),
        ("again", {"charge": 1200}, "Entry 1,200 was requested again under another key, at no cost."),
        ("result", {"charge": 7, "sha256": "0123456789"}, "Entry 7 was answered (result 01234567)."),
        (
            "desk",
            {"promises": ["drift", "other"], "sha256": "0123456789"},
            "The release desk opened under drift, other (baselines and critical values 01234567).",
        ),
        (
            "release",
            {"who": "", "released": [1, 2], "waiting": [3]},
            "Unknown user requested records: 2 released, 1 waiting.",
        ),
        ("withdrawal", {"who": "Ann", "withdrawn": [1234, "k"]}, "Ann withdrew request 1,234; its record was deleted."),
        (
            "collection",
            {"description": {"version": 2, "questions": {"age": 1, "town": 2}}, "says": "one person gives little"},
            "The collection opened, version 2 (abcdefgh), with questions age, town: one person gives little.",
        ),
        (
            "reports",
            {"accepted": 1000, "refused": {}, "reports": 3000, "sha256": "0123456789"},
            "1,000 reports accepted: 3,000 in total (segment 01234567).",
        ),
        (
            "reports",
            {"accepted": 1, "refused": {"late": 2, "again": 1}, "reports": 1, "sha256": "0123456789"},
            "1 reports accepted, 3 refused: 1 in total (segment 01234567).",
        ),
        ("closing", {"reports": 3000}, "The collection closed with 3,000 reports and accepts no more."),
    ],
)
def test_every_entry_has_an_explanation(kind: str, body: object, says: str) -> None:
    assert explain(kind, body) == says


def test_spending_is_explained_as_the_risk_of_the_worst_target(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "a.ledger"))
    says = [says for _, says in explain_entries(ledger.entries())]
    assert says[2].startswith(
        "Unknown user queried the data: 0.1 charged, 0.1 of 2.09 spent; identification of age at most"
    )
    assert says[2].endswith(", yes/no certainty at most 0.525.")
    ledger.close()
