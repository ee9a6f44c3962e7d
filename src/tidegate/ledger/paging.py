"""Some entries at a time, with what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, func, select

from tidegate.ledger.entry import CHARGED, OPENED, Entry, canonical, entry_from
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import entries
from tidegate.ledger.words import told


def page(
    ledger: Ledger,
    *,
    dataset: str = "",
    kind: str = "",
    who: str | None = None,
    after: int = 0,
    limit: int = 100,
    newest: bool = False,
) -> list[tuple[Entry, str]]:
    """Entries after a number with their sentences, of a data set and its collections or of all. `newest` gives the latest
    ones instead, the latest first. `kind` and `who` (of charges) keep some only."""
    query = _chosen(select(entries), dataset, kind, who).where(entries.c.number > after)
    query = query.order_by(entries.c.number.desc() if newest else entries.c.number).limit(limit)
    with ledger.store.reading() as connection:
        found = _read(connection, query)
        found.sort(key=lambda entry: entry.number)
        policies = _in_force(connection, found)
    said = list(told([*policies, *found]))[len(policies) :]
    return said[::-1] if newest else said


def accounts(ledger: Ledger) -> list[str]:
    """Every account that has an entry."""
    with ledger.store.reading() as connection:
        rows = connection.execute(select(entries.c.account).distinct().order_by(entries.c.account))
        return [str(account) for (account,) in rows]


def _chosen(query: Select[Any], dataset: str, kind: str, who: str | None) -> Select[Any]:
    if dataset:  # a data set has no slash in its name; its collections do
        query = query.where(
            (entries.c.account == dataset) | entries.c.account.startswith(f"{dataset}/", autoescape=True)
        )
    if kind:
        query = query.where(entries.c.kind == kind)
    if who is not None:  # the last field of a charge, in its one form
        query = query.where(
            entries.c.kind == CHARGED, entries.c.body.endswith(f'"who":{canonical(who)}}}', autoescape=True)
        )
    return query


def _in_force(connection: Connection, found: Sequence[Entry]) -> list[Entry]:
    """The policy under which each account's first entry here was written: it says what spending means."""
    first: dict[str, int] = {}
    for entry in found:
        first.setdefault(entry.account, entry.number)
    policies = []
    for account, number in first.items():
        opened = (entries.c.account == account) & (entries.c.kind == OPENED) & (entries.c.number < number)
        last = select(func.max(entries.c.number)).where(opened).scalar_subquery()
        policies += _read(connection, select(entries).where(entries.c.number == last))
    return policies


def _read(connection: Connection, query: Select[Any]) -> list[Entry]:
    return [entry_from(dict(row)) for row in connection.execute(query).mappings()]
