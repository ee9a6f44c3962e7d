"""Write-offs: what was spent after a backup is charged again, up to the totals of the newest known state."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from tidegate.accounting import Amount
from tidegate.errors import LedgerUnavailable
from tidegate.ledger import checkpoint as notation
from tidegate.ledger import merkle, notes, queries, shares, totals, witness
from tidegate.ledger.chain import append
from tidegate.ledger.checkpoint import AccountTotal, Checkpoint
from tidegate.ledger.entry import WRITTEN_OFF, Entry, canonical
from tidegate.ledger.ledger import Ledger, open_in
from tidegate.ledger.schema import requests
from tidegate.ledger.schema import shares as users
from tidegate.policy import Policy


@dataclass(frozen=True)
class Options:
    """What the caller of a restore accepts, and knows about the ledger."""

    head: str = ""
    write_off: bool = False
    witnesses: Sequence[str] = ()
    policies: Sequence[Policy] = ()


def charge_again(
    connection: Connection, head: Entry, missing: Amount, by: Mapping[str, Amount], *, newest: tuple[int, str]
) -> str:
    """Append a write-off to an account and return its amount. `newest` is the number and the hash of the newest known entry."""
    spent = Amount.parse(head.spent)
    body = {"head": newest[1], "number": newest[0], "by": {user: str(part) for user, part in by.items()}}
    entry = append(
        connection,
        queries.last(connection),
        account=head.account,
        kind=WRITTEN_OFF,
        policy=head.policy,
        request=f"write-off/{newest[1]}",
        question="",
        amount=str(missing),
        spent=str(spent + missing),
        ceiling=head.ceiling,
        body=canonical(body),
    )
    totals.put(connection, head.account, totals.read(connection, head.account).after(entry))
    for user, part in by.items():
        shares.put(connection, head.account, user, shares.spent_by(connection, head.account, user) + part)
    return entry.amount


def write_off(connection: Connection, options: Options) -> dict[str, str]:
    """Charge every account up to its total at the newest witness; return the amounts.

    A checkpoint contains no totals by user, so that a witness does not see names. The missing amount of an account is added
    to the total of each of its users: no budget share is larger than before.

    Raises:
        LedgerUnavailable: The witness has seen entries that the ledger lacks, and they must not or cannot be written off.
    """
    seen = newest_checkpoint(connection, options.witnesses)
    last = queries.last(connection)
    size = last.number + 1 if last else 0
    if seen is None or (seen.size <= size and _is_known(connection, seen)):
        return {}
    if not options.write_off:
        raise LedgerUnavailable(
            f"A witness has seen this ledger up to entry {seen.size - 1:,}, and the backup ends with entry {size - 1:,}.",
            "Restore a newer backup, or restore with --write-off, which charges every account up to its witnessed total.",
        )
    charged = {}
    for account, total in seen.accounts.items():
        head = _head(connection, account, options.policies)
        _refuse_releases(connection, account, total)
        missing = _missing(connection, head, total)
        if missing:
            query = select(users.c.who).where(users.c.account == account)
            by = dict.fromkeys(map(str, connection.execute(query).scalars()), missing)
            charged[account] = charge_again(connection, head, missing, by, newest=(seen.size - 1, seen.head))
    return charged


def newest_checkpoint(connection: Connection, addresses: Sequence[str]) -> Checkpoint | None:
    """Return the checkpoint with the most entries of all witnesses; None if there is none."""
    newest: Checkpoint | None = None
    for address in dict.fromkeys((*witness.stored_addresses(connection), *witness.named_addresses(addresses))):
        try:
            note = notes.read(address)
        except notes.Unreachable as error:
            raise LedgerUnavailable(
                f"The witness {notes.shown(address)} cannot be reached ({error}), so the newest state of the ledger is unknown.",
                "Make it available, and restore again.",
            ) from None
        seen = notation.parse(note) if note is not None else None
        if seen is None:
            continue
        if seen.origin != witness.origin(connection):
            raise LedgerUnavailable(
                f"The witness {notes.shown(address)} has a checkpoint of another ledger.",
                "Restore a backup of that ledger.",
            )
        newest = seen if newest is None or seen.size > newest.size else newest
    return newest


def _is_known(connection: Connection, seen: Checkpoint) -> bool:
    return merkle.root(seen.size, merkle.Nodes(connection)) == seen.root


def _head(connection: Connection, account: str, policies: Sequence[Policy]) -> Entry:
    """Return the last entry of an account, which is opened if it is new."""
    head = queries.head(connection, account)
    if head is not None:
        return head
    for policy in policies:
        if policy.dataset.name == account:
            return open_in(connection, policy)
    raise LedgerUnavailable(
        f'A witness has seen the account "{account}", and the backup does not contain it.',
        "Name its policy file: tidegate ledger restore POLICY BACKUP --write-off.",
    )


def _refuse_releases(connection: Connection, account: str, total: AccountTotal) -> None:
    last = connection.execute(select(func.max(requests.c.number)).where(requests.c.account == account)).scalar() or 0
    if total.requests > last:
        raise LedgerUnavailable(
            f'Records of "{account}" were requested after the backup: request {total.requests:,} was decided, and the backup ends '
            f"with {last:,}. Released records cannot be written off: they would be treated as if they were still secret.",
            "Restore a newer backup.",
        )


def _missing(connection: Connection, head: Entry, total: AccountTotal) -> Amount:
    spent, most = Amount.parse(head.spent), Amount.parse(head.ceiling)
    state = totals.read(connection, head.account)
    witnessed = Amount.parse(total.spent) if total.unit == state.ceilings.unit else most  # amounts of two units
    return Amount(max(0, min(witnessed, most).grains - spent.grains))


def announce(address: str, options: Options) -> None:
    """Replace the checkpoints of all witnesses by that of the restored ledger.

    This is the only step that replaces a checkpoint by one with fewer entries. The write-off names the newest entry.
    """
    named = witness.named_addresses(options.witnesses)
    with contextlib.closing(Ledger(address, is_witnessed=False)) as ledger:
        with ledger.store.reading() as connection:
            addresses = witness.stored_addresses(connection)
        if set(named) - set(addresses):
            addresses = list(witness.configure(ledger.store, add=named))
        if not addresses:
            return
        with ledger.store.reading() as connection:
            note = witness.signed(connection)
        for target in addresses:
            with contextlib.suppress(notes.Unreachable):
                notes.write(target, note)
