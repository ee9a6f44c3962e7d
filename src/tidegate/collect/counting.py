"""Many reports counted at once, in memory: the other half of `sample_many`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tidegate.collect.mechanisms import Operator
from tidegate.errors import Unsupported

SMALL = (np.uint8, np.uint16, np.uint32, np.int32)
AT_ONCE = 1 << 30  # reports; a 32-bit counter cannot run over


def count_many(operator: Operator, reports: NDArray[Any]) -> NDArray[np.int64]:
    """How many reports have each code, or (rows of 64-bit words, as `sample_many` makes them) how many hold each value.

    Codes may be kept in one byte or two, where they fit: counting is then nearly as quick as reading them.
    """
    if operator.form == "set":
        return _count_sets(operator, reports)
    codes = np.ascontiguousarray(reports if reports.dtype in SMALL else reports.astype(np.int64))
    if codes.ndim != 1 or (codes.size and not (int(codes.min()) >= 0 and int(codes.max()) < operator.report_size)):
        raise Unsupported(f"reports of {operator.name} are codes from 0 to {operator.report_size - 1:,}.")
    counts = np.zeros(operator.report_size, np.int64)
    for start in range(0, codes.size, AT_ONCE):
        tables = np.zeros((4, operator.report_size), np.uint32)
        count_codes(codes[start : start + AT_ONCE], tables)
        counts += tables.sum(axis=0, dtype=np.int64)
    return counts


def _count_sets(operator: Operator, reports: NDArray[Any]) -> NDArray[np.int64]:
    from tidegate.collect.baskets._kernels import count_rows

    words = (operator.values + 63) // 64
    if reports.ndim != 2 or reports.shape[1] != words or reports.dtype != np.uint64:
        raise Unsupported(f"reports of {operator.name} are rows of {words:,} 64-bit words.")
    counts = np.zeros(64 * words, np.int64)
    count_rows(np.ascontiguousarray(reports), counts)
    if counts[operator.values :].any():
        raise Unsupported(f"reports of {operator.name} hold values from 0 to {operator.values - 1:,}.")
    return counts[: operator.values]


@njit(cache=True)
def count_codes(codes: Any, tables: Any) -> None:
    """Four tables in turn: equal neighbours need not wait for each other."""
    whole = codes.size // 4 * 4
    for i in range(0, whole, 4):
        tables[0, codes[i]] += 1
        tables[1, codes[i + 1]] += 1
        tables[2, codes[i + 2]] += 1
        tables[3, codes[i + 3]] += 1
    for i in range(whole, codes.size):
        tables[0, codes[i]] += 1
