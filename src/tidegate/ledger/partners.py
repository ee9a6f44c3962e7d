"""Accounts that share persons: a charge to one of them counts in all.

A person whose rows are in two accounts loses the sum of both. The policy of one account names the other
(`shares_persons_with`), and both belong to one group from then on; groups with a common account are one group. The sum of
all charges of a group must stay within every limit of every account in it. The table follows from the latest policy entry
of each account, and `verify` compares it. Once something was charged, no policy can remove a name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from tidegate.accounting import FREE, Price
from tidegate.ledger.statements import Statement, read_all, write
from tidegate.ledger.totals import NAMES, Totals

Group = dict[str, Totals]  # accounts other than the charged one, with their own totals

_PAIRS = "SELECT account, partner FROM tidegate_partners UNION SELECT partner, account FROM tidegate_partners"
READ = Statement(  # the totals of an account and of all that share persons with it, directly or through others
    f"WITH RECURSIVE pairs(name, other) AS ({_PAIRS}), members(name) AS (SELECT CAST({{0}} AS TEXT) UNION "  # noqa: S608
    f"SELECT pairs.other FROM pairs JOIN members ON pairs.name = members.name) SELECT account, {', '.join(NAMES)} "
    "FROM tidegate_totals WHERE account IN (SELECT name FROM members) ORDER BY account"
)
_ADD = Statement("INSERT INTO tidegate_partners (account, partner) VALUES ({0}, {0})")
_DELETE = Statement("DELETE FROM tidegate_partners WHERE account = {0}")


def from_rows(rows: Sequence[Any], account: str) -> tuple[Totals, Group]:
    """Return the totals that `READ` returned: of the account, and of the others in its group."""
    group = {name: Totals.from_row(row) for name, *row in rows}
    return group.pop(account, Totals()), group


def read(connection: Connection, account: str) -> tuple[Totals, Group]:
    """Return the totals of an account, and of the others in its group."""
    [rows] = read_all(connection, [(READ, (account,))])
    return from_rows(rows, account)


def put(connection: Connection, account: str, names: Iterable[str]) -> None:
    """Write the names in the policy of an account, in the transaction of its entry."""
    write(connection, _DELETE, (account,))
    for name in names:
        write(connection, _ADD, (account, name))


def spent(group: Mapping[str, Totals]) -> Price:
    """Return what the accounts of a group have spent together."""
    return sum((totals.spent for totals in group.values()), FREE)


def refusal(own: Totals, group: Mapping[str, Totals], price: Price) -> tuple[str, str]:
    """Return the account and the limit that a price exceeds in a group; empty texts if it fits.

    An account without a promise for answers has no limit, and nothing can be charged to it.
    """
    total = own.spent + spent(group) + price
    for name, limits in (("", own.ceilings), *((name, totals.ceilings) for name, totals in group.items())):
        if limits.pure is None and limits.z is None and name:
            continue
        if exceeded := Totals(total, limits).exceeded:
            return name, exceeded
    return "", ""


def members(pairs: Mapping[str, Collection[str]], account: str) -> set[str]:
    """Return the other accounts in the group of an account. `pairs` are the names in each policy."""
    group, new = set[str](), {account}
    while new:
        group |= new
        named = {name for member in new for name in pairs.get(member, ())}
        naming = {name for name, others in pairs.items() if new & set(others)}
        new = (named | naming) - group
    return group - {account}


def compare(pairs: Mapping[str, Collection[str]], rows: Iterable[Any]) -> list[str]:
    """Return a problem if the stored pairs do not follow from the policies."""
    expected = sorted((account, name) for account, names in pairs.items() for name in names)
    if sorted((str(account), str(partner)) for account, partner in rows) == expected:
        return []
    return ["The accounts that share persons do not follow from the policies."]
