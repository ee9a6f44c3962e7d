"""Retention: contents of records are deleted after a stated time, and secrets are replaced. The chain still verifies.

Entries contain hashes of records, never their content. What is deleted is the content in the table of requests. Its cell stays,
because later decisions depend on it; the entry about the deletion contains the hash of what remains.
"""

from __future__ import annotations

import secrets as system
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import Connection, delete, select, update

from tidegate.errors import Unsupported
from tidegate.ledger import diaries, queries, witness
from tidegate.ledger.chain import NOTHING, SERVICE, append, commitment, moment_text, unchanged
from tidegate.ledger.entry import EXPIRED, ROTATED, WITHDRAWN, canonical
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.replay import remains
from tidegate.ledger.schema import entries, known_sources, requests, secrets, tokens

AT_ONCE = 5000  # records of one entry


def expire(ledger: Ledger, before: date, *, user: str = "") -> dict[str, int]:
    """Delete the contents of records that were released before a day, and withdraw requests that have waited since then.

    What unfinished syntheses had learned before that day is deleted as well; they cannot be continued.

    Returns:
        The number of deleted records, of withdrawn requests, and of deleted diaries.

    Raises:
        Unsupported: The day is later than tomorrow, which would be a mistake: tomorrow already covers everything.
    """
    if before > datetime.now(UTC).date() + timedelta(days=1):
        raise Unsupported(
            f"The day {before} is in the future, so that all contents would be deleted.",
            "Check the year. To delete everything until now, use the day of tomorrow.",
        )
    moment = moment_text(datetime.combine(before, time(), UTC))
    with ledger.store.reading() as connection:
        query = select(requests.c.account).distinct().order_by(requests.c.account)
        accounts = [str(name) for name in connection.execute(query).scalars()]
        unfinished = diaries.accounts_with_diaries(connection)
    counts = {"deleted": 0, "withdrawn": 0, "diaries": 0}
    for account in accounts:
        with ledger.store.writing() as connection:
            counts["deleted"] += _delete_contents(connection, account, before, moment, user)
            counts["withdrawn"] += _withdraw(connection, account, moment, user)
    for account in unfinished:
        with ledger.store.writing() as connection:
            counts["diaries"] += _delete_diaries(connection, account, before, moment, user)
    ledger.store.forget_deleted()
    return counts


def _older(connection: Connection, account: str, state: str, moment: str) -> list[dict[str, object]]:
    query = (
        select(requests)
        .join(entries, entries.c.number == requests.c.entry)
        .where(requests.c.account == account, requests.c.state == state, requests.c.record != "", entries.c.at < moment)
        .order_by(requests.c.number)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _delete_contents(connection: Connection, account: str, before: date, moment: str, user: str) -> int:
    rows, head = _older(connection, account, "released", moment), queries.head(connection, account)
    for start in range(0, len(rows), AT_ONCE) if head is not None else ():
        part, end = rows[start : start + AT_ONCE], queries.last(connection)
        assert head is not None  # noqa: S101
        assert end is not None  # noqa: S101
        records = [[row["number"], remains(row)] for row in part]
        body = canonical({"before": before.isoformat(), "records": records, "who": user})
        fields = {
            "kind": EXPIRED,
            "request": f"{EXPIRED}/{end.number + 1}",
            "question": "",
            "amount": "0",
            "body": body,
        }
        append(connection, end, **fields, **unchanged(head))
        for row in part:
            same = (requests.c.account == account) & (requests.c.number == row["number"])
            connection.execute(update(requests).where(same).values(record=""))
    return len(rows)


def _delete_diaries(connection: Connection, account: str, before: date, moment: str, user: str) -> int:
    charges = diaries.expire_diaries(connection, account, moment, before.isoformat())
    head, end = queries.head(connection, account), queries.last(connection)
    if charges and head is not None and end is not None:
        body = canonical({"before": before.isoformat(), "records": [], "diaries": charges, "who": user})
        names = {"request": f"{EXPIRED}/{end.number + 1}", "question": "", "amount": "0", "body": body}
        append(connection, end, kind=EXPIRED, **names, **unchanged(head))
    return len(charges)


def _withdraw(connection: Connection, account: str, moment: str, user: str) -> int:
    rows, head = _older(connection, account, "waiting", moment), queries.head(connection, account)
    for row in rows if head is not None else ():
        end = queries.last(connection)
        assert head is not None  # noqa: S101
        assert end is not None  # noqa: S101
        body = canonical({"withdrawn": [row["number"], row["key"]], "remains": remains(row), "who": user})
        names = {"request": f"{WITHDRAWN}/{end.number + 1}", "question": "", "amount": "0", "body": body}
        entry = append(connection, end, kind=WITHDRAWN, **names, **unchanged(head))
        same = (requests.c.account == account) & (requests.c.number == row["number"])
        connection.execute(update(requests).where(same).values(state="withdrawn", entry=entry.number, record=""))
    return len(rows)


def rotate_secret(ledger: Ledger) -> int:
    """Replace the secret of the service; return the number of revoked tokens.

    Tokens of respondents contain a hash of their record under the old secret, so they are revoked. The secrets of accounts
    cannot be replaced: the hashes of released records in the entries depend on them.
    """
    with ledger.store.writing() as connection:
        value = system.token_hex(32)
        connection.execute(update(secrets).where(secrets.c.account == SERVICE).values(value=value))
        connection.execute(delete(known_sources))  # hashes under the old secret; each session records its source again
        now = moment_text(datetime.now(UTC))
        of_respondents = (tokens.c.record != "") & (tokens.c.revoked == "")
        revoked = connection.execute(update(tokens).where(of_respondents).values(revoked=now)).rowcount
        end = queries.last(connection)
        name = f"{ROTATED}/{end.number + 1 if end else 0}"
        body = canonical({"secrets": {SERVICE: commitment(SERVICE, value)}})
        append(connection, end, at=now, kind=ROTATED, request=name, body=body, **NOTHING)
        if witness.stored_addresses(connection) or queries.witness_changes(connection):
            witness.note_settings(connection)  # addresses are hashed under this secret
    return int(revoked)
