"""Totals and limits of each account in all units: read and written in the transaction that changes them.

An entry contains the account's total and limit in its own unit. The others follow from the entries too: `after` computes them
from one entry, for `verify`, for migrations and for restores alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from tidegate.accounting import FREE, Amount, Ceilings, Price, budget_of, event_from_dict
from tidegate.accounting.budget import UNLIMITED
from tidegate.errors import TidegateError
from tidegate.ledger import schema
from tidegate.ledger.entry import CHARGED, OPENED, WRITTEN_OFF, Entry
from tidegate.ledger.statements import Statement, read_all, write
from tidegate.policy.toml import policy_from_dict

TABLE = schema.totals
NAMES = ("pure", "zcdp", "z", "pure_ceiling", "z_ceiling")
READ = Statement(f"SELECT {', '.join(NAMES)} FROM tidegate_totals WHERE account = {{0}}")  # noqa: S608
_PUT = Statement(
    f"INSERT INTO tidegate_totals (account, {', '.join(NAMES)}) VALUES ({{0}}, {{0}}, {{0}}, {{0}}, {{0}}, {{0}}) "  # noqa: S608
    f"ON CONFLICT (account) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in NAMES)}"
)


@dataclass(frozen=True)
class Totals:
    """What an account has spent in every unit, and its limits."""

    spent: Price = FREE
    ceilings: Ceilings = UNLIMITED

    @property
    def main(self) -> Amount:
        """The total in the account's unit."""
        return amount_of(self.spent, self.ceilings)

    def fits(self, price: Price) -> bool:
        """Return whether a price fits into every limit."""
        return self.refusal(price) == ""

    def refusal(self, price: Price) -> str:
        """Return which limit a price exceeds: "epsilon", "z", "pure" (it has no pure loss), or nothing."""
        return self.plus(price).exceeded

    @property
    def exceeded(self) -> str:
        """Which limit the total exceeds, as `refusal` names it."""
        after, limits = self.spent, self.ceilings
        if limits.pure is None and limits.z is None:
            return "epsilon"
        if limits.pure is not None and after.pure is None:
            return "pure"
        if limits.pure is not None and after.pure is not None and after.pure > limits.pure:
            return "epsilon"
        return "z" if limits.z is not None and after.z > limits.z else ""

    def to_row(self) -> tuple[str, ...]:
        """Return the columns of the table. Empty: an unbounded total, or no limit."""
        parts = (self.spent.pure, self.spent.zcdp, self.spent.z, self.ceilings.pure, self.ceilings.z)
        return tuple("" if part is None else str(part) for part in parts)

    @classmethod
    def from_row(cls, row: Iterable[Any]) -> Totals:
        """Return the totals of a row."""
        pure, zcdp, z, pure_limit, z_limit = (Amount.parse(part) if part else None for part in row)
        if zcdp is None or z is None:
            raise ValueError("Totals in zcdp and z are never unbounded.")
        return cls(Price(pure, zcdp, z), Ceilings(pure_limit, z_limit))

    def after(self, entry: Entry) -> Totals:
        """Return the totals after an entry."""
        if entry.kind == CHARGED:
            return self.plus(event_from_dict(entry.content()["event"]).price)
        if entry.kind == WRITTEN_OFF:
            return self.plus(written_off(Amount.parse(entry.amount), self.ceilings))
        if entry.kind == OPENED:
            return self.under(budget_of(policy_from_dict(entry.content()["policy"])).ceilings)
        return self

    def plus(self, price: Price) -> Totals:
        return Totals(self.spent + price, self.ceilings)

    def under(self, ceilings: Ceilings) -> Totals:
        """Return the totals under another policy. After something was spent, no limit rises."""
        return Totals(self.spent, ceilings.lowest(self.ceilings) if self.spent else ceilings)


NOTHING = Totals()


def amount_of(price: Price, ceilings: Ceilings) -> Amount:
    """Return a price in the unit of an account."""
    amount = price.z if ceilings.unit == "z" else price.pure
    if amount is None:
        raise ValueError("An event without a pure loss cannot be charged to this account.")
    return amount


def limits_in_body(ceilings: Ceilings) -> dict[str, Any]:
    """Return what a policy entry states beside `allows`, if the average loss is limited."""
    if ceilings.z is None:
        return {}
    return {"limits": {"pure": None if ceilings.pure is None else str(ceilings.pure), "z": str(ceilings.z)}}


def written_off(amount: Amount, ceilings: Ceilings) -> Price:
    """Return a price that is not below the lost charges that add up to an amount.

    Pure losses e that add up to E have squares that add up to at most E**2. zcdp is at most four times z.
    """
    if ceilings.unit == "z":
        return Price(None if amount else FREE.pure, Amount(4 * amount.grains), amount)
    return Price(amount, Amount.up(amount.value**2 / 2), Amount.up(amount.value**2 / 8))


def read(connection: Connection, account: str) -> Totals:
    """Return the totals of an account, in the connection's view."""
    [rows] = read_all(connection, [(READ, (account,))])
    return from_rows(rows)


def from_rows(rows: Sequence[Any]) -> Totals:
    """Return the totals that `READ` returned."""
    return Totals.from_row(rows[0]) if rows else Totals()


def put(connection: Connection, account: str, totals: Totals) -> None:
    """Write the totals of an account, in the transaction of the entry that changes them."""
    write(connection, _PUT, (account, *totals.to_row()))


def replay(entries: Iterable[Entry]) -> dict[str, Totals]:
    """Return the totals of every account that has a policy, except where an entry cannot be read.

    An account without totals has no limit, so that nothing can be charged to it, and `verify` reports the entry.
    """
    totals: dict[str, Totals] = {}
    unreadable = set()
    for entry in entries:
        try:
            if entry.kind in (OPENED, CHARGED, WRITTEN_OFF):
                totals[entry.account] = totals.get(entry.account, Totals()).after(entry)
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, AttributeError, TidegateError):
            unreadable.add(entry.account)
    return {account: total for account, total in totals.items() if account not in unreadable}


def rebuild(connection: Connection, entries: Iterable[Entry]) -> None:
    """Write all totals of a ledger that has none yet."""
    for account, totals in replay(entries).items():
        put(connection, account, totals)


def compare(expected: dict[str, Totals], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a problem for each account whose totals do not follow from the entries."""
    stored = {account: tuple(row) for account, *row in rows}
    computed = {account: totals.to_row() for account, totals in expected.items()}
    different = [account for account in {**computed, **stored} if computed.get(account) != stored.get(account)]
    return [f"the totals of {account} do not follow from its entries." for account in different]
