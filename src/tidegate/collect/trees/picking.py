"""One value in place of a set: reports of unary encoding and subset selection as codes.

A member of the set is taken by the number of its record, which has nothing to do with what is in it. It tells less than the
set, and costs no privacy: it is made from the report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints32
from tidegate.collect.mechanisms import Operator, Pure, Unary
from tidegate.errors import Unsupported

STRIDE = 2_654_435_761  # 2**32 / golden ratio: neighbours take different members
CHUNK = 1 << 22


def picked(sets: NDArray[Any], *, values: int, first: int = 0) -> Ints32:
    """A member of each set of packed bits (value v is bit v % 8 of byte v // 8); of the empty set, any value."""
    step = max(1, CHUNK // values)
    parts = [_picked(sets[at : at + step], values, first + at) for at in range(0, len(sets), step)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def _picked(sets: NDArray[Any], values: int, first: int) -> Ints32:
    octets = np.ascontiguousarray(sets).view(np.uint8).reshape(len(sets), -1)
    held = np.unpackbits(octets, axis=1, bitorder="little")[:, :values].astype(bool)
    held[~held.any(axis=1)] = True
    turn = (np.arange(first, first + len(sets), dtype=np.uint64) * np.uint64(STRIDE)) >> np.uint64(7)
    wanted = (turn % held.sum(axis=1).astype(np.uint64)).astype(np.int64)
    return np.asarray((np.cumsum(held, axis=1) > wanted[:, None]).argmax(axis=1), np.int32)


def picked_channel(operator: Operator) -> Floats:
    """P(picked | value): one chance for the true value, one for each other."""
    if not isinstance(operator, Pure):
        raise Unsupported(f"{operator.name} supports no single value.", "Use an operator of numbers or categories.")
    n, p, q = operator.values, float(operator.p), float(operator.q)
    if isinstance(operator, Unary):  # E[1 / (1 + others)] of Binomial(n - 1, q), and any of n from the empty set
        same = p * (1 - (1 - q) ** n) / (n * q) + (1 - p) * (1 - q) ** (n - 1) / n
    else:
        same = p / (p + (n - 1) * q)  # all sets have this size
    made = np.full((n, n), (1 - same) / (n - 1))
    np.fill_diagonal(made, same)
    return made
