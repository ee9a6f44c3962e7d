"""The Adult table (UCI, 48,842 rows) under a policy, and the exact integers that Tables 3 and 4 need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from tidegate.errors import SourceUnreadable
from tidegate.policy import Dataset, Integer, Policy
from tidegate.tables import Table, open_table
from tidegate.tables.column_types import column_types
from tidegate_papers.identifiability.paper import ATTRIBUTES, ROWS, Attribute

HOW_TO_GET = (
    "Table 3 and the true statistics of Table 4 need UCI Adult (DOI 10.24432/C5XW20): "
    "put adult.csv into a folder and name the folder in TIDEGATE_DATA (papers/docs/reproduce.md says how to make the file)."
)
BEYOND = 1000  # how far outside the paper's bounds values are searched


def adult_policy(*, rows: int = ROWS, beyond: int = 0) -> Policy:
    """Return the five attributes with the bounds of Table 3 as their public universes, widened by `beyond` at both ends."""
    bounds = {
        attribute.name: Integer(attribute.lowest - beyond, attribute.highest + beyond, missing="lowest")
        for attribute in ATTRIBUTES.values()
    }
    return Policy(Dataset("adult", rows=rows), bounds)


@dataclass(frozen=True)
class Spread:
    """Number, sum and sum of squares of one attribute, exact, and the deviations that follow from them."""

    rows: int
    total: Fraction
    squares: Fraction

    @property
    def mean(self) -> Fraction:
        return self.total / self.rows

    @property
    def deviation(self) -> float:
        """The sample standard deviation (n - 1)."""
        return math.sqrt((self.squares - self.total**2 / self.rows) / (self.rows - 1))

    def after(self, removed: int, added: int) -> Spread:
        """Return the same with one row replaced."""
        return Spread(self.rows, self.total - removed + added, self.squares - removed**2 + added**2)


class Adult:
    """The table, without a ledger and its folder of snapshots.

    Nothing here is released: the numbers are compared with printed ones.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if self._table.size != ROWS:
            raise SourceUnreadable(
                f"{path} has {self._table.size:,} rows; the paper's table has {ROWS:,}.",
                "It is adult.data (32,561 rows) followed by adult.test (16,281 rows), with one header line.",
            )

    @cached_property
    def _table(self) -> Table:
        return open_table(adult_policy(), self.path)

    @cached_property
    def _wider(self) -> Table:
        return open_table(adult_policy(beyond=BEYOND), self.path)

    @property
    def rows(self) -> int:
        return self._table.size

    def columns(self) -> tuple[int, int]:
        """Return how many columns are numeric, and how many are not."""
        kinds = column_types(self.path).values()
        numbers = sum(kind in ("whole", "decimal") for kind in kinds)
        return numbers, len(kinds) - numbers

    def spread(self, attribute: Attribute) -> Spread:
        """Return the exact moments of the attribute's values."""
        rows, first, second = (Fraction(int(cell)) for cell in self._table.moments(attribute.name))
        low = attribute.lowest  # the table sums codes, which start at the lowest value
        return Spread(int(rows), first + low * rows, second + 2 * low * first + low**2 * rows)

    def ends(self, attribute: Attribute) -> tuple[int, int]:
        """Return the lowest and the highest value that occurs, also outside the bounds."""
        codes = np.flatnonzero(self._wider.count([attribute.name]))
        start = attribute.lowest - BEYOND
        return start + int(codes[0]), start + int(codes[-1])
