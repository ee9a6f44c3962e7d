"""The reader of old diaries: `forest/1` rebuilds the model that a diary of it describes, to draw from it. It learns nothing new."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits, scale_for
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.cells import codes_without_a_cell
from tidegate.synthesize.mechanisms.forest.first_pool import WeightedPool, draw_pool
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.meter import PARTS
from tidegate.synthesize.mechanisms.forest.raking import Raking, add_pairs
from tidegate.synthesize.mechanisms.forest.rounds import Rounds, grow
from tidegate.synthesize.mechanisms.forest.selection import prepare_candidates
from tidegate.synthesize.model import Learnt, Progress, Rows, Stage

ANCHOR = 9_768  # rows * epsilon of the smallest plan
SPIKE_SHARE, RAREST_SPIKE, FALSE_SPIKES = 30_000, 0.01, 0.1
MOST_CODES = 5_000_000  # single codes that were counted one by one
MANY_COLUMNS, FEW_GROUPS = 40, 16  # with more columns than this, pairs were counted on at most this many groups
ABOVE_NOISE, FEWEST = 5, 16  # cells were merged until their usual count reached this many noise scales


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


def make_plan(facts: Facts, epsilon: Fraction) -> Plan:
    """Return what was measured and at which loss: a function of public facts."""
    searched = tuple(n for n, column in enumerate(facts.columns) if _was_searched(column, facts, epsilon))
    several = [n for n, column in enumerate(facts.columns) if column.cells > 1 or n in searched]
    u = math.log(max(facts.rows, 1) * float(epsilon) / facts.reach / ANCHOR, 4)
    paired = len(several) > 1
    spikes = min(len(searched) * SPIKE_SHARE, PARTS // 5)
    rest = PARTS - spikes
    margins = min(max(0.60 - 0.20 * u, 0.34), 0.60) if paired else 1.0
    choices = (0.10 if u < 0.5 else 0.12) if paired else 0.0
    parts = {"spikes": spikes, "margins": int(rest * margins), "choices": int(rest * choices)}
    parts["pairs"] = rest - parts["margins"] - parts["choices"] if paired else 0
    return Plan(
        epsilon=epsilon,
        parts=_scaled({name: share for name, share in parts.items() if share}),
        searched=searched,
        tree_rounds=min(max(round(8 + 5 * u), 3), len(several) - 1) if paired else 0,
        extra_rounds=min(max(round(8 * u), 0), 20) if paired else 0,
        sizes=(12, 50) if u < 0.5 else (25, 100) if u < 1.5 else (25, 100, 400),
        most_groups=FEW_GROUPS if len(facts.columns) > MANY_COLUMNS else max(c.cells for c in facts.columns),
    )


def _scaled(parts: Mapping[str, int]) -> dict[str, int]:
    total = sum(parts.values())
    return {name: PARTS * share // max(total, 1) for name, share in parts.items()}


def _was_searched(column: Column, facts: Facts, epsilon: Fraction) -> bool:
    """Return whether a spike of 1% of the rows would have been detected at the usual share."""
    if not column.heaped or not 1 < column.size <= MOST_CODES or column.cells == column.size + column.missing:
        return False
    needed = 2 * facts.reach * math.log(column.size / (2 * FALSE_SPIKES)) / (RAREST_SPIKE * max(facts.rows, 1))
    return float(epsilon) * SPIKE_SHARE / PARTS >= needed


class WrittenSteps:
    """The steps of an old diary: what was measured is read, and nothing is measured."""

    def __init__(self, epsilon: Fraction, diary: Diary, reach: int) -> None:
        self._epsilon, self._diary, self._reach = epsilon, diary, reach

    def read(self, name: str, parts: int) -> Ints:
        return self._diary.step(name, self._epsilon * Fraction(parts, PARTS), _refuse)

    def scale(self, parts: int) -> float:
        return float(scale_for(Fraction(2 * self._reach), self._epsilon * Fraction(parts, PARTS)))

    def mean_noise(self, parts: Ints) -> Floats:
        return np.zeros(parts.shape)

    def counts(self, name: str, parts: int, _count: Callable[[], Ints]) -> Floats:
        return self.read(name, parts).astype(np.float64)

    def choice(self, name: str, parts: int, _scores: Callable[[], Ints], *, sensitivity: int) -> int:
        return int(self.read(name, parts)[0])


def _refuse() -> Ints:
    raise ValueError("forest/1 reads complete diaries only")


class Forest1:
    """The first version of the forest: spikes, merged cells, margins, a forest of pairs, extra pairs, and one fixed pool."""

    name: ClassVar[str] = "forest/1"

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        plan = make_plan(facts, limit.pure or Fraction(1))
        return tuple(Stage(name, Fraction(parts, PARTS), name) for name, parts in plan.parts.items())

    def learn(self, facts: Facts, _rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Learnt:
        """Rebuild the model from the written steps.

        Raises:
            Unsupported: The diary lacks all steps: new tables are learned by forest/2.
        """
        if not diary.steps and any(margin_weights(facts.columns)):  # columns of one cell needed no step
            raise Unsupported(
                "forest/1 only draws tables that were learned before.", 'Use the model "forest/2" for new tables.'
            )
        plan = make_plan(facts, diary.epsilon)
        steps = WrittenSteps(plan.epsilon, diary, facts.reach)
        columns = merge_cells(_cut_at_spikes(facts, steps, plan), facts, plan)
        margins = _read_margins(columns, facts, steps, plan)
        candidates, private = prepare_candidates(margins, plan.sizes, plan.most_groups, _refuse_pairs)
        rounds = plan.tree_rounds + plan.extra_rounds
        share = plan.parts.get("choices", 0) // max(rounds, 1)
        left = plan.parts.get("pairs", 0)
        running = Rounds(facts, steps, candidates, private, margins, progress, rounds, left, 0, choice_share=share)
        pairs = grow(running, plan.tree_rounds)
        size = max(facts.rows, 1)
        raking = Raking(draw_pool(pairs, [margin.shares() for margin in running.margins], size), size)
        add_pairs(running, raking, plan.extra_rounds)
        tables = [*(raking.places(pair.candidate) for pair in pairs), *raking.tables]
        return WeightedPool(columns, raking.cells, raking.weights, tables)


def _refuse_pairs(_columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
    raise ValueError("forest/1 reads complete diaries only")


def _cut_at_spikes(facts: Facts, steps: WrittenSteps, plan: Plan) -> tuple[Column, ...]:
    """Return the columns, with a separate cell for each spike of the searched ones."""
    columns = list(facts.columns)
    share = plan.parts.get("spikes", 0) // max(len(plan.searched), 1)
    for index in plan.searched if share else ():
        inside = codes_without_a_cell(columns[index])
        spikes = steps.read(f"spikes of {columns[index].name}", share)
        columns[index] = columns[index].cut_at(inside[spikes].tolist())
    return tuple(columns)


def merge_cells(columns: tuple[Column, ...], facts: Facts, plan: Plan) -> tuple[Column, ...]:
    """Return the columns with no more wide cells than their share of the loss could distinguish."""
    weights = margin_weights(columns)
    loss = float(plan.epsilon) * plan.parts.get("margins", 0) / PARTS / max(sum(weights), 1)
    most = [facts.rows * loss * weight / (2 * facts.reach * ABOVE_NOISE) for weight in weights]
    return tuple(_merge(column, max(int(limit), FEWEST)) for column, limit in zip(columns, most, strict=True))


def margin_weights(columns: Sequence[Column]) -> list[int]:
    """Return the weights by which margins split their loss: the square root of the cells; a column of one cell needs none."""
    return [round(1000 * column.cells**0.5) if column.cells > 1 else 0 for column in columns]


def _merge(column: Column, most: int) -> Column:
    """Merge runs of neighboring wide cells, so that about `most` of them remain."""
    widths = [end - start for start, end in zip(column.starts, (*column.starts[1:], column.size), strict=True)]
    wide = sum(width > 1 for width in widths)
    if not column.ordered or wide <= most:
        return column
    together, starts, run = -(-wide // most), [], 0
    for start, width in zip(column.starts, widths, strict=True):
        run = run % together if width > 1 else 0
        if run == 0:
            starts.append(start)
        run = run + 1 if width > 1 else 0
    return replace(column, starts=tuple(starts))


def _read_margins(columns: tuple[Column, ...], facts: Facts, steps: WrittenSteps, plan: Plan) -> list[Margin]:
    weights = margin_weights(columns)
    margins = []
    for column, weight in zip(columns, weights, strict=True):
        parts = plan.parts["margins"] * weight // max(sum(weights), 1)
        if parts == 0:  # one cell contains all rows
            flat = np.full(column.cells, facts.rows / column.cells)
            margins.append(Margin(column, facts.rows, flat, np.full(column.cells, max(float(facts.rows), 1.0) ** 2)))
            continue
        noisy = steps.read(f"margin of {column.name}", parts).astype(np.float64)
        margins.append(Margin.from_counts(column, facts.rows, noisy, steps.scale(parts)))
    return margins
