"""Equal composition: the mix, the quotas and the keyed choice of the records that can be released.

Everything here follows from the key, the cells of the records and public numbers. Ranks, thresholds and the counts of single
cells are private: the largest chosen rank of a cell is about the part of it that was chosen.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from tidegate.arrays import Ints
from tidegate.ledger.selections import RULE, key_commitment
from tidegate.policy.hiding import Hiding

FEWEST = 15  # records of a value in a sample below which its share is taken as 0
Label = Literal["select", "sample", "decoys", "salt"]
Mix = tuple[Fraction, ...]


@dataclass(frozen=True)
class SelectionKey:
    """The secret key of the choices of one account."""

    value: bytes
    account: str

    @property
    def commitment(self) -> str:
        """What an entry of the ledger says about the key before the table is read."""
        return key_commitment(self.value.hex())

    def rank(self, label: Label, epoch: int, name: str) -> bytes:
        """Return a number that nobody without the key can predict."""
        message = f"{RULE}/{label}/{self.account}/{epoch}/{name}"
        return hmac.digest(self.value, message.encode(), hashlib.sha256)

    def smallest(self, label: Label, epoch: int, names: Iterable[str], count: int) -> list[str]:
        """Return the `count` names with the smallest ranks; equal ranks are ordered by name."""
        return sorted(names, key=lambda name: (self.rank(label, epoch, name), name))[:count]

    def digest(self, epoch: int, title: str, lines: Sequence[str]) -> str:
        """Return a salted digest of some lines: it shows a change, and nothing else to anyone without the key."""
        salt = self.rank("salt", epoch, title)
        return hashlib.sha256(salt + "\n".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class Population:
    """The records of a snapshot: key hashes by cell. A cell is group * values + value."""

    cells: Mapping[int, Sequence[str]]
    values: int
    groups: int

    @cached_property
    def counts(self) -> Ints:
        """The number of records: (groups, values)."""
        table = np.zeros((self.groups, self.values), np.int64)
        for cell, names in self.cells.items():
            table[divmod(cell, self.values)] = len(names)
        return table

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of records of each group, which is public."""
        return tuple(int(size) for size in self.counts.sum(axis=1))


@dataclass(frozen=True)
class Quotas:
    """The public part of a selection: which groups are hidden, and how many records of each value can be released.

    `by_group` has one list per group; None where the whole group is released.
    """

    mix: Mix
    sizes: tuple[int, ...]
    hidden: tuple[int, ...]
    by_group: tuple[tuple[int, ...] | None, ...]

    @property
    def chosen(self) -> tuple[int, ...]:
        """The number of records of each group that can be released."""
        pairs = zip(self.by_group, self.sizes, strict=True)
        return tuple(size if row is None else sum(row) for row, size in pairs)

    @property
    def share(self) -> Fraction:
        """The part of all records that can be released."""
        return Fraction(sum(self.chosen), max(sum(self.sizes), 1))


def draw_decoys(key: SelectionKey, sensitive: Sequence[int], among: int, eligible: Sequence[int]) -> tuple[int, ...]:
    """Return the hidden set: the sensitive groups and (among - 1) times as many others, drawn uniformly by the key."""
    ordinary = [str(group) for group in eligible if group not in sensitive]
    decoys = key.smallest("decoys", 1, ordinary, (among - 1) * len(sensitive))
    return tuple(sorted([*sensitive, *map(int, decoys)]))


def mix_of_table(key: SelectionKey, epoch: int, population: Population, hidden: Sequence[int], promise: Hiding) -> Mix:
    """Return the mix of a table: at_most times the smallest sample share of each value, less a margin.

    Samples of all groups have the same size and their own label, so that the result treats all groups alike, whatever
    their sizes are.
    """
    sizes = population.sizes
    large = [group for group in hidden if sizes[group] >= promise.smallest]
    if not large:
        return (Fraction(0),) * population.values
    size = min(sizes[group] for group in large)
    lowest = [size] * population.values
    for group in large:
        cell_of = {
            name: cell % population.values
            for cell, names in population.cells.items()
            if cell // population.values == group
            for name in names
        }
        counts = [0] * population.values
        for name in key.smallest("sample", epoch, cell_of, size):
            counts[cell_of[name]] += 1
        lowest = [min(before, count) for before, count in zip(lowest, counts, strict=True)]
    return tuple(promise.at_most * reduced_share(count, size, promise.margin) for count in lowest)


def reduced_share(count: int, size: int, margin: Fraction) -> Fraction:
    """Return a share less `margin` standard errors, rounded down to a multiple of 1 / (size * 2**32); 0 for few records."""
    if count < FEWEST:
        return Fraction(0)
    variance = margin**2 * count * (size - count) / size  # of the count, in exact fractions
    scale = 1 << 32
    error = -math.isqrt(-(-variance.numerator * scale * scale // variance.denominator) - 1) - 1 if variance else 0
    return max(Fraction(0), Fraction(count * scale + error, size * scale))


def quotas_of(mix: Mix, sizes: Sequence[int], hidden: Sequence[int], smallest: int) -> Quotas:
    """Return the quotas, rounded down: they depend on public numbers only. Small groups release nothing."""
    nothing = (0,) * len(mix)
    by_group: list[tuple[int, ...] | None] = []
    for group, size in enumerate(sizes):
        if size < smallest:
            by_group.append(nothing)
        elif group in hidden:
            by_group.append(tuple(math.floor(share * size) for share in mix))
        else:
            by_group.append(None)
    return Quotas(mix, tuple(sizes), tuple(hidden), tuple(by_group))


def short_cells(quotas: Quotas, population: Population, at_most: Fraction) -> list[tuple[int, int]]:
    """Return the cells (group, value) whose quota is more than `at_most` of their records. For the owner alone."""
    counts = population.counts
    return [
        (group, value)
        for group, row in enumerate(quotas.by_group)
        for value, quota in enumerate(row or ())
        if quota > at_most * int(counts[group, value])
    ]


def choose(key: SelectionKey, epoch: int, population: Population, quotas: Quotas) -> set[str]:
    """Return the key hashes of the records that can be released: the smallest ranks of each cell."""
    chosen: set[str] = set()
    for cell, names in population.cells.items():
        group, value = divmod(cell, population.values)
        row = quotas.by_group[group]
        chosen.update(names if row is None else key.smallest("select", epoch, names, row[value]))
    return chosen
