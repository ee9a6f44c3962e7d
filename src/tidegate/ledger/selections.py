"""A replay of hiding promises from the entries, and a comparison with the stored selection and with what was released."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tidegate.ledger.entry import sha256

RULE = "tidegate/hiding/1"
KEY, GROUPS = "/hiding", "/hiding-groups"  # names of secrets, after that of their account


def key_commitment(value: str) -> str:
    """Return the hash that represents the key (as stored, in hexadecimal) in the chain."""
    try:
        key = bytes.fromhex(value)
    except ValueError:  # not written by this ledger
        return ""
    return hashlib.sha256(f"{RULE}/key/".encode() + key).hexdigest()


def secret_commitment(name: str, value: str) -> str | None:
    """Return the hash of a secret of a hiding promise; None for other secrets."""
    if name.endswith(KEY):
        return key_commitment(value)
    return sha256(value) if name.endswith(GROUPS) else None


def stored_digest(key: bytes) -> hmac.HMAC:
    """Return an empty digest of stored rows; add a `stored_line` for each row, sorted by key."""
    return hmac.new(key, f"{RULE}/stored/".encode(), hashlib.sha256)


def stored_line(row: Mapping[str, Any]) -> bytes:
    """Return what the digest of stored rows covers of one row."""
    return f"{row['key']} {row['epoch']} {row['cell']} {row['digest']}\n".encode()


@dataclass
class Epoch:
    """One selection: its quotas at each time (the entry's number, and the quotas since then)."""

    quotas: list[tuple[int, Any]]
    sizes: list[int]
    values: int
    stored: str

    def period(self, entry: int) -> int:
        """Return which quotas were in force for an entry."""
        return max(index for index, (number, _) in enumerate(self.quotas) if number < entry)

    def quota(self, cell: int, period: int) -> int:
        """Return the quota of a cell; that of a group that is released in full is its size."""
        group, value = divmod(cell, self.values)
        row = self.quotas[period][1][group]
        return int(self.sizes[group] if row is None else row[value])


@dataclass
class Selections:
    """The selections of one account in the replay."""

    key: str = ""  # the commitment
    hidden: list[int] | None = None
    epochs: dict[int, Epoch] = field(default_factory=dict)

    def commit(self, key: str) -> list[str]:
        """Replay the commitment to a key, or to another list of groups before the first opening; return its problems."""
        checks = (
            ("its key is another one than before", self.key in ("", key)),
            ("a selection was opened before it", not self.epochs),
        )
        self.key = key
        return [problem for problem, holds in checks if not holds]

    def open(self, body: Any, entry: int) -> list[str]:
        """Replay an opening, or the lower quotas of an open selection; return its problems."""
        epoch, cut = body["epoch"], bool(body.get("cut"))
        mix, sizes, hidden = [Fraction(share) for share in body["mix"]], body["sizes"], body["hidden"]
        before = self.epochs.get(epoch)
        expected = [
            [0] * len(mix)
            if size < body["smallest"]
            else [math.floor(share * size) for share in mix]
            if group in hidden
            else None
            for group, size in enumerate(sizes)
        ]
        checks = (
            ("its rule is unknown", body["rule"] == RULE),
            ("there is no commitment to a key before it", bool(self.key)),
            ("its quotas are not those of its mix", body["quotas"] == expected),
            ("its mix is not a part of each group", min(mix) >= 0 and sum(mix) <= 1),
            ("its `at_most` is not between 0 and 1", 0 < Fraction(body["at_most"]) < 1),
            ("its hidden groups are others than before", self.hidden in (None, hidden)),
            ("its number does not follow from the one before", cut or epoch == len(self.epochs) + 1),
            ("it lowers quotas of a selection that is not open", not cut or before is not None),
            ("it raises a quota", not (cut and before) or _is_lower(expected, before.quotas[-1][1])),
        )
        self.hidden = hidden
        if cut and before:
            before.quotas.append((entry, expected))
            before.stored = body["stored"]
        else:
            self.epochs[epoch] = Epoch([(entry, expected)], sizes, len(mix), body["stored"])
        return [problem for problem, holds in checks if not holds]

    def compare(
        self, account: str, rows: list[Mapping[str, Any]], requests: list[Mapping[str, Any]], key: str
    ) -> list[str]:
        """Compare the stored selection and the decided requests with the openings; return the problems."""
        wrong = []
        digests = {epoch: stored_digest(bytes.fromhex(key)) for epoch in self.epochs} if key else {}
        for row in rows:
            if row["epoch"] not in digests:
                wrong.append(f"The selection of {account} contains records of no opening.")
                break
            digests[row["epoch"]].update(stored_line(row))
        wrong += [
            f"The selection {epoch} of {account} differs from its entry."
            for epoch, digest in digests.items()
            if digest.hexdigest() != self.epochs[epoch].stored
        ]
        return wrong + self._compare_requests(account, {row["key"]: row for row in rows}, requests)

    def _compare_requests(
        self, account: str, rows: Mapping[str, Mapping[str, Any]], requests: list[Mapping[str, Any]]
    ) -> list[str]:
        wrong: list[str] = []
        counts: Counter[tuple[int, ...]] = Counter()
        for request in sorted(requests, key=lambda request: request["place"] or 0):
            row, number = rows.get(request["key"]), request["number"]
            if request["state"] == "withheld":
                if row is None:
                    wrong.append(f"Request {number} of {account} was withheld, but its record was in no selection.")
                continue
            cell, epoch = map(int, request["cells"].split(","))
            if request["nonce"]:
                wrong.append(f"Request {number} of {account} has a nonce, although it never waited.")
            if row is None or not row["digest"] or (row["cell"], row["epoch"]) != (cell, epoch):
                wrong.append(f"Request {number} of {account} was released, but its record was not chosen.")
                continue
            opened = self.epochs[epoch]
            period = opened.period(request["entry"])
            counts[epoch, cell] += 1
            counts[epoch, cell, period] += 1
            total, since_cut = counts[epoch, cell], counts[epoch, cell, period]
            if total > opened.quota(cell, 0) or since_cut > opened.quota(cell, period):
                wrong.append(f"Request {number} of {account} was released beyond the quota of its value and group.")
        return wrong


def compare_selections(
    selections: Mapping[str, Selections],
    rows: Iterable[Mapping[str, Any]],
    requests: Iterable[Mapping[str, Any]],
    secrets: Iterable[tuple[str, str]],
) -> list[str]:
    """Return a problem for each difference between the openings, the stored selections and the decided requests."""
    keys, wrong = dict(secrets), []
    rows_by_account: dict[str, list[Mapping[str, Any]]] = {}
    requests_by_account: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_by_account.setdefault(row["account"], []).append(row)
    for request in requests:
        requests_by_account.setdefault(request["account"], []).append(request)
    for account in {**selections, **rows_by_account}:
        replayed = selections.get(account, Selections())
        try:
            wrong += replayed.compare(
                account,
                sorted(rows_by_account.get(account, []), key=lambda row: str(row["key"])),
                requests_by_account.get(account, []),
                keys.get(account + KEY, ""),
            )
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration):
            wrong.append(f"The selection of {account} cannot be read.")
    return wrong


def _is_lower(quotas: Any, before: Any) -> bool:
    """Return whether no quota is above an earlier one."""
    pairs = zip(quotas, before, strict=True)
    return all(
        earlier is None if row is None else earlier is None or all(a <= b for a, b in zip(row, earlier, strict=True))
        for row, earlier in pairs
    )
