"""Small tables, and a chooser that follows a given path and tells what each round would have done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
from reference.exponential import probabilities

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.parametric.candidates import Chooser, rate_for
from tidegate.synthesize.mechanisms.parametric.plan import make_plan
from tidegate.synthesize.mechanisms.parametric.sequential import Learning, Sequential
from tidegate.synthesize.private_rows import ArrayRows

X, Y = Column("x", 6, tuple(range(6))), Column("y", 5, tuple(range(5)))
SEX, TOWN = Column("sex", 2, (0, 1), ordered=False), Column("town", 3, (0, 1, 2), ordered=False)
PAY = Column("pay", 4, (0, 1, 2, 3), missing=True)


def quiet(stage: str, done: int, of: int) -> None:
    pass


@dataclass
class Round:
    """One round as it would be: its price, its public side, and the probability of every candidate."""

    name: str
    epsilon: Fraction
    candidates: np.ndarray
    sensitivity: int
    chances: list[mpmath.mpf]


@dataclass(frozen=True)
class Walker(Chooser):
    """Takes, in round k, candidate path[k] (modulo how many there are); path ends: the first."""

    path: Sequence[int] = ()
    rounds: list[Round] = field(default_factory=list)
    fault: int = 1  # sensitivities divided by it

    def choose(
        self,
        name: str,
        epsilon: Fraction,
        candidates: Callable[[], np.ndarray],
        misfits: Callable[[np.ndarray], np.ndarray],
        *,
        sensitivity: int,
    ) -> np.ndarray:
        found = candidates()
        rate = rate_for(sensitivity * self.reach, epsilon) * self.fault
        chances = probabilities([-int(m) for m in misfits(found)], rate)
        place = self.path[len(self.rounds)] % len(found) if len(self.rounds) < len(self.path) else 0
        self.rounds.append(Round(name, epsilon, found, sensitivity, chances))
        return self.diary.step(name, epsilon, lambda: found[place])


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
    """All choices of a synthesis along a path. (Counts with noise are seeded and the same for every table of a size.)"""
    model = model or Sequential(many=3, some=2)
    facts = Facts(tuple(columns), len(codes), reach)
    diary = Diary(epsilon, [])
    walker = Walker(diary, reach, _Still(), path, fault=fault)
    made = make_plan(facts, epsilon=epsilon, split={}, parents=model.parents)
    Learning(made, walker, model, ArrayRows(codes, columns)).run(quiet)
    assert sum(step.epsilon for step in diary.steps) <= epsilon
    return walker.rounds


class _Still(SeededBits):
    """Bits for the noise of counts."""

    def __init__(self) -> None:
        super().__init__("still")


def tables(columns: Sequence[Column], rows: int) -> list[np.ndarray]:
    """Every table of so many rows, in any order of rows once."""
    values = list(product(*(range(column.size + column.missing) for column in columns)))
    picked = sorted({tuple(sorted(chosen)) for chosen in product(values, repeat=rows)})
    return [np.array(one, np.int64) for one in picked]


def neighbours(table: np.ndarray, columns: Sequence[Column]) -> list[np.ndarray]:
    """Every table with one row replaced."""
    found = []
    for row in range(len(table)):
        for values in product(*(range(column.size + column.missing) for column in columns)):
            other = table.copy()
            other[row] = values
            found.append(other)
    return found
