"""Transposed reports: one bitset for every item, so that a support is an AND and a count of bits.

Bitsets        a chunk in memory: `item_counts`, `pair_counts`, `counts` of any itemsets
BitsetFolder   chunks on disk or at any fsspec URL, separate for each basket size; counted one at a time
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.arrays import Array, Ints, Words
from tidegate.collect.baskets import _kernels
from tidegate.errors import Unsupported
from tidegate.extras import extra
from tidegate.operators.basket_plans import SetOperator

CHUNK = 1 << 20  # reports in a chunk: 64 MB at 512 items
THREADS = 2
ABOUT = "bitsets.json"


@dataclass(frozen=True)
class Bitsets:
    """Columns (items, words): report r is bit r % 64 of word r // 64 of the column of each of its items."""

    columns: Words
    reports: int

    @classmethod
    def of(cls, rows: Words, *, vocabulary_size: int) -> Bitsets:
        """Return the bitsets of reports as rows of words; bits after the vocabulary (sizes) are left out."""
        whole = -(-len(rows) // 512) * 8  # words: a multiple of eight, the rest zero
        columns = np.zeros((vocabulary_size, whole), np.uint64)
        _kernels.transpose(np.ascontiguousarray(rows), columns)
        return cls(columns, len(rows))

    def item_counts(self) -> Ints:
        """Return the number of reports with each item."""
        out = np.zeros(len(self.columns), np.int64)
        _kernels.count_columns(self.columns, out)
        return out

    def counts(self, itemsets: Array, *, threads: int = THREADS) -> Ints:
        """Return the number of reports with all items of each row; the empty itemset is in all."""
        rows = _itemsets(itemsets, len(self.columns))
        if not rows.shape[1]:
            return np.full(len(rows), self.reports, np.int64)

        def count(first: int, last: int) -> Ints:
            out = np.zeros(len(rows), np.int64)
            _kernels.count_itemsets(self.columns, rows, first, last, out)
            return out

        return np.asarray(sum(_over(count, self.columns.shape[1], threads)))

    def pair_counts(self, *, threads: int = THREADS) -> Ints:
        """Return the number of reports with both of any two items: (items, items), counts of single items on the diagonal."""
        items = len(self.columns)
        spare = -items % 4
        columns = np.pad(self.columns, ((0, spare), (0, 0))) if spare else self.columns

        def count(first: int, last: int) -> Ints:
            out = np.zeros((items + spare, items + spare), np.int64)
            _kernels.count_pairs(columns, first, last, out)
            return out

        upper = np.triu(sum(_over(count, columns.shape[1], threads)))[:items, :items]
        return np.asarray(upper + np.triu(upper, 1).T)


def report_bits(operator: SetOperator) -> int:
    """Return the number of bits of a report: one for each item, and one for each planned size if sizes are sent in clear."""
    return operator.vocabulary_size + (len(operator.plans) if operator.needs_size else 0)


def _over(count: Any, words: int, threads: int) -> list[Ints]:
    """Count over parts of the words in parallel threads: the kernels release the interpreter lock."""
    edges = [words * part // threads // 8 * 8 for part in range(threads)] + [words]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(count, edges[:-1], edges[1:]))


def _itemsets(itemsets: Array, items: int) -> Ints:
    rows = np.ascontiguousarray(itemsets, np.int64)
    if rows.ndim != 2:
        raise Unsupported("Itemsets of one size must be rows of item codes.")
    if rows.size and not (int(rows.min()) >= 0 and int(rows.max()) < items):
        raise Unsupported(f"An itemset has an item code outside 0 to {items - 1:,}.", "Use codes of the vocabulary.")
    return rows


class BitsetFolder:
    """Chunks of bitsets in a folder or at any fsspec URL, one file each: `size=3-9f86d081884c7d65-1048576.bits`
    (the size, a random name, the number of reports).

    If an operator sends no sizes, all reports have size 0. Only randomized reports and their number are stored; neither
    identities nor the order beyond a chunk.

    Guarantee:
        Several processes can append at once: every chunk has a random name, so none is overwritten, and it gets that
        name when it is complete, so none is counted in part. A count may include chunks that were appended meanwhile.
    """

    def __init__(self, url: str, operator: SetOperator) -> None:
        with extra("collect", "Estimating from randomized reports"):
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        self.operator = operator
        self._files, self._root = url_to_fs(url)
        self._files.makedirs(self._root, exist_ok=True)
        about = {"items": operator.vocabulary_size, "sizes": list(operator.sizes) if operator.needs_size else []}
        if not self._files.exists(f"{self._root}/{ABOUT}"):
            self._files.pipe(f"{self._root}/{ABOUT}", json.dumps(about).encode())
        elif json.loads(self._files.cat(f"{self._root}/{ABOUT}")) != about:
            raise Unsupported("These bitsets belong to another operator.", "Use an empty folder.")

    def append(self, rows: Words) -> None:
        """Add randomized reports as rows of words."""
        for size, part in self._by_size(rows):
            for start in range(0, len(part), CHUNK):
                bitsets = Bitsets.of(part[start : start + CHUNK], vocabulary_size=self.operator.vocabulary_size)
                name = f"size={size}-{secrets.token_hex(8)}-{bitsets.reports}.bits"
                self._files.pipe_file(f"{self._root}/.{name}", bitsets.columns.astype("<u8").tobytes())
                self._files.mv(f"{self._root}/.{name}", f"{self._root}/{name}")

    def counters(self) -> dict[int, StoredBitsets]:
        """Return one counter for every size that was sent, or one for size 0 if sizes are not sent."""
        kinds = self.operator.sizes if self.operator.needs_size else (0,)
        return {size: StoredBitsets(self, size) for size in kinds if self._names(size)}

    def chunks(self, size: int) -> Iterator[Bitsets]:
        """Yield the chunks of a size."""
        for name in self._names(size):
            reports = int(name.rsplit("-", 1)[1].removesuffix(".bits"))
            words = np.frombuffer(self._files.cat(name), "<u8").reshape(self.operator.vocabulary_size, -1)
            yield Bitsets(words.astype(np.uint64, copy=False), reports)

    def reports(self, size: int) -> int:
        """Return the number of reports of a size, from the file names."""
        return sum(int(name.rsplit("-", 1)[1].removesuffix(".bits")) for name in self._names(size))

    def _names(self, size: int) -> list[str]:
        self._files.invalidate_cache()
        return sorted(self._files.glob(f"{self._root}/size={size}-*.bits"))

    def _by_size(self, rows: Words) -> Iterator[tuple[int, Words]]:
        if rows.shape[1] * 64 < report_bits(self.operator):
            raise Unsupported(f"A report of this operator needs {report_bits(self.operator):,} bits.")
        if not self.operator.needs_size:
            yield 0, rows
            return
        for bit, size in enumerate(self.operator.sizes, self.operator.vocabulary_size):
            has_size = rows[:, bit // 64] >> np.uint64(bit % 64) & np.uint64(1)
            if has_size.any():
                yield size, rows[has_size.astype(bool)]


@dataclass(frozen=True)
class StoredBitsets:
    """The stored reports of one size: counted chunk by chunk, one in memory at a time."""

    folder: BitsetFolder
    size: int

    @property
    def reports(self) -> int:
        return self.folder.reports(self.size)

    def counts(self, itemsets: Array) -> Ints:
        """Return the number of reports with all items of each row."""
        return np.asarray(sum(chunk.counts(itemsets) for chunk in self.folder.chunks(self.size)))

    def item_counts(self) -> Ints:
        """Return the number of reports with each item."""
        return np.asarray(sum(chunk.item_counts() for chunk in self.folder.chunks(self.size)))

    def pair_counts(self) -> Ints:
        """Return the number of reports with both of any two items."""
        return np.asarray(sum(chunk.pair_counts() for chunk in self.folder.chunks(self.size)))
