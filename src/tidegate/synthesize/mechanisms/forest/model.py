"""The default model: spikes, margins, a forest of pairs, extra pairs, and a pool that agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.groups import group_cells
from tidegate.synthesize.mechanisms.forest.margins import Margin, margin_weights, merge_cells, split_at_spikes
from tidegate.synthesize.mechanisms.forest.noise import Measurements
from tidegate.synthesize.mechanisms.forest.plan import Plan, make_plan, stages
from tidegate.synthesize.mechanisms.forest.pool import WeightedPool, draw_pool
from tidegate.synthesize.mechanisms.forest.raking import Raking, add_pairs
from tidegate.synthesize.mechanisms.forest.rounds import Rounds, grow
from tidegate.synthesize.mechanisms.forest.selection import Candidates, Private, offer_groupings
from tidegate.synthesize.model import Learnt, Progress, Rows, Stage


class Forest:
    """Forest and extra pairs.

    Guarantee:
        The pure loss is at most the diary's epsilon under replacement of one unit (facts.reach rows): every private
        number is a noisy count or a choice of `Measurements`; everything else is post-processing of these.

    Needs:
        Public facts: cells, number of rows, reach.

    Reference:
        The steps: margins and pairs with noise (Zhang et al. 2017, PrivBayes; McKenna et al. 2021, arXiv:2108.04978);
        choices by permute-and-flip (McKenna, Sheldon 2020); raking (Deming, Stephan 1940).
    """

    name: ClassVar[str] = "forest/1"

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        return stages(make_plan(facts, epsilon=epsilon, split=split))

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Learnt:
        plan = make_plan(facts, epsilon=diary.epsilon, split=split, charged=True)
        measurements = Measurements(plan, diary, reach=facts.reach, bits=bits)
        columns = merge_cells(split_at_spikes(facts, rows, measurements, plan, progress), facts, plan)
        margins = measure_margins(columns, facts, rows, measurements, plan, progress)
        rounds = prepare(columns, facts, rows, measurements, plan, margins, progress)
        pairs = grow(rounds)
        size = max(facts.rows, 1)
        raking = Raking(draw_pool(pairs, [margin.shares() for margin in rounds.margins], size), size)
        add_pairs(rounds, raking)
        progress("pairs", plan.rounds, plan.rounds)
        tables = [*(raking.places(pair.candidate) for pair in pairs), *raking.tables]
        return WeightedPool(columns, raking.cells, raking.weights, tables)


def measure_margins(
    columns: tuple[Column, ...], facts: Facts, rows: Rows, measurements: Measurements, plan: Plan, progress: Progress
) -> list[Margin]:
    """Return noisy counts of every column, with a share of the loss proportional to the square root of its cells."""
    weights = margin_weights(columns)
    margins = []
    for done, (column, weight) in enumerate(zip(columns, weights, strict=True)):
        progress("margins", done, len(columns))
        parts = plan.parts["margins"] * weight // max(sum(weights), 1)
        margins.append(_measure_margin(column, facts.rows, rows, measurements, parts))
    return margins


def _measure_margin(column: Column, n: int, rows: Rows, measurements: Measurements, parts: int) -> Margin:
    if parts == 0:  # one cell contains all rows, or the split gives nothing to margins
        flat = np.full(column.cells, n / column.cells)
        return Margin(column, n, flat, np.full(column.cells, max(float(n), 1.0) ** 2))
    noisy = measurements.counts(f"margin of {column.name}", parts, lambda: rows.margin(column))
    return Margin.from_counts(column, n, noisy, float(measurements.scale(parts)))


def prepare(
    columns: tuple[Column, ...],
    facts: Facts,
    rows: Rows,
    measurements: Measurements,
    plan: Plan,
    margins: list[Margin],
    progress: Progress,
) -> Rounds:
    """Return the rounds. The margins choose groups, and the groups give candidates; pairs are counted once, on pieces."""
    offers = offer_groupings([column.cells for column in columns], plan.sizes, plan.most_groups)
    counts_by_column: list[set[int]] = [set() for _ in columns]
    for (i, j), counts in offers.items():
        counts_by_column[i] |= {a for a, _ in counts}
        counts_by_column[j] |= {b for _, b in counts}
    groups = [
        group_cells(margin.column, margin.shares(), sorted(counts))
        for margin, counts in zip(margins, counts_by_column, strict=True)
    ]
    candidates = Candidates(groups, offers)
    private = Private(candidates, lambda: rows.pairs([group.coarse for group in groups]))
    return Rounds(facts, plan, measurements, candidates, private, margins, progress, plan.parts.get("pairs", 0))
