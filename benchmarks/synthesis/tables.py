"""The tables of the benchmark as codes: public attributes, training rows, held-out rows.

80% of the rows are synthesized, 20% test a classifier. Every program gets the same codes 0 .. size - 1 (size: missing), so that
all have the same public knowledge, and every measure is computed on codes: order and equal steps are what a table contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.synthesis import adult, generated
from benchmarks.synthesis.sources import path_of
from tidegate.arrays import Ints
from tidegate.policy import Attribute, Category, Dataset, Grid, Integer, Loss, Numeric, Policy, Shapes
from tidegate.policy.synthesis import followed_texts
from tidegate.synthesize.columns import Columns, code_of, columns_of

SPLIT = 20261115
HELD_OUT = "bank"  # run once, at the end; nobody tunes on it
PLENTY = 1_000_000  # of epsilon: a benchmark never runs out


@dataclass(frozen=True)
class Table:
    """A table to synthesize. `target` is predicted: above its median, or its last value. `functions`: (from, to) columns."""

    name: str
    known: Mapping[str, Attribute]
    rows: pd.DataFrame
    target: str
    functions: tuple[tuple[str, str], ...] = ()
    shapes: Shapes = field(default_factory=Shapes)

    @cached_property
    def _order(self) -> Ints:
        return np.random.RandomState(SPLIT).permutation(len(self.rows))

    @cached_property
    def codes(self) -> Ints:
        """Every row's codes, rows by columns."""
        return np.column_stack([encode(self.rows[name], attribute) for name, attribute in self.known.items()])

    @property
    def train(self) -> Ints:
        return self.codes[self._order[: int(0.8 * len(self.rows))]]

    @property
    def test(self) -> Ints:
        return self.codes[self._order[int(0.8 * len(self.rows)) :]]

    @cached_property
    def columns(self) -> Columns:
        """The columns as the product learns them."""
        rows = int(0.8 * len(self.rows))
        return columns_of(Policy(Dataset(self.name, rows=rows), self.known, loss=Loss(PLENTY), synthesis=self.shapes))

    def learnt(self) -> list[int]:
        """Return the indexes of the columns that are learned; the others follow from them."""
        names = list(self.known)
        return [names.index(column.name) for column in self.columns.learnt]

    def with_followers(self, learnt: Ints) -> Ints:
        """Return codes of all columns from codes of the learned ones."""
        names = list(self.known)
        codes = np.zeros((len(learnt), len(names)), np.int64)
        codes[:, self.learnt()] = learnt
        for name, rule in self.columns.follows.items():
            texts = followed_texts(self.known[rule.column])
            values = np.array([code_of(self.known[name], rule.values[text]) for text in texts])
            codes[:, names.index(name)] = values[codes[:, names.index(rule.column)]]
        return codes


def encode(column: pd.Series[Any], attribute: Attribute) -> Ints:
    """Return codes of values: numbers are rounded to the grid and limited to its bounds; the code `size` means missing."""
    if isinstance(attribute, Category):
        codes = pd.Categorical(column, categories=list(attribute.values)).codes.astype(np.int64)
        return np.where(codes < 0, attribute.size, codes)
    assert isinstance(attribute, Numeric)
    numbers = pd.to_numeric(column).astype("Float64").to_numpy(np.float64, na_value=np.nan)
    steps = np.round((numbers - float(attribute.low)) / float(attribute.width))
    return np.where(np.isnan(steps), attribute.size, np.clip(np.nan_to_num(steps), 0, attribute.size - 1)).astype(
        np.int64
    )


def listed(*values: Any) -> Category:
    return Category(tuple(str(value) for value in values))


def read_adult(shapes: Shapes, name: str) -> Table:
    rows = pd.read_csv(path_of("adult"), keep_default_na=False).replace("", "?")[adult.COLUMNS]
    return Table(name, adult.KNOWN, rows, adult.TARGET, (("education", "education-num"),), shapes)


