"""The golden selection of the specification (section 9), byte for byte: the soldiers under a fixed key.

Stored selections depend on these bytes. A difference means that ledgers which are open already can no longer be verified.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np

from tidegate.demo.soldiers import AGES, LOCATIONS, STARTS, records
from tidegate.ledger.release_book import key_hash
from tidegate.release.selection import Population, Quotas, SelectionKey, choose, quotas_of, short_cells

KEY = SelectionKey(bytes(range(32)), "soldiers")
SECRET = bytes(32)  # of the hashes of record keys
MIX = tuple(map(Fraction, ["0.015", "0.03", "0.08", "0.065", "0.105", "0.115", "0.045", "0.007", "0.003", "0"]))
AT_MOST = Fraction(3, 4)


@cache
def names() -> dict[str, str]:
    """Return the name of each soldier by key hash."""
    return {key_hash(SECRET, name): name for name in records()["name"]}


@cache
def population() -> Population:
    columns = records()
    cells: dict[int, list[str]] = {}
    for hashed, age, location in zip(names(), columns["age"], columns["location"], strict=True):
        cell = LOCATIONS.index(location) * len(AGES) + bisect_right(STARTS, age)
        cells.setdefault(cell, []).append(hashed)
    return Population(cells, len(AGES), len(LOCATIONS))


def quotas() -> Quotas:
    return quotas_of(MIX, population().sizes, range(len(LOCATIONS)), 100)


def test_quotas_are_golden() -> None:
    rows = [row or () for row in quotas().by_group]
    assert [sum(row) for row in rows] == [940, 599, 763, 930, 1398]
    assert rows[1] == (19, 38, 103, 84, 136, 149, 58, 9, 3, 0)
    assert quotas().share == Fraction(4630, 10_000)


def test_largest_part_of_a_cell_is_golden() -> None:
    parts = np.array(quotas().by_group) / population().counts
    assert np.unravel_index(parts.argmax(), parts.shape) == (LOCATIONS.index("L3"), AGES.index("30-34"))
    assert round(parts.max(), 4) == 0.7393
    assert short_cells(quotas(), population(), AT_MOST) == []


def test_first_soldiers_of_a_cell_are_golden() -> None:
    cell = population().cells[LOCATIONS.index("L2") * len(AGES) + AGES.index("40-44")]
    first = KEY.smallest("select", 1, cell, 5)
    assert [names()[hashed] for hashed in first] == [
        f"soldier {n}" for n in ("08686", "08731", "08820", "08863", "08857")
    ]
    assert KEY.rank("select", 1, first[0]).hex().startswith("002208c581ec2a86")
    assert set(first) <= choose(KEY, 1, population(), quotas())


def test_chosen_key_hashes_are_golden() -> None:
    chosen = choose(KEY, 1, population(), quotas())
    assert len(chosen) == 4630
    digest = hashlib.sha256("\n".join(sorted(chosen)).encode()).hexdigest()
    assert digest == "8ec2da2b5d6324f6adcb3f9ee6085f91ba3d0bd67f1efc3a6047843d1cf2a1ac"


def test_commitment_of_the_key_is_golden() -> None:
    assert KEY.commitment == "b6727bad6a532753cc91807c5855030b68b12f1c44e7882f1611e67e42433d02"
