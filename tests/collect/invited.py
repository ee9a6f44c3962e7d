"""Invited and open polls, their surveys, and reports with tokens, for tests of invitations."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from collect.surveys import policy_of, report

import tidegate as tg
from tidegate.collect.invitation_keys import InvitationKey
from tidegate.collect.invitations import obtain, to_text
from tidegate.collect.survey import Survey
from tidegate.ledger import Ledger
from tidegate.ledger.invitations import InvitationBook
from tidegate.policy import Category, Collection, Question
from tidegate.policy.poll import Poll, Wording

VECTORS = json.loads((Path(__file__).parent / "token_vectors.json").read_text("utf-8"))
OPTIONS = ("never", "weekly", "daily")
OFTEN = Question("often", Category(OPTIONS), "randomized-response", epsilon=2)
LABELS = {option: {"en": option.capitalize()} for option in OPTIONS}
CLOSES = datetime(2100, 1, 1, tzinfo=UTC)


def poll_of(access: Any = "invited", *, closes: datetime = CLOSES, **more: Any) -> Collection:
    """Return a poll with one question."""
    wording = {"often": Wording({"en": "How often do you eat here?"}, LABELS)}
    poll = Poll(("en",), {"en": "Canteen"}, {"en": "Plan the menu"}, wording, access, closes, **more)
    return Collection("canteen", {"often": OFTEN}, repeats="once", holder="Works council", poll=poll)


@lru_cache(maxsize=4)
def signing_key(number: int = 0) -> InvitationKey:
    """Return a key: the one of our vectors, the same in every process, or another one of this process."""
    return InvitationKey.generate() if number else InvitationKey.from_text(VECTORS["key"])


def open_invited(url: str, location: Path, *, closes: datetime = CLOSES) -> tuple[tg.Session, Survey]:
    """Open an invited poll with a key of this ledger, or the one that is open already."""
    public = to_text(signing_key().public)
    with closing(Ledger(url)) as ledger:
        book = InvitationBook(ledger, "people/canteen")
        if book.private_key(public) is None:
            book.create_key(lambda: signing_key().text)
    session = tg.open(policy_of(poll_of(invitation_key=public, closes=closes)), ledger=url)
    return session, session.collect("canteen", reports=str(location))


def token_of(survey: Survey, code: str, memory: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    """Return the token that a device gets for a code."""
    assert survey.collection.poll is not None
    return obtain(survey.collection.poll.invitation_key, code, {} if memory is None else memory, survey.sign, **more)


def invited_report(number: int, survey: Survey, token: dict[str, str]) -> dict[str, Any]:
    """Return report number n with a token."""
    return {**report(number, survey.collection), "invitation": token}


def signed_token(message: bytes, key: InvitationKey | None = None) -> dict[str, str]:
    """Return a token without a code, as only somebody with the private key can make it."""
    from tidegate.collect.blind_signatures import blind, finalize, prepare

    signer = key or signing_key()
    prepared = prepare(message.ljust(32, b"\0"))
    blinded, inverse = blind(signer.public, prepared)
    return {
        "nonce": prepared.hex(),
        "signature": to_text(finalize(signer.public, prepared, signer.sign(blinded), inverse)),
    }


def later_version(collection: Collection) -> Collection:
    return replace(collection, version=collection.version + 1)