def diamonds() -> Table:
    """Prices and sizes of diamonds, with generous bounds. The lists are in the order of quality."""
    known: dict[str, Attribute] = {
        "carat": Grid(0, 10, "0.01"),
        "cut": listed("Fair", "Good", "Very Good", "Premium", "Ideal"),
        "color": listed(*"DEFGHIJ"),
        "clarity": listed("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        "depth": Grid(0, 100, "0.1"),
        "table": Grid(0, 100, "0.1"),
        "price": Integer(0, 50_000),
        **{name: Grid(0, 60, "0.01") for name in "xyz"},
    }
    return Table("diamonds", known, pd.read_csv(path_of("diamonds"), keep_default_na=False), "price")


def spending() -> Table:
    """RAND Health Insurance Experiment, dollars: six amounts in cents up to 100,000; rows without an offer are left out."""
    cents = Grid(0, "99999.99", "0.01")
    known: dict[str, Attribute] = {
        "site": listed(*range(1, 7)),
        "coins": listed(0, 25, 50, 95, 100),
        "year": Integer(1, 5),
        "income": Integer(0, 99_999),
        "xage": Grid(0, 100, "0.1"),
        "female": listed(0, 1),
        **dict.fromkeys(("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol"), cents),
        "totadm": Integer(0, 50),
        "mdvis": Integer(0, 365),
        "notmdvis": Integer(0, 365),
        "num": Integer(1, 20),
        "mhi": Grid(0, 100, "0.1"),
        "disea": Grid(0, 100, "0.1"),
        "pioff": Integer(0, 5_000),
    }
    rows = pd.read_parquet(path_of("spending")).dropna(subset=["pioff"])
    return Table("spending", known, _texts(rows, known), "meddol")


def randhie() -> Table:
    """The same experiment in ten columns, as statsmodels has it."""
    logarithm = Grid(0, 10, "0.001")
    known: dict[str, Attribute] = {
        "mdvis": Integer(0, 200),
        "lncoins": logarithm,
        "idp": listed(0, 1),
        "lpi": logarithm,
        "fmde": logarithm,
        "physlm": Grid(0, 1, "0.001"),
        "disea": Grid(0, 100, "0.1"),
        **{name: listed(0, 1) for name in ("hlthg", "hlthf", "hlthp")},
    }
    return Table("randhie", known, _texts(pd.read_csv(path_of("randhie")), known), "mdvis")


def fair() -> Table:
    """Fair's survey on affairs, as statsmodels has it."""
    known: dict[str, Attribute] = {
        "rate_marriage": Integer(1, 5),
        "age": Grid(0, 100, "0.5"),
        "yrs_married": Grid(0, 50, "0.5"),
        "children": Grid(0, 10, "0.5"),
        "religious": Integer(1, 4),
        "educ": Integer(0, 25),
        "occupation": listed(*range(1, 7)),
        "occupation_husb": listed(*range(1, 7)),
        "affairs": Grid(0, 100, "0.01"),
    }
    return Table("fair", known, _texts(pd.read_csv(path_of("fair")), known), "affairs")


def bank() -> Table:
    """Telephone campaigns of a bank: the held-out table, chosen before anyone ran it.

    Clients, money that can be negative, counts, a duration, lists, a rare target: what data holders bring, and nothing here was
    tuned on it. Lists are those of its documentation (bank-names.txt), the bounds generous numbers that follow from the meaning
    of a column: campaigns from May 2008 to November 2010, days of a month, a call of at most ten hours.
    """
    yes = listed("no", "yes")
    known: dict[str, Attribute] = {
        "age": Integer(0, 120),
        "job": listed(
            "admin.",
            "unknown",
            "unemployed",
            "management",
            "housemaid",
            "entrepreneur",
            "student",
            "blue-collar",
            "self-employed",
            "retired",
            "technician",
            "services",
        ),
        "marital": listed("married", "divorced", "single"),
        "education": listed("unknown", "primary", "secondary", "tertiary"),
        "default": yes,
        "balance": Integer(-100_000, 1_000_000),
        "housing": yes,
        "loan": yes,
        "contact": listed("unknown", "telephone", "cellular"),
        "day": Integer(1, 31),
        "month": listed("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
        "duration": Integer(0, 36_000),
        "campaign": Integer(0, 1_000),
        "pdays": Integer(-1, 1_100),
        "previous": Integer(0, 1_000),
        "poutcome": listed("unknown", "other", "failure", "success"),
        "y": yes,
    }
    return Table("bank", known, pd.read_csv(path_of("bank"), keep_default_na=False), "y")


def columns45() -> Table:
    """45 generated columns with six exact dependencies; only types and bounds are declared."""
    return Table("columns45", generated.KNOWN, generated.table(), generated.TARGET, generated.FUNCTIONS)


def _texts(rows: pd.DataFrame, known: Mapping[str, Attribute]) -> pd.DataFrame:
    """Return rows whose listed numbers are texts."""
    is_listed = {name for name, attribute in known.items() if isinstance(attribute, Category)}
    return pd.DataFrame(
        {name: rows[name].astype(int).astype(str) if name in is_listed else rows[name] for name in known}
    )


TABLES: dict[str, Callable[[], Table]] = {
    "adult": lambda: read_adult(adult.SHAPES, "adult"),
    "adult-bounds": lambda: read_adult(Shapes(), "adult-bounds"),
    "diamonds": diamonds,
    "spending": spending,
    "randhie": randhie,
    "fair": fair,
    "columns45": columns45,
    HELD_OUT: bank,
}
