"""A careful numpy program: no statistic is computed twice, and critical values and denials are cached."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.release.mechanisms import REGISTERED
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.exposure import merge_sparse_bins


class NumpyController:
    """One test of a plan. Cells are numbered target by target."""

    def __init__(self, plan: Any) -> None:
        self.plan, self.baseline = plan, plan.floats
        self.test = REGISTERED[plan.promise.tests[0]](plan)
        self.counts = np.zeros((plan.targets, plan.values))
        self.distances = np.zeros(plan.targets)
        self.queue: list[tuple[int, int]] = []
        self.denied: set[int] = set()
        self.released: list[int] = []
        self.critical: dict[Any, float] = {}
        self.before = 0

    def load(self, counts: Any, queue: list[tuple[int, int]]) -> NumpyController:
        """Start from released counts (targets, values) and waiting requests."""
        self.counts[:], self.queue = counts, list(queue)
        self.distances = np.array([self.distance(column) if column.any() else 0.0 for column in self.counts])
        self.before = int(self.counts.sum())
        return self

    def decide(self, cells: Any, *, first: int = 0) -> list[int]:
        for number, cell in enumerate(cells.tolist(), start=first):
            if self.allowed(cell):
                self.grant(number, cell)
                while self.serve():
                    pass
            else:
                self.queue.append((number, cell))
        return self.released

    def serve(self) -> bool:
        for index, (number, cell) in enumerate(self.queue):
            if self.allowed(cell):
                del self.queue[index]
                self.grant(number, cell)
                return True
        return False

    def allowed(self, cell: int) -> bool:
        if cell in self.denied:
            return False
        y, x = divmod(cell, self.plan.values)
        column = self.counts[y].copy()
        column[x] += 1
        if not CHECKS[self.plan.promise.tests[0]](self, y, column):
            self.denied.add(cell)
            return False
        return True

    def grant(self, number: int, cell: int) -> None:
        y, x = divmod(cell, self.plan.values)
        self.counts[y, x] += 1
        self.distances[y] = self.distance(self.counts[y])
        self.released.append(number)
        self.denied.clear()

    def distance(self, column: Any) -> float:
        positive = column > 0
        return float(2 * (column[positive] * np.log(column[positive] / (column.sum() * self.baseline[positive]))).sum())

    def value(self, key: Any, make: Any) -> float:
        if key not in self.critical:
            self.critical[key] = make()
        return self.critical[key]

    def mutual_information(self, y: int, column: Any) -> bool:
        total = self.distances.sum() - self.distances[y] + self.distance(column)
        size = self.before + len(self.released) + 1
        return bool(total < self.value(size, lambda: self.test._critical(size)))

    def kullback_leibler(self, y: int, column: Any) -> bool:
        size = int(column.sum())
        return self.distance(column) < self.value(size, lambda: self.test._critical(size))

    def chi_square(self, y: int, column: Any) -> bool:
        starts = merge_sparse_bins(column.astype(int).tolist(), rule="forward")
        if len(starts) == 1:
            return True
        observed, shares = np.add.reduceat(column, starts), np.add.reduceat(self.baseline, starts)
        expected = column.sum() * shares
        freedom = len(starts) - 1
        critical = self.value(freedom, lambda: chi_square_critical(freedom, self.plan.promise.significance))
        return bool(((observed - expected) ** 2 / expected).sum() < critical)

    def dixon(self, y: int, column: Any) -> bool:
        sizes = self.counts.sum(axis=1)
        sizes[y] = column.sum()
        distances = self.distances.copy()
        distances[y] = self.distance(column)
        ordered = np.sort(distances[sizes > 0] / (2 * sizes[sizes > 0]))
        number = 1 + int((np.diff(ordered) > 1e-12).sum())
        if number < 3:
            return True
        coefficient = (ordered[-1] - ordered[-2]) / (ordered[-1] - ordered[0])
        return bool(coefficient < self.value(number, lambda: self.test._critical(number)))


CHECKS = {name: getattr(NumpyController, name.replace("-", "_")) for name in REGISTERED if name != "posterior"}
