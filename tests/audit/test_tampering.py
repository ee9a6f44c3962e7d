"""Every forgery of a ledger is detected, on the user's own and on a simulated one, and faulty verifiers are. All exact."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from audit.faults import FRESH, people

import tidegate as tg
from tidegate.audit.tampering import FORGERIES, WITH_HEAD, Copy, attack_ledger, open_witnessed, simulate_ledger
from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import Ledger, proof, verify
from tidegate.ledger.checkpoint import verify_note
from tidegate.policy import Policy

OPTIONS: dict[str, Any] = {"alpha": 1e-6, "seconds": 30.0, "seed": FRESH}
WITNESSED = ("witness, the tail cut off", "witness, everything rewritten", "witness, an older copy, continued")
PROOF = "proof, one character"


@pytest.fixture(scope="module")
def copy() -> Copy:
    simulated = simulate_ledger(people())
    assert simulated is not None
    return simulated


def small() -> Policy:
    policy = people()
    return replace(policy, dataset=replace(policy.dataset, rows=4))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A user's own ledger."""
    tmp_path = tmp_path_factory.mktemp("own")
    table = pa.table({"person": list("abcd"), "age": [1, 2, 3, 4], "pay": [0.5] * 4, "sex": list("fmfm")})
    with tg.Session(small(), table=table, ledger=str(tmp_path / "own.ledger")) as session:
        session.answer(tg.count().by("sex"), epsilon="0.1", anyway=True)
        session.answer(tg.mean("age"), epsilon="0.1", anyway=True)
    return str(tmp_path / "own.ledger")


def test_all_forgeries_of_a_simulated_ledger_are_detected() -> None:
    findings = attack_ledger(people(), **OPTIONS)
    assert [finding.attack for finding in findings] == ["the record as it is", *FORGERIES, *WITNESSED, PROOF]
    assert {finding.verdict for finding in findings} == {"held"}
    assert all(finding.tries >= 8 for finding in findings[1:] if finding.attack not in WITNESSED)
    assert len({finding.promise for finding in findings}) == 3


def test_ledger_of_the_user_is_read_and_not_changed(address: str) -> None:
    before = Path(address).read_bytes()
    findings = attack_ledger(small(), address=address, **OPTIONS)
    assert {finding.verdict for finding in findings} == {"held"}
    assert "a copy of the ledger" in findings[0].says
    assert Path(address).read_bytes() == before


def test_ledger_that_was_changed_before_is_reported_first(address: str, tmp_path: Path) -> None:
    changed = tmp_path / "changed.ledger"
    shutil.copy(address, changed)
    sql = sqlite3.connect(changed, isolation_level=None)
    sql.execute("UPDATE tidegate_results SET payload = '{\"parts\":[]}'")
    sql.close()
    (finding,) = attack_ledger(small(), address=str(changed), **OPTIONS)
    assert finding.broken
    assert "stored result was changed" in finding.says


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_changes_the_ledger_and_needs_a_noted_head_only_if_listed(copy: Copy, name: str) -> None:
    random = np.random.default_rng([FRESH, 1])
    for _ in range(10):
        forged = FORGERIES[name](copy, random)
        assert forged is not None
        assert forged != (copy.entries, copy.payloads)
        assert not verify(*forged, copy.requests, copy.counts, head=copy.head).holds
        if name not in WITH_HEAD:
            assert not verify(*forged, copy.requests, copy.counts).holds


def test_rewritten_ledger_is_consistent_without_a_noted_head(copy: Copy) -> None:
    """This is why a head must be noted elsewhere."""
    forged = FORGERIES["everything rewritten"](copy, np.random.default_rng(1))
    assert forged is not None
    assert verify(*forged, copy.requests, copy.counts).holds


# Planted faults: each verifier misses one kind of change, and that kind is reported.


