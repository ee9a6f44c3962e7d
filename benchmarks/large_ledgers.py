"""Large ledgers, written in bulk: the same rows that charges and results would write one by one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, DiscreteLaplace
from tidegate.ledger import Entry, Ledger, merkle, shares, sources, totals
from tidegate.ledger.entry import ANSWERED, CHARGED, canonical, sha256
from tidegate.ledger.queries import last
from tidegate.ledger.schema import entries, requests, results
from tidegate.policy import Category, Dataset, Integer, Loss, Policy

POLICY = Policy(Dataset("people"), {"age": Integer(17, 90), "sex": Category(("f", "m"))}, loss=Loss("1000000000"))
EVENT = DiscreteLaplace(Fraction(2), Fraction(20))
PAYLOAD = canonical({"cells": list(range(100, 174)), "labels": {"age": list(range(17, 91))}, "scale": "20"})
USERS = 20
AT_ONCE = 20_000  # entries of one transaction


def fill(ledger: Ledger, size: int) -> None:
    """Add charges with their results until the ledger has `size` entries; each charge is of another query."""
    ledger.open_account(POLICY)
    while (missing := size - _count(ledger)) > 1:
        _add(ledger, min(AT_ONCE, missing))


def fill_requests(ledger: Ledger, size: int, *, account: str) -> None:
    """Add withdrawn requests to a data set, without entries."""
    fields: dict[str, Any] = {"account": account, "state": "withdrawn", "cells": "", "record": "", "nonce": ""}
    for start in range(1, size + 1, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, size + 1))
        rows = [{**fields, "number": n, "key": f"k{n}", "place": None, "entry": 1} for n in numbers]
        with ledger.store.writing() as connection:
            connection.execute(requests.insert(), rows)


def _count(ledger: Ledger) -> int:
    with ledger.store.reading() as connection:
        end = last(connection)
    return end.number + 1 if end else 0


def _add(ledger: Ledger, size: int) -> None:
    with ledger.store.writing() as connection:
        end = last(connection)
        assert end is not None
        before, rows, payloads = totals.read(connection, "people"), [], []
        price, spent = EVENT.price, {user: shares.spent_by(connection, "people", user) for user in _users()}
        for number in range(end.number + 1, end.number + size, 2):
            user, before = f"user {number % USERS}", before.plus(price)
            charge = _charge(end, user=user, spent=str(before.main), number=number)
            spent[user] = spent[user] + Amount.parse(charge.amount)
            body = canonical({"charge": number, "sha256": sha256(PAYLOAD)})
            end = _after(charge, kind=ANSWERED, amount="0", body=body, request=charge.request)
            rows += [charge.__dict__, end.__dict__]
            payloads.append({"number": end.number, "payload": PAYLOAD})
            sources.put(connection, charge, end.number)
        connection.execute(entries.insert(), rows)
        connection.execute(results.insert(), payloads)
        for row in rows:
            merkle.add(connection, row["number"])
        totals.put(connection, "people", before)
        for user, total in spent.items():
            if total:
                shares.put(connection, "people", user, total)


def _users() -> Iterator[str]:
    return (f"user {number}" for number in range(USERS))


def _charge(end: Entry, *, user: str, spent: str, number: int) -> Entry:
    ask = {"ask": "count", "by": ["age"], "where": ["age", number], "column": None}
    question = {"verb": "answer", "asks": [ask], "event": EVENT.to_dict()}
    body = {"event": EVENT.to_dict(), "question": question, "says": "the number of rows by age", "who": user}
    hashed = sha256(canonical(question))
    amount = str(totals.amount_of(EVENT.price, totals.Totals().ceilings))
    names = {"kind": CHARGED, "amount": amount, "spent": spent, "body": canonical(body), "request": hashed}
    return _after(end, question=hashed, **names)


def _after(end: Entry, **fields: Any) -> Entry:
    return Entry(**{**end.__dict__, "number": end.number + 1, "previous": end.hash, **fields}).sealed()
