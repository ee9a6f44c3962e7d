"""Tokens: ``tg_<id>_<secret>``, shown once. The service stores an id, a slow hash, a role, and times.

Guarantee:
    An invalid token takes the same work as a valid one (one lookup, one scrypt) and is compared in constant time. The token
    cannot be recovered from what is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from tidegate.accounting import Amount
from tidegate.errors import Unsupported
from tidegate.exact import exact
from tidegate.ledger.tokens import StoredToken, Tokens, stamp
from tidegate.service.access.permissions import ANALYST, PUBLIC, RESPONDENT, ROLES

COST = {
    "n": 2**14,
    "r": 8,
    "p": 1,
}  # 16 MB and about 50 ms per guess on a laptop; stored with each hash, so that it can be raised
FORM = re.compile(r"tg_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
NO_TOKEN = StoredToken("", "00" * 16, "", "", "", "", "", "", "", "")
LONGEST_NAME, MOST_DAYS = 63, 3660
SHARE = re.compile(r"\d{1,6}(\.\d{1,30})?")


def make_token(
    tokens: Tokens,
    *,
    role: str,
    name: str,
    dataset: str = "",
    record: str = "",
    share: str = "",
    days: float = 90,
    maker: str = "",
    is_sent: bool = True,
) -> tuple[str, StoredToken]:
    """Create a token; return its text and what is stored.

    Args:
        record: The key of a respondent's record.
        share: The budget share of an analyst: the most that this name can spend on a data set in total.
        maker: The name of the user who creates it, for the ledger's entry.
        is_sent: False if there is nothing to send: the user signs in with one-time links only, and the text is empty.
    """
    _check(role, name, dataset, record, share, days)
    public, secret, salt = secrets.token_hex(8), secrets.token_urlsafe(32), secrets.token_hex(16)
    now = datetime.now(UTC)
    stored = StoredToken(
        public,
        salt,
        hash_secret(secret, salt) if is_sent else "",
        role,
        name,
        dataset,
        record_hash(tokens.secret(), dataset, record) if record else "",
        str(Amount.down(exact(share))) if share else "",
        stamp(now),
        stamp(now + timedelta(days=days)),
        maker=maker,
    )
    tokens.add(stored)
    return f"tg_{public}_{secret}" if is_sent else "", stored


def verify_token(tokens: Tokens, text: str) -> StoredToken | None:
    """Return the stored token of a text, or None if it is not valid."""
    parsed = FORM.fullmatch(text) if len(text) < 100 else None
    public, secret = parsed.groups() if parsed else ("", "wrong")
    stored = tokens.find(public)
    expected = stored or NO_TOKEN
    matches = hmac.compare_digest(hash_secret(secret, expected.salt, cost=_cost(expected.hash)), expected.hash)
    return stored if stored and matches and not stored.over(datetime.now(UTC)) else None


def may_be_valid(tokens: Tokens, text: str) -> bool:
    """Return whether a text has the id of a token that is neither expired nor revoked; one lookup, no hash."""
    parsed = FORM.fullmatch(text) if len(text) < 100 else None
    stored = tokens.find(parsed[1]) if parsed else None
    return stored is not None and not stored.over(datetime.now(UTC))


def hash_secret(secret: str, salt: str, *, cost: dict[str, int] | None = None) -> str:
    """Return the slow hash of a secret, with its cost: ``scrypt:16384:8:1:...``."""
    n, r, p = (cost or COST).values()
    digest = hashlib.scrypt(secret.encode(), salt=bytes.fromhex(salt), n=n, r=r, p=p, dklen=32)
    return f"scrypt:{n}:{r}:{p}:{digest.hex()}"


def _cost(stored_hash: str) -> dict[str, int]:
    """Return the cost of a stored hash, or the current cost if there is none."""
    parts = stored_hash.split(":")[1:4]
    return {name: int(part) for name, part in zip("nrp", parts, strict=True)} if parts else COST


def record_hash(secret: bytes, dataset: str, key: str) -> str:
    """Return a record's key as tokens store it: names are easy to guess, so it is hashed with the service's secret."""
    text = f"{dataset}\n{key}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def token_to_dict(token: StoredToken, *, used: str = "") -> dict[str, Any]:
    """Return what an owner can see of a token. `used` is the day of its last use."""
    issuer, _, subject = token.identity.partition(" ")
    return {
        "id": token.id,
        "role": token.role,
        "name": token.name,
        "dataset": token.dataset or None,
        "share": token.share or None,
        "made": token.made,
        "expires": token.expires or None,
        "revoked": token.revoked or None,
        "maker": token.maker or None,
        "used": used or None,
        "method": "oidc" if token.identity else "token" if token.hash else "link",
        "identity": {"issuer": issuer, "subject": subject} if token.identity else None,
    }


def _check(role: str, name: str, dataset: str, record: str, share: str, days: float) -> None:
    if role not in ROLES or role == PUBLIC:
        raise Unsupported(f"The role of a token must be one of {', '.join(ROLES[:-1])}.")
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise Unsupported(
            f"The name of a token must have 1 to {LONGEST_NAME} printable characters.",
            "Choose a name that identifies the user: it is recorded in every ledger entry.",
        )
    if bool(record) != (role == RESPONDENT) or (role == RESPONDENT and not dataset) or len(record) > 1000:
        raise Unsupported(
            "A respondent's token needs a data set and the key of one record; other tokens cannot have a record."
        )
    if share and (role != ANALYST or not SHARE.fullmatch(share)):
        raise Unsupported(
            "A budget share is a number and is for analysts only: the most that the analyst can spend in total.",
            'Specify a number, for example share = "0.5".',
        )
    if not 0 < days <= MOST_DAYS:
        raise Unsupported(f"A token must expire after at most {MOST_DAYS:,} days.")
