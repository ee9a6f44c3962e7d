"""Every forgery of a ledger is found, on the user's own and on a made-up one; a blind verifier is found out. All exact."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from audit.faults import FRESH, people

import tidegate as tg
from tidegate.audit.tampering import FORGERIES, WITH_HEAD, Copy, attack_ledger, made_up
from tidegate.ledger import Ledger, verify
from tidegate.policy import Policy

given: dict[str, Any] = {"alpha": 1e-6, "seconds": 30.0, "seed": FRESH}


@pytest.fixture(scope="module")
def copy() -> Copy:
    found = made_up(people())
    assert found is not None
    return found


def small() -> Policy:
    policy = people()
    return replace(policy, dataset=replace(policy.dataset, rows=4))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger of somebody's own."""
    tmp_path = tmp_path_factory.mktemp("own")
    table = pa.table({"person": list("abcd"), "age": [1, 2, 3, 4], "pay": [0.5] * 4, "sex": list("fmfm")})
    with tg.Session(small(), table=table, ledger=str(tmp_path / "own.ledger")) as session:
        session.answer(tg.count().by("sex"), epsilon="0.1")
        session.answer(tg.mean("age"), epsilon="0.1")
    return str(tmp_path / "own.ledger")


def test_all_forgeries_of_a_made_up_ledger_are_found() -> None:
    found = attack_ledger(people(), **given)
    assert [one.attack for one in found] == ["the record as it is", *FORGERIES]
    assert {one.verdict for one in found} == {"held"}
    assert all(one.tries >= 8 for one in found[1:])


def test_the_ledger_of_the_user_is_read_and_left_alone(address: str) -> None:
    before = Path(address).read_bytes()
    found = attack_ledger(small(), address=address, **given)
    assert {one.verdict for one in found} == {"held"}
    assert "a copy of the ledger" in found[0].says
    assert Path(address).read_bytes() == before


def test_a_ledger_that_was_changed_already_is_told_first(address: str, tmp_path: Path) -> None:
    changed = tmp_path / "changed.ledger"
    shutil.copy(address, changed)
    sql = sqlite3.connect(changed, isolation_level=None)
    sql.execute("UPDATE tidegate_results SET payload = '{\"parts\":[]}'")
    sql.close()
    (found,) = attack_ledger(small(), address=str(changed), **given)
    assert found.broken
    assert "stored result was changed" in found.says


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_changes_something_and_takes_a_noted_head_only_where_it_says_so(copy: Copy, name: str) -> None:
    random = np.random.default_rng([FRESH, 1])
    for _ in range(10):
        forged = FORGERIES[name](copy, random)
        assert forged is not None
        assert forged != (copy.entries, copy.payloads)
        assert not verify(*forged, copy.requests, copy.counts, head=copy.head).holds
        if name not in WITH_HEAD:
            assert not verify(*forged, copy.requests, copy.counts).holds


def test_written_anew_it_is_consistent_in_itself(copy: Copy) -> None:
    """That is why a head must be noted elsewhere."""
    forged = FORGERIES["everything rewritten"](copy, np.random.default_rng(1))
    assert forged is not None
    assert verify(*forged, copy.requests, copy.counts).holds


# Teeth: verifiers with a fault. Each is blind to one thing, and that thing is reported.


def no_hashes(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    """Looks at the end alone."""
    verdict = verify(entries, payloads, *more, head=head)
    verdict.problems = [one for one in verdict.problems if "noted head" in one]
    return verdict


def no_head(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    return verify(entries, payloads, *more)


def no_results(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    verdict = verify(entries, payloads, *more, head=head)
    verdict.problems = [one for one in verdict.problems if "stored result" not in one]
    return verdict


def no_prices(entries: Any, payloads: Any, *more: Any, head: str = "") -> Any:
    verdict = verify(entries, payloads, *more, head=head)
    verdict.problems = [one for one in verdict.problems if "price" not in one and "add up" not in one]
    return verdict


@pytest.mark.parametrize(
    ("blind", "missed"),
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
def test_a_blind_verifier_is_found_out(address: str, blind: Any, missed: str) -> None:
    found = {one.attack: one for one in attack_ledger(small(), address=address, check=blind, **given)}
    assert found[missed].broken
    assert "not detected" in found[missed].says


def test_a_policy_that_promises_no_answers_has_no_made_up_ledger(tmp_path: Path) -> None:
    bare = replace(people(), identification=None)
    assert attack_ledger(bare, **given) == []
    Ledger(str(tmp_path / "empty.ledger")).close()
    assert attack_ledger(bare, address=str(tmp_path / "empty.ledger"), **given) == []
