"""Supports of itemsets over reports that do not fit on one machine, counted by Spark.

A report is a row of 64-bit columns `word_0`, `word_1`, ...: item v is bit v % 64 of word v // 64 (signed, as in Parquet).
All requested itemsets are counted in one pass, as sums of bit tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from tidegate.tables.guard import ask_engine

TOGETHER = 500  # sums in one query: longer queries no longer compile to one loop


def write_reports(path: str, rows: Any) -> None:
    """Write reports, an array (reports, words) of 64-bit words, to a Parquet file for `spark_supports`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = {f"word_{word}": pa.array(rows[:, word].view("int64")) for word in range(rows.shape[1])}
    pq.write_table(pa.table(words), path)


def spark_supports(session: Any, parquet: str, itemsets: Iterable[Sequence[int]]) -> list[int]:
    """Return the number of reports that contain all items of each itemset; every report contains the empty itemset."""
    requested = [tuple(itemset) for itemset in itemsets]
    frame = ask_engine(lambda: session.read.parquet(parquet), what="opening the reports on Spark")
    supports: list[int] = []
    for start in range(0, len(requested), TOGETHER):
        expressions = [
            f"{support_sql(itemset)} AS n{index}" for index, itemset in enumerate(requested[start : start + TOGETHER])
        ]
        supports += ask_engine(partial(_collect_row, frame, expressions), what="counting on Spark")
    return [int(count or 0) for count in supports]


def _collect_row(frame: Any, expressions: list[str]) -> list[Any]:
    return list(frame.selectExpr(*expressions).collect()[0])


def support_sql(itemset: Sequence[int]) -> str:
    """Return the SQL that counts one itemset: all of its bits set, word by word."""
    masks: dict[int, int] = {}
    for item in itemset:
        masks[item // 64] = masks.get(item // 64, 0) | 1 << item % 64
    tests = [f"(word_{word} & {_signed(mask)}) = {_signed(mask)}" for word, mask in sorted(masks.items())]
    return f"count_if({' AND '.join(tests) or 'true'})"


def _signed(mask: int) -> str:
    value = mask - 2**64 if mask >= 2**63 else mask
    return f"(-{2**63 - 1}L - 1L)" if value == -(2**63) else f"({value}L)"
