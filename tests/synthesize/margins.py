"""An example of a user's own model in one class: columns drawn independently of each other from noisy counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise import Bits, discrete_gaussian, discrete_laplace, scale_for, sigma_for
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Condition, Progress, Rows, Stage, Summary

CHUNK = 100_000
BANNER = "this budget supports margins and 0 associations only"


class Margins:
    """Each column's cells, counted with noise; columns split the loss equally.

    Guarantee:
        One unit changes `reach` rows, so it changes the counts of a column by at most 2 * reach in all; discrete
        Laplace noise of scale 2 * reach / loss has that loss. The counts lie in a ball of radius `reach`, so discrete
        Gaussian noise has z = reach**2 / (2 sigma**2) and zcdp = 2 z. The columns' losses add up.
    """

    name: ClassVar[str] = "margins/1"

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        return (Stage("margins", Fraction(1), "count every column"),)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Independent:
        share, reach = Fraction(1, len(facts.columns)), Fraction(facts.reach)
        limit = diary.limit
        loss = Loss.of_pure(share * limit.pure) if limit.pure else Loss(None, share * limit.z, 2 * share * limit.z)
        counts = []
        for done, column in enumerate(facts.columns):
            progress("margins", done, len(facts.columns))

            def measure(column: Column = column) -> Ints:
                if loss.pure:
                    noise = discrete_laplace(scale_for(2 * reach, loss.pure), size=column.cells, bits=bits)
                else:
                    noise = discrete_gaussian(sigma_for(reach**2, loss.z), size=column.cells, bits=bits)
                return rows.margin(column) + noise

            counts.append(diary.step(column.name, loss, measure))
        return Independent(facts.columns, counts, diary.spent)

    def restore(self, content: dict[str, Any]) -> Independent:
        return Independent.from_dict(content)


@dataclass(frozen=True)
class Independent:
    """Draws cells by their noisy counts, and codes uniformly inside a cell."""

    columns: tuple[Column, ...]
    counts: list[Ints]
    spent: Loss

    @property
    def summary(self) -> Summary:
        names = tuple(column.name for column in self.columns)
        cells = {column.name: column.starts for column in self.columns}
        return Summary(cells, dict.fromkeys(names, 1.5), (), (), names, 0.0, BANNER, self.spent)

    def draw(self, rows: int, *, seed: int) -> Ints:
        return np.concatenate(list(self.chunks(rows, seed=seed)))

    def chunks(self, rows: int, *, seed: int, where: Condition | None = None) -> Iterator[Ints]:
        for index, start in enumerate(range(0, rows, CHUNK)):
            source = np.random.default_rng([seed, index])
            size = min(CHUNK, rows - start)
            yield np.stack([self._codes(n, size, source, where or {}) for n in range(len(self.columns))], axis=1)

    def share(self, where: Condition) -> float:
        return float(np.prod([self._weights(column, codes).sum() for column, codes in where.items()]))

    def _weights(self, index: int, codes: Ints) -> Any:
        """Return the shares of some codes of a column, each an equal part of its cell's."""
        column, counts = self.columns[index], np.maximum(self.counts[index], 0) + 1e-9
        cells = column.cell_of(codes)
        widths = np.array(column.ends) - np.array(column.firsts)
        return (counts / counts.sum() / widths)[cells]

    def _codes(self, index: int, rows: int, source: np.random.Generator, where: Condition) -> Ints:
        if index in where:
            weights = self._weights(index, where[index])
            return source.choice(where[index], size=rows, p=weights / weights.sum())
        column, weights = self.columns[index], np.maximum(self.counts[index], 0) + 1e-9
        cells = source.choice(column.cells, size=rows, p=weights / weights.sum())
        low, high = np.array(column.firsts)[cells], np.array(column.ends)[cells]
        return source.integers(low, high)

    def to_dict(self) -> dict[str, Any]:
        columns = [[column.name, column.size, list(column.starts), column.missing] for column in self.columns]
        return {
            "columns": columns,
            "counts": [counts.tolist() for counts in self.counts],
            "spent": self.spent.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Independent:
        columns = [
            Column(name, size, tuple(starts), missing=missing) for name, size, starts, missing in content["columns"]
        ]
        counts = [np.array(counts, np.int64) for counts in content["counts"]]
        return cls(tuple(columns), counts, Loss.from_dict(content["spent"]))
