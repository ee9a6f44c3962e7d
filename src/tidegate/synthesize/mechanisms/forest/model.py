"""The model of Tidegate, forest/2: margins with cells found from the rows, maps, a forest of pairs, more pairs where it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tidegate.arrays import Floats
from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.cells import cut_at_spikes, find_cells
from tidegate.synthesize.mechanisms.forest.maps import Map, find_maps, in_order
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.meter import Meter, refuse_small
from tidegate.synthesize.mechanisms.forest.pairs import Pair, fit_table
from tidegate.synthesize.mechanisms.forest.plan import Plan, make_plan, stages
from tidegate.synthesize.mechanisms.forest.pool import GroupTable, Stream, draw_pool, whole_weights
from tidegate.synthesize.mechanisms.forest.raking import Raking, add_pairs
from tidegate.synthesize.mechanisms.forest.rounds import Rounds, grow, independent_counts
from tidegate.synthesize.mechanisms.forest.selection import Candidate, prepare_candidates
from tidegate.synthesize.mechanisms.forest.weights import Fitted
from tidegate.synthesize.model import CountedPair, FoundMap, Progress, Rows, Stage, Summary

POOL = 100_000  # rows on which more pairs are chosen
HEAVY, HEAVY_IF_HEAPED = 128, 200  # a cell with more than this part of the rows is cut
CLEAR_LEVEL = (
    0.01  # pure losses: heaped columns are refined if 4 deviations of a level are at most this share of the rows
)


class Forest:
    """The forest.

    Guarantee:
        The loss is at most the diary's limit under replacement of one unit (facts.reach rows): every private number is
        one of `Meter`; everything else is post-processing of these.

    Needs:
        Public facts: columns, number of rows, reach.

    Reference:
        Margins and pairs with noise (Zhang et al. 2017, PrivBayes; McKenna et al. 2021, arXiv:2108.04978); choices by
        permute-and-flip (McKenna, Sheldon 2020) or the exponential mechanism; raking (Deming, Stephan 1940).
    """

    name: ClassVar[str] = "forest/2"

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        refuse_small(limit, facts.reach)  # before the charge
        return stages(make_plan(facts, limit))

    def restore(self, content: Mapping[str, Any]) -> Fitted:
        """Return the model that `Fitted.to_dict` wrote."""
        return Fitted.from_dict(content)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Fitted:
        plan = make_plan(facts, diary.limit)
        meter = Meter(diary, reach=facts.reach, bits=bits)
        margins = _measure_margins(facts, rows, meter, plan, progress)
        deviations = {margin.column.name: float(np.sqrt(np.median(margin.variance))) for margin in margins}
        copied = {facts.place(name) for name in facts.copies}
        maps, unused = find_maps(margins, rows, meter, plan.parts.get("maps", 0), plan.rows, progress, copied=copied)
        mapped = {rule.column for rule in maps}
        free = sum(n not in mapped and margin.column.cells > 1 for n, margin in enumerate(margins))
        tree, residual = plan.tree_rounds(free), plan.residual_rounds(free)
        columns = tuple(margin.column for margin in margins)
        candidates, private = prepare_candidates(
            margins, plan.sizes, plan.most_groups(columns), rows.pairs, without=mapped, known=copied
        )
        running = Rounds(
            facts,
            meter,
            candidates,
            private,
            margins,
            progress,
            tree + residual,
            plan.parts.get("pairs", 0) + unused,
            plan.parts.get("choices", 0),
            power=plan.power,
        )
        pairs = grow(running, tree, patience=plan.tree_patience)
        shares = [margin.shares() for margin in running.margins]
        trees = tuple(_tree_table(pair, shares, plan.rows) for pair in pairs)
        raking = Raking(
            draw_pool([whole_weights(share) for share in shares], trees, POOL, Stream("learning")), plan.rows
        )
        added = add_pairs(running, raking, residual, patience=plan.residual_patience)
        progress("pairs", running.rounds, running.rounds)
        final = [margin.shares() for margin in running.margins]
        counted = [*pairs, *added]
        targets = tuple(
            _group_table(pair.candidate, target) for pair, target in zip(added, raking.targets, strict=True)
        )
        return Fitted(
            columns,
            tuple(whole_weights(share) for share in final),
            tuple(_tree_table(pair, final, plan.rows) for pair in pairs),
            targets,
            tuple(in_order(maps)),
            Summary(
                {column.name: column.starts for column in columns},
                deviations,
                tuple(
                    _describe(pair, columns, "tree" if position < len(pairs) else "residual")
                    for position, pair in enumerate(counted)
                ),
                tuple(FoundMap(columns[m.column].name, columns[m.by].name, m.error) for m in maps),
                _independent(columns, counted, maps),
                _misfit(raking, pairs, trees, added),
                _banner(plan, pairs, tree, maps),
                meter.spent,
            ),
        )


def _measure_margins(facts: Facts, rows: Rows, meter: Meter, plan: Plan, progress: Progress) -> list[Margin]:
    """Return noisy counts of every column; the cells of wide columns are found at the same time."""
    columns = list(facts.columns)
    share = plan.parts.get("spikes", 0) // max(len(plan.searched), 1)
    for done, index in enumerate(plan.searched if share else ()):
        progress("spikes", done, len(plan.searched))
        columns[index] = cut_at_spikes(columns[index], rows.places, meter, share)
    weights = plan.weights(tuple(columns))
    margins = []
    for index, (column, weight) in enumerate(zip(columns, weights, strict=True)):
        progress("margins", index, len(columns))
        parts = plan.parts["margins"] * weight // max(sum(weights), 1)
        if parts == 0:  # one cell contains all rows
            flat = np.full(column.cells, plan.rows / column.cells)
            margins.append(Margin(column, facts.rows, flat, np.full(column.cells, float(plan.rows) ** 2)))
        elif column.adaptive or (_is_refined(column, meter, plan, parts) and index not in plan.searched):
            cells_found = find_cells(
                column,
                plan.rows,
                meter,
                rows.margin,
                parts=parts,
                pieces=plan.pieces,
                least=plan.rows / (HEAVY if column.adaptive else HEAVY_IF_HEAPED),
                trim=column.adaptive,
            )
            margins.append(
                Margin.from_estimate(
                    cells_found.column, facts.rows, cells_found.estimate, cells_found.variance, cells_found.allowed
                )
            )
        else:
            noisy = meter.counts(f"margin of {column.name}", parts, lambda at=column: rows.margin(at))  # type: ignore[misc]
            margins.append(Margin.from_counts(column, facts.rows, noisy, meter.scale(parts)))
    return margins


def _is_refined(column: Column, meter: Meter, plan: Plan, parts: int) -> bool:
    """Return whether the declared cells of a heaped column are cut further."""
    if not column.heaped or column.cells == column.size + column.missing:
        return False
    return not plan.is_pure or 4 * meter.deviation(max(parts // 12, 1)) <= CLEAR_LEVEL * plan.rows


def _tree_table(pair: Pair, shares: list[Floats], rows: int) -> GroupTable:
    """Return the pair's table, fitted to both margins."""
    candidate = pair.candidate
    table = pair.against(independent_counts(candidate, shares[candidate.left], shares[candidate.right], rows))
    left, right = candidate.rows.sums(shares[candidate.left]), candidate.columns.sums(shares[candidate.right])
    return _group_table(candidate, fit_table(table, rows * left, rows * right))


