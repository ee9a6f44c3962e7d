"""A table of another shape than Adult, whose true model is known: 30 columns, 40,000 rows to synthesize, 10,000 to test.

Skewed (income, wealth, towns), heaped (ages at fives, incomes and kilometres at five thousands, rents at hundreds), lists of 300
values (town, job), spikes (40 hours, no wealth, the top code), strong dependence (blood pressures, sector and job), weak
(satisfaction), none (quarter, lot), a function (region of town), missing values by structure (no rent for owners, no
kilometres without a car) and by chance (income, vote, satisfaction). The coefficients of `ILLNESS` and `PRESSURE` are the truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.synthesis.evaluation import Exam
from benchmarks.synthesis.exchange import PLENTY, Case
from benchmarks.synthesis.marginals import Bins
from benchmarks.synthesis.models import Matrix, flags
from tidegate.policy import Attribute, Category, Dataset, Follows, Integer, Loss, Policy, Shape, Shapes

SEED = 20261116
ROWS, TESTED = 40_000, 10_000
TOWNS, JOBS, REGIONS, SECTORS, TONGUES = 300, 300, 12, 20, 40
ILLNESS = (-2.0, 0.9, 0.5, 0.8)  # the constant, age by 20 years from 45, bmi by 5 from 26, smokers
PRESSURE = (122.0, 9.0, 6.0, 4.0)  # the constant, the same age, the same bmi, men


def names(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word} {index:03d}" for index in range(count))


REGION_OF = {
    town: f"region {int(REGIONS * (index / TOWNS) ** 1.5):03d}" for index, town in enumerate(names("town", TOWNS))
}
LISTS = {
    "region": names("region", REGIONS),
    "town": names("town", TOWNS),
    "tongue": names("tongue", TONGUES),
    "sex": ("woman", "man"),
    "schooling": names("level", 8),
    "sector": names("sector", SECTORS),
    "job": names("job", JOBS),
    "marital": ("divorced", "married", "single", "widowed"),
    "retired": ("no", "yes"),
    "tenure": ("free", "owner", "tenant"),
    "car": ("no", "yes"),
    "smoker": ("former", "never", "now"),
    "insurance": names("insurer", 5),
    "vote": names("party", 6),
    "satisfied": names("grade", 5),
    "quarter": ("q1", "q2", "q3", "q4"),
    "ill": ("no", "yes"),
}
NUMBERS = {
    "age": Integer(0, 99),
    "income": Integer(0, 500_000, missing="value"),
    "wealth": Integer(0, 5_000_000),
    "hours": Integer(0, 100),
    "children": Integer(0, 12),
    "rooms": Integer(1, 15),
    "rent": Integer(0, 5_000, missing="value"),
    "kilometres": Integer(0, 100_000, missing="value"),
    "bmi": Integer(10, 60),
    "systolic": Integer(70, 220),
    "diastolic": Integer(40, 140),
    "visits": Integer(0, 60),
    "lot": Integer(0, 999),
}
KNOWN: dict[str, Attribute] = {
    **{
        name: Category(values, missing="value" if name in ("vote", "satisfied") else "dropped")
        for name, values in LISTS.items()
    },
    **NUMBERS,
}
SHAPES = Shapes(
    columns={
        "schooling": Shape(ordered=True),
        "satisfied": Shape(ordered=True),
        "income": Shape(cells=100, heaped=True),
        "wealth": Shape(scale="log", cells=60, atoms=(0, 5_000_000), heaped=True),
        "rent": Shape(cells=100, heaped=True),
        "kilometres": Shape(cells=100, heaped=True),
    },
    follows={"region": Follows("town", REGION_OF)},
)
BINS: Bins = {
    "age": range(5, 100, 5),
    "income": (1, *range(10_000, 100_000, 10_000), 150_000, 250_000, 500_000),
    "wealth": (1, 1_000, 5_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 5_000_000),
    "hours": range(5, 100, 5),
    "children": range(1, 7),
    "rooms": range(2, 11),
    "rent": range(250, 3_000, 250),
    "kilometres": (1, *range(5_000, 40_000, 5_000)),
    "bmi": range(16, 46, 3),
    "systolic": range(90, 190, 10),
    "diastolic": range(55, 115, 5),
    "visits": (1, 2, 3, 5, 8, 13),
    "lot": range(100, 1_000, 100),
}


def exam() -> Exam:
    """Return the evaluation of a synthetic table."""
    rows = table(ROWS + TESTED)
    train, test = rows.iloc[:ROWS].reset_index(drop=True), rows.iloc[ROWS:].reset_index(drop=True)
    policy = Policy(Dataset("generated", rows=ROWS), KNOWN, loss=Loss(PLENTY), synthesis=SHAPES)
    return Exam(Case("generated", train, policy), test, BINS, "ill", illness_design, pressure_design)


def illness_design(rows: pd.DataFrame) -> tuple[Matrix, Matrix]:
    """Return the design of illness on age, bmi and smoking: `ILLNESS` is the truth."""
    return np.column_stack([*_body(rows), flags(rows["smoker"], "now")]), flags(rows["ill"], "yes")


def pressure_design(rows: pd.DataFrame) -> tuple[Matrix, Matrix]:
    """Return the design of systolic pressure on age, bmi and sex: `PRESSURE` is the truth."""
    return np.column_stack([*_body(rows), flags(rows["sex"], "man")]), rows["systolic"].to_numpy(float)


def _body(rows: pd.DataFrame) -> list[Matrix]:
    age, bmi = rows["age"].to_numpy(float), rows["bmi"].to_numpy(float)
    return [np.ones(len(rows)), (age - 45) / 20, (bmi - 26) / 5]


def table(count: int) -> pd.DataFrame:
    """Return the rows, from a fixed seed."""
    rng = np.random.default_rng(SEED)
    columns: dict[str, Any] = {}
    _locations(columns, rng, count)
    _persons(columns, rng, count)
    _work(columns, rng, count)
    _homes(columns, rng, count)
    _health(columns, rng, count)
    _opinions(columns, rng, count)
    frame = {name: columns[name] for name in KNOWN}
    return pd.DataFrame({name: _convert(column, KNOWN[name]) for name, column in frame.items()})


def _convert(column: Any, attribute: Attribute) -> pd.Series[Any]:
    if isinstance(attribute, Category):
        return pd.Series([attribute.values[index] if index >= 0 else None for index in column], dtype=object)
    assert isinstance(attribute, Integer)
    numbers = pd.Series(np.asarray(column, float)).round().clip(attribute.lowest, attribute.highest)
    return numbers.astype("Int64" if attribute.missing == "value" else "int64")


def _zipf(rng: np.random.Generator, count: int, size: int, power: float) -> Any:
    """Return indexes of a list, the early ones more often."""
    weights = np.arange(1, size + 1) ** -power
    return rng.choice(size, count, p=weights / weights.sum())


def _heaped(rng: np.random.Generator, values: Any, step: int, share: float) -> Any:
    return np.where(rng.random(len(values)) < share, np.round(values / step) * step, values)


def _locations(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    columns["town"] = _zipf(rng, count, TOWNS, 0.8)
    regions = np.array([int(REGION_OF[town][-3:]) for town in LISTS["town"]])
    columns["region"] = regions[columns["town"]]
    local = (columns["region"] * 3 + _zipf(rng, count, 4, 1.0)) % TONGUES
    columns["tongue"] = np.where(
        rng.random(count) < 0.7, 0, np.where(rng.random(count) < 0.6, local, _zipf(rng, count, TONGUES, 1.0))
    )
    columns["quarter"] = rng.integers(0, 4, count)
    columns["lot"] = rng.integers(0, 1000, count)


def _persons(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    age = _heaped(rng, 18 + 75 * rng.beta(1.6, 2.2, count), 5, 0.25).round()
    columns["age"], columns["sex"] = age, (rng.random(count) < 0.49).astype(int)
    columns["schooling"] = np.clip(np.round(3.6 - (age - 45) / 40 + rng.normal(0, 1.6, count)), 0, 7).astype(int)
    draw = rng.random(count)
    widowed, married = 0.4 / (1 + np.exp(-(age - 78) / 6)), 0.65 / (1 + np.exp(-(age - 29) / 4))
    divorced = 0.12 / (1 + np.exp(-(age - 40) / 5))
    columns["marital"] = np.select(
        [draw < widowed, draw < widowed + divorced, draw < widowed + divorced + married], [3, 0, 1], 2
    )
    columns["children"] = rng.poisson(
        np.where(np.isin(columns["marital"], (0, 1, 3)), 1.7, 0.15) * np.clip((age - 18) / 20, 0, 1)
    )
    columns["retired"] = (rng.random(count) < 1 / (1 + np.exp(-(age - 65) / 1.5))).astype(int)


def _work(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    columns["sector"] = (_zipf(rng, count, SECTORS, 0.7) + columns["schooling"]) % SECTORS
    columns["job"] = np.where(
        rng.random(count) < 0.9,
        columns["sector"] * (JOBS // SECTORS) + _zipf(rng, count, JOBS // SECTORS, 1.2),
        _zipf(rng, count, JOBS, 0.5),
    )
    usual = rng.choice([40, 35, 38, 20, 30, 50], count, p=[0.5, 0.15, 0.1, 0.1, 0.08, 0.07])
    hours = np.where(rng.random(count) < 0.75, usual, rng.normal(38, 12, count) + 4 * columns["sex"])
    columns["hours"] = np.where(columns["retired"] == 1, 0, np.clip(hours, 1, 100))
    center = 9.6 + 0.16 * columns["schooling"] + 0.012 * np.minimum(columns["age"] - 18, 35) + 0.006 * columns["hours"]
    income = np.exp(rng.normal(center - 0.1 * (columns["sector"] % 5 == 0), 0.45))
    income = _heaped(rng, _heaped(rng, income, 100, 0.1), 5_000, 0.2)
    income = np.where(rng.random(count) < 0.08, 0, np.minimum(income, 500_000))
    columns["true income"], columns["income"] = income, np.where(rng.random(count) < 0.03, np.nan, income)
    wealth = np.exp(rng.normal(6.5 + 0.05 * (columns["age"] - 18) + 0.2 * np.log1p(income), 1.6))
    columns["wealth"] = np.where(rng.random(count) < 0.3, 0, np.minimum(_heaped(rng, wealth, 10_000, 0.1), 5_000_000))


def _homes(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    owner = rng.random(count) < 1 / (
        1 + np.exp(-(columns["age"] - 50) / 15 - (np.log1p(columns["true income"]) - 10) / 4)
    )
    columns["tenure"] = np.where(owner, 1, np.where(rng.random(count) < 0.06, 0, 2))
    columns["rooms"] = 1 + rng.poisson(1.5 + 1.2 * owner + 0.5 * np.minimum(columns["children"], 4))
    rent = 250 + 170 * columns["rooms"] + 25 * (11 - columns["region"]) + rng.normal(0, 120, count)
    columns["rent"] = np.where(columns["tenure"] == 2, np.clip(_heaped(rng, rent, 100, 0.3), 0, 5_000), np.nan)
    columns["car"] = (rng.random(count) < np.where(columns["region"] < 2, 0.5, 0.8)).astype(int)
    distance = _heaped(rng, rng.gamma(2.0, 6_000, count) + 100 * columns["hours"], 5_000, 0.3)
    columns["kilometres"] = np.where(columns["car"] == 1, np.clip(distance, 0, 100_000), np.nan)


def _health(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    columns["smoker"] = rng.choice(3, count, p=[0.25, 0.5, 0.25])
    columns["bmi"] = np.clip(np.round(21 + rng.gamma(3.0, 1.6, count) + 0.02 * (columns["age"] - 18)), 10, 60)
    age, bmi = (columns["age"] - 45) / 20, (columns["bmi"] - 26) / 5
    chance = ILLNESS[0] + ILLNESS[1] * age + ILLNESS[2] * bmi + ILLNESS[3] * (columns["smoker"] == 2)
    columns["ill"] = (rng.random(count) < 1 / (1 + np.exp(-chance))).astype(int)
    level = PRESSURE[0] + PRESSURE[1] * age + PRESSURE[2] * bmi + PRESSURE[3] * columns["sex"]
    columns["systolic"] = np.round(level + rng.normal(0, 10, count))
    columns["diastolic"] = _heaped(rng, np.round(20 + 0.5 * columns["systolic"] + rng.normal(0, 4, count)), 5, 0.3)
    columns["visits"] = rng.negative_binomial(1, 1 / (1 + np.where(columns["ill"] == 1, 6.0, 1.2)))


def _opinions(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    columns["insurance"] = (_zipf(rng, count, 5, 0.6) + (columns["sector"] == 3)) % 5
    leaning = (_zipf(rng, count, 6, 0.7) + (columns["region"] > 6) * (rng.random(count) < 0.3)) % 6
    columns["vote"] = np.where(rng.random(count) < 0.2, -1, leaning)
    content = np.clip(
        np.round(2.4 + 0.1 * (np.log1p(columns["true income"]) - 10) - 0.3 * columns["ill"] + rng.normal(0, 1, count)),
        0,
        4,
    )
    columns["satisfied"] = np.where(rng.random(count) < 0.05, -1, content).astype(int)
