"""The public plan: how the limit is split and how much is measured, from the number of rows, the limit and the columns.

`u` says how much can be learned: 0 at the anchor, 1 more for every factor of 4 in rows or epsilon (rows or the root of z).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tidegate.synthesize.diary import Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.cells import FALSE_SPIKES
from tidegate.synthesize.mechanisms.forest.meter import PARTS
from tidegate.synthesize.model import Stage

PURE_ANCHOR, Z_ANCHOR = 9_768, 60
SPIKE_SHARE, RAREST_SPIKE = 30_000, 0.01
MOST_CODES = 5_000_000  # single codes that are counted one by one
MAP_SHARE = 100_000
MANY_COLUMNS, FEW_GROUPS = 40, 16  # with more columns than this, pairs are counted on at most this many groups
USUAL_CELLS = 100  # of a column whose cells are found
SAYS = {
    "spikes": "search for frequent single values",
    "margins": "count every column",
    "maps": "find columns that another one determines",
    "choices": "choose the most informative pairs of columns",
    "pairs": "count the chosen pairs",
}


@dataclass(frozen=True)
class Plan:
    """What public facts decide.

    parts       of the limit, by stage                       power   of a table's cells in its share
    searched    columns whose spikes are searched            pieces  of a cell that is cut
    sizes       of tables of pairs                           patience   rounds without a pair before a phase ends
    """

    is_pure: bool
    u: float
    rows: int
    parts: Mapping[str, int]
    searched: tuple[int, ...]
    sizes: tuple[int, ...]
    power: float
    pieces: int
    tree_patience: int | None
    residual_patience: int | None

    def tree_rounds(self, columns: int) -> int:
        """Return the rounds that join columns."""
        if columns < 2:
            return 0
        return min(max(round(8 + 5 * self.u), 3), columns - 1) if self.is_pure else columns - 1

    def residual_rounds(self, columns: int) -> int:
        """Return the rounds that add pairs."""
        if columns < 2:
            return 0
        if self.is_pure:
            return min(max(round(8 * self.u), 0), 20)
        return min(max(round(columns * (0.5 + 0.6 * self.u)), 0), 3 * columns, 60)

    def most_groups(self, columns: tuple[Column, ...]) -> int:
        return FEW_GROUPS if len(columns) > MANY_COLUMNS else max(column.cells for column in columns)

    def weights(self, columns: tuple[Column, ...]) -> list[int]:
        """Return the weights by which margins split their parts; a column of one cell needs none."""
        cells = [USUAL_CELLS if column.adaptive else column.cells for column in columns]
        return [round(1000 * count**self.power) if count > 1 else 0 for count in cells]


def make_plan(facts: Facts, limit: Loss) -> Plan:
    """Return what will be measured, and at which loss: a function of public facts."""
    rows = max(facts.rows, 1)
    paired = sum(column.cells > 1 for column in facts.columns) > 1
    if limit.pure is None:
        u = math.log(rows * math.sqrt(float(limit.z) / len(facts.columns)) / (Z_ANCHOR * facts.reach), 4)
        searched: tuple[int, ...] = ()
        margins = min(max(0.60 - 0.12 * u, 0.25), 0.60)
        sizes = (12, 50) if u < 0 else (25, 100) if u < 1.2 else (25, 100, 400)
    else:
        u = math.log(rows * float(limit.pure) / facts.reach / PURE_ANCHOR, 4)
        searched = tuple(n for n, column in enumerate(facts.columns) if _is_searched(column, facts, limit.pure))
        margins = min(max(0.60 - 0.20 * u, 0.34), 0.60)
        sizes = (12, 50) if u < 0.5 else (25, 100) if u < 1.5 else (25, 100, 400)
    parts = {"spikes": min(len(searched) * SPIKE_SHARE, PARTS // 5)}
    rest = PARTS - parts["spikes"]
    parts["margins"] = int(rest * margins) if paired else rest
    parts["maps"] = MAP_SHARE if paired and facts.search_maps else 0
    if limit.pure is None:
        parts["choices"] = (rest - parts["margins"] - parts["maps"]) // 10
    else:
        parts["choices"] = int(rest * (0.10 if u < 0.5 else 0.12)) if paired else 0
    parts["pairs"] = PARTS - sum(parts.values())
    return Plan(
        is_pure=limit.pure is not None,
        u=u,
        rows=rows,
        parts={name: share for name, share in parts.items() if share},
        searched=searched,
        sizes=sizes,
        power=0.5 if limit.pure is not None else 2 / 3,
        pieces=32 if limit.pure is not None else 8,
        tree_patience=None if limit.pure is not None else 3,
        residual_patience=None if limit.pure is not None else 2,
    )


def stages(plan: Plan) -> tuple[Stage, ...]:
    return tuple(Stage(name, Fraction(parts, PARTS), SAYS[name]) for name, parts in plan.parts.items())


def _is_searched(column: Column, facts: Facts, epsilon: Fraction) -> bool:
    """Return whether a spike of 1% of the rows would be detected at the usual share."""
    if not column.heaped or column.adaptive or not 1 < column.size <= MOST_CODES:
        return False
    if column.cells == column.size + column.missing:
        return False
    needed = 2 * facts.reach * math.log(column.size / (2 * FALSE_SPIKES)) / (RAREST_SPIKE * max(facts.rows, 1))
    return float(epsilon) * SPIKE_SHARE / PARTS >= needed
