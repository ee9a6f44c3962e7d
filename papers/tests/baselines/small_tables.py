"""Small tables, and a chooser that follows a fixed path and records the probabilities of each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
from reference.exponential import probabilities
from tidegate_papers.baselines.rounds import Chooser, make_plan, rate_for
from tidegate_papers.baselines.sequential import Learning, Sequential

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.private_rows import ArrayRows

X, Y = Column("x", 6, tuple(range(6))), Column("y", 5, tuple(range(5)))
SEX, TOWN = Column("sex", 2, (0, 1), ordered=False), Column("town", 3, (0, 1, 2), ordered=False)
PAY = Column("pay", 4, (0, 1, 2, 3), missing=True)


def quiet(stage: str, done: int, of: int) -> None:
    pass


@dataclass
class Round:
    """One round: its loss, its public part, and the probability of every candidate."""

    name: str
    epsilon: Fraction
    candidates: np.ndarray
    sensitivity: int
    chances: list[mpmath.mpf]


@dataclass(frozen=True)
class Walker(Chooser):
    """Chooses candidate path[k] in round k (modulo the number of candidates), and the first after the end of the path."""

    path: Sequence[int] = ()
    rounds: list[Round] = field(default_factory=list)
    fault: int = 1  # sensitivities are divided by this

    def choose(
        self,
        name: str,
        epsilon: Fraction,
        candidates: Callable[[], np.ndarray],
        misfits: Callable[[np.ndarray], np.ndarray],
        *,
        sensitivity: int,
    ) -> np.ndarray:
        parameters = candidates()
        rate = rate_for(sensitivity * self.reach, epsilon) * self.fault
        chances = probabilities([-int(m) for m in misfits(parameters)], rate)
        index = self.path[len(self.rounds)] % len(parameters) if len(self.rounds) < len(self.path) else 0
        self.rounds.append(Round(name, epsilon, parameters, sensitivity, chances))
        return self.diary.step(name, epsilon, lambda: parameters[index])


def walk(
    columns: Sequence[Column],
    codes: np.ndarray,
    path: Sequence[int] = (),
    *,
    epsilon: Fraction = Fraction(1),
    reach: int = 1,
    fault: int = 1,
    model: Sequential | None = None,
) -> list[Round]:
    """Return all choices of a synthesis along a path. Noise of counts is seeded and the same for every table of a size."""
    model = model or Sequential(many=3, some=2)
    facts = Facts(tuple(columns), len(codes), reach)
    diary = Diary(epsilon, [])
    walker = Walker(diary, reach, _Still(), path, fault=fault)
    plan = make_plan(facts, epsilon=epsilon, parents=model.parents)
    Learning(plan, walker, model, ArrayRows(codes, columns)).run(quiet)
    assert sum(step.epsilon for step in diary.steps) <= epsilon
    return walker.rounds


class _Still(SeededBits):
    """Bits for the noise of counts."""

    def __init__(self) -> None:
        super().__init__("still")


def tables(columns: Sequence[Column], rows: int) -> list[np.ndarray]:
    """Return every table of a number of rows, once regardless of their order."""
    values = list(product(*(range(column.size + column.missing) for column in columns)))
    distinct = sorted({tuple(sorted(chosen)) for chosen in product(values, repeat=rows)})
    return [np.array(rows_of_table, np.int64) for rows_of_table in distinct]


def neighbors(table: np.ndarray, columns: Sequence[Column]) -> list[np.ndarray]:
    """Return every table with one row replaced."""
    changed_tables = []
    for row in range(len(table)):
        for values in product(*(range(column.size + column.missing) for column in columns)):
            other = table.copy()
            other[row] = values
            changed_tables.append(other)
    return changed_tables
