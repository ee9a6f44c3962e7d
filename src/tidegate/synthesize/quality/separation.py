"""How well a classifier distinguishes synthetic rows from original ones, beside a bootstrap of the original rows.

Two classifiers: boosted trees, which find whatever helps and are scored on rows that they have not seen, and one greedy tree
(CART), scored on its own leaves. Measures only: their sensitivity is not bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.quality.codes import CodedTable
from tidegate.synthesize.quality.ensemble import boosted_scores

Kind = Literal["boosted trees", "CART"]
AT_MOST = 50_000  # rows of each table
BOOSTED_ROWS = 6_000  # rows of each table for boosted trees
WHOLE_ENOUGH = 0.5  # smallest share of rows with a value in every compared column
BOOTSTRAPS, DRAWS, PART = 3, 2, 0.9
TREES, LEAVES = 50, 8  # of boosted trees: larger ones find more in noise alone
LEAF = (7, 100)  # rows of the smallest leaf of a CART: a fiftieth of all, within these


@dataclass(frozen=True)
class Separation:
    """The pMSE of one classifier for each synthetic table, and for rows drawn from the original itself.

    `bootstrap` is the mean pMSE of tables of the same size that are drawn from the original rows with replacement: what a
    perfect model of these rows would reach. `most` is the pMSE of a classifier that is always right.
    """

    kind: Kind
    values: tuple[float, ...]
    bootstrap: float
    most: float
    rows: tuple[int, int]

    @property
    def value(self) -> float:
        return float(np.mean(self.values))

    @property
    def ratio(self) -> float | None:
        """pMSE over that of a bootstrap: about 1 for a perfect model of these rows, up to 2 for a fresh sample. None if over 0."""
        return self.value / self.bootstrap if self.bootstrap > 0 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "pmse": self.value,
            "pmse_by_table": list(self.values),
            "bootstrap": self.bootstrap,
            "ratio": self.ratio,
            "largest_possible": self.most,
            "rows": {"original": self.rows[0], "synthetic": self.rows[1]},
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


def separate(rows: Rows, *, progress: Callable[[int, int], None]) -> tuple[Separation, ...]:
    """Return the pMSE of boosted trees and of a CART. `progress` gets the number of finished classifiers and of all."""
    done, whole = 0, 2 * (len(rows.synthetic) + BOOTSTRAPS)
    separations = []
    measures: dict[Kind, tuple[Callable[[CodedTable, CodedTable], float], int]] = {
        "boosted trees": (boosted_pmse, BOOSTED_ROWS),
        "CART": (cart_pmse, AT_MOST),
    }
    for kind, (measure, most) in measures.items():
        original = sample_rows(rows.original, most, seed=0)
        tables = [sample_rows(table, most, seed=0) for table in rows.synthetic]
        values = []
        for table in [*tables, *(bootstrap(rows.original, tables[0].rows, seed=n) for n in range(BOOTSTRAPS))]:
            progress(done, whole)
            values.append(measure(original, table))
            done += 1
        c = tables[0].rows / (original.rows + tables[0].rows)
        null = float(np.mean(values[len(tables) :]))
        separations.append(
            Separation(kind, tuple(values[: len(tables)]), null, c * (1 - c), (original.rows, tables[0].rows))
        )
    return tuple(separations)


def bootstrap(table: CodedTable, rows: int, *, seed: int) -> CodedTable:
    """Return rows of a table, drawn with replacement."""
    return table.only(table.names, np.random.default_rng((seed, 1)).integers(0, table.rows, rows))


def boosted_pmse(original: CodedTable, synthetic: CodedTable) -> float:
    """Return the pMSE of boosted trees, each half of the rows scored by trees that learned from the other half."""
    tables = (original.codes, synthetic.codes)
    codes = np.vstack(tables)
    label = np.repeat([0.0, 1.0], [len(table) for table in tables])
    half = np.concatenate([_halves(len(table)) for table in tables])
    chances = np.empty(len(codes))
    for test in (half, ~half):
        chances[test] = (
            boosted_scores(codes[~test], label[~test], codes[test], is_binary=True, trees=TREES, leaves=LEAVES)
            if (~test).any()
            else label.mean()
        )
    return float(((chances - label.mean()) ** 2).mean())


def cart_pmse(original: CodedTable, synthetic: CodedTable) -> float:
    """Return the pMSE over the leaves of a CART: splits by Gini's impurity, until a leaf would be too small.

    A tree searches its first split in one column at a time. If every column agrees to the row (an independent shuffle of
    each, or raking to the margins), it would find none and report 0, however wrong the pairs are. So each tree uses nine
    tenths of the rows of each table, drawn again each time, and the mean of two is reported.
    """
    leaf = min(max((original.rows + synthetic.rows) // 50, LEAF[0]), LEAF[1])
    parts = [(_part(original, draw), _part(synthetic, draw)) for draw in range(DRAWS)]
    return float(np.mean([_tree_pmse(left.codes, right.codes, leaf) for left, right in parts]))


def _halves(rows: int) -> NDArray[np.bool_]:
    """Return which rows are in the first half: the same ones for tables of equal length, so that a table equals itself."""
    return np.random.default_rng(0).permutation(rows) < rows / 2


def _part(table: CodedTable, seed: int) -> CodedTable:
    return sample_rows(table, max(1, round(PART * table.rows)), seed=seed)


def _tree_pmse(original: Ints, synthetic: Ints, leaf: int) -> float:
    sides = (original.astype(np.float64), synthetic.astype(np.float64))
    return pmse_greedy(*sides, cp=0.0, minsplit=2 * leaf, minbucket=leaf, method="anova")
