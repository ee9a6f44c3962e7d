"""What each name has spent of an account: a total that is read and written in the transaction that charges."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import Connection

from tidegate.accounting import ZERO, Amount
from tidegate.errors import BudgetExceeded
from tidegate.ledger.entry import CHARGED, WRITTEN_OFF, Entry

# As text, with the place holders of each driver: every charge runs both, and building a statement takes longer than it does.
_SPENT = "SELECT spent FROM tidegate_shares WHERE account = {0} AND who = {0}"
_PUT = (
    "INSERT INTO tidegate_shares (account, who, spent) VALUES ({0}, {0}, {0}) "
    "ON CONFLICT (account, who) DO UPDATE SET spent = excluded.spent"
)
_STATEMENTS = {name: (_SPENT.format(mark), _PUT.format(mark)) for name, mark in (("sqlite", "?"), ("postgresql", "%s"))}

Totals = dict[tuple[str, str], Amount]


def spent_by(connection: Connection, account: str, who: str) -> Amount:
    """Return what was charged to a name, as the connection sees it."""
    total = connection.exec_driver_sql(_STATEMENTS[connection.dialect.name][0], (account, who)).scalar()
    return Amount.parse(total) if total is not None else ZERO


def put(connection: Connection, account: str, who: str, total: Amount) -> None:
    """Write the total of a name, in the transaction of the charge that changes it."""
    connection.exec_driver_sql(_STATEMENTS[connection.dialect.name][1], (account, who, str(total)))


def add(totals: Totals, entry: Entry) -> None:
    """Add what an entry charges to the totals by name."""
    if entry.kind not in (CHARGED, WRITTEN_OFF):
        return
    body = json.loads(entry.body)
    parts = {body["who"]: entry.amount} if entry.kind == CHARGED else body["by"]
    for who, amount in parts.items():
        totals[entry.account, who] = totals.get((entry.account, who), ZERO) + Amount.parse(amount)


def rebuild(connection: Connection, entries: Iterable[Entry]) -> None:
    """Write all totals of a ledger that has none yet."""
    totals: Totals = {}
    for entry in entries:
        add(totals, entry)
    for (account, who), total in totals.items():
        put(connection, account, who, total)


def compare(totals: Totals, rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a problem for each total by name that does not follow from the entries."""
    stored = {(account, who): spent for account, who, spent in rows}
    expected = {name: str(total) for name, total in totals.items()}
    different = [name for name in {**expected, **stored} if expected.get(name) != stored.get(name)]
    return [f'the total that "{who}" has spent of {account} does not add up.' for account, who in different]


def refuse_beyond(share: Amount, spent: Amount, account: str, *, who: str, price: Amount) -> None:
    """BudgetExceeded where a price does not fit into the share of a name that has spent so much."""
    if spent + price <= share:
        return
    left = share.minus(spent)
    raise BudgetExceeded(
        f'this needs epsilon {price.say()}; "{who}" has {left.say()} left of a share of {share.say()} of '
        f'"{account}" ({spent.say()} spent).',
        f"Ask for at most {left.say_below()}, or ask the data holder for a larger share."
        if left
        else "Ask the data holder for a larger share.",
        asked=str(price),
        spent=str(spent),
        left=str(left),
        share=str(share),
    )
