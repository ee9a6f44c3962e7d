"""The soldiers of the release paper under other names, for a hiding promise.

The names of soldiers.py count through the cells, so a name indicates an age and a location. Here names are assigned in an
order that depends on a hash alone: a hiding promise requires keys that say nothing about values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count, islice

from tidegate.demo import soldiers


def as_csv() -> str:
    """Return the table as CSV, in the order of names."""
    rows = zip(names(soldiers.SOLDIERS), *_shuffled(), strict=True)
    return "\n".join(["name,age,location", *(",".join(map(str, row)) for row in rows)]) + "\n"


def names(number: int) -> Iterator[str]:
    """Yield the first names."""
    yield from (f"guard {n:05d}" for n in islice(count(1), number))


def _shuffled() -> tuple[list[int], list[str]]:
    """Return ages and locations of all soldiers, in an order that is the same in every run."""
    columns = soldiers.records()
    order = sorted(
        range(soldiers.SOLDIERS), key=lambda row: hashlib.sha256(columns["name"][row].encode()).digest()
    )  # of the old name, which is not published here
    return [columns["age"][row] for row in order], [columns["location"][row] for row in order]
