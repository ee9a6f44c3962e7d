"""A Merkle tree over the entries, as in RFC 6962: short proofs that an entry is in the ledger, and that a ledger only grew.

Leaf number n is the 32 bytes of the hash of entry n, so that a proof needs only the entry, or only its hash. A ledger of an
earlier version has no entry 0; its leaf 0 is 32 zero bytes, from which its chain starts. The tree has as many leaves as the
number of the last entry plus one.

The hash of every complete subtree with 256, 65,536, ... leaves (a tile) is stored in the transaction of its last entry. All
others follow from at most 256 hashes of each level, so that neither a proof nor a root reads the whole ledger.

Reference:
    RFC 6962, sections 2.1, 2.1.1 and 2.1.2; the verification of proofs is that of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, select

from tidegate.ledger.schema import entries, tiles

HEIGHT = 8  # levels of a tile
WIDTH = 1 << HEIGHT
EMPTY = hashlib.sha256(b"").digest()
NO_ENTRY = bytes(32)  # leaf 0 of a ledger without entry 0
Node = Callable[[int, int], bytes]  # level, index -> the hash of a complete subtree

_HASHES = (
    select(entries.c.number, entries.c.hash)
    .where(entries.c.number >= bindparam("start"), entries.c.number < bindparam("end"))
    .order_by(entries.c.number)
)
_TILES = (
    select(tiles.c.hash)
    .where(tiles.c.level == bindparam("level"), tiles.c.index >= bindparam("start"), tiles.c.index < bindparam("end"))
    .order_by(tiles.c.index)
)
_ADD_TILE = tiles.insert()


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\0" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node."""
    return hashlib.sha256(b"\1" + left + right).digest()


@dataclass
class Frontier:
    """The tree while it grows: the hashes of its complete subtrees, largest first. Adding a leaf takes O(log n) steps."""

    size: int = 0
    hashes: list[bytes] = field(default_factory=list)

    def add(self, leaf: bytes) -> list[tuple[int, int, bytes]]:
        """Add a leaf; return the tiles that it completes: level, index, hash."""
        hashed, level, position, tiles = leaf_hash(leaf), 0, self.size, list[tuple[int, int, bytes]]()
        while position & 1:
            hashed = hashlib.sha256(b"\1" + self.hashes.pop() + hashed).digest()
            position >>= 1
            level += 1
            if level % HEIGHT == 0:
                tiles.append((level, position, hashed))
        self.hashes.append(hashed)
        self.size += 1
        return tiles

    @property
    def root(self) -> bytes:
        """The hash of the tree."""
        if not self.hashes:
            return EMPTY
        hashed = self.hashes[-1]
        for left in reversed(self.hashes[:-1]):
            hashed = node_hash(left, hashed)
        return hashed


# Proofs, from the hashes of complete subtrees


def root(size: int, node: Node) -> bytes:
    """Return the hash of the tree of the first `size` leaves."""
    return _subtree(0, size, node) if size else EMPTY


def inclusion_proof(index: int, size: int, node: Node) -> list[bytes]:
    """Return the hashes that lead from a leaf to the root of the tree of the first `size` leaves, lowest first."""
    if not 0 <= index < size:
        raise ValueError("The leaf is not in the tree.")
    return _path(index, 0, size, node)


def consistency_proof(first: int, size: int, node: Node) -> list[bytes]:
    """Return the hashes that show that the tree of `first` leaves is a part of the tree of `size` leaves."""
    if not 0 < first <= size:
        raise ValueError("The first tree is not a part of the second.")
    return _subproof(first, 0, size, node, is_whole=True)


