"""Small tables for the forest: facts, rows, and ways to observe or interrupt it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary, Loss, Step
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import Forest
from tidegate.synthesize.mechanisms.forest.cells import start_cells
from tidegate.synthesize.mechanisms.forest.weights import Fitted
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


def wide_column(name: str, size: int, *, missing: bool = False) -> Column:
    """Return a column whose cells are found from the rows."""
    return Column(name, size, start_cells(size), missing=missing, adaptive=True)


SHOP = (
    wide_column("price", 100_000, missing=True),
    Column("town", 24, tuple(range(24)), ordered=False),
    Column("district", 6, tuple(range(6)), ordered=False),
    Column("size", 5, tuple(range(5))),
    Column("color", 4, tuple(range(4)), ordered=False),
)


def sales(rows: int, seed: int = 1) -> np.ndarray:
    """Codes of SHOP: the district follows the town, a third of the prices is 0, and size and color depend on the price."""
    generator = np.random.default_rng(seed)
    price = np.minimum(generator.lognormal(6, 1, rows), 99_999).astype(np.int64)
    price = np.select([generator.random(rows) < 0.3, generator.random(rows) < 0.05], [0, 100_000], price)
    town = np.minimum(generator.geometric(0.12, rows) - 1, 23)
    district = (town * 5 + 2) % 6
    size = np.clip(np.log2(price + 1).astype(np.int64) // 2 + generator.integers(-1, 2, rows), 0, 4)
    color = np.where(generator.random(rows) < 0.5, size % 4, generator.integers(0, 4, rows))
    return np.column_stack([price, town, district, size, color])


def pure(epsilon: int | str | Fraction) -> Loss:
    return Loss.of_pure(Fraction(epsilon))


def by_z(z: int | str | Fraction) -> Loss:
    """Return the limit of a request by z or rho."""
    return Loss(None, Fraction(z), Fraction(12, 5) * Fraction(z))


def pairwise(z: int | str | Fraction) -> Loss:
    """Return the limit of a request by epsilon and delta."""
    return Loss(None, Fraction(z), 2 * Fraction(z))


Z_OF_EPSILON_1 = Fraction("0.0152783")  # half of the zcdp of epsilon 1 and delta 1e-5
LIMITS = {"pure": pure(1), "z": by_z(Z_OF_EPSILON_1), "pairwise z": pairwise(Z_OF_EPSILON_1)}


def silent(stage: str, done: int, of: int) -> None: ...


def learn(facts: Facts, rows: Any, diary: Diary, *, seed: object = 1) -> Fitted:
    return Forest().learn(facts, rows, diary, bits=SeededBits(str(seed)), progress=silent)


def learn_codes(
    codes: np.ndarray,
    columns: tuple[Column, ...],
    limit: Loss,
    *,
    seed: object = 1,
    reach: int = 1,
    target: str = "",
) -> tuple[Fitted, Diary]:
    diary = Diary(limit)
    facts = Facts(columns, len(codes), reach, target)
    return learn(facts, ArrayRows(codes, columns), diary, seed=seed), diary


def is_inside(drawn: np.ndarray, columns: Sequence[Column]) -> bool:
    """Return whether all codes are within their columns, and missing only where it is a value."""
    limits = np.array([column.size + column.missing for column in columns])
    return drawn.shape[1] == len(columns) and bool(((drawn >= 0) & (drawn < limits)).all())


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

    def pair(self, left: Column, right: Column) -> np.ndarray:
        self.asked.append(("pair", (left, right)))
        return super().pair(left, right)

    def explained(self, columns: Sequence[Column], pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        self.asked.append(("explained", (tuple(columns), tuple(pairs))))
        return super().explained(columns, pairs)


class Stopped(Exception):
    """The run was interrupted."""


def interrupt_after(steps: int, written: list[Step]) -> Any:
    """Return a function that stores steps and interrupts the run after a number of them."""

    def keep(step: Step) -> None:
        written.append(step)
        if len(written) == steps:
            raise Stopped

    return keep
