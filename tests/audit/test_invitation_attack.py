"""Attacks on invitations: the real service holds, and each planted fault is found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from collect.invited import open_invited, poll_of
from collect.surveys import policy_of, report

from tidegate.audit.collections import invitations
from tidegate.audit.collections.invitations import (
    InvitedTarget,
    attack_invitations,
    forge_tokens,
    link_tokens,
    offer_two_keys,
    reuse_codes,
)
from tidegate.audit.collections.run import attack_reports
from tidegate.audit.finding import Finding
from tidegate.collect import run
from tidegate.collect.blind_signatures import blind_number
from tidegate.ledger import collection_book
from tidegate.ledger.invitations import InvitationBook, StoredCode


@pytest.fixture
def target(tmp_path: Path) -> Iterator[InvitedTarget]:
    session, survey = open_invited(str(tmp_path / "a.ledger"), tmp_path / "r")
    numbers = iter(range(10**6))
    yield InvitedTarget(survey, survey.receive, lambda: report(next(numbers), survey.collection))
    session.close()


def broken(findings: list[Finding]) -> set[str]:
    return {finding.attack for finding in findings if finding.broken}


def test_real_service_holds(target: InvitedTarget) -> None:
    findings = attack_invitations(target)
    assert {finding.verdict for finding in findings} == {"held"}
    assert [finding.attack for finding in findings] == [
        "codes and tokens used again",
        "forged tokens",
        "two keys for one poll",
        "link between codes and tokens",
    ]
    assert all(finding.tries > 1 for finding in findings)


def forget_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(collection_book, "known_tokens", lambda *_: set())
    patch.setattr(collection_book, "spend_tokens", lambda *_: None)
    patch.setattr(collection_book, "_state", lambda report, known, *_: "known" if report.id in known else "waits")


def forget_codes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredCode, "is_used", False)


def sign_for_any_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InvitationBook, "find", lambda *_: StoredCode(b"", b""))
    patch.setattr(InvitationBook, "_find", lambda *_: StoredCode(b"", b""))


def accept_any_signature(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run.Server, "_unsigned", lambda *_: None)


def verify_without_the_message(patch: pytest.MonkeyPatch) -> None:
    """Accept any number whose power has the trailer of PSS: a verification that forgets the digest."""
    right = run.Server._unsigned

    def unsigned(self: Any, sent: Any) -> str | None:
        number = int.from_bytes(run.from_text(sent["invitation"]["signature"]))
        modulus = int.from_bytes(self._key)
        return None if pow(number, 65537, modulus) % 256 == 0xBC else right(self, sent)

    patch.setattr(run.Server, "_unsigned", unsigned)


def take_any_answer(patch: pytest.MonkeyPatch) -> None:
    """A device that does not check the signature that it gets."""
    from tidegate.collect import blind_signatures

    patch.setattr(blind_signatures, "is_signed", lambda *_, **__: True)


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[InvitedTarget], Finding]]] = {
    "spent tokens are forgotten": (forget_tokens, reuse_codes),
    "used codes are forgotten": (forget_codes, reuse_codes),
    "every code is valid": (sign_for_any_code, reuse_codes),
    "signatures are not verified": (accept_any_signature, forge_tokens),
    "the message is not verified": (verify_without_the_message, forge_tokens),
    "the device checks no signature": (take_any_answer, offer_two_keys),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found(target: InvitedTarget, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plant, attack = FAULTS[name]
    plant(monkeypatch)
    assert attack(target).broken


BLINDINGS = {
    "no blinding": lambda number, factor, modulus, exponent: number,
    "a factor of 1": lambda number, factor, modulus, exponent: blind_number(number, 1, modulus, exponent),
    "half of the factors": lambda number, factor, modulus, exponent: blind_number(
        number, min(factor, modulus - factor), modulus, exponent
    ),
    "squares": lambda number, factor, modulus, exponent: blind_number(number, factor**2, modulus, exponent),
    "a factor from the message": lambda number, factor, modulus, exponent: blind_number(
        number, int(hashlib.sha256(bytes([number % 251])).hexdigest(), 16) % 200 + 1, modulus, exponent
    ),
}


@pytest.mark.parametrize("name", BLINDINGS)
def test_weak_blinding_is_found(name: str) -> None:
    assert link_tokens(BLINDINGS[name]).broken


def test_fingerprint_that_is_not_checked_is_found(target: InvitedTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that takes any description would use the second key."""
    monkeypatch.setattr(invitations, "_client_with", lambda *_: None)
    assert offer_two_keys(target).broken


@pytest.mark.parametrize("access", ["invited", "open"])
def test_whole_audit_of_a_poll_holds(access: Any) -> None:
    """With a false-alarm rate of 1e-6 for each sampled finding; the seed is fixed."""
    findings = attack_reports(policy_of(poll_of(access)), "canteen", alpha=1e-6, seconds=1, seed=21, most=2_000)
    assert broken(findings) == set()
    attacks = {finding.attack for finding in findings}
    assert {"replayed reports", "forged reports"} <= attacks
    assert ("codes and tokens used again" in attacks) == (access == "invited")
    assert ("fabricated reports" in attacks) == (access == "open")