def _split(size: int) -> int:
    """Return the largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)


def _subtree(start: int, size: int, node: Node) -> bytes:
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return node(level, start >> level)
    left = _split(size)
    return node_hash(_subtree(start, left, node), _subtree(start + left, size - left, node))


def _path(index: int, start: int, size: int, node: Node) -> list[bytes]:
    if size == 1:
        return []
    left = _split(size)
    if index < start + left:
        return [*_path(index, start, left, node), _subtree(start + left, size - left, node)]
    return [*_path(index, start + left, size - left, node), _subtree(start, left, node)]


def _subproof(first: int, start: int, size: int, node: Node, *, is_whole: bool) -> list[bytes]:
    if first == size:
        return [] if is_whole else [_subtree(start, size, node)]
    left = _split(size)
    if first <= left:
        rest = _subproof(first, start, left, node, is_whole=is_whole)
        return [*rest, _subtree(start + left, size - left, node)]
    rest = _subproof(first - left, start + left, size - left, node, is_whole=False)
    return [*rest, _subtree(start, left, node)]


# Verification. It needs no ledger.


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Return whether a proof leads from a leaf to the root."""
    if not 0 <= index < size:
        return False
    position, last, hashed = index, size - 1, leaf_hash(leaf)
    for sibling in proof:
        if last == 0:
            return False
        if position & 1 or position == last:
            hashed = node_hash(sibling, hashed)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            hashed = node_hash(hashed, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and hashed == root


def verify_consistency(first: int, size: int, proof: Sequence[bytes], first_root: bytes, root: bytes) -> bool:
    """Return whether a proof shows that the tree of `first` leaves is the beginning of the tree of `size` leaves."""
    if not 0 < first <= size:
        return False
    if first == size:
        return not proof and first_root == root
    path = [first_root, *proof] if first & (first - 1) == 0 else list(proof)
    if not path:
        return False
    position, last = first - 1, size - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if position & 1 or position == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and old == first_root and new == root


# The tree of a ledger


def leaf_of(entry_hash: str) -> bytes:
    """Return the leaf of an entry. A hash that is not one (`verify` reports it) gets a leaf as well."""
    try:
        return bytes.fromhex(entry_hash)
    except (ValueError, TypeError):
        return hashlib.sha256(str(entry_hash).encode("utf-8", "surrogatepass")).digest()


def add(connection: Connection, number: int) -> None:
    """Store the tiles that an entry completes, in its transaction."""
    size, level = number + 1, HEIGHT
    while size % (1 << level) == 0:
        index = (size >> level) - 1
        hashed = Nodes(connection)(level, index, is_new=True)
        connection.execute(_ADD_TILE, {"level": level, "index": index, "hash": hashed.hex()})
        level += HEIGHT


def hashes(connection: Connection, *, end: int = 2**31 - 1) -> Iterator[tuple[int, str]]:
    """Yield the number and the hash of every entry before a number, in order."""
    rows = connection.execute(_HASHES, {"start": 0, "end": end}, execution_options={"yield_per": 10_000})
    yield from ((number, hashed) for number, hashed in rows)


def rebuild(connection: Connection) -> None:
    """Store all tiles of a ledger that has none yet."""
    frontier = Frontier()
    complete: list[tuple[int, int, bytes]] = []
    for number, hashed in hashes(connection):
        if number and not frontier.size:
            frontier.add(NO_ENTRY)
        complete += frontier.add(leaf_of(hashed))
    for level, index, tile in complete:
        connection.execute(_ADD_TILE, {"level": level, "index": index, "hash": tile.hex()})


class Nodes:
    """The hashes of complete subtrees of a ledger, from tiles and entries; each tile is read once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: dict[tuple[int, int], list[bytes]] = {}

    def __call__(self, level: int, index: int, *, is_new: bool = False) -> bytes:
        """Return the hash of the subtree with this index on a level. `is_new`: its own tile is not stored yet."""
        if level % HEIGHT == 0 and not is_new:
            return self._row(level, index // WIDTH)[index % WIDTH]
        below = (level - 1) // HEIGHT * HEIGHT  # the level of stored hashes
        count = 1 << (level - below)
        start = index * count
        hashes = self._row(below, start // WIDTH)[start % WIDTH : start % WIDTH + count]
        while len(hashes) > 1:
            hashes = [node_hash(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=True)]
        return hashes[0]

    def _row(self, level: int, tile: int) -> list[bytes]:
        """Return up to 256 stored hashes of a level."""
        if (level, tile) not in self._rows:
            named = {"start": tile * WIDTH, "end": (tile + 1) * WIDTH}
            if level:
                rows = self._connection.execute(_TILES, {"level": level, **named}).scalars()
                self._rows[level, tile] = [bytes.fromhex(hashed) for hashed in rows]
            else:
                self._rows[level, tile] = self._leaves(**named)
        return self._rows[level, tile]

    def _leaves(self, start: int, end: int) -> list[bytes]:
        rows = self._connection.execute(_HASHES, {"start": start, "end": end}).all()
        hashes = [leaf_hash(leaf_of(hashed)) for _, hashed in rows]
        return [leaf_hash(NO_ENTRY), *hashes] if rows and start == 0 and rows[0][0] == 1 else hashes
