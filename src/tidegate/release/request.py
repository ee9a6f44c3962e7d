"""A request for records by their keys, from one requester."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from tidegate.ledger.release_book import key_hash

Progress = Callable[[int, int], None]  # receives how many of how many are decided
BATCH = 1_000  # keys decided under one ledger entry


@dataclass(frozen=True)
class RecordRequest:
    """The records that one user requests, in order, each key once.

    `hashes` maps every key to its keyed hash. The ledger stores the hash, never the key.
    """

    user: str
    hashes: Mapping[str, str]

    @classmethod
    def for_keys(cls, keys: Iterable[str | int], *, secret: bytes, user: str = "") -> RecordRequest:
        """Build a request; numeric keys become text."""
        return cls(user, {key: key_hash(secret, key) for key in dict.fromkeys(map(str, keys))})

    def __len__(self) -> int:
        return len(self.hashes)

    def batches(self) -> Iterator[RecordRequest]:
        """Split the request into parts that are decided under one entry each."""
        remaining = iter(self.hashes.items())
        while batch := dict(islice(remaining, BATCH)):
            yield RecordRequest(self.user, batch)


def is_storable(key: str) -> bool:
    """Return whether a database can hold the key; if not, no record has it."""
    return "\x00" not in key and not any("\ud800" <= letter <= "\udfff" for letter in key)
