"""Exact distributions over small universes: every data set, every world, every response. Nothing is sampled.

Rows are drawn from a public universe; the adversary knows all rows but one. For Laplace noise on whole numbers the
worst response for a world is its own exact output; for a choice among values every response can be tried.
The exact numbers come from the slow twin of the tables, which every engine equals (tests/tables/test_engines.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from reference.tables import ReferenceTable

from tidegate.accounting import DiscreteLaplace, Event, Exponential, Moments, Together
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import axes_of
from tidegate.answer.mechanisms.ranks import Ranks
from tidegate.answer.mechanisms.sums import Sums
from tidegate.answer.request import Query
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.policy import Policy

Row = tuple[Any, ...]


def databases(universe: Sequence[Row], rows: int) -> Iterator[tuple[Row, ...]]:
    """Yield everything the adversary can know: every multiset of all rows but one."""
    return combinations_with_replacement(universe, rows - 1)


class Outputs:
    """The outputs of a request for a data set before noise, and the scales of the noise."""

    def __init__(self, queries: tuple[Query, ...], policy: Policy, columns: Sequence[str], epsilon: Fraction) -> None:
        self.queries, self.policy, self.columns = queries, policy, columns
        self.events = plan(queries, policy, loss=RequestedLoss(epsilon))
        self.cache: dict[tuple[Row, ...], Any] = {}

    def log_densities(self, worlds: list[tuple[Row, ...]]) -> list[np.ndarray]:
        """Return, for each world, the log density of its worst response under every world.

        For choices, return one such row for every response.
        """
        exact = [self._exact(world) for world in worlds]
        laplace = np.array([numbers for numbers, _ in exact], float)
        scales = np.array(self._scales(), float)
        choices = [np.array([tables[position] for _, tables in exact]) for position in range(len(exact[0][1]))]
        rows = []
        for i in range(len(worlds)):
            base = -(np.abs(laplace - laplace[i]) / scales).sum(axis=1) if scales.size else np.zeros(len(worlds))
            rows += _responses(base, choices)
        return rows

    def _scales(self) -> list[float]:
        out: list[float] = []
        for query, event in zip(self.queries, self.events, strict=True):
            cells = int(np.prod([axis.length for axis in axes_of(query, self.policy)]))
            if isinstance(event, DiscreteLaplace):
                out += [float(event.scale)] * cells
            elif isinstance(event, Moments):
                out += [float(scale) for scale in event.scales if scale is not None for _ in range(cells)]
        return out

    def _exact(self, world: tuple[Row, ...]) -> tuple[list[int], list[np.ndarray]]:
        key = tuple(sorted(world, key=str))
        if key not in self.cache:
            rows = [dict(zip(self.columns, row, strict=True)) for row in key]
            self.cache[key] = self._numbers(ReferenceTable(self.policy, rows))
        return self.cache[key]  # type: ignore[no-any-return]

    def _numbers(self, table: Any) -> tuple[list[int], list[np.ndarray]]:
        numbers: list[int] = []
        choices: list[np.ndarray] = []
        for query, event in zip(self.queries, self.events, strict=True):
            axes = axes_of(query, self.policy)
            if isinstance(event, DiscreteLaplace):
                numbers += table.count(axes, where=query.condition).reshape(-1).tolist()
            elif isinstance(event, Moments):
                for cells in Sums().exact(query, table).numbers:
                    numbers += cells.reshape(-1).tolist()
            else:
                choices += self._choices(query, event, table)
        return numbers, choices

    def _choices(self, query: Query, event: Event, table: Any) -> list[np.ndarray]:
        """Return the log probability of every value, for each group."""
        mechanism = mechanism_for(query)
        assert isinstance(mechanism, Ranks)
        choice = event.parts[0] if isinstance(event, Together) else event
        assert isinstance(choice, Exponential)
        cells = table.count([*axes_of(query, self.policy), table.axis(query.column)], where=query.condition)
        size = self.policy.attribute(query.column).size
        groups = cells[..., :size].reshape(-1, size)
        raw = [float(choice.rate) * mechanism.scores(query, self.policy, event, group) for group in groups]
        return [logits - np.logaddexp.reduce(logits) for logits in raw]


def _responses(base: np.ndarray, choices: list[np.ndarray]) -> list[np.ndarray]:
    """Return the worst response of the Laplace part with every combination of choices."""
    rows = [base]
    for table in choices:  # (worlds, values)
        rows = [row + table[:, value] for row in rows for value in range(table.shape[1])]
    return rows


def worst_identification(
    outputs: Outputs, universe: Sequence[Row], known: tuple[Row, ...], prior: np.ndarray, target: int
) -> float:
    """Return the highest posterior of any value of column `target` for the missing row, over all responses."""
    worlds = [(*known, row) for row in universe]
    values = sorted({row[target] for row in universe}, key=str)
    worst = 0.0
    for logs in outputs.log_densities(worlds):
        weights = prior * np.exp(logs - logs.max())
        weights /= weights.sum()
        worst = max(
            worst,
            *(
                float(sum(w for w, row in zip(weights, universe, strict=True) if row[target] == value))
                for value in values
            ),
        )
    return worst
