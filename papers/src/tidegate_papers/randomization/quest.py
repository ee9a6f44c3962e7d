"""The Quest generator of classified people: nine attributes, and the functions that assign Group A.

Attributes:
    salary: uniform in 20,000 .. 150,000.
    commission: 0 from a salary of 75,000 on, otherwise uniform in 10,000 .. 75,000.
    age: uniform in 20 .. 80.
    elevel: an integer, 0 .. 4.
    car: an integer, 1 .. 20.
    zipcode: one of 9.
    hvalue: uniform in 0.5 k .. 1.5 k times 100,000, k = 9 - zipcode.
    hyears: an integer, 1 .. 30.
    loan: uniform in 0 .. 500,000.

Reference:
    Agrawal, Imielinski, Swami 1993 (IEEE TKDE 5:6), Section 4; the five functions as chosen and numbered by Agrawal,
    Srikant 2000 (their functions 1, 2, 4, 7 there, and one with equity). How k depends on the zipcode is not stated;
    this is the usual reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Bools, Floats, Ints32

K = 1_000


@dataclass(frozen=True)
class Attribute:
    """An attribute's bounds, and whether its values are integers."""

    name: str
    low: float
    high: float
    whole: bool = False


ATTRIBUTES = (
    Attribute("salary", 20 * K, 150 * K),
    Attribute("commission", 0, 75 * K),
    Attribute("age", 20, 80),
    Attribute("elevel", 0, 4, whole=True),
    Attribute("car", 1, 20, whole=True),
    Attribute("zipcode", 0, 8, whole=True),
    Attribute("hvalue", 50 * K, 1_350 * K),
    Attribute("hyears", 1, 30, whole=True),
    Attribute("loan", 0, 500 * K),
)
NAMES = tuple(attribute.name for attribute in ATTRIBUTES)


def people(size: int, *, rng: np.random.Generator) -> Floats:
    """Draw people, (people, attributes)."""
    salary = rng.uniform(20 * K, 150 * K, size)
    commission = np.where(salary >= 75 * K, 0.0, rng.uniform(10 * K, 75 * K, size))
    age = rng.uniform(20, 80, size)
    elevel, car = rng.integers(0, 5, size), rng.integers(1, 21, size)
    zipcode = rng.integers(0, 9, size)
    hvalue = rng.uniform(0.5, 1.5, size) * (9 - zipcode) * 100 * K
    hyears, loan = rng.integers(1, 31, size), rng.uniform(0, 500 * K, size)
    return np.column_stack([salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan]).astype(np.float64)


def in_group_a(function: int, rows: Floats) -> NDArray[np.bool_]:
    """Return who is in Group A, by one of the functions 1 to 5."""
    return FUNCTIONS[function](dict(zip(NAMES, rows.T, strict=True)))


def balanced(function: int, size: int, *, rng: np.random.Generator) -> tuple[Floats, Ints32]:
    """Draw as many people of either group, in random order, and their classes: 1 for Group A."""
    groups: list[list[Floats]] = [[], []]
    while min(sum(map(len, group)) for group in groups) < size // 2:
        drawn = people(size, rng=rng)
        inside = in_group_a(function, drawn)
        groups[0].append(drawn[~inside])
        groups[1].append(drawn[inside])
    rows = np.concatenate([np.concatenate(group)[: size // 2] for group in groups])
    order = rng.permutation(len(rows))
    return rows[order], np.repeat([0, 1], size // 2).astype(np.int32)[order]


Person = dict[str, Floats]


def _ages(p: Person) -> tuple[Bools, Bools, Bools]:
    return p["age"] < 40, (p["age"] >= 40) & (p["age"] < 60), p["age"] >= 60


def _within(value: Floats, low: float, high: float) -> Bools:
    return (value >= low) & (value <= high)


def _first(p: Person) -> Bools:
    young, _, old = _ages(p)
    return young | old


def _second(p: Person) -> Bools:
    young, middle, old = _ages(p)
    salary = p["salary"] / K
    return (young & _within(salary, 50, 100)) | (middle & _within(salary, 75, 125)) | (old & _within(salary, 25, 75))


def _third(p: Person) -> Bools:
    young, middle, old = _ages(p)
    salary, elevel = p["salary"] / K, p["elevel"]
    low, medium, high = _within(salary, 25, 75), _within(salary, 50, 100), _within(salary, 75, 125)
    of_young = ((elevel <= 1) & low) | (_within(elevel, 2, 3) & medium)
    of_middle = (_within(elevel, 1, 3) & medium) | ((elevel == 4) & high)
    of_old = ((elevel >= 2) & medium) | ((elevel == 1) & low)
    return np.asarray((young & of_young) | (middle & of_middle) | (old & of_old))


def _disposable(p: Person) -> Floats:
    return 0.67 * (p["salary"] + p["commission"]) - 0.2 * p["loan"] - 10 * K


def _fourth(p: Person) -> Bools:
    return np.asarray(_disposable(p) > 0)


def _fifth(p: Person) -> Bools:
    equity = 0.1 * p["hvalue"] * np.maximum(p["hyears"] - 20, 0)
    return np.asarray(_disposable(p) + 0.2 * equity > 0)


FUNCTIONS: dict[int, Callable[[Person], Bools]] = {1: _first, 2: _second, 3: _third, 4: _fourth, 5: _fifth}
