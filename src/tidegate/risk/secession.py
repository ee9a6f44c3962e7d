"""The core: divisions of the whole payoff under which no group would earn more by itself.

`least_core` finds the smallest amount by which the best division falls short for some group; the core is empty exactly
where it is above zero. `worst_group` names who would leave. Rows of the linear program are added as they are needed, so
twenty players (a million groups) take a few dozen small programs.

Reference  Gillies 1959; Maschler, Peleg, Shapley 1979 (least core); Shapley 1971 (convex games).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.errors import Unsupported
from tidegate.risk.valuation import finite, totals

ROUNDS = 1_000


@dataclass(frozen=True)
class LeastCore:
    """A division under which no group falls short by more than `excess`, the least possible; negative: all gain."""

    excess: float
    division: Floats
    tolerance: float

    @property
    def core_is_empty(self) -> bool:
        """Whether under every division some group does better by leaving."""
        return self.excess > self.tolerance


def worst_group(division: Floats, worth: Floats) -> tuple[tuple[int, ...], float]:
    """The group, neither nobody nor all, that falls short most under a division, and by how much (below 0: it gains)."""
    short = (worth - totals(division))[1:-1]
    if short.size == 0:
        return (), 0.0
    mask = int(np.argmax(short)) + 1
    return tuple(i for i in range(division.size) if mask >> i & 1), float(short[mask - 1])


def in_core(division: Floats, worth: Floats, *, tolerance: float = 1e-9) -> bool:
    """Whether a division hands out everything and no group would do better by itself."""
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    whole = abs(float(division.sum()) - float(worth[-1])) <= wide
    return whole and worst_group(division, worth)[1] <= wide


def is_convex(worth: Floats, *, tolerance: float = 1e-9) -> bool:
    """Whether joining a larger group never adds less: then the core holds Shapley's value."""
    players = finite(worth).size.bit_length() - 1
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    for high in range(players):
        for low in range(high):
            cells = worth.reshape(-1, 2, 1 << (high - low - 1), 2, 1 << low)
            gain = cells[:, 1, :, 1] - cells[:, 1, :, 0] - cells[:, 0, :, 1] + cells[:, 0, :, 0]
            if gain.min() < -wide:
                return False
    return True


def least_core(worth: Floats, *, tolerance: float = 1e-9) -> LeastCore:
    """The division that minimises the largest shortfall of any group.

    Guarantee  No group falls short by more than `excess` + tolerance (all groups are looked at), and no division does
               better by more than that (linear programming over some of the groups bounds it from below).
    Needs      worth[0] = 0: what nobody earns cannot be divided.
    """
    players = finite(worth).size.bit_length() - 1
    if worth[0] != 0:
        raise Unsupported(f"nobody earns {worth[0]:.6g}: that cannot be divided.", "Take it off every payoff first.")
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    if players == 1:
        return LeastCore(0.0, worth[1:].copy(), wide)
    whole = worth.size - 1
    known = sorted({1 << i for i in range(players)} | {whole ^ (1 << i) for i in range(players)})
    for _ in range(ROUNDS):
        division, excess = _solved(np.array(known), worth, players)
        short = worth - totals(division) - excess
        short[[0, whole]] = -np.inf
        if short.max() <= wide:
            return LeastCore(excess, division, wide)
        known += _most_violated(short, wide, known, players)
    raise Unsupported(f"the least core was not found in {ROUNDS:,} programs.", "Ask with fewer players.")


def _most_violated(short: Floats, wide: float, known: list[int], players: int) -> list[int]:
    """A few groups at once: fewer programs than with the worst alone."""
    many = min(short.size, 4 * players)
    worst = np.argpartition(-short, many - 1)[:many]
    old = set(known)
    return [int(mask) for mask in worst if short[mask] > wide and int(mask) not in old]


def _solved(masks: NDArray[np.int64], worth: Floats, players: int) -> tuple[Floats, float]:
    """min e, where every known group gets its worth less e, and all get everything."""
    from scipy.optimize import linprog  # type: ignore[import-untyped] # here: it is slow to load

    member = (masks[:, None] >> np.arange(players) & 1).astype(float)
    rows = np.hstack([-member, -np.ones((masks.size, 1))])
    aim = np.zeros(players + 1)
    aim[-1] = 1.0
    everything = np.append(np.ones(players), 0.0)[None]
    bounds = [(None, None)] * (players + 1)
    found = linprog(aim, rows, -worth[masks], everything, worth[-1:], bounds, method="highs")
    if found.x is None:
        raise Unsupported(f"the linear program of the core was not solved: {found.message}", "Scale the payoffs down.")
    return np.asarray(found.x[:-1]), float(found.x[-1])
