"""What a charge depends on, read in one step after the ledger's lock was taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.accounting import Amount
from tidegate.ledger import partners, queries, shares, totals
from tidegate.ledger.entry import CHARGED, REPEATED, Entry
from tidegate.ledger.statements import Read


@dataclass(frozen=True)
class ChargeState:
    """The ends of the chain, earlier charges of the same request, and totals before a charge."""

    end: Entry | None
    head: Entry | None  # of the account
    asked: Entry | None  # the first charge of the same query, under any key
    known: Entry | None  # the entry of the same idempotency key
    before: totals.Totals
    group: partners.Group  # other accounts with the same persons
    spent: Amount  # by the user

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]], account: str) -> ChargeState:
        """Return the state that the statements of `reads` returned."""
        end, head, first = (queries.first_entry(part) for part in rows[:3])
        known = [entry for part in rows[5:] if (entry := queries.first_entry(part))]
        before, group = partners.from_rows(rows[3], account)
        return cls(end, head, first, known[0] if known else None, before, group, shares.from_rows(rows[4]))


def reads(account: str, *, question: str, request: str, user: str) -> list[Read]:
    """Return the statements for the state of a charge."""
    keys = [(queries.REQUEST, (account, kind, request)) for kind in (CHARGED, REPEATED)]
    return [
        (queries.LAST, ()),
        (queries.HEAD, (account,)),
        (queries.QUESTION, (account, question)),
        (partners.READ, (account,)),
        (shares.SPENT, (account, user)),
        *(keys if request else ()),
    ]
