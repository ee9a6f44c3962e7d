"""Totals by user: read and written in the transaction of the charge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from tidegate.accounting import ZERO, Amount, Unit
from tidegate.accounting.budget import SHORT
from tidegate.errors import BudgetExceeded
from tidegate.ledger.entry import CHARGED, WRITTEN_OFF, Entry
from tidegate.ledger.statements import Statement, read_all, write

SPENT = Statement("SELECT spent FROM tidegate_shares WHERE account = {0} AND who = {0}")
_PUT = Statement(
    "INSERT INTO tidegate_shares (account, who, spent) VALUES ({0}, {0}, {0}) "
    "ON CONFLICT (account, who) DO UPDATE SET spent = excluded.spent"
)

Totals = dict[tuple[str, str], Amount]


def spent_by(connection: Connection, account: str, user: str) -> Amount:
    """Return the total that was charged to a user, in the connection's view."""
    [rows] = read_all(connection, [(SPENT, (account, user))])
    return from_rows(rows)


def from_rows(rows: Sequence[Any]) -> Amount:
    """Return the total that `SPENT` returned."""
    return Amount.parse(rows[0][0]) if rows else ZERO


def put(connection: Connection, account: str, user: str, total: Amount) -> None:
    """Write the total of a user, in the transaction of the charge that changes it."""
    write(connection, _PUT, (account, user, str(total)))


def add(totals: Totals, entry: Entry) -> None:
    """Add the charge of an entry to the totals by user."""
    if entry.kind not in (CHARGED, WRITTEN_OFF):
        return
    body = json.loads(entry.body)
    parts = {body["who"]: entry.amount} if entry.kind == CHARGED else body["by"]
    for user, amount in parts.items():
        totals[entry.account, user] = totals.get((entry.account, user), ZERO) + Amount.parse(amount)


def rebuild(connection: Connection, entries: Iterable[Entry]) -> None:
    """Write all totals of a ledger that has none yet."""
    totals: Totals = {}
    for entry in entries:
        add(totals, entry)
    for (account, user), total in totals.items():
        put(connection, account, user, total)


def compare(totals: Totals, rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a problem for each total by user that does not follow from the entries."""
    stored = {(account, user): spent for account, user, spent in rows}
    expected = {name: str(total) for name, total in totals.items()}
    different = [name for name in {**expected, **stored} if expected.get(name) != stored.get(name)]
    return [f'The total that "{user}" has spent of {account} does not add up.' for account, user in different]


def refuse_beyond(
    share: Amount, spent: Amount, account: str, *, user: str, price: Amount, unit: Unit = "epsilon"
) -> None:
    """Raise BudgetExceeded if a price does not fit into the budget share of a user."""
    if spent + price <= share:
        return
    left = share.minus(spent)
    raise BudgetExceeded(
        f'The request costs {SHORT[unit]} {price.say()}, but "{user}" has {left.say()} remaining of a budget share of {share.say()} of '
        f'"{account}" ({spent.say()} spent).',
        f"Request at most {left.say_below()}, or ask the data holder for a larger budget share."
        if left
        else "Ask the data holder for a larger budget share.",
        asked=str(price),
        spent=str(spent),
        left=str(left),
        share=str(share),
    )
