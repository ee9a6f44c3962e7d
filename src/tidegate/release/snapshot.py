"""The records of a table at the moment when a selection opens: read once, hashed, and assigned to joint cells."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Ints
from tidegate.ledger.release_book import key_hash
from tidegate.ledger.selection_book import Selected
from tidegate.ledger.selections import RULE
from tidegate.release.layout import Layout
from tidegate.tables import Table


@dataclass(frozen=True)
class Snapshot:
    """The records of a table: key hashes by cell, and where the record of a key hash is."""

    cells: dict[int, list[str]]
    cell_of: dict[str, int]
    shown: Callable[[str], str]

    def lines(self) -> list[str]:
        return [f"{hashed} {cell}" for hashed, cell in sorted(self.cell_of.items())]

    def rows(self, epoch: int, chosen: set[str], key: bytes) -> Iterable[Selected]:
        """Yield the rows of the selection, sorted by key."""
        for hashed, cell in sorted(self.cell_of.items()):
            digest = record_digest(key, cell, self.shown(hashed)) if hashed in chosen else ""
            yield Selected(hashed, epoch, cell, digest)


def record_digest(key: bytes, cell: int, record: str) -> str:
    """Return the digest by which a record is recognized when it is requested."""
    return hmac.digest(key, f"{RULE}/record/{cell}/{record}".encode(), hashlib.sha256).hex()[:32]


def read_snapshot(table: Table, layout: Layout, secret: bytes, known: set[str]) -> Snapshot:
    """Read the whole table once. Records with a repeated key or a value outside the policy are left out."""
    keys: list[str] = []
    positions: list[Ints] = []
    parts = []
    for part in table.all_records(layout.raw, layout.axes):
        keys += part.keys
        positions.append(np.stack(part.cells, axis=1))
        parts.append(part)
    rows = np.concatenate(positions) if positions else np.zeros((0, len(layout.axes)), np.int64)
    cells = layout.joint_cells(rows)
    hashes = [key_hash(secret, key) for key in keys]
    times = Counter(hashes)
    index = {
        hashed: number
        for number, (hashed, cell) in enumerate(zip(hashes, cells.tolist(), strict=True))
        if cell >= 0 and times[hashed] == 1 and hashed not in known
    }
    by_cell: dict[int, list[str]] = {}
    cell_of = {hashed: int(cells[number]) for hashed, number in index.items()}
    for hashed, cell in cell_of.items():
        by_cell.setdefault(cell, []).append(hashed)
    owners = [(part, row) for part in parts for row in range(len(part.keys))]
    positions_of = rows.tolist()

    def shown(hashed: str) -> str:
        number = index[hashed]
        part, row = owners[number]
        return layout.shown_text(part.row(row), positions_of[number])

    return Snapshot(by_cell, cell_of, shown)
