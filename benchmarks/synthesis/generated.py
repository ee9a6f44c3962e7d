"""45 generated columns, 37,500 rows (30,000 to synthesize), six exact dependencies.

Skewed (income, wealth, towns), heaped (ages at fives, incomes and kilometres at five thousands, rents at hundreds), lists of 300
values (town, job), spikes (40 hours, no wealth, the top code), strong dependence (blood pressures, sector and job), weak
(satisfaction), none (quarter, lot), functions (`FUNCTIONS`), money with many zeros (claims, debt), missing values by structure (no
rent for owners, no kilometres without a car) and by chance (income, vote, satisfaction). Only types and bounds are declared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tidegate.policy import Attribute, Category, Integer

SEED = 20261116
ROWS = 37_500
TOWNS, JOBS, REGIONS, SECTORS, TONGUES, PRODUCTS = 300, 300, 12, 20, 40, 61
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
    "zone": names("zone", 4),
    "product": names("product", PRODUCTS),
    "shelf": names("shelf", PRODUCTS),
    "job_class": names("class", 9),
    "internet": ("cable", "mobile", "none"),
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
    "age_group": Integer(0, 9),
    "school_years": Integer(0, 30),
    "height": Integer(50, 250),
    "weight": Integer(0, 300),
    "debt": Integer(0, 1_000_000),
    "savings": Integer(0, 1_000_000),
    "premium": Integer(0, 20_000),
    "claims": Integer(0, 10_000_000),
    "siblings": Integer(0, 15),
    "trips": Integer(0, 100),
}
KNOWN: dict[str, Attribute] = {
    **{
        name: Category(values, missing="value" if name in ("vote", "satisfied") else "dropped")
        for name, values in LISTS.items()
    },
    **NUMBERS,
}
TARGET = "ill"
FUNCTIONS = (
    ("town", "region"),
    ("region", "zone"),
    ("product", "shelf"),
    ("age", "age_group"),
    ("schooling", "school_years"),
    ("job", "job_class"),
)


def table(count: int = ROWS) -> pd.DataFrame:
    """Return the rows, from a fixed seed."""
    rng = np.random.default_rng(SEED)
    columns: dict[str, Any] = {}
    _locations(columns, rng, count)
    _persons(columns, rng, count)
    _work(columns, rng, count)
    _homes(columns, rng, count)
    _health(columns, rng, count)
    _opinions(columns, rng, count)
    _purchases(columns, rng, count)
    _functions(columns)
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


def _purchases(columns: dict[str, Any], rng: np.random.Generator, count: int) -> None:
    columns["product"] = (_zipf(rng, count, PRODUCTS, 0.4) + 7 * columns["sex"]) % PRODUCTS
    columns["internet"] = np.where(
        columns["age"] > 70, rng.choice(3, count, p=[0.3, 0.2, 0.5]), rng.integers(0, 2, count)
    )
    columns["height"] = np.round(rng.normal(163 + 13 * columns["sex"], 7, count))
    columns["weight"] = np.round(columns["bmi"] * (columns["height"] / 100) ** 2 + rng.normal(0, 1, count))
    borrows = rng.random(count) < np.where(columns["tenure"] == 1, 0.6, 0.2)
    columns["debt"] = np.where(borrows, np.exp(rng.normal(9 + columns["tenure"] % 2, 1.2, count)), 0)
    columns["savings"] = np.where(rng.random(count) < 0.2, 0, columns["true income"] * rng.gamma(1.0, 0.3, count))
    columns["premium"] = _heaped(
        rng, 900 + 35 * columns["age"] + 300 * columns["insurance"] + rng.normal(0, 90, count), 50, 0.5
    )
    cost = np.exp(rng.normal(4.5 + 0.25 * np.minimum(columns["visits"], 8), 1.1, count))
    columns["claims"] = np.where(columns["visits"] == 0, 0, cost)
    columns["siblings"], columns["trips"] = rng.poisson(1.4, count), rng.poisson(0.4 + columns["true income"] / 30_000)


def _functions(columns: dict[str, Any]) -> None:
    """Fill the columns that others determine; `region` is one of them already."""
    columns["zone"] = columns["region"] // 3
    columns["shelf"] = (columns["product"] * 17 + 5) % PRODUCTS
    columns["age_group"] = columns["age"] // 10
    columns["school_years"] = np.array([0, 4, 8, 9, 10, 12, 15, 18])[columns["schooling"]]
    columns["job_class"] = columns["job"] * 7 % 9
