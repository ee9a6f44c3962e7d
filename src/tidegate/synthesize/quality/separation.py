"""How well a classifier tells synthetic rows from original ones, beside what chance alone would let it.

Told apart by a greedy tree: splits, interactions, spikes. A measure only (its sensitivity is not bounded).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.quality.codes import Coded

Kind = Literal["tree", "logistic", "logistic with pairs"]
AT_MOST = 50_000  # rows of each table
WHOLE_ENOUGH = 0.5  # of the rows must have a value in every column that is looked at


@dataclass(frozen=True)
class Separation:
    """The pMSE of one classifier: for each synthetic table, and what it is on average if nothing is wrong.

    `null` and `spread` are the mean and standard deviation under the null; they depend on the sizes of the tables and of
    the classifier alone, never on epsilon. `most` is the pMSE of a classifier that is always right.
    """

    kind: Kind
    values: tuple[float, ...]
    null: float
    spread: float
    most: float
    parameters: int
    how: str

    @property
    def value(self) -> float:
        return float(np.mean(self.values))

    @property
    def ratio(self) -> float | None:
        """pMSE over its null: about 1 where nothing is wrong. None where chance gives exactly nothing."""
        return self.value / self.null if self.null > 0 else None

    @property
    def standardized(self) -> float | None:
        """How many standard deviations of the null above its mean."""
        return (self.value - self.null) / self.spread if self.spread > 0 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "pmse": self.value,
            "pmse_by_table": list(self.values),
            "null": {"mean": self.null, "standard_deviation": self.spread, "how": self.how},
            "ratio": self.ratio,
            "standardized": self.standardized,
            "largest_possible": self.most,
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class Rows:
    """The rows that classifiers see: those with a value everywhere, at most so many of each table."""

    original: Coded
    synthetic: tuple[Coded, ...]
    without: tuple[str, ...]  # columns left out, because too few rows have a value there
    incomplete: tuple[int, ...]  # rows left out of each table, the original first

    @property
    def empty(self) -> bool:
        return not self.original.names or not all(table.rows for table in (self.original, *self.synthetic))


def rows_to_tell_apart(original: Coded, synthetic: Sequence[Coded], *, at_most: int = AT_MOST) -> Rows:
    """Complete rows of all tables; columns with the fewest values go first until half of each table's rows are complete."""
    tables = [original, *synthetic]
    names = list(original.names)
    while names and min(_whole(table, names) for table in tables) < WHOLE_ENOUGH:
        names.remove(max(names, key=lambda name: max(_absent(table, name) for table in tables)))
    kept = [table.only(tuple(names)) for table in tables]
    whole = [table.only(tuple(names), table.complete()) for table in kept]
    few = [some(table, at_most, seed=0) for table in whole]
    incomplete = tuple(table.rows - there.rows for table, there in zip(kept, whole, strict=True))
    without = tuple(name for name in original.names if name not in names)
    return Rows(few[0], tuple(few[1:]), without, incomplete)


def some(table: Coded, at_most: int, *, seed: int) -> Coded:
    """At most so many rows. The same places in tables of equal length, so that a table against itself stays that."""
    if table.rows <= at_most:
        return table
    chosen = np.random.default_rng(seed).choice(table.rows, at_most, replace=False)
    return table.only(table.names, np.sort(chosen))


def _whole(table: Coded, names: list[str]) -> float:
    there = table.only(tuple(names)).complete()
    return float(there.mean()) if there.size else 1.0


def _absent(table: Coded, name: str) -> float:
    codes: NDArray[np.int64] = table.column(name)
    return float((codes < 0).mean()) if codes.size else 0.0


CP, MINSPLIT, MINBUCKET = 0.001, 20, 7
DRAWS, SHUFFLES = 3, 10
PART = 0.9


def tree_separation(original: Coded, synthetic: Sequence[Coded], *, shuffles: int = SHUFFLES) -> Separation:
    """The pMSE of a tree for each table, and its null by shuffling.

    A tree looks for its first split in one column at a time. Where every column agrees to the row (an independent
    shuffle of each, or raking to the margins) it would find none and report 0, however wrong the pairs are. So each
    tree sees nine tenths of the rows of each table, drawn anew, and the mean of three is reported.
    """
    values = [_told_apart(original, table) for table in synthetic]
    null = shuffled(_part(original, 0), _part(synthetic[0], 0), shuffles)
    c = synthetic[0].rows / (original.rows + synthetic[0].rows)
    how = f"{shuffles} trees after shuffling the rows between the two tables (sizes kept)"
    spread = float(np.std(null, ddof=1)) if len(null) > 1 else 0.0
    return Separation("tree", tuple(values), float(np.mean(null)), spread, c * (1 - c), 0, how)


def shuffled(original: Coded, synthetic: Coded, times: int, *, seed: int = 1) -> list[float]:
    """The pMSE of trees that tell two random parts of the pooled rows apart, of the same sizes."""
    pooled = np.vstack([original.codes, synthetic.codes])
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(times):
        order = draw.permutation(len(pooled))
        found.append(_pmse(pooled[order[: original.rows]], pooled[order[original.rows :]]))
    return found


def _told_apart(original: Coded, synthetic: Coded) -> float:
    return float(np.mean([_pmse(_part(original, d).codes, _part(synthetic, d).codes) for d in range(DRAWS)]))


def _part(table: Coded, seed: int) -> Coded:
    return some(table, max(1, round(PART * table.rows)), seed=seed)


def _pmse(original: NDArray[np.int64], synthetic: NDArray[np.int64]) -> float:
    return pmse_greedy(
        original.astype(np.float64), synthetic.astype(np.float64), cp=CP, minsplit=MINSPLIT, minbucket=MINBUCKET
    )
