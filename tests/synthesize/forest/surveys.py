"""Small tables for the forest: facts, rows, and ways to observe or interrupt it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary, Step
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import Forest
from tidegate.synthesize.mechanisms.forest.pool import WeightedPool
from tidegate.synthesize.private_rows import ArrayRows

COLUMNS = (
    Column("age", 60, tuple(range(60))),
    Column("sex", 2, (0, 1), ordered=False),
    Column("job", 7, tuple(range(7)), ordered=False, missing=True),
    Column("gain", 1000, (0, 1, 10, 100, 999), even=False, heaped=True),
)


def people(rows: int, seed: int = 1) -> np.ndarray:
    """Codes of COLUMNS: jobs follow age and sex, gains are mostly 0 and often 500."""
    generator = np.random.default_rng(seed)
    age = np.clip(generator.normal(30, 12, rows), 0, 59).astype(np.int64)
    sex = generator.integers(0, 2, rows)
    job = np.where(generator.random(rows) < 0.8, (age // 12 + 3 * sex) % 8, generator.integers(0, 8, rows))
    gain = np.select(
        [generator.random(rows) < 0.7, generator.random(rows) < 0.5], [0, 500], generator.integers(0, 1000, rows)
    )
    return np.column_stack([age, sex, job, gain])


def silent(stage: str, done: int, of: int) -> None: ...


def learn(
    facts: Facts,
    rows: Any,
    diary: Diary,
    *,
    seed: object = 1,
    split: Mapping[str, Fraction] | None = None,
) -> WeightedPool:
    pool = Forest().learn(facts, rows, diary, split=split or {}, bits=SeededBits(str(seed)), progress=silent)
    assert isinstance(pool, WeightedPool)
    return pool


def learn_codes(
    codes: np.ndarray,
    columns: tuple[Column, ...],
    epsilon: Fraction,
    *,
    seed: object = 1,
    reach: int = 1,
    target: str = "",
) -> tuple[WeightedPool, Diary]:
    diary = Diary(epsilon)
    facts = Facts(columns, len(codes), reach, target)
    return learn(facts, ArrayRows(codes, columns), diary, seed=seed), diary


class NoRows:
    """Rows that must not be read."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the rows were read: {name}")


class Watched(ArrayRows):
    """Rows that record every request."""

    def __init__(self, codes: np.ndarray, columns: Sequence[Column]) -> None:
        super().__init__(codes, columns)
        self.asked: list[tuple[str, Any]] = []

    def places(self, column: Column) -> np.ndarray:
        self.asked.append(("places", column))
        return super().places(column)

    def margin(self, column: Column) -> np.ndarray:
        self.asked.append(("margin", column))
        return super().margin(column)

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], np.ndarray]:
        self.asked.append(("pairs", tuple(columns)))
        return super().pairs(columns)


class Stopped(Exception):
    """The run was interrupted."""


def interrupt_after(steps: int, written: list[Step]) -> Any:
    """Return a function that stores steps and interrupts the run after a number of them."""

    def keep(step: Step) -> None:
        written.append(step)
        if len(written) == steps:
            raise Stopped

    return keep
