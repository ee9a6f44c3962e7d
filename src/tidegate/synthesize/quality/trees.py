"""Told apart by a greedy tree: splits, interactions, spikes. A measure only (its sensitivity is not bounded)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.quality.coding import Coded
from tidegate.synthesize.quality.separation import Separation, some

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
