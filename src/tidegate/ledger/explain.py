"""Entries as sentences that a data steward can read, and pages of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, String, func, select

from tidegate.accounting import Amount, Target, yes_no_at
from tidegate.accounting.budget import PREFIX
from tidegate.ledger.access import describe
from tidegate.ledger.entry import (
    ACCESS,
    ADOPTED,
    ANSWERED,
    ARRIVED,
    CHARGED,
    CLOSED,
    COLLECTING,
    CREATED,
    DECIDED,
    DESK,
    EXPIRED,
    FAILED,
    HIDING_KEY,
    HIDING_OPEN,
    INSPECTED,
    INVITATION_KEY,
    INVITED,
    MOVED,
    OPENED,
    REPEATED,
    REPORTED,
    ROTATED,
    SECOND,
    WITHDRAWN,
    WITNESSED,
    WRITTEN_OFF,
    Entry,
    canonical,
    entry_from,
)
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import entries


def explain_entries(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str]]:
    """Yield each entry with its explanation. The targets of the current policy give spending its meaning."""
    targets: dict[str, tuple[Target, ...]] = {}
    for entry in entries:
        body = entry.content()
        if entry.kind == OPENED:
            targets[entry.account] = _targets(body)
        yield entry, SENTENCES[entry.kind](entry, body, targets.get(entry.account, ()))


def moment(entry: Entry) -> str:
    """Return the time of an entry for a reader: ``15 Nov 2026 10:02``."""
    return datetime.fromisoformat(entry.at).strftime("%d %b %Y %H:%M")


def _targets(body: Any) -> tuple[Target, ...]:
    return tuple(
        Target(
            name, Fraction(t["worlds"]), Fraction(t["rho"]), t.get("guarantee", "worst-case"), int(t.get("guesses", 1))
        )
        for name, t in body["targets"].items()
    )


def _opened(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    average_only = "limits" in body and body["limits"]["pure"] is None
    ceiling = f"{PREFIX['z' if average_only else 'epsilon']}{Amount.parse(entry.ceiling).say()}"
    if not body["changes"]:
        return f"Policy {entry.policy[:8]} opened: the total budget is {ceiling}."
    return f"Policy changed to {entry.policy[:8]} ({'; '.join(body['changes'])}): the total budget is {ceiling}."


def _charged(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    spent = Amount.parse(entry.spent)
    # with a limit on epsilon, a charge does not contain its total Z, and nothing is said about an average guarantee
    average = bool(targets) and targets[0].guarantee == "average"
    shown = targets if not average or body.get("unit") == "z" else ()
    worst = max(((float(target.identification(spent)), target.name) for target in shown), default=None)
    certainty = yes_no_at(spent, "average" if average else "worst-case")
    certain = f", yes/no certainty at most {float(certainty):.3g}"
    means = f"; identification of {worst[1]} at most {worst[0]:.3g}{certain}" if worst else ""
    query = f"{_user(body)} {_request(body['says'])}"
    unit = PREFIX[body.get("unit", "epsilon")]
    return f"{query}: {unit}{Amount.parse(entry.amount).say()} charged, {spent.say()} of {Amount.parse(entry.ceiling).say()} spent{means}."


def _answered(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"Entry {body['charge']:,} was answered (result {body['sha256'][:8]})."


def _repeated(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"Entry {body['charge']:,} was requested again under another key, at no cost."


def _failed(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The source could not be read for entry {body['charge']:,}; the charge stands."


def _inspected(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The owner compared the data with the policy."


def _second(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The source has another account. The reason for this one: {body['reason']}."


def _desk(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The release desk opened under {', '.join(body['promises'])} (baselines and critical values {body['sha256'][:8]})."


def _decided(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    released, waiting, withheld = (len(body.get(name, ())) for name in ("released", "waiting", "withheld"))
    rest = f"{withheld:,} withheld" if withheld and not waiting else f"{waiting:,} waiting"
    return f"{_user(body)} requested records: {released:,} released, {rest}."


def _hiding_key(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    groups = " Sensitive groups were named in private." if body["groups"] else ""
    return f"A key for the choice of records was committed ({body['key'][:8]}), before the table was read.{groups}"


def _hiding_open(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    sizes, quotas = body["sizes"], body["quotas"]
    chosen = sum(size if row is None else sum(row) for row, size in zip(quotas, sizes, strict=True))
    share = f"{chosen:,} of {sum(sizes):,} records can be released, the same share of each value in {len(body['hidden']):,} groups"
    if body.get("cut"):
        return f"The shares of selection {body['epoch']} were lowered: {share}."
    return f"Selection {body['epoch']} opened: {share}. The others never will."


def _withdrawn(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"{_user(body)} withdrew request {body['withdrawn'][0]:,}; its record was deleted."


def _collecting(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    described = body["description"]
    questions = ", ".join(described["questions"])
    return f"The collection opened, version {described['version']} ({entry.policy[:8]}), with questions {questions}: {body['says']}."


def _reported(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    refused = sum(body["refused"].values())
    more = f", {refused:,} refused" if refused else ""
    return f"{body['accepted']:,} reports accepted{more}: {body['reports']:,} in total (segment {body['sha256'][:8]})."


def _invitation_key(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"{_user(body)} created the key {body['key'][:8]} for the invitations of a poll."


def _invited(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"{_user(body)} created {body['count']:,} invitations: {body['codes']:,} in total under the key {body['key'][:8]}."


def _closed(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The collection closed with {body['reports']:,} reports and accepts no more."


def _created(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The ledger was created (format {body['format']}). Nothing was charged before."


def _adopted(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The ledger was migrated from an earlier version. From this entry on, it commits to its secrets."


def _written_off(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return (
        f"A backup was restored: {Amount.parse(entry.amount).say()} that was spent after it was written off (newest known "
        f"entry {body['number']:,}, {body['head'][:8]}); {Amount.parse(entry.spent).say()} of "
        f"{Amount.parse(entry.ceiling).say()} spent."
    )


def _witnessed(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    key = body["key"].split("+")[1]
    return f"Checkpoints are signed with the key {key}. Number of witnesses: {len(body['addresses']):,}."


def _rotated(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The secret of the service was replaced; tokens of respondents were revoked."


def _expired(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    if charges := body.get("diaries"):
        count = "one unfinished synthesis" if len(charges) == 1 else f"{len(charges):,} unfinished syntheses"
        return f"What {count} had learned before {body['before']} was deleted."
    return f"The contents of {len(body['records']):,} records that were released before {body['before']} were deleted."


def _moved(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The ledger was moved to another store. Nothing can be charged here."


def _arrived(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The ledger was moved here from another store."


def _access(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return describe(body, _user(body))


def _request(says: str) -> str:
    """Return what was requested; the text of a synthesis begins with "for" in the ledger."""
    return f"requested {says.removeprefix('for ')}" if says.startswith("for ") else f"queried {says or 'the data'}"


def _user(body: Any) -> str:
    return str(body["who"] or "Unknown user")


SENTENCES = {
    CREATED: _created,
    ADOPTED: _adopted,
    WRITTEN_OFF: _written_off,
    OPENED: _opened,
    CHARGED: _charged,
    REPEATED: _repeated,
    ANSWERED: _answered,
    FAILED: _failed,
    INSPECTED: _inspected,
    SECOND: _second,
    DESK: _desk,
    HIDING_KEY: _hiding_key,
    HIDING_OPEN: _hiding_open,
    DECIDED: _decided,
    WITHDRAWN: _withdrawn,
    COLLECTING: _collecting,
    REPORTED: _reported,
    INVITATION_KEY: _invitation_key,
    INVITED: _invited,
    CLOSED: _closed,
    WITNESSED: _witnessed,
    ROTATED: _rotated,
    EXPIRED: _expired,
    MOVED: _moved,
    ARRIVED: _arrived,
    ACCESS: _access,
}


def page(
    ledger: Ledger,
    *,
    dataset: str = "",
    kind: str = "",
    user: str | None = None,
    named: str = "",
    after: int = 0,
    limit: int = 100,
    newest: bool = False,
) -> list[tuple[Entry, str]]:
    """Return entries after a number with their explanations, of a data set and its collections or of all.

    `newest` returns the latest entries first; then `after` a number means the older ones (0: from the end). `kind`, `user`
    (of charges) and `named` (any user that an entry names) filter the entries.
    """
    query = _filter(select(entries), dataset, kind, user, named).where(entries.c.number > 0)  # 0 also starts a page
    if after:
        query = query.where(entries.c.number < after if newest else entries.c.number > after)
    query = query.order_by(entries.c.number.desc() if newest else entries.c.number).limit(limit)
    with ledger.store.reading() as connection:
        chosen = _read(connection, query)
        chosen.sort(key=lambda entry: entry.number)
        policies = policies_in_force(connection, chosen)
    explained = list(explain_entries([*policies, *chosen]))[len(policies) :]
    return explained[::-1] if newest else explained


def accounts(ledger: Ledger) -> list[str]:
    """Return every account that has an entry."""
    query = select(entries.c.account).where(entries.c.account != "").distinct().order_by(entries.c.account)
    with ledger.store.reading() as connection:
        rows = connection.execute(query)
        return [str(account) for (account,) in rows]


def _filter(query: Select[Any], dataset: str, kind: str, user: str | None, named: str) -> Select[Any]:
    if dataset:  # a data set has no slash in its name; its collections do
        query = query.where((entries.c.account == dataset) | _begins(entries.c.account, f"{dataset}/"))
    if kind:
        query = query.where(entries.c.kind == kind)
    if user is not None:  # the last field of a charge, in canonical form
        query = query.where(entries.c.kind == CHARGED, _ends(entries.c.body, f'"who":{canonical(user)}}}'))
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


def policies_in_force(connection: Connection, chosen: Sequence[Entry]) -> list[Entry]:
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
