"""How well a classifier distinguishes synthetic rows from original ones, compared with chance alone.

This file has the separation by a greedy tree: splits, interactions, spikes. It is a measure only (its sensitivity is not
bounded).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.quality.codes import CodedTable

Kind = Literal["tree", "logistic", "logistic with pairs"]
AT_MOST = 50_000  # rows of each table
WHOLE_ENOUGH = 0.5  # smallest share of rows with a value in every compared column


@dataclass(frozen=True)
class Separation:
    """The pMSE of one classifier: for each synthetic table, and its mean under the null hypothesis of equal tables.

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
        """pMSE over its null: about 1 for equal tables. None if the null is exactly 0."""
        return self.value / self.null if self.null > 0 else None

    @property
    def standardized(self) -> float | None:
        """The distance from the mean of the null, in its standard deviations."""
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
    """The rows that classifiers use: those with a value in every column, at most a fixed number of each table."""

    original: CodedTable
    synthetic: tuple[CodedTable, ...]
    without: tuple[str, ...]  # columns left out, because too few rows have a value there
    incomplete: tuple[int, ...]  # rows left out of each table, the original first

    @property
    def empty(self) -> bool:
        return not self.original.names or not all(table.rows for table in (self.original, *self.synthetic))


def rows_to_compare(original: CodedTable, synthetic: Sequence[CodedTable], *, at_most: int = AT_MOST) -> Rows:
    """Return complete rows of all tables, without the columns with the fewest values until half of each table is complete."""
    tables = [original, *synthetic]
    names = list(original.names)
    while names and min(_complete_share(table, names) for table in tables) < WHOLE_ENOUGH:
        names.remove(max(names, key=lambda name: max(_absent_share(table, name) for table in tables)))
    selected = [table.only(tuple(names)) for table in tables]
    complete = [table.only(tuple(names), table.complete()) for table in selected]
    sampled = [sample_rows(table, at_most, seed=0) for table in complete]
    incomplete = tuple(
        table.rows - complete_table.rows for table, complete_table in zip(selected, complete, strict=True)
    )
    without = tuple(name for name in original.names if name not in names)
    return Rows(sampled[0], tuple(sampled[1:]), without, incomplete)


def sample_rows(table: CodedTable, at_most: int, *, seed: int) -> CodedTable:
    """Return at most `at_most` rows. Tables of equal length give the same indexes, so a table equals itself."""
    if table.rows <= at_most:
        return table
    chosen = np.random.default_rng(seed).choice(table.rows, at_most, replace=False)
    return table.only(table.names, np.sort(chosen))


def _complete_share(table: CodedTable, names: list[str]) -> float:
    is_complete = table.only(tuple(names)).complete()
    return float(is_complete.mean()) if is_complete.size else 1.0


def _absent_share(table: CodedTable, name: str) -> float:
    codes: NDArray[np.int64] = table.column(name)
    return float((codes < 0).mean()) if codes.size else 0.0


CP, MINSPLIT, MINBUCKET = 0.001, 20, 7
DRAWS, SHUFFLES = 3, 10
PART = 0.9


def tree_separation(original: CodedTable, synthetic: Sequence[CodedTable], *, shuffles: int = SHUFFLES) -> Separation:
    """Return the pMSE of a tree for each table, and its null by shuffling.

    A tree searches its first split in one column at a time. If every column agrees to the row (an independent shuffle of
    each, or raking to the margins), it would find none and report 0, however wrong the pairs are. So each tree uses nine
    tenths of the rows of each table, drawn again each time, and the mean of three is reported.
    """
    values = [_tree_pmse(original, table) for table in synthetic]
    null = shuffled_scores(_part(original, 0), _part(synthetic[0], 0), shuffles)
    c = synthetic[0].rows / (original.rows + synthetic[0].rows)
    how = f"{shuffles} trees after shuffling the rows between the two tables (sizes kept)"
    spread = float(np.std(null, ddof=1)) if len(null) > 1 else 0.0
    return Separation("tree", tuple(values), float(np.mean(null)), spread, c * (1 - c), 0, how)


def shuffled_scores(original: CodedTable, synthetic: CodedTable, times: int, *, seed: int = 1) -> list[float]:
    """Return the pMSE of trees that separate two random parts of the pooled rows, of the same sizes."""
    pooled = np.vstack([original.codes, synthetic.codes])
    draw = np.random.default_rng(seed)
    scores = []
    for _ in range(times):
        order = draw.permutation(len(pooled))
        scores.append(_pmse(pooled[order[: original.rows]], pooled[order[original.rows :]]))
    return scores


def _tree_pmse(original: CodedTable, synthetic: CodedTable) -> float:
    return float(np.mean([_pmse(_part(original, d).codes, _part(synthetic, d).codes) for d in range(DRAWS)]))


def _part(table: CodedTable, seed: int) -> CodedTable:
    return sample_rows(table, max(1, round(PART * table.rows)), seed=seed)


def _pmse(original: NDArray[np.int64], synthetic: NDArray[np.int64]) -> float:
    return pmse_greedy(
        original.astype(np.float64), synthetic.astype(np.float64), cp=CP, minsplit=MINSPLIT, minbucket=MINBUCKET
    )
