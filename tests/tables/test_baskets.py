"""Supports counted by Spark are those of the bitsets."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.values import BulkBits

from tidegate.collect.baskets import mask
from tidegate.collect.baskets.bitsets import Bitsets
from tidegate.tables.itemsets import spark_supports, support_sql, write_reports

ITEMS = 130
LOOKED_AT = (0, 1, 62, 63, 64, 127, 129)  # 63 and 127: the sign of a word


def test_spark_counts_equal_bitset_counts(spark: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    baskets = Baskets.of([random.choice(ITEMS, 5, replace=False) for _ in range(3000)])
    rows = randomize_baskets(mask("0.9", "0.3", vocabulary_size=ITEMS), baskets, BulkBits("spark"))
    for index, part in enumerate(np.array_split(rows, 3)):
        write_reports(str(tmp_path / f"part-{index}.parquet"), part)
    sets = Bitsets.of(rows, vocabulary_size=ITEMS)
    for size in (0, 1, 2, 3):
        itemsets = list(combinations(LOOKED_AT, size))
        ours = sets.counts(np.array(itemsets, int).reshape(len(itemsets), size)).tolist()
        assert spark_supports(spark, str(tmp_path), itemsets) == ours


def test_bits_of_a_word_are_tested_together() -> None:
    assert support_sql((0, 2, 64)) == "count_if((word_0 & (5L)) = (5L) AND (word_1 & (1L)) = (1L))"
