""" "copula/1": a histogram of every column on its public cells, and a normal dependence between the columns.

Margins are counts with discrete Laplace noise. The exact exponential mechanism chooses each correlation from a public grid:
the score is the total variation between a pair's counts and the rectangles of the bivariate normal. With more than
MOST_COLUMNS columns only a tree of pairs, itself chosen, has correlations; the others follow along its paths. Categories are
ordered as listed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate.tables.pairs import refuse_too_many_pairs
from tidegate_papers.baselines.fits import noisy_counts
from tidegate_papers.baselines.rounds import PARTS, Chooser, pure_loss, scale_parts

Pair = tuple[int, int]

GRID = np.arange(-100, 101) / 101.0  # 201 correlations
GROUPS = 8  # cells of a pair's table on each side
MOST_COLUMNS = 10  # up to which every pair has its own correlation
SHARES = {"margins": 500_000, "tree": 100_000, "correlations": 400_000}
SAYS = {
    "margins": "count the cells of every column",
    "tree": "choose the pairs that depend most on each other",
    "correlations": "choose their correlations",
}


@dataclass(frozen=True)
class Copula:
    """Histograms joined by a normal copula.

    Guarantee:
        Every private number is in the diary: counts with integer noise, and choices among public candidates by integer
        scores that one row changes by at most 2. Repairing the matrix of correlations is post-processing.
    """

    name: ClassVar[str] = "copula/1"
    exact: ClassVar[bool] = True

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        pure_loss(limit)
        refuse_too_many_pairs({column.name: column.cells for column in facts.columns})
        return tuple(Stage(n, Fraction(p, PARTS), SAYS[n]) for n, p in _parts(facts).items())

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> CopulaModel:
        parts = _parts(facts)
        losses = {name: diary.epsilon * Fraction(share, PARTS) for name, share in parts.items()}
        return _Learning(facts, rows, Chooser(diary, facts.reach, bits), losses).run(progress)


def _parts(facts: Facts) -> dict[str, int]:
    if not facts.columns:
        raise Unsupported("There is no column to learn.")
    count = len(facts.columns)
    used = {"margins": True, "tree": count > MOST_COLUMNS, "correlations": count > 1}
    return scale_parts({name: share for name, share in SHARES.items() if used[name]})


class _Learning:
    """The procedure of one synthesis. Pairs are counted when the first choice that is not yet written needs them."""

    def __init__(self, facts: Facts, rows: Rows, chooser: Chooser, losses: Mapping[str, Fraction]) -> None:
        self.facts, self.rows, self.chooser, self.losses = facts, rows, chooser, losses

    def run(self, progress: Progress) -> CopulaModel:
        columns = self.facts.columns
        sizes = [math.isqrt(10_000 * column.cells) for column in columns]  # square roots, to a hundredth
        self.shares = []
        for index, column in enumerate(columns):
            self.shares.append(self._margin(column, self.losses["margins"] * Fraction(sizes[index], sum(sizes))))
            progress("margins", index + 1, len(columns))
        self.groups = [group_cells(share) for share in self.shares]
        pairs = self._tree() if "tree" in self.losses else list(combinations(range(len(columns)), 2))
        chosen: dict[Pair, float] = {}
        for number, pair in enumerate(pairs):
            chosen[pair] = self._correlation(pair, self.losses["correlations"] / len(pairs))
            progress("correlations", number + 1, len(pairs))
        matrix = (
            tree_correlations(len(columns), chosen)
            if "tree" in self.losses
            else repair_correlations(len(columns), chosen)
        )
        return CopulaModel(columns, tuple(self.shares), matrix)

    def _margin(self, column: Column, loss: Fraction) -> Floats:
        counts = partial(self.rows.margin, column)
        return on_simplex(noisy_counts(self.chooser, f"{column.name}: counts", counts, loss, of=column.cells))

    @cached_property
    def _pairs(self) -> Mapping[Pair, Ints]:
        return self.rows.pairs(self.facts.columns)

    def _table(self, pair: Pair) -> Ints:
        """Return a pair's counts on groups of cells. Private."""
        left, right = (self.groups[p] for p in pair)
        table = np.zeros((left.max() + 1, right.max() + 1), np.int64)
        np.add.at(table, (left[:, None], right[None, :]), self._pairs[pair])
        return table

    def _cuts(self, column: int) -> Floats:
        return cuts_of(self.shares[column], self.groups[column])

    def _expected(self, pair: Pair, correlations: Floats) -> Ints:
        boxes = rectangles(self._cuts(pair[0]), self._cuts(pair[1]), correlations)
        return np.rint(self.facts.rows * boxes).astype(np.int64)

    def _correlation(self, pair: Pair, loss: Fraction) -> float:
        def misfits(tried: Ints) -> Ints:
            apart = self._expected(pair, GRID) - self._table(pair)
            return np.asarray(np.abs(apart).sum((1, 2))[tried[:, 0]])

        names = " and ".join(self.facts.columns[p].name for p in pair)
        order = np.argsort(np.abs(GRID), kind="stable")[:, None]  # 0 comes first: the choice if nothing is spent
        chosen = self.chooser.choose(f"{names}: correlation", loss, partial(np.copy, order), misfits, sensitivity=2)
        return float(GRID[chosen[0]])

    def _tree(self) -> list[Pair]:
        """Choose pairs that join all columns, one after the other, preferring those furthest from independence."""
        count = len(self.facts.columns)
        components, pairs = list(range(count)), []
        for number in range(count - 1):
            joining = [pair for pair in combinations(range(count), 2) if components[pair[0]] != components[pair[1]]]
            chosen = self.chooser.choose(
                f"pair {number + 1}",
                self.losses["tree"] / (count - 1),
                partial(np.array, joining),
                lambda tried: np.array([-self._dependence((int(i), int(j))) for i, j in tried]),
                sensitivity=2,
            )
            pair = (int(chosen[0]), int(chosen[1]))
            pairs.append(pair)
            components = [
                components[pair[0]] if component == components[pair[1]] else component for component in components
            ]
        return pairs

    def _dependence(self, pair: Pair) -> int:
        return int(np.abs(self._expected(pair, np.zeros(1))[0] - self._table(pair)).sum())


