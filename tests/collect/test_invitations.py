"""One code gives one report: codes, tokens, replays and forgeries, close, caps, and what the ledger verifies and never shows."""

from __future__ import annotations

import json
import logging
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from collect.invited import (
    CLOSES,
    invited_report,
    later_version,
    open_invited,
    poll_of,
    signed_token,
    signing_key,
    token_of,
)
from collect.surveys import open_survey, policy_of, report

import tidegate as tg
from tidegate.collect import run
from tidegate.collect.invitations import FULL, SPENT, UNSIGNED, create_key, new_code, obtain, read_code, to_text
from tidegate.collect.memory import FileMemory
from tidegate.collect.validation import REPLAYED
from tidegate.errors import NotAllowed, TidegateError, Unsupported
from tidegate.ledger import Ledger
from tidegate.ledger.backup import backup, export_lines
from tidegate.ledger.explain import explain_entries
from tidegate.ledger.invitations import InvitationBook
from tidegate.operators.exact_draws import SeededBytes

# Codes


def test_code_is_read_however_it_is_typed() -> None:
    draw = random.Random(7)
    for _ in range(200):
        bits = draw.randbytes(16)
        code = new_code(_Fixed(bits))
        typed = code.replace("0", draw.choice("0oO")).replace("1", draw.choice("1iIlL"))
        typed = typed.replace("-", draw.choice(["-", "", " ", " - "]))
        assert read_code(typed if draw.random() < 0.5 else typed.lower()) == bits


class _Fixed:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def take(self, count: int) -> bytes:
        assert count == len(self._content)
        return self._content


@pytest.mark.parametrize("text", ["", "7K3M", "U" * 26, "Z" * 26, "0" * 25, "0" * 27, "0" * 25 + "é", "٠" * 26])
def test_text_that_is_no_code_is_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="not an invitation code"):
        read_code(text)


# Tokens


