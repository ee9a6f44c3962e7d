"""A service for polls alone, from an empty file, and people who answer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import support.declared  # noqa: F401  compares every response with its model
from support.console_service import OPEN, Console, on_loopback

from tidegate.collect.invitations import obtain
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings

EMPTY = '[dataset]\nname = "polls"\n'
CANTEEN: dict[str, Any] = {
    "poll": "canteen",
    "holder": "Works council, Example Ltd",
    "title": {"en": "Canteen", "de": "Kantine"},
    "purpose": {"en": "Plan the menu for spring", "de": "Speiseplan für das Frühjahr"},
    "languages": ["en", "de"],
    "access": "invited",
    "clients": 250,
    "questions": {
        "often": {
            "text": {"en": "Do you eat here every week?", "de": "Essen Sie jede Woche hier?"},
            "options": {"yes": {"en": "Yes", "de": "Ja"}, "no": {"en": "No", "de": "Nein"}},
            "random": "1/3",
        }
    },
}


def closing_time(days: float = 14) -> str:
    """Return a time after now, for the key `closes`."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"


def canteen(**other: Any) -> dict[str, Any]:
    """Return the body of a new poll, with other values for some keys."""
    return {**CANTEEN, "closes": closing_time(), **other}


@contextmanager
def poll_console(folder: Path) -> Iterator[Console]:
    """Serve a file without polls on loopback."""
    (folder / "polls.toml").write_text(EMPTY, "utf-8")
    settings = Settings((str(folder / "polls.toml"),), "", **OPEN, poll_rate=1e6, poll_burst=1e6)
    datasets = ServedDatasets.from_files(settings.policies)
    store = Tokens(datasets.ledger.store)
    tokens = {role: make_token(store, role=role, name=role, dataset="polls")[0] for role in (OWNER, ANALYST)}
    tokens[RESPONDENT] = make_token(store, role=RESPONDENT, name="rosa", dataset="polls", record="1")[0]
    app = create_app(settings, datasets)
    with on_loopback(app) as address:
        console = Console(address, folder, app, datasets, tokens)
        yield console
        for visit in console.visits.values():
            visit.context.close()


def answer(survey: Any, answers: Mapping[str, Any], code: str = "") -> dict[str, Any]:
    """Return the report of one person, with the token of their code if the poll is by invitation."""
    memory: dict[str, Any] = {}
    client = survey.client(memory=memory)
    token = obtain(survey.collection.poll.invitation_key, code, memory, survey.sign) if code else None
    report: dict[str, Any] = client.start({name: answers[name] for name in client.asked}, invitation=token)
    return report
