"""Proofs: accepted without a ledger, and refused after any change."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import charge
from support.people import people_policy
from typer.testing import CliRunner

import tidegate as tg
from tidegate.cli.app import app
from tidegate.errors import LedgerBroken, LedgerUnavailable, TidegateError, Unsupported
from tidegate.ledger import Ledger, proof, witness

POLICY = people_policy()


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    ledger = Ledger(str(tmp_path / "people.ledger"))
    ledger.open_account(POLICY)
    witness.configure(ledger.store, new_key=True)
    for number in range(5):
        charge(ledger, POLICY, number, "0.01", who="ann").record([number])
    yield ledger
    ledger.close()


def keys(ledger: Ledger) -> list[Any]:
    with ledger.store.reading() as connection:
        return witness.public_keys(connection)


def test_every_entry_can_be_proven(ledger: Ledger) -> None:
    for entry in ledger.entries():
        by_number, by_hash = ledger.prove(str(entry.number)), ledger.prove(entry.hash[:12])
        assert ledger.prove(entry.hash[:8])["entry"] == by_hash["entry"]
        with pytest.raises(Unsupported, match="at least 8 characters"):
            ledger.prove(entry.hash[:7])
        assert by_number == by_hash
        assert proof.check(json.loads(proof.to_text(by_number)), keys(ledger)).head == ledger.head()


def test_changed_proof_is_refused(ledger: Ledger) -> None:
    valid = ledger.prove("4")
    changes: list[Any] = []
    for name in valid["entry"]:
        other = copy.deepcopy(valid)
        other["entry"][name] = other["entry"][name] + (1 if name == "number" else "0")
        changes.append(other)
    changes += [{**valid, "index": 5}, {**valid, "size": 3}, {**valid, "hashes": valid["hashes"][:-1]}]
    changes += [
        {**valid, "hashes": valid["hashes"][::-1]},
        {**valid, "checkpoint": ledger.prove("4")["checkpoint"][:-9]},
    ]
    changes += [{**valid, "checkpoint": valid["checkpoint"].replace('"people"', '"others"')}]
    changes += [{**valid, "proof": "consistency"}, {}, [], None, "text", {"proof": "inclusion"}]
    for changed in changes:
        with pytest.raises(LedgerBroken):
            proof.check(changed, keys(ledger))


BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def test_proof_with_any_other_character_is_refused(ledger: Ledger) -> None:
    """Also in the last character of a hash or a signature, of which base64 ignores some bits: the last bit is changed."""
    grown = proof.prove_growth(ledger.store, ledger.prove("1")["checkpoint"])
    for text in map(proof.to_text, (ledger.prove("4"), grown)):
        for position, old in enumerate(text):
            new = BASE64[BASE64.index(old) ^ 1] if old in BASE64 else "x"
            try:
                changed = json.loads(text[:position] + new + text[position + 1 :])
            except ValueError:
                continue
            with pytest.raises(LedgerBroken):
                proof.check(changed, keys(ledger))


def test_growth_is_proven_between_two_checkpoints(ledger: Ledger) -> None:
    earlier = ledger.prove("1")["checkpoint"]
    charge(ledger, POLICY, "more", "0.01")
    grown = proof.prove_growth(ledger.store, earlier)
    assert proof.check(grown, keys(ledger)).head == ledger.head()
    with pytest.raises(LedgerBroken):
        proof.check({**grown, "hashes": []}, keys(ledger))
    with pytest.raises(LedgerBroken):
        proof.check({**grown, "from": grown["checkpoint"], "checkpoint": earlier}, keys(ledger))


def test_rewritten_ledger_has_no_proof_of_growth(ledger: Ledger, tmp_path: Path) -> None:
    earlier = ledger.prove("1")["checkpoint"]
    other = Ledger(str(tmp_path / "other.ledger"))
    witness.configure(other.store, new_key=True)
    with pytest.raises(LedgerUnavailable, match="another ledger"):
        proof.prove_growth(other.store, earlier)
    other.close()


@pytest.mark.parametrize("name", ["99", "0" * 64, "ab", "", "%%%%%%%%%"])
def test_unknown_entry_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(Unsupported, match="names no entry"):
        ledger.prove(name)


def test_ledger_without_a_key_says_how_to_create_one(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    with pytest.raises(LedgerUnavailable, match="no signing key") as error:
        ledger.prove("0")
    assert "tidegate ledger witness" in error.value.do
    ledger.close()


def test_analyst_can_check_the_proof_of_an_answer(tmp_path: Path) -> None:
    from ledger.requesters import TABLE

    with tg.open(POLICY, table=TABLE, ledger=str(tmp_path / "people.ledger")) as session:
        witness.configure(session.ledger.store, new_key=True)
        answer = session.answer(tg.count(), epsilon="0.1")
        content = session.ledger.prove(answer.charge.entry)
        assert content["entry"]["hash"] == answer.charge.entry
        assert proof.check(content, keys(session.ledger))


def test_commands_write_and_check_proofs(ledger: Ledger, tmp_path: Path) -> None:
    run, path = CliRunner().invoke, str(ledger.store.path)
    key = str(keys(ledger)[0])
    (tmp_path / "old.checkpoint").write_text(ledger.prove("1")["checkpoint"], "utf-8")
    charge(ledger, POLICY, "more", "0.01")
    run(app, ["ledger", "prove", path, "3", "--out", str(tmp_path / "a.json")])
    run(app, ["ledger", "prove", path, "--from", str(tmp_path / "old.checkpoint"), "--out", str(tmp_path / "b.json")])
    checked = [run(app, ["ledger", "check-proof", str(tmp_path / name), "--key", key]) for name in ("a.json", "b.json")]
    assert "Entry 3 is one of the 14 entries" in checked[0].output
    assert "start with those of the earlier checkpoint" in checked[1].output
    unsigned = run(app, ["ledger", "check-proof", str(tmp_path / "a.json")])
    assert "signature was not checked" in unsigned.output
    (tmp_path / "a.json").write_text("{}", "utf-8")
    with pytest.raises(TidegateError):
        run(app, ["ledger", "check-proof", str(tmp_path / "a.json")], catch_exceptions=False)