def test_code_gives_one_report(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    codes = survey.invite(3, user="olga")
    assert len(set(codes)) == 3
    token = token_of(survey, codes[0])
    first = invited_report(0, survey, token)
    assert survey.receive([first]).reasons == (None,)
    assert survey.receive([first]).reasons == (REPLAYED,)
    assert survey.receive([invited_report(1, survey, token)]).reasons == (SPENT,)
    with pytest.raises(NotAllowed, match="used before"):
        token_of(survey, codes[0])
    assert survey.receive([invited_report(1, survey, token_of(survey, codes[1]))]).accepted == 1
    survey.close()
    assert survey.reports == 2
    assert session.ledger.verify().problems == []
    session.close()


def test_token_counts_once_within_one_request(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    token = token_of(survey, survey.invite(1)[0])
    listed = [invited_report(number, survey, token) for number in (0, 1, 0)]
    assert survey.receive(listed).reasons == (None, SPENT, REPLAYED)
    session.close()


def test_lost_response_is_requested_again_with_the_same_message(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    [code], memory, key = survey.invite(1), FileMemory(tmp_path / "memory.json"), survey.collection.poll.invitation_key  # type: ignore[union-attr]

    def lose(code: str, blinded: str) -> str:
        survey.sign(code, blinded)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        obtain(key, code, memory, lose)
    token = obtain(key, code, FileMemory(tmp_path / "memory.json"), survey.sign)
    assert obtain(key, "any text", memory, _never) == token  # it is stored now
    assert survey.receive([invited_report(0, survey, token)]).accepted == 1
    assert survey.invitations == (1, 0)  # used codes are shown rounded
    session.close()


def _never(code: str, blinded: str) -> str:
    raise AssertionError("nothing is sent")


def test_unknown_code_and_text_that_is_no_code_are_refused_alike(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    survey.invite(1)
    refusals = []
    for code in (new_code(), "no code at all"):
        with pytest.raises(NotAllowed) as refused:
            survey.sign(code, to_text(bytes(255) + b"\2"))
        refusals.append(refused.value.to_dict())
    assert refusals[0] == refusals[1]
    session.close()


def test_signature_under_another_key_is_refused_by_the_device(ledger_url: str, tmp_path: Path) -> None:
    """A service that signs with a second key, to recognize a person, gets no report."""
    session, survey = open_invited(ledger_url, tmp_path)
    other, memory = signing_key(1), dict[str, Any]()

    def sign(code: str, blinded: str) -> str:
        number = int.from_bytes(run.from_text(blinded)) % other.modulus
        return to_text(other.sign(number.to_bytes(256)))

    with pytest.raises(Unsupported, match="does not match the key"):
        token_with(survey, memory, sign)
    assert all("signature" not in record for record in memory.values())
    session.close()


def token_with(survey: Any, memory: dict[str, Any], sign: Any) -> dict[str, str]:
    return obtain(survey.collection.poll.invitation_key, new_code(), memory, sign)


def test_another_key_is_another_fingerprint() -> None:
    keys = [to_text(signing_key(number).public) for number in (0, 1)]
    assert len({poll_of(invitation_key=key).fingerprint for key in keys}) == 2


# Reports


def test_forged_and_malformed_invitations_are_refused(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    token = token_of(survey, survey.invite(1)[0])
    nonce, signature = token["nonce"], token["signature"]
    forged = [
        {"nonce": "0" * 128, "signature": signature},
        {"nonce": nonce, "signature": "A" * 342},
        {"nonce": nonce[:-1] + ("0" if nonce[-1] != "0" else "1"), "signature": signature},
        signed_token(b"", signing_key(1)),
    ]
    for other in forged:
        assert survey.receive([invited_report(0, survey, other)]).reasons == (UNSIGNED,)
    malformed: list[Any] = [
        None,
        {},
        "token",
        {"nonce": nonce},
        {"nonce": nonce, "signature": signature, "code": "x"},
        {"nonce": nonce.upper(), "signature": signature},
        {"nonce": nonce, "signature": signature + "="},
        {"nonce": 1, "signature": signature},
        {"nonce": nonce, "signature": signature[:-2] + "é" + signature[-1]},
    ]
    for invitation in malformed:
        [reason] = survey.receive([{**report(0, survey.collection), "invitation": invitation}]).reasons
        assert reason is not None
        assert reason.startswith("malformed")
        assert nonce not in reason
    [reason] = survey.receive([report(0, survey.collection)]).reasons
    assert (
        reason == "malformed: a report has collection, fingerprint, version, answers, id, invitation, and nothing else"
    )
    session.close()


def test_signature_with_spare_bits_is_refused(ledger_url: str, tmp_path: Path) -> None:
    """Base64 of 256 bytes has four spare bits at its end: only one text is accepted."""
    session, survey = open_invited(ledger_url, tmp_path)
    token = token_of(survey, survey.invite(1)[0])
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = token["signature"][:-1] + letters[letters.index(token["signature"][-1]) + 1]
    assert survey.receive([invited_report(0, survey, {**token, "signature": other})]).accepted == 0
    session.close()


def test_report_of_an_open_poll_has_no_invitation(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path, poll_of("open"))
    assert survey.receive([invited_report(0, survey, signed_token(b"x"))]).accepted == 0
    assert survey.receive([report(0, survey.collection)]).accepted == 1
    with pytest.raises(Unsupported, match="no invitations"):
        survey.invite(1)
    session.close()


def test_list_for_an_invited_poll_is_refused(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    with pytest.raises(Unsupported, match="cannot be submitted as a list"):
        survey.submit([invited_report(0, survey, signed_token(b"x"))])
    session.close()


def test_open_poll_accepts_at_most_its_number(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path, poll_of("open", at_most=5))
    listed = [report(number, survey.collection) for number in range(8)]
    assert survey.receive(listed[:3]).accepted == 3
    assert survey.receive(listed).reasons == (*[REPLAYED] * 3, None, None, *[FULL] * 3)
    with pytest.raises(Unsupported, match="accepts 0 more"):
        survey.submit(listed[5:])
    survey.close()
    assert survey.reports == 5
    session.close()


# The close


def test_poll_closes_at_its_time(ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports and codes are refused from then on; the entries have the scheduled time, whoever looks how late."""
    closes = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    session, survey = open_invited(ledger_url, tmp_path, closes=closes)
    codes = survey.invite(2)
    assert survey.receive([invited_report(0, survey, token_of(survey, codes[0]))]).accepted == 1
    assert survey.flush_if_due(now=closes - timedelta(seconds=1)) == 0
    monkeypatch.setattr(run, "current_time", lambda: closes)
    assert survey.receive([invited_report(1, survey, signed_token(b"1"))]).reasons == (
        'the collection "canteen" is closed',
    )
    assert survey.receive([]).reasons == ()
    with pytest.raises(Unsupported, match="is closed"):
        token_of(survey, codes[1])
    with pytest.raises(Unsupported, match="is closed"):
        survey.invite(1)
    assert survey.reports == 0
    assert survey.flush_if_due(now=closes + timedelta(days=3)) == 1
    assert survey.flush_if_due(now=closes + timedelta(days=3)) == 0
    assert (survey.reports, survey.closed) == (1, True)
    *_, batch, closing_entry = session.ledger.entries()
    assert (batch.kind, closing_entry.kind) == ("reports", "closing")
    assert batch.at == closing_entry.at == closes.isoformat(timespec="milliseconds")
    verdict = session.ledger.verify()
    assert (verdict.problems, [note for note in verdict.notes if "time" in note]) == ([], [])
    session.close()


def test_open_poll_without_reports_closes_too(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_survey(ledger_url, tmp_path, poll_of("open"))
    assert survey.flush_if_due(now=CLOSES) == 0
    assert survey.closed
    assert session.ledger.verify().problems == []
    session.close()


# The ledger


def test_key_is_created_once_until_a_poll_opens_with_it(ledger_url: str, tmp_path: Path) -> None:
    with closing(Ledger(ledger_url)) as ledger:
        key = create_key(ledger, dataset="people", poll="canteen", user="olga")
        assert create_key(ledger, dataset="people", poll="canteen") == key
        assert create_key(ledger, dataset="people", poll="other") != key
        assert ledger.verify().problems == []
    session = tg.open(policy_of(poll_of(invitation_key=key)), ledger=ledger_url)
    survey = session.collect("canteen", reports=str(tmp_path))
    token = token_of(survey, survey.invite(2)[0])
    assert survey.receive([invited_report(0, survey, token)]).accepted == 1
    assert create_key(session.ledger, dataset="people", poll="canteen") != key
    assert session.ledger.verify().problems == []
    session.close()


def test_poll_whose_key_is_elsewhere_signs_nothing(ledger_url: str, tmp_path: Path) -> None:
    collection = poll_of(invitation_key=to_text(signing_key().public))
    session, survey = open_survey(ledger_url, tmp_path, collection)
    with pytest.raises(Unsupported, match="not created in this ledger"):
        survey.invite(1)
    assert survey.receive([invited_report(0, survey, signed_token(b"x"))]).accepted == 1
    assert session.ledger.verify().problems == []
    session.close()


def test_token_and_codes_outlive_a_new_version_with_the_same_key(ledger_url: str, tmp_path: Path) -> None:
    """A corrected label: who has answered cannot answer again, and everybody else still can."""
    session, survey = open_invited(ledger_url, tmp_path)
    codes, memories = survey.invite(3), [dict[str, Any](), dict[str, Any](), dict[str, Any]()]
    first, second = (token_of(survey, code, memory) for code, memory in zip(codes[:2], memories[:2], strict=True))
    assert survey.receive([invited_report(0, survey, first)]).accepted == 1
    session.close()
    session = tg.open(policy_of(later_version(survey.collection)), ledger=ledger_url)
    survey = session.collect("canteen", reports=str(tmp_path))
    assert survey.receive([invited_report(1, survey, first)]).reasons == (SPENT,)
    assert token_of(survey, codes[1], memories[1]) == second
    assert survey.receive([invited_report(1, survey, second)]).accepted == 1
    assert survey.receive([invited_report(2, survey, token_of(survey, codes[2], memories[2]))]).accepted == 1
    assert session.ledger.verify().problems == []
    survey.close()
    assert survey.reports == 2
    assert session.ledger.verify().problems == []
    session.close()


def test_more_tokens_than_codes_are_reported(ledger_url: str, tmp_path: Path) -> None:
    """A holder who signs tokens without codes is found by `verify`."""
    session, survey = open_invited(ledger_url, tmp_path)
    survey.invite(1)
    assert survey.receive([invited_report(0, survey, signed_token(b"forged by the holder"))]).accepted == 1
    [problem] = session.ledger.verify().problems
    assert problem.endswith("are more than the used codes.")
    session.close()


def test_private_key_and_codes_are_in_no_entry_export_or_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    session, survey = open_invited(str(tmp_path / "a.ledger"), tmp_path / "r")
    codes = survey.invite(2, user="olga")
    token = token_of(survey, codes[0])
    survey.receive([invited_report(0, survey, token)])
    survey.close()
    shown = "\n".join([*export_lines(session.ledger), *(text for _, text in explain_entries(session.ledger.entries()))])
    key = signing_key()
    secrets = [
        f"{key.p:x}",
        f"{key.q:x}",
        str(key.p),
        *codes,
        *(code.replace("-", "") for code in codes),
        token["nonce"],
    ]
    logged = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert not [secret for secret in secrets if secret in shown or secret in logged or secret in repr(survey)]
    assert "olga created 2 invitations: 2 in total" in shown
    copied = backup(
        session.ledger, tmp_path / "b.backup"
    )  # a backup has the secrets of the ledger and is for its owner only
    assert Path(copied.path).stat().st_mode & 0o077 == 0
    assert (tmp_path / "a.ledger").stat().st_mode & 0o077 == 0
    session.close()


def test_what_a_code_is_used_for_has_no_entry(ledger_url: str, tmp_path: Path) -> None:
    """An entry for each would show when a person took part."""
    session, survey = open_invited(ledger_url, tmp_path)
    codes = survey.invite(2)
    before = len(list(session.ledger.entries()))
    survey.receive([invited_report(0, survey, token_of(survey, codes[0]))])
    assert len(list(session.ledger.entries())) == before
    session.close()


def test_refusals_quote_neither_code_nor_token(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    code = survey.invite(1)[0]
    token_of(survey, code)
    for sent in (code, new_code()):
        with pytest.raises(TidegateError) as refused:
            token_of(survey, sent)
        assert sent not in json.dumps(refused.value.to_dict())
    session.close()


def test_book_counts_codes(ledger_url: str, tmp_path: Path) -> None:
    session, survey = open_invited(ledger_url, tmp_path)
    key = survey.collection.poll.invitation_key  # type: ignore[union-attr]
    codes = [*survey.invite(2), *survey.invite(3)]
    token_of(survey, codes[4], source=SeededBytes("a device"))
    assert InvitationBook(session.ledger, "people/canteen").counts(key) == (5, 1)
    assert session.ledger.verify().problems == []
    for wrong in (0, 100_001):
        with pytest.raises(Unsupported, match="must be from 1"):
            survey.invite(wrong)
    assert replace(survey.collection).fingerprint == survey.collection.fingerprint
    session.close()


def test_rows_of_codes_and_tokens_have_no_order_of_arrival(tmp_path: Path) -> None:
    """In SQLite they are stored in the order of hashes, without row numbers."""
    session, survey = open_invited(str(tmp_path / "a.ledger"), tmp_path / "r")
    for number, code in enumerate(survey.invite(20)):
        survey.receive([invited_report(number, survey, token_of(survey, code))])
    session.close()
    with closing(sqlite3.connect(tmp_path / "a.ledger")) as connection:
        for table, column in (("invitations", "code"), ("spent_tokens", "nonce")):
            with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
                connection.execute(f"SELECT rowid FROM tidegate_{table}")
            stored = [hashed for (hashed,) in connection.execute(f"SELECT {column} FROM tidegate_{table}")]
            assert stored == sorted(stored)
            assert len(stored) == 20


def test_damaged_invitations_are_reported(tmp_path: Path) -> None:
    """While a report waits: its token deleted or doubled, a code made unused again, one added, an unreadable one."""
    session, survey = open_invited(str(tmp_path / "a.ledger"), tmp_path / "r")
    code, _ = survey.invite(2)
    survey.receive([invited_report(0, survey, token_of(survey, code))])
    assert session.ledger.verify().problems == []
    session.close()
    copy = "INSERT INTO tidegate_invitations SELECT key, randomblob(32), x'', x'' FROM tidegate_invitations LIMIT 1"
    changes = {
        "DELETE FROM tidegate_spent_tokens": "one for each waiting report",
        "INSERT INTO tidegate_spent_tokens SELECT key, randomblob(32), 0 FROM tidegate_spent_tokens": "one for each",
        "UPDATE tidegate_spent_tokens SET entry = 3": "differ from the batches",
        "UPDATE tidegate_invitations SET blinded = x'', signature = x''": "more than the used codes",
        copy: "differ from the entries that created them",
        "DELETE FROM tidegate_invitations WHERE blinded = x''": "differ from the entries that created them",
        "UPDATE tidegate_invitations SET signature = 'text' WHERE blinded <> x''": "cannot be read",
        "DELETE FROM tidegate_secrets WHERE account LIKE '%/invitations/%'": "is not the one that the entries commit to",
    }
    for number, (change, problem) in enumerate(changes.items()):
        path = tmp_path / f"{number}.ledger"
        shutil.copy(tmp_path / "a.ledger", path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            assert connection.execute(change).rowcount > 0
        with closing(Ledger(str(path), read_only=True)) as ledger:
            assert any(problem in reported for reported in ledger.verify().problems), change