def _group_table(candidate: Candidate, counts: Floats) -> GroupTable:
    weights = whole_weights(counts.ravel())
    return GroupTable(candidate.left, candidate.right, candidate.rows.cells, candidate.columns.cells, weights)


def _describe(pair: Pair, columns: tuple[Column, ...], phase: str) -> CountedPair:
    candidate = pair.candidate
    names = columns[candidate.left].name, columns[candidate.right].name
    return CountedPair(*names, candidate.shape, pair.scale * 2**0.5, phase)  # type: ignore[arg-type]


def _independent(columns: tuple[Column, ...], pairs: list[Pair], maps: list[Map]) -> tuple[str, ...]:
    related = {index for pair in pairs for index in (pair.candidate.left, pair.candidate.right)}
    related |= {index for rule in maps for index in (rule.column, rule.by)}
    return tuple(column.name for index, column in enumerate(columns) if index not in related)


def _misfit(raking: Raking, pairs: list[Pair], trees: tuple[GroupTable, ...], added: list[Pair]) -> float:
    """Return the largest difference between a counted pair's target and the weighted pool, in deviations of its noise."""
    targets = [table.weights * (raking.rows / table.weights.sum()) for table in trees] + raking.targets
    misfits = [
        float(np.abs(raking.model(pair.candidate).ravel() - target).max()) / (pair.scale * 2**0.5)
        for pair, target in zip([*pairs, *added], targets, strict=True)
    ]
    return round(max(misfits, default=0.0), 3)


def _banner(plan: Plan, pairs: list[Pair], tree_rounds: int, maps: list[Map]) -> str:
    if not tree_rounds or (plan.u >= 0 and 2 * len(pairs) >= tree_rounds):
        return ""
    count = len(pairs) + len(maps)
    return f"This budget supports margins and {count} association{'' if count == 1 else 's'} only."
