"""Tokens: ``tg_<id>_<secret>``, shown once. What is kept is an id, a slow hash, a role and times.

Guarantee  A token that is wrong in any way costs the same work as one that is right (one look-up, one scrypt), and is
           compared in constant time. What is kept does not give the token back.
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

COST = {"n": 2**14, "r": 8, "p": 1}  # 16 MB and some 50 ms for each guess; kept with each hash, so that it can rise
FORM = re.compile(r"tg_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
NOBODY = StoredToken("", "00" * 16, "", "", "", "", "", "", "", "")
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
) -> tuple[str, StoredToken]:
    """A new token, and what is kept of it. `record` is the key of a respondent's record, `share` the most that an
    analyst's name may spend of a data set in all."""
    _check(role, name, dataset, record, share, days)
    public, secret, salt = secrets.token_hex(8), secrets.token_urlsafe(32), secrets.token_hex(16)
    now = datetime.now(UTC)
    kept = StoredToken(
        public,
        salt,
        hashed(secret, salt),
        role,
        name,
        dataset,
        record_hash(tokens.secret(), dataset, record) if record else "",
        str(Amount.down(exact(share))) if share else "",
        stamp(now),
        stamp(now + timedelta(days=days)),
    )
    tokens.add(kept)
    return f"tg_{public}_{secret}", kept


def verify(tokens: Tokens, given: str) -> StoredToken | None:
    """The token that somebody gave, where it is one and still opens something."""
    parsed = FORM.fullmatch(given) if len(given) < 100 else None
    public, secret = parsed.groups() if parsed else ("", "wrong")
    found = tokens.find(public)
    kept = found or NOBODY
    right = hmac.compare_digest(hashed(secret, kept.salt, cost=_cost(kept.hash)), kept.hash)
    return found if found and right and not found.over(datetime.now(UTC)) else None


def may_be_valid(tokens: Tokens, given: str) -> bool:
    """Whether a token has the form and the id of one that is neither expired nor revoked: one look-up, no hash."""
    parsed = FORM.fullmatch(given) if len(given) < 100 else None
    found = tokens.find(parsed[1]) if parsed else None
    return found is not None and not found.over(datetime.now(UTC))


def hashed(secret: str, salt: str, *, cost: dict[str, int] | None = None) -> str:
    """The slow hash of a secret, with its cost: ``scrypt:16384:8:1:...``."""
    n, r, p = (cost or COST).values()
    made = hashlib.scrypt(secret.encode(), salt=bytes.fromhex(salt), n=n, r=r, p=p, dklen=32)
    return f"scrypt:{n}:{r}:{p}:{made.hex()}"


def _cost(kept: str) -> dict[str, int]:
    """The cost at which a hash was made; today's where there is none."""
    parts = kept.split(":")[1:4]
    return {name: int(part) for name, part in zip("nrp", parts, strict=True)} if parts else COST


def record_hash(secret: bytes, dataset: str, key: str) -> str:
    """A record's key as a token keeps it: names are easily guessed, so it is hashed with the service's secret."""
    text = f"{dataset}\n{key}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def told(kept: StoredToken) -> dict[str, Any]:
    """What an owner may see of a token."""
    return {
        "id": kept.id,
        "role": kept.role,
        "name": kept.name,
        "dataset": kept.dataset or None,
        "share": kept.share or None,
        "made": kept.made,
        "expires": kept.expires,
        "revoked": kept.revoked or None,
    }


def _check(role: str, name: str, dataset: str, record: str, share: str, days: float) -> None:
    if role not in ROLES or role == PUBLIC:
        raise Unsupported(f"a token is for one of {', '.join(ROLES[:-1])}.")
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise Unsupported(f"a token needs a name of at most {LONGEST_NAME} printable letters.", "It is in every entry.")
    if bool(record) != (role == RESPONDENT) or (role == RESPONDENT and not dataset) or len(record) > 1000:
        raise Unsupported("a respondent's token, and no other, names a data set and the key of one record.")
    if share and (role != ANALYST or not SHARE.fullmatch(share)):
        raise Unsupported(
            "a share is the most that an analyst may spend in all, as a number.", 'For example share = "0.5".'
        )
    if not 0 < days <= MOST_DAYS:
        raise Unsupported(f"a token expires after at most {MOST_DAYS:,} days.")
