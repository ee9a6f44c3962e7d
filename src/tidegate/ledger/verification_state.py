"""The state of a verification in a file, so that a later one can continue from there (`tidegate ledger verify --since`).

The file holds what the replay has to know of earlier entries: totals, requests, collections, commitments, and the root of
the Merkle tree. It is as private as an export. A later verification compares the stored hashes of the earlier entries with
the root, but does not read their content again; results of earlier entries are not hashed again either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import merkle
from tidegate.ledger.scratch import Mapping, Scratch

_TRANSIENT = ("payloads", "scratch", "dataset", "head_to_find", "has_head")
_FORMAT = 1


def save_state(replay: Any, path: Path, classes: Iterable[type]) -> None:
    """Write the state of a replay into a new file. `classes` are the types of its values."""
    names = {kind.__name__ for kind in classes}
    state = {name: _encode(value, names) for name, value in vars(replay).items() if name not in _TRANSIENT}
    about = {"format": _FORMAT, "number": replay.number, "root": replay.tree.root.hex(), "state": state}
    replay.scratch.mapping("about")["about"] = about
    replay.scratch.save(path)


@dataclasses.dataclass
class VerificationState:
    """The state of an earlier verification."""

    scratch: Scratch
    number: int  # of the last verified entry
    root: str
    state: dict[str, Any]

    @classmethod
    def load(cls, path: Path) -> VerificationState:
        """Return the state that `save_state` wrote."""
        scratch = Scratch(path)
        about = scratch.mapping("about").get("about")
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            scratch.close()
            raise LedgerUnavailable(f"{path} has another format than this version writes.", "Verify without --since.")
        return cls(scratch, about["number"], about["root"], about["state"])

    def restore(self, replay: Any, classes: Iterable[type]) -> None:
        """Continue a new replay from this state."""
        replay.scratch = self.scratch
        named = {kind.__name__: kind for kind in classes}
        for name, value in self.state.items():
            setattr(replay, name, _decode(value, named, self.scratch))

    def compare(self, connection: Connection, head: str) -> bool:
        """Refuse a ledger whose earlier entries differ; return whether one of them has the hash `head`."""
        frontier, has_head = merkle.Frontier(), False
        for number, hashed in merkle.hashes(connection, end=self.number + 1):
            if number and not frontier.size:
                frontier.add(merkle.NO_ENTRY)
            has_head |= hashed == head
            frontier.add(merkle.leaf_of(hashed))
        if (frontier.size, frontier.root.hex()) == (self.number + 1, self.root):
            return has_head
        self.scratch.close()
        raise LedgerBroken(
            f"The entries up to {self.number:,} are not those that were verified before: they were changed, cut off, or belong to "
            "another ledger.",
            "Verify without --since to see what was changed. Keep this copy as evidence.",
        )


def _encode(value: Any, names: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {"mapping": value.name}
    if dataclasses.is_dataclass(value) and type(value).__name__ in names:
        fields = {field.name: _encode(getattr(value, field.name), names) for field in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {"items": [[_encode(key, names), _encode(item, names)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item, names) for item in value]}
    if isinstance(value, list):
        return [_encode(item, names) for item in value]
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"A {type(value).__name__} cannot be saved.")


def _decode(value: Any, named: dict[str, type], scratch: Scratch) -> Any:
    if isinstance(value, list):
        return [_decode(item, named, scratch) for item in value]
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return scratch.mapping(value["mapping"])
    if "class" in value:
        fields = {name: _decode(item, named, scratch) for name, item in value["fields"].items()}
        return named[value["class"]](**fields)
    if "items" in value:
        return {_decode(key, named, scratch): _decode(item, named, scratch) for key, item in value["items"]}
    if "tuple" in value:
        return tuple(_decode(item, named, scratch) for item in value["tuple"])
    return bytes.fromhex(value["bytes"]) if "bytes" in value else Fraction(value["fraction"])