def no_hashes(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    """Check only the head."""
    verdict = verify(entries, payloads, *more, head=head)
    verdict.problems = [problem for problem in verdict.problems if "noted head" in problem]
    return verdict


def no_head(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    return verify(entries, payloads, *more)


def no_results(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    verdict = verify(entries, payloads, *more, head=head)
    verdict.problems = [problem for problem in verdict.problems if "stored result" not in problem]
    return verdict


def no_prices(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    verdict = verify(entries, payloads, *more, head=head)
    verdict.problems = [problem for problem in verdict.problems if "price" not in problem and "add up" not in problem]
    return verdict


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("verifier", "missed"),
    [
        (no_hashes, "one character of an entry"),
        (no_results, "one character of a stored result"),
        (no_hashes, "an entry removed"),
        (no_hashes, "two entries swapped"),
        (no_prices, "a charge reduced, hashes recomputed"),
        (no_head, "the tail cut off"),
        (no_head, "everything rewritten"),
    ],
)
def test_faulty_verifier_is_detected(address: str, verifier: Any, missed: str) -> None:
    findings = {
        finding.attack: finding for finding in attack_ledger(small(), address=address, check=verifier, **OPTIONS)
    }
    assert findings[missed].broken
    assert "not detected" in findings[missed].says


# Planted faults of opening a ledger with a witness, and of checking proofs


def never_compare(path: Path) -> None:
    Ledger(str(path), is_witnessed=False).close()


def accept_missing_entries(path: Path) -> None:
    with suppress(LedgerUnavailable):
        open_witnessed(path)


def accept_other_entries(path: Path) -> None:
    with suppress(LedgerBroken):
        open_witnessed(path)


def refuse_always(path: Path) -> None:
    raise LedgerUnavailable("No ledger is accepted.")


@pytest.mark.parametrize(
    ("reopen", "missed"),
    [
        (never_compare, WITNESSED),
        (accept_missing_entries, WITNESSED[:1]),
        (accept_other_entries, WITNESSED[1:]),
        (refuse_always, WITNESSED),
    ],
)
def test_ledger_that_is_opened_against_its_witness_is_detected(address: str, reopen: Any, missed: Any) -> None:
    findings = attack_ledger(small(), address=address, reopen=reopen, **OPTIONS)
    assert {finding.attack for finding in findings if finding.broken} >= set(missed)
    assert not any(finding.broken for finding in findings if finding.attack in {*FORGERIES, PROOF})


def check_no_signature(content: Any, keys: Any) -> Any:
    return proof.check(content)


def check_no_hash(content: Any, keys: Any) -> Any:
    """Check only the signature of the checkpoint."""
    return verify_note((content or {}).get("checkpoint", ""), keys)


def refuse_every_proof(content: Any, keys: Any) -> Any:
    raise LedgerBroken("No proof is accepted.")


@pytest.mark.parametrize("check", [check_no_signature, check_no_hash, refuse_every_proof])
def test_faulty_check_of_proofs_is_detected(address: str, check: Any) -> None:
    findings = attack_ledger(small(), address=address, check_proof=check, **OPTIONS)
    assert [finding.attack for finding in findings if finding.broken] == [PROOF]


def test_witnesses_of_the_user_receive_nothing(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / "own.checkpoint", tmp_path / "other.checkpoint"
    shutil.copy(address, tmp_path / "own.ledger")
    Ledger(str(tmp_path / "own.ledger"), witnesses=[str(own)]).close()
    before = own.read_bytes()
    monkeypatch.setenv("TIDEGATE_WITNESS", str(other))
    findings = attack_ledger(small(), address=str(tmp_path / "own.ledger"), **OPTIONS)
    assert {finding.verdict for finding in findings} == {"held"}
    assert (own.read_bytes(), other.exists()) == (before, False)


def test_policy_without_answers_has_no_simulated_ledger(tmp_path: Path) -> None:
    bare = replace(people(), identification=None)
    assert attack_ledger(bare, **OPTIONS) == []
    Ledger(str(tmp_path / "empty.ledger")).close()
    assert attack_ledger(bare, address=str(tmp_path / "empty.ledger"), **OPTIONS) == []
