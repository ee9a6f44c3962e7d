""" "bppd/1": a Bayesian posterior predictive draw from noisy sufficient statistics of normal regressions.

Sums and sums of products of all columns get discrete Laplace noise in equal parts of the loss; then parameters are drawn
from their posterior given the noisy statistics, and rows from the parameters.

Reference:
    Bowen & Liu 2016, arXiv:1602.01063 (the split of the loss is not stated; equal parts are our choice).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits, discrete_laplace, scale_for
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate_papers.baselines.rounds import is_number, pure_loss

MOST = 2**61  # larger sums are clipped, which moves no two of them further apart


@dataclass(frozen=True)
class Bppd:
    """Rows from the posterior predictive distribution of noisy sums and products.

    Guarantee:
        With d = code - center, |d| <= B: replacing a row changes sum d by at most the universe's span, sum d^2 by B^2 and
        sum d e by 2 B C. Each statistic spends its part; parts add up.

    Needs:
        Numbers with useful bounds: the noise grows with them.
    """

    name: ClassVar[str] = "bppd/1"
    exact: ClassVar[bool] = True

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        pure_loss(limit)
        _check(facts)
        return (Stage("statistics", Fraction(1), "add up every column and every product of two, with noise"),)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Posterior:
        count = len(facts.columns)  # nothing is refused here: the loss is charged, and the number of rows can be noisy
        pairs = list(combinations_with_replacement(range(count), 2))
        loss = diary.epsilon / (count + len(pairs))
        sums = [_noisy(diary, facts, rows, (j,), loss, bits) for j in range(count)]
        products = np.zeros((count, count))
        for number, (i, j) in enumerate(pairs):
            products[i, j] = products[j, i] = _noisy(diary, facts, rows, (i, j), loss, bits)
            progress("statistics", number + 1, len(pairs))
        return Posterior(facts.columns, max(facts.rows, fewest_rows(count)), np.array(sums), products)


def _check(facts: Facts) -> None:
    others = [column.name for column in facts.columns if not is_number(column) or column.missing]
    if others:
        raise Unsupported(
            f"Sums and products are for numbers without missing values; {', '.join(others)} is not.",
            "Use `Sequential`.",
        )
    needed = fewest_rows(len(facts.columns))
    if facts.rows < needed:
        raise Unsupported(
            f"Sums and products of {len(facts.columns)} columns need at least {needed} rows; there are {facts.rows}.",
            "Use `Sequential`.",
        )
    if max(_bound(column) for column in facts.columns) ** 2 * facts.rows > 2**60:
        raise Unsupported("Sums of squares of such a wide column do not fit 64 bits.", "Use a larger step.")


def fewest_rows(columns: int) -> int:
    """Return the fewest rows whose posterior has a spread. A smaller noisy number of rows counts as this one."""
    return columns + 3


def _bound(column: Column) -> int:
    return column.size - 1 - (column.size - 1) // 2


def sensitivity(columns: tuple[Column, ...], places: tuple[int, ...]) -> int:
    """Return how far one row can change a sum (one column) or a sum of products (two)."""
    if len(places) == 1:
        return max(columns[places[0]].size - 1, 1)
    first, second = (_bound(columns[p]) for p in places)
    return max(first * first if places[0] == places[1] else 2 * first * second, 1)


def statistic(columns: tuple[Column, ...], codes: Ints, places: tuple[int, ...]) -> int:
    """Return the exact sum, clipped to MOST; a row that is not listed counts as the center."""
    centered = [np.where(codes[:, p] < 0, 0, codes[:, p] - (columns[p].size - 1) // 2) for p in places]
    each = np.prod(centered, axis=0)
    total = int((each >> 32).sum()) * 2**32 + int(
        (each & (2**32 - 1)).sum()
    )  # in halves: a whole one may not fit 64 bits
    return min(max(total, -MOST), MOST)


def _noisy(diary: Diary, facts: Facts, rows: Rows, places: tuple[int, ...], loss: Fraction, bits: Bits) -> int:
    most = Fraction(sensitivity(facts.columns, places) * facts.reach)

    def measure() -> Ints:
        total = statistic(facts.columns, rows.codes(facts.columns), places)
        return np.asarray(total + discrete_laplace(scale_for(most, loss), size=1, bits=bits))

    name = "sum of " + " x ".join(facts.columns[p].name for p in places)
    return int(diary.step(name, loss, measure)[0])


@dataclass(frozen=True)
class Posterior:
    """Noisy sums of centered codes and of their products."""

    columns: tuple[Column, ...]
    rows: int
    sums: Floats
    products: Floats

    def draw(self, rows: int, *, seed: int) -> Ints:
        random = np.random.default_rng(seed)
        mean, spread = self.sums / self.rows, _positive(self.products - np.outer(self.sums, self.sums) / self.rows)
        drawn = np.empty((rows, len(self.columns)))
        for j in range(len(self.columns)):
            drawn[:, j] = self._column(j, mean, spread, drawn, random)
        bounds = np.array([column.size - 1 for column in self.columns])
        codes = np.rint(drawn + bounds // 2)
        return np.asarray(np.clip(codes, 0, bounds), np.int64)

    def _column(self, j: int, mean: Floats, spread: Floats, drawn: Floats, random: np.random.Generator) -> Floats:
        """Draw scale, slopes and center from their posterior under the usual flat prior, then the rows."""
        before = spread[:j, :j]
        slopes = np.linalg.solve(before, spread[:j, j]) if j else np.zeros(0)
        residual = max(float(spread[j, j] - slopes @ spread[:j, j]), 1e-9)
        scale = np.sqrt(residual / random.chisquare(self.rows - j - 1))
        if j:
            slopes = slopes + scale * random.standard_normal(j) @ np.linalg.inv(np.linalg.cholesky(before))
        center = mean[j] + scale * random.standard_normal() / np.sqrt(self.rows)
        noise = scale * random.standard_normal(drawn.shape[0])
        return np.asarray(center + (drawn[:, :j] - mean[:j]) @ slopes + noise)


def _positive(matrix: Floats) -> Floats:
    """Return the matrix without directions of negative spread, which noise can create."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1.0))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    fitted = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    return np.asarray(fitted * np.outer(scale, scale))
