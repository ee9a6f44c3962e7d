"""Supports of itemsets over reports that one machine cannot hold: counted by Spark where they lie.

A report is a row of 64-bit columns `word_0`, `word_1`, ...: item v is bit v % 64 of word v // 64 (signed, as Parquet has them).
All itemsets that are asked about are counted in one pass, as sums of bit tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from tidegate.tables.guard import ask_engine

TOGETHER = 500  # sums in one query: longer ones no longer compile to one loop


def write_reports(path: str, rows: Any) -> None:
    """Reports as rows of 64-bit words (reports, words) into a Parquet file of the shape that `spark_supports` reads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = {f"word_{place}": pa.array(rows[:, place].view("int64")) for place in range(rows.shape[1])}
    pq.write_table(pa.table(words), path)


def spark_supports(session: Any, parquet: str, itemsets: Iterable[Sequence[int]]) -> list[int]:
    """In how many reports all items of each itemset are; an itemset of no items is in all."""
    wanted = [tuple(itemset) for itemset in itemsets]
    frame = ask_engine(lambda: session.read.parquet(parquet), what="opening the reports on Spark")
    found: list[int] = []
    for start in range(0, len(wanted), TOGETHER):
        asked = [
            f"{support_sql(itemset)} AS n{place}" for place, itemset in enumerate(wanted[start : start + TOGETHER])
        ]
        found += ask_engine(partial(_asked, frame, asked), what="counting on Spark")
    return [int(count or 0) for count in found]


def _asked(frame: Any, asked: list[str]) -> list[Any]:
    return list(frame.selectExpr(*asked).collect()[0])


def support_sql(itemset: Sequence[int]) -> str:
    """The count of one itemset: all of its bits set, word by word."""
    masks: dict[int, int] = {}
    for item in itemset:
        masks[item // 64] = masks.get(item // 64, 0) | 1 << item % 64
    tests = [f"(word_{word} & {_signed(mask)}) = {_signed(mask)}" for word, mask in sorted(masks.items())]
    return f"count_if({' AND '.join(tests) or 'true'})"


def _signed(mask: int) -> str:
    value = mask - 2**64 if mask >= 2**63 else mask
    return f"(-{2**63 - 1}L - 1L)" if value == -(2**63) else f"({value}L)"
