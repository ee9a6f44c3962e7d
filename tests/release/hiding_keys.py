"""Keys with planted ranks, small populations, and the two types of groups of the enumeration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reference import hiding as slow
from reference.hiding import Distribution, Rule

from tidegate.release.selection import Population, SelectionKey

ORDINARY = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
SENSITIVE = ORDINARY[::-1]
PRIOR = {"sensitive": Fraction(1, 5), "ordinary": Fraction(4, 5)}
OLD, YOUNG = (Fraction(1, 4), Fraction(3, 4)), (Fraction(3, 4), Fraction(1, 4))
ONES = (1, 1, 1)  # the quotas of a group of 5
UNRANKED = 1_000


def posteriors(rule: Rule, *, size: int = 5, requests: int = 3) -> dict[Any, Distribution]:
    types = {"sensitive": SENSITIVE, "ordinary": ORDINARY}
    laws = {name: slow.outcomes_of_type(shares, size, rule, requests) for name, shares in types.items()}
    return slow.posteriors(laws, PRIOR)


def largest(rule: Rule, **options: Any) -> tuple[Fraction, Any]:
    return slow.largest(posteriors(rule, **options), "sensitive")


@dataclass(frozen=True)
class PlantedKey(SelectionKey):
    """A key whose ranks are chosen by the test, by label and name; all other ranks are UNRANKED."""

    ranks: Mapping[tuple[str, str], int]

    def rank(self, label: Any, epoch: int, name: str) -> bytes:
        return self.ranks.get((label, name), UNRANKED).to_bytes(8)


def planted(label: str, names: Sequence[str]) -> PlantedKey:
    """Return a key under which these names have the smallest ranks, in this order."""
    return PlantedKey(b"", "planted", {(label, name): number for number, name in enumerate(names)})


def population_of(groups: Sequence[Sequence[int]], values: int) -> Population:
    """Return a population with one record per value; the i-th record of group y is called "y.i"."""
    cells: dict[int, list[str]] = {}
    for y, group in enumerate(groups):
        for i, value in enumerate(group):
            cells.setdefault(y * values + value, []).append(f"{y}.{i}")
    return Population(cells, values, len(groups))
