"""What each name has spent of an account: its share is kept in the transaction that charges."""

from __future__ import annotations

import json
import threading

from sqlalchemy import Connection, bindparam, select

from tidegate.accounting import ZERO, Amount
from tidegate.errors import BudgetExceeded
from tidegate.ledger.entry import CHARGED
from tidegate.ledger.schema import entries

_SINCE = (
    select(entries.c.number, entries.c.amount, entries.c.body)
    .where(entries.c.account == bindparam("account"), entries.c.kind == CHARGED, entries.c.number > bindparam("since"))
    .order_by(entries.c.number)
)


class Shares:
    """Totals by name, from the entries. Entries never change, so only new ones are read."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._seen: dict[str, int] = {}
        self._spent: dict[tuple[str, str], Amount] = {}

    def spent(self, connection: Connection, account: str, who: str) -> Amount:
        """What was charged to a name, as the connection sees it or later."""
        with self._turn:
            rows = connection.execute(_SINCE, {"account": account, "since": self._seen.get(account, 0)})
            for number, amount, body in rows:
                name = (account, json.loads(body)["who"])
                self._spent[name] = self._spent.get(name, ZERO) + Amount.parse(amount)
                self._seen[account] = number
            return self._spent.get((account, who), ZERO)

    def refuse_beyond(self, share: Amount, connection: Connection, account: str, *, who: str, price: Amount) -> None:
        """BudgetExceeded where a price does not fit into the share of a name."""
        spent = self.spent(connection, account, who)
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
