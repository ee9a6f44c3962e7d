"""Charges of an account by person and time. Entries never change, so only new ones are read again."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from tidegate.accounting import Amount
from tidegate.accounting.amount import ZERO
from tidegate.ledger.entry import ACCESS, ANSWERED, CHARGED, COLLECTING, CREATED, OPENED
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import entries, requests


@dataclass(frozen=True)
class Charge:
    """A charge: its entry, its time, the user, and the amount in the account's unit."""

    number: int
    at: datetime
    user: str
    amount: Amount


class Spending:
    """The charges of every account of a ledger, read as they are added."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._turn = ledger, threading.Lock()
        self._charges: dict[str, list[Charge]] = {}

    def charges(self, account: str) -> list[Charge]:
        """Return all charges of an account, in order."""
        with self._turn:
            known = self._charges.setdefault(account, [])
            last = known[-1].number if known else 0
            query = (
                select(entries.c.number, entries.c.at, entries.c.amount, entries.c.body)
                .where(entries.c.account == account, entries.c.kind == CHARGED, entries.c.number > last)
                .order_by(entries.c.number)
            )
            with self._ledger.store.reading() as connection:
                for number, at, amount, body in connection.execution_options(yield_per=1000).execute(query):
                    user = str(json.loads(body).get("who", ""))
                    known.append(Charge(number, datetime.fromisoformat(at), user, Amount.parse(amount)))
            return list(known)


def totals_by_user(charges: Iterable[Charge]) -> dict[str, Amount]:
    """Return what each user spent, the largest first."""
    totals: dict[str, Amount] = defaultdict(lambda: ZERO)
    for charge in charges:
        totals[charge.user] = totals[charge.user] + charge.amount
    return dict(sorted(totals.items(), key=lambda pair: pair[1].value, reverse=True))


def waiting_since(ledger: Ledger, account: str) -> tuple[int, str]:
    """Return the number of records that wait for release, and when the oldest of them began to wait."""
    waits = (requests.c.account == account) & (requests.c.state == "waiting")
    with ledger.store.reading() as connection:
        count, first = connection.execute(select(func.count(), func.min(requests.c.entry)).where(waits)).one()
        at = connection.execute(select(entries.c.at).where(entries.c.number == first)).scalar() if count else ""
    return int(count), str(at or "")


def has_released(ledger: Ledger) -> bool:
    """Return whether anything was charged, released or collected: a ledger of policies and open collections alone needs no backup."""
    query = select(entries.c.number).where(entries.c.kind.not_in((CREATED, OPENED, COLLECTING, ACCESS))).limit(1)
    with ledger.store.reading() as connection:
        return connection.execute(query).first() is not None


def source_of_last_answer(ledger: Ledger, account: str) -> int:
    """Return the index of the source state that the latest result describes; 0 if there is none."""
    query = (
        select(entries.c.body)
        .where(entries.c.account == account, entries.c.kind == ANSWERED)
        .order_by(entries.c.number.desc())
        .limit(1)
    )
    with ledger.store.reading() as connection:
        body = connection.execute(query).scalar()
    return int(json.loads(body).get("source", 0)) if body else 0
