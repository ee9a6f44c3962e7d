"""Pages of entries with their explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, String, func, select

from tidegate.ledger.entry import CHARGED, OPENED, Entry, canonical, entry_from
from tidegate.ledger.explain import explain_entries
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import entries


def page(
    ledger: Ledger,
    *,
    dataset: str = "",
    kind: str = "",
    who: str | None = None,
    named: str = "",
    after: int = 0,
    limit: int = 100,
    newest: bool = False,
) -> list[tuple[Entry, str]]:
    """Return entries after a number with their explanations, of a data set and its collections or of all.

    `newest` returns the latest entries first; then `after` a number means the older ones (0: from the end). `kind`, `who`
    (of charges) and `named` (any user that an entry names) filter the entries.
    """
    query = _filter(select(entries), dataset, kind, who, named).where(entries.c.number > 0)  # 0 also starts a page
    if after:
        query = query.where(entries.c.number < after if newest else entries.c.number > after)
    query = query.order_by(entries.c.number.desc() if newest else entries.c.number).limit(limit)
    with ledger.store.reading() as connection:
        chosen = _read(connection, query)
        chosen.sort(key=lambda entry: entry.number)
        policies = _in_force(connection, chosen)
    explained = list(explain_entries([*policies, *chosen]))[len(policies) :]
    return explained[::-1] if newest else explained


def accounts(ledger: Ledger) -> list[str]:
    """Return every account that has an entry."""
    query = select(entries.c.account).where(entries.c.account != "").distinct().order_by(entries.c.account)
    with ledger.store.reading() as connection:
        rows = connection.execute(query)
        return [str(account) for (account,) in rows]


def _filter(query: Select[Any], dataset: str, kind: str, who: str | None, named: str) -> Select[Any]:
    if dataset:  # a data set has no slash in its name; its collections do
        query = query.where((entries.c.account == dataset) | _begins(entries.c.account, f"{dataset}/"))
    if kind:
        query = query.where(entries.c.kind == kind)
    if who is not None:  # the last field of a charge, in canonical form
        query = query.where(entries.c.kind == CHARGED, _ends(entries.c.body, f'"who":{canonical(who)}}}'))
    if named:  # a quotation mark inside a text is escaped: this can only be the field
        query = query.where(_holds(entries.c.body, f'"who":{canonical(named)}'))
    return query


# Exact comparison: LIKE in SQLite ignores case, and users whose names differ in case are different.


def _begins(text: Column[str], start: str) -> ColumnElement[bool]:
    return func.substr(text, 1, len(start), type_=String) == start


def _ends(text: Column[str], end: str) -> ColumnElement[bool]:
    return func.substr(text, func.length(text) - len(end) + 1, type_=String) == end


def _holds(text: Column[str], part: str) -> ColumnElement[bool]:
    return func.replace(text, part, "", type_=String) != text


def _in_force(connection: Connection, chosen: Sequence[Entry]) -> list[Entry]:
    """Return the policy under which each account's first entry here was written: it gives spending its meaning."""
    first: dict[str, int] = {}
    for entry in chosen:
        first.setdefault(entry.account, entry.number)
    policies = []
    for account, number in first.items():
        opened = (entries.c.account == account) & (entries.c.kind == OPENED) & (entries.c.number < number)
        last = select(func.max(entries.c.number)).where(opened).scalar_subquery()
        policies += _read(connection, select(entries).where(entries.c.number == last))
    return policies


def _read(connection: Connection, query: Select[Any]) -> list[Entry]:
    return [entry_from(dict(row)) for row in connection.execute(query).mappings()]
