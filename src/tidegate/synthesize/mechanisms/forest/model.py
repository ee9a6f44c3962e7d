"""The default model: spikes, margins, a forest of pairs, extra pairs, and a pool that agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.groups import grouped
from tidegate.synthesize.mechanisms.forest.margins import Margin, coarsened, margin_weights, split_at_spikes
from tidegate.synthesize.mechanisms.forest.noise import Measuring
from tidegate.synthesize.mechanisms.forest.plan import Plan, plan, stages
from tidegate.synthesize.mechanisms.forest.pool import WeightedPool, draw_pool
from tidegate.synthesize.mechanisms.forest.raking import Raking, add_pairs
from tidegate.synthesize.mechanisms.forest.rounds import Rounds, grow
from tidegate.synthesize.mechanisms.forest.selection import Candidates, Private, offered
from tidegate.synthesize.model import Learnt, Progress, Rows, Stage


class Forest:
    """Forest and extra pairs.

    Guarantee:
        Pure loss of at most the diary's epsilon under replacement of one unit (facts.reach rows): every number is a
        noisy count or a choice made in `Measuring`, everything else is post-processing of these.

    Needs:
        facts that are public: cells, number of rows, reach.

    Reference:
        The steps: margins and pairs with noise (Zhang et al. 2017, PrivBayes; McKenna et al. 2021, arXiv:2108.04978);
        choices by permute-and-flip (McKenna, Sheldon 2020); raking (Deming, Stephan 1940).
    """

    name: ClassVar[str] = "forest/1"

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        return stages(plan(facts, epsilon=epsilon, split=split))

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Learnt:
        made = plan(facts, epsilon=diary.epsilon, split=split, charged=True)
        measuring = Measuring(made, diary, reach=facts.reach, bits=bits)
        columns = coarsened(split_at_spikes(facts, rows, measuring, made, progress), facts, made)
        margins = measure_margins(columns, facts, rows, measuring, made, progress)
        rounds = prepare(columns, facts, rows, measuring, made, margins, progress)
        pairs = grow(rounds)
        size = max(facts.rows, 1)
        raking = Raking(draw_pool(pairs, [margin.shares() for margin in rounds.margins], size), size)
        add_pairs(rounds, raking)
        progress("pairs", made.rounds, made.rounds)
        tables = [*(raking.places(pair.candidate) for pair in pairs), *raking.tables]
        return WeightedPool(columns, raking.cells, raking.weights, tables)


def measure_margins(
    columns: tuple[Column, ...], facts: Facts, rows: Rows, measuring: Measuring, made: Plan, progress: Progress
) -> list[Margin]:
    """Noisy counts of every column, with shares of the loss as the square root of its cells."""
    weights = margin_weights(columns)
    margins = []
    for done, (column, weight) in enumerate(zip(columns, weights, strict=True)):
        progress("margins", done, len(columns))
        parts = made.parts["margins"] * weight // max(sum(weights), 1)
        margins.append(_measured(column, facts.rows, rows, measuring, parts))
    return margins


def _measured(column: Column, n: int, rows: Rows, measuring: Measuring, parts: int) -> Margin:
    if parts == 0:  # one cell holds all rows; or the split gives nothing to margins
        flat = np.full(column.cells, n / column.cells)
        return Margin(column, n, flat, np.full(column.cells, max(float(n), 1.0) ** 2))
    noisy = measuring.counts(f"margin of {column.name}", parts, lambda: rows.margin(column))
    return Margin.measured(column, n, noisy, float(measuring.scale(parts)))


def prepare(
    columns: tuple[Column, ...],
    facts: Facts,
    rows: Rows,
    measuring: Measuring,
    made: Plan,
    margins: list[Margin],
    progress: Progress,
) -> Rounds:
    """Groups by the margins, candidates by the groups; the rows' pairs will be counted once, on the groups' pieces."""
    offers = offered([column.cells for column in columns], made.sizes, made.most_groups)
    wanted: list[set[int]] = [set() for _ in columns]
    for (i, j), counts in offers.items():
        wanted[i] |= {a for a, _ in counts}
        wanted[j] |= {b for _, b in counts}
    groups = [grouped(m.column, m.shares(), sorted(w)) for m, w in zip(margins, wanted, strict=True)]
    candidates = Candidates(groups, offers)
    private = Private(candidates, lambda: rows.pairs([group.coarse for group in groups]))
    return Rounds(facts, made, measuring, candidates, private, margins, progress, made.parts.get("pairs", 0))
