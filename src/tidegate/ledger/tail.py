"""The latest entries with their explanations, without reading the others."""

from __future__ import annotations

from sqlalchemy import select

from tidegate.ledger.entry import Entry, entry_from
from tidegate.ledger.explain import explain_entries, policies_in_force
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import entries


def latest(ledger: Ledger, count: int, *, account: str = "") -> list[tuple[Entry, str]]:
    """Return the latest entries of an account, or of all, in order."""
    query = select(entries).order_by(entries.c.number.desc()).limit(count)
    if account:
        query = query.where(entries.c.account == account)
    with ledger.store.reading() as connection:
        chosen = [entry_from(dict(row)) for row in connection.execute(query).mappings()][::-1]
        policies = policies_in_force(connection, chosen)
    return list(explain_entries([*policies, *chosen]))[len(policies) :]
