"""Total variation of margins, pairs and triples on fixed public bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidegate.policy import Attribute, Category

Codes = NDArray[np.int64]
Bins = Mapping[str, Sequence[float]]
TRIPLES = 80
SEED = 42


def variations(
    true: pd.DataFrame, synthetic: pd.DataFrame, known: Mapping[str, Attribute], bins: Bins
) -> dict[str, float]:
    """Return tv1, tv2 and tv3: means over all columns, all pairs and 80 fixed triples."""
    sizes = [_cells(name, attribute, bins) for name, attribute in known.items()]
    before, after = (
        [bin_codes(rows[name], known[name], bins.get(name, ())) for name in known] for rows in (true, synthetic)
    )
    return {
        f"tv{way}": float(np.mean([variation(before, after, columns, sizes) for columns in _chosen(len(sizes), way)]))
        for way in (1, 2, 3)
    }


def _chosen(columns: int, way: int) -> list[tuple[int, ...]]:
    """Return all margins or pairs, or 80 fixed triples."""
    every = list(combinations(range(columns), way))
    if way < 3:
        return every
    picked = np.random.default_rng(SEED).choice(len(every), min(TRIPLES, len(every)), replace=False)
    return [every[index] for index in picked]


def bin_codes(column: pd.Series[Any], attribute: Attribute, cuts: Sequence[float]) -> Codes:
    """Return the bin of every row: 0 for missing; a number's bin starts at its cut; a category is its own bin."""
    if isinstance(attribute, Category):
        return pd.Categorical(column, categories=list(attribute.values)).codes.astype(np.int64) + 1
    numbers = pd.to_numeric(column).astype("Float64").to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isnan(numbers), 0, 1 + np.searchsorted(np.asarray(cuts, float), numbers, side="right"))


def variation(true: list[Codes], synthetic: list[Codes], columns: tuple[int, ...], sizes: list[int]) -> float:
    """Return the total variation of two tables over the cells of some columns."""
    shape = [sizes[c] for c in columns]
    cells = [np.ravel_multi_index([table[c] for c in columns], shape) for table in (true, synthetic)]
    if np.prod(shape) > 10_000_000:
        _, both = np.unique(np.concatenate(cells), return_inverse=True)
        cells = [both[: len(cells[0])], both[len(cells[0]) :]]
    least = max(int(codes.max()) for codes in cells) + 1
    shares = [np.bincount(codes, minlength=least) / len(codes) for codes in cells]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _cells(name: str, attribute: Attribute, bins: Bins) -> int:
    return 1 + (attribute.size if isinstance(attribute, Category) else len(bins.get(name, ())) + 1)
