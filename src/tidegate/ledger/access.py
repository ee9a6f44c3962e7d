"""Access to the service in the ledger: changes of tokens, links, sign-ins, and totals of refusals.

A change of `tidegate_tokens` and its entry are one transaction. The entry has a digest of the row, so that `verify` reports a
token that was added, changed, restored or deleted outside of Tidegate. These entries belong to no account and charge nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, select

from tidegate.exact import say
from tidegate.ledger import queries
from tidegate.ledger.chain import NOTHING, append
from tidegate.ledger.entry import ACCESS, MOVED, ROTATED, Entry, canonical, entry_from, sha256
from tidegate.ledger.schema import entries, token_uses, tokens

CREATED, CHANGED, REVOKED, ADOPTED = "created", "changed", "revoked", "adopted"
LINK, SIGN_IN, ENDED, REFUSED = "link", "sign-in", "ended", "refused"
OF_TOKENS = (CREATED, CHANGED, REVOKED, ADOPTED)  # the actions that `tidegate_tokens` follows from
METHODS = {"token": "a token", "link": "a one-time link", "oidc": "their organization's account"}
REASONS = {
    "token": "invalid tokens",
    "link": "invalid links",
    "oidc": "sign-ins",
    "permission": "requests without permission",
}


def note(connection: Connection, action: str, *, user: str, at: str = "", **facts: Any) -> Entry:
    """Append an entry about access, inside the caller's transaction. `user` is the name of the user who acts."""
    end = queries.last(connection)
    group = "token" if action in OF_TOKENS else action
    name = f"{group}/{end.number + 1 if end else 0}"
    body = canonical({"action": action, **facts, "who": user})
    return append(connection, end, at=at, kind=ACCESS, request=name, body=body, **NOTHING)


def note_token(connection: Connection, action: str, row: Mapping[str, Any], *, user: str, at: str = "") -> Entry:
    """Append the entry of a token that was created, changed or revoked."""
    shown = {name: row[name] for name in ("name", "role", "dataset", "share", "expires")}
    return note(connection, action, user=user, at=at, token=row["id"], digest=digest_of(row), **shown)


def digest_of(row: Mapping[Any, Any]) -> str:
    """Return the hash of a stored token, without the time of its revocation: that is the time of another entry."""
    return sha256(canonical({column.name: row[column.name] for column in tokens.c if column.name != "revoked"}))


def adopt_tokens(connection: Connection) -> None:
    """Append an entry for the tokens of a ledger that was written before they had entries."""
    rows = [dict(row) for row in connection.execute(select(tokens).order_by(tokens.c.id)).mappings()]
    end = queries.last(connection)
    if rows and end is not None and end.kind != MOVED:
        adopted = {row["id"]: [digest_of(row), row["role"], row["revoked"]] for row in rows}
        note(connection, ADOPTED, user="", tokens=adopted)


def problems(connection: Connection) -> list[str]:
    """Return what is wrong with the stored tokens: they must follow from the entries."""
    end = queries.last(connection)
    if not connection.dialect.has_table(connection, token_uses.name) or end is None or end.kind == MOVED:
        return []  # an earlier schema that is only read, or a ledger whose tokens are elsewhere now
    expected = _replay(connection)
    stored = {row["id"]: [digest_of(row), row["revoked"]] for row in connection.execute(select(tokens)).mappings()}
    return [
        f"The token {name} {_difference(stored.get(name), expected.get(name))}."
        for name in sorted(map(str, {**expected, **stored}))
        if stored.get(name) != expected.get(name)
    ]


def _difference(row: list[str] | None, expected: list[str] | None) -> str:
    if row is None:
        return "was deleted outside of Tidegate"
    return "was changed outside of Tidegate" if expected else "was added outside of Tidegate: no entry created it"


def _replay(connection: Connection) -> dict[str, list[str]]:
    """Return digest and revocation of each token by its id, as the entries have them."""
    kinds = entries.c.kind.in_((ACCESS, ROTATED))
    chosen = select(entries).where(entries.c.account == "", kinds).order_by(entries.c.number)
    rows: dict[str, list[str]] = {}
    respondents: set[str] = set()
    for row in connection.execute(chosen).mappings():
        if row["kind"] == ROTATED:  # the hashes of their records were under the old secret
            for name in respondents:
                rows[name][1] = rows[name][1] or row["at"]
        elif row["request"].startswith("token/"):
            _follow(rows, respondents, row)
    return rows


def _follow(rows: dict[str, list[str]], respondents: set[str], row: Mapping[Any, Any]) -> None:
    body = entry_from(dict(row)).content()
    if body["action"] == ADOPTED:
        for name, (digest, role, revoked) in body["tokens"].items():
            rows[name] = [digest, revoked]
            respondents |= {name} if role == "respondent" else set()
        return
    revoked = row["at"] if body["action"] == REVOKED else rows.get(body["token"], ["", ""])[1]
    rows[body["token"]] = [body["digest"], revoked]
    respondents |= {body["token"]} if body["role"] == "respondent" else set()


def is_readable(body: Any) -> bool:
    """Return whether the body of an entry has the parts of its action."""
    return isinstance(body["who"], str) and bool(describe(body, body["who"] or "Unknown user"))


def describe(body: Any, user: str) -> str:
    """Return the body of an entry as a sentence. `user` is the name of the user who acted."""
    action = body["action"]
    if action == ADOPTED:
        return f"The ledger was migrated from an earlier version. It commits to {len(body['tokens']):,} tokens from here on."
    if action == REFUSED:
        return _describe_refusals(body)
    if action == SIGN_IN:
        return f"{user} signed in with {METHODS[body['method']]}."
    if action == ENDED:
        return f"{user} ended a session of {body['name']}."
    if action == LINK:
        return f"{user} created a one-time sign-in link for {body['name']} (access {body['token']})."
    access = f"the access {body['token']} of {body['name']} ({body['role']} of {body['dataset'] or 'all data sets'})"
    share = f", with the budget share {_short(body['share'])}" if body["share"] else ""
    verb = {CREATED: "created", CHANGED: "changed", REVOKED: "revoked"}[action]
    return f"{user} {verb} {access}{share}."


def _short(share: str) -> str:
    """Return a budget share for a sentence; a text that is not a number stays as it is."""
    with suppress(ValueError):
        return say(Fraction(share))
    return share


def _describe_refusals(body: Any) -> str:
    counts = [f"{count:,} {REASONS[reason]}" for reason, count in sorted(body["counts"].items())]
    names = f" Users: {', '.join(body['names'])}." if body["names"] else ""
    return f"Access was refused since {body['since'][:19]}: {', '.join(counts)}, from {body['networks']:,} networks.{names}"
