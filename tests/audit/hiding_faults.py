"""Faulty versions of equal composition, for the attack and the claims. Each must be detected."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.audit.releases.equal_composition import EqualComposition, quota_table, rank_in_cell
from tidegate.release.selection import Mix, Population, Quotas, SelectionKey, quotas_of


class CoinsWithOwnShares(EqualComposition):
    """Releases each record by a coin: the mix divided by the share of the value in the record's own group."""

    def open(self, counts: np.ndarray, hidden: Sequence[int], random: np.random.Generator) -> Quotas:
        """Open in any case: coins fill no quota."""
        mix = self.mix_of(counts, hidden, random) if isinstance(self.promise.mix, str) else self.promise.mix
        return quotas_of(mix, [int(size) for size in counts.sum(axis=1)], hidden, self.promise.smallest)

    def choose(self, cells: np.ndarray, counts: np.ndarray, quotas: Quotas, random: np.random.Generator) -> Any:
        mix = np.array([float(share) for share in quotas.mix])
        heads = np.minimum(1, mix * counts.sum(axis=1)[:, None] / np.maximum(counts, 1))
        heads[[row is None for row in quotas.by_group]] = 1
        return random.random(cells.size) < heads.ravel()[cells]


class FirstComeFirstServed(EqualComposition):
    """Fills quotas in the order of requests."""

    def choose(self, cells: np.ndarray, counts: np.ndarray, quotas: Quotas, random: np.random.Generator) -> Any:
        return rank_in_cell(cells, np.arange(cells.size)) < quota_table(quotas, counts).ravel()[cells]


class MixOfFullGroups(EqualComposition):
    """Takes the smallest exact share of each value over the whole groups as the mix."""

    def mix_of(self, counts: np.ndarray, hidden: Sequence[int], random: np.random.Generator) -> Mix:
        sizes = counts.sum(axis=1)
        shares = [[Fraction(int(number), int(sizes[group])) for number in counts[group]] for group in hidden]
        return tuple(self.promise.at_most * min(column) for column in zip(*shares, strict=True))


class SecondDraw(EqualComposition):
    """Draws withheld records again, as far as the table can fill the same quotas a second time.

    Where it can fill all of them, observers see nothing; the bound on what a refusal shows is exceeded.
    """

    def choose(self, cells: np.ndarray, counts: np.ndarray, quotas: Quotas, random: np.random.Generator) -> Any:
        return rank_in_cell(cells, random.random(cells.size)) < 2 * quota_table(quotas, counts).ravel()[cells]


class RenewedDecoys(EqualComposition):
    """Draws other decoys for the selection of later records. The observer sees both hidden sets."""

    def hide(self, sizes: np.ndarray, sensitive: int, random: np.random.Generator) -> tuple[tuple[int, ...], ...]:
        return (*super().hide(sizes, sensitive, random), *super().hide(sizes, sensitive, random))


class LargestMixThatFits(EqualComposition):
    """Lowers the mix of each value until the table fits, and publishes the result: a statistic of the most unusual group."""

    def mix_of(self, counts: np.ndarray, hidden: Sequence[int], random: np.random.Generator) -> Mix:
        mix, at_most = super().mix_of(counts, hidden, random), self.promise.at_most
        shares = (counts / counts.sum(axis=1)[:, None]).min(axis=0)
        fitting = [at_most * Fraction(float(share)) for share in shares]
        return tuple(map(min, mix, fitting))


# Faulty replacements of `choose`


def choose_too_many(key: SelectionKey, epoch: int, population: Population, quotas: Quotas) -> set[str]:
    """Choose one record more than the quota where there is one."""
    chosen: set[str] = set()
    for cell, names in population.cells.items():
        group, value = divmod(cell, population.values)
        row = quotas.by_group[group]
        chosen.update(names if row is None else key.smallest("select", epoch, names, row[value] + 1))
    return chosen


def choose_first(key: SelectionKey, epoch: int, population: Population, quotas: Quotas) -> set[str]:
    """Choose the first records of each cell in the order of the table."""
    chosen: set[str] = set()
    for cell, names in population.cells.items():
        group, value = divmod(cell, population.values)
        row = quotas.by_group[group]
        chosen.update(names if row is None else names[: row[value]])
    return chosen