@dataclass(frozen=True)
class CopulaModel:
    """Shares of every column's cells, and the correlations that join them."""

    columns: tuple[Column, ...]
    shares: tuple[Floats, ...]
    correlations: Floats

    def draw(self, rows: int, *, seed: int) -> Ints:
        random = np.random.default_rng(seed)
        even = ndtr(random.standard_normal((rows, len(self.columns))) @ _root(self.correlations).T)
        return np.column_stack(
            [self._codes(index, even[:, index], random.random(rows)) for index in range(len(self.columns))]
        )

    def _codes(self, index: int, even: Floats, inside: Floats) -> Ints:
        """Return the cell at each quantile of the column, and a uniform code in it."""
        column, upto = self.columns[index], np.cumsum(self.shares[index])
        cell = np.minimum(np.searchsorted(upto / upto[-1], even, side="right"), column.cells - 1)
        first, after = np.array(column.firsts)[cell], np.array(column.ends)[cell]
        return np.asarray(np.minimum(first + np.floor(inside * (after - first)).astype(np.int64), after - 1))


def on_simplex(noisy: Ints) -> Floats:
    """Return the nearest shares of at least 0 that add up to 1 (shifted down until they do)."""
    total = max(int(noisy.sum()), 1)
    falling = np.sort(noisy.astype(np.float64))[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, noisy.size + 1)
    last = int(np.count_nonzero(falling > over)) - 1
    return np.asarray(np.maximum(noisy - over[last], 0.0) / total)


def group_cells(shares: Floats) -> Ints:
    """Return neighboring cells in at most GROUPS groups of about equal share; no group is empty."""
    middle = np.cumsum(shares) - shares / 2
    raw = np.minimum((middle * GROUPS).astype(np.int64), GROUPS - 1)
    return np.asarray(np.unique(raw, return_inverse=True)[1], np.int64)


def cuts_of(shares: Floats, groups: Ints) -> Floats:
    """Return the cuts that divide a normal variable into the groups."""
    upto = np.clip(np.cumsum(np.bincount(groups, weights=shares)), 0.0, 1.0)
    return np.concatenate([[-np.inf], ndtri(upto[:-1]), [np.inf]])


def repair_correlations(size: int, chosen: Mapping[Pair, float]) -> Floats:
    """Return the correlations as a positive definite matrix."""
    matrix = np.eye(size)
    for (i, j), rho in chosen.items():
        matrix[i, j] = matrix[j, i] = rho
    values, vectors = np.linalg.eigh(matrix)
    fitted = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(fitted))
    return np.asarray(fitted / np.outer(scale, scale))


def tree_correlations(size: int, chosen: Mapping[Pair, float]) -> Floats:
    """Return products of correlations along the paths of a tree."""
    matrix, joined = np.eye(size), [{index} for index in range(size)]
    for (i, j), rho in chosen.items():
        left, right = sorted(joined[i]), sorted(joined[j])
        block = rho * np.outer(matrix[left, i], matrix[right, j])
        matrix[np.ix_(left, right)], matrix[np.ix_(right, left)] = block, block.T
        for index in (*left, *right):
            joined[index] = {*left, *right}
    return matrix


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


FAR = 9.0  # largest cut, in standard deviations: the probability beyond it is negligible
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def rectangles(first: Floats, second: Floats, correlations: Floats) -> Floats:
    """Return P(first[i] < Z1 <= first[i+1], second[j] < Z2 <= second[j+1]) at each correlation: (correlations, cells, cells).

    Needs:
        Increasing cuts (infinite ends allowed) and correlations of absolute value below 1.

    Reference:
        Plackett 1954: the derivative of the distribution function by rho is the density, here in rho = sin(angle).
    """
    rows, columns = np.clip(first, -FAR, FAR)[:, None], np.clip(second, -FAR, FAR)[None, :]
    base = ndtr(rows) * ndtr(columns)
    angles = np.arcsin(correlations)
    order = np.argsort(np.abs(angles), kind="stable")
    boxes = np.empty((correlations.size, first.size - 1, second.size - 1))
    for sign in (1, -1):
        upto, value = 0.0, base
        for index in (p for p in order if (angles[p] >= 0) == (sign > 0)):
            value = value + _integrate_density(rows, columns, upto, float(angles[index]))
            upto = float(angles[index])
            boxes[index] = np.diff(np.diff(value, axis=0), axis=1)
    return np.clip(boxes, 0.0, 1.0)


def _integrate_density(rows: Floats, columns: Floats, start: float, end: float) -> Floats:
    """Integrate the density from one angle to another. The steps of a grid are short, so eight nodes suffice."""
    half, middle = (end - start) / 2, (end + start) / 2
    total = np.zeros(np.broadcast_shapes(rows.shape, columns.shape))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        angle = middle + half * node
        power = (rows**2 - 2 * rows * columns * np.sin(angle) + columns**2) / (2 * np.cos(angle) ** 2)
        total += weight * np.exp(-power)
    return np.asarray(half * total / (2 * np.pi))
