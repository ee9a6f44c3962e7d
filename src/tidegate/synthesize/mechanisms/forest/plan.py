"""The public plan: how epsilon is split and how much is measured, from the number of rows, epsilon and the columns.

Epsilon is divided into a million parts; every step spends a whole number of them, so that sums are exact and short.
The constants were tuned on census rows with n * epsilon from 10,000 to 300,000; they depend on n * epsilon / reach alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tidegate.errors import Unsupported
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.learn import PARTS, apply_split
from tidegate.synthesize.model import Stage

ANCHOR = 9_768  # rows * epsilon of the smallest plan
SPIKE_SHARE, RAREST_SPIKE, FALSE_SPIKES = 30_000, 0.01, 0.1
MOST_CODES = 5_000_000  # single codes that are counted one by one
MANY_COLUMNS, FEW_GROUPS = 40, 16  # with more columns than this, pairs are counted on at most this many groups
SAYS = {
    "spikes": "search for frequent single values",
    "margins": "count every column",
    "choices": "choose the most informative pairs of columns",
    "pairs": "count the chosen pairs",
}


@dataclass(frozen=True)
class Plan:
    """Parts of epsilon per stage, rounds that join columns, rounds that add pairs, and sizes of pair tables."""

    epsilon: Fraction
    parts: Mapping[str, int]
    searched: tuple[int, ...]
    tree_rounds: int
    extra_rounds: int
    sizes: tuple[int, ...]
    most_groups: int

    @property
    def rounds(self) -> int:
        return self.tree_rounds + self.extra_rounds

    def loss(self, parts: int) -> Fraction:
        """Return the loss of a number of parts."""
        return self.epsilon * Fraction(parts, PARTS)


def make_plan(facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction], charged: bool = False) -> Plan:
    """Return what will be measured and at which loss: a function of public facts.

    `charged` means that the request is paid for. If the number of rows then differs from the expected one, a share set for an
    unused stage goes to the other stages; before the charge, such a share is refused.
    """
    _refuse_small(facts, epsilon)
    searched = tuple(n for n, column in enumerate(facts.columns) if _worth_searching(column, facts, epsilon))
    several = [n for n, column in enumerate(facts.columns) if column.cells > 1 or n in searched]
    u = _size(facts, epsilon)
    paired = len(several) > 1
    tree = min(max(round(8 + 5 * u), 3), len(several) - 1) if paired else 0
    extra = min(max(round(8 * u), 0), 20) if paired else 0
    return Plan(
        epsilon=epsilon,
        parts=_parts(u, searched=len(searched), paired=paired, split=split, charged=charged),
        searched=searched,
        tree_rounds=tree,
        extra_rounds=extra,
        sizes=(12, 50) if u < 0.5 else (25, 100) if u < 1.5 else (25, 100, 400),
        most_groups=FEW_GROUPS if len(facts.columns) > MANY_COLUMNS else max(c.cells for c in facts.columns),
    )


def stages(plan: Plan) -> tuple[Stage, ...]:
    return tuple(Stage(name, Fraction(parts, PARTS), SAYS[name]) for name, parts in plan.parts.items())


def _size(facts: Facts, epsilon: Fraction) -> float:
    """Return how much can be learned: 0 at the anchor, 1 more for every factor of 4 in rows or epsilon."""
    return math.log(max(facts.rows, 1) * float(epsilon) / facts.reach / ANCHOR, 4)


def _worth_searching(column: Column, facts: Facts, epsilon: Fraction) -> bool:
    """Return whether a spike of 1% of the rows would be detected at the usual share."""
    if not column.heaped or not 1 < column.size <= MOST_CODES or column.cells == column.size + column.missing:
        return False
    needed = 2 * facts.reach * math.log(column.size / (2 * FALSE_SPIKES)) / (RAREST_SPIKE * max(facts.rows, 1))
    return float(epsilon) * SPIKE_SHARE / PARTS >= needed


def _parts(
    u: float, *, searched: int, paired: bool, split: Mapping[str, Fraction], charged: bool = False
) -> dict[str, int]:
    spikes = min(searched * SPIKE_SHARE, PARTS // 5)
    rest = PARTS - spikes
    margins = min(max(0.60 - 0.20 * u, 0.34), 0.60) if paired else 1.0
    choices = (0.10 if u < 0.5 else 0.12) if paired else 0.0
    parts = {"spikes": spikes, "margins": int(rest * margins), "choices": int(rest * choices)}
    parts["pairs"] = rest - parts["margins"] - parts["choices"] if paired else 0
    used = {name: share for name, share in parts.items() if share}
    return apply_split(used, _useful_shares(split, used) if charged else split)


def _useful_shares(split: Mapping[str, Fraction], used: Mapping[str, int]) -> Mapping[str, Fraction]:
    """Return the requested shares of the stages in use, or none if those would leave the stages with nothing."""
    useful = {name: share for name, share in split.items() if name in used}
    return useful if set(used) - set(useful) or any(useful.values()) else {}


def _refuse_small(facts: Facts, epsilon: Fraction) -> None:
    least = Fraction(2 * facts.reach * PARTS, 2**51)  # below this, the noise of one part does not fit into 64 bits
    if epsilon < least:
        raise Unsupported(
            f"An epsilon of {float(epsilon):.3g} is too small to learn a table.",
            f"Use {float(least):.3g} or more.",
        )
