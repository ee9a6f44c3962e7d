"""Queries: frozen values that can be stored, compared, and priced before any row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain
from tidegate.policy import EachPerson, Numeric, Policy
from tidegate.policy.predicates import Predicate

NUMERIC = ("sum", "mean", "variance", "std", "quantile", "min", "max", "histogram")
WORDS = {"variance": "the variance", "std": "the standard deviation", "min": "the lowest", "max": "the highest"}
MOST_TERMS = 5  # columns on the right of a regression


@dataclass(frozen=True)
class Query:
    """One statistic of all rows, or of those that meet a condition, in total or for every value of some columns."""

    statistic: str
    column: str = ""
    condition: Predicate | None = None
    groups: tuple[str, ...] = ()
    share: Fraction | None = None
    terms: tuple[str, ...] = ()  # of a regression: the columns on the right
    method: str = ""  # of a regression

    def where(self, condition: Predicate) -> Query:
        """Return the query for the rows that meet a condition: ``.where(col("age") >= 30)``."""
        return replace(self, condition=condition if self.condition is None else self.condition & condition)

    def by(self, *columns: str) -> Query:
        """Return the query for every value of the columns, as listed in the policy."""
        return replace(self, groups=(*self.groups, *columns))

    def says(self) -> str:
        """Return the query as text."""
        where = f" where {self.condition.says()}" if self.condition is not None else ""
        by = f" by {', '.join(self.groups)}" if self.groups else ""
        return f"{self._what()}{where}{by}"

    def _what(self) -> str:
        if self.statistic == "count":
            return "the number of rows"
        if self.statistic == "histogram":
            return f"the histogram of {self.column}"
        if self.statistic == "quantile" and self.share is not None:
            return (
                "the median of " + self.column
                if self.share == Fraction(1, 2)
                else f"the {plain(self.share)} quantile of {self.column}"
            )
        if self.statistic == "regression":
            by = ", by the functional mechanism" if self.method == "functional" else ""
            return f"the regression of {self.column} on {' and '.join(self.terms)}{by}"
        return f"{WORDS.get(self.statistic, 'the ' + self.statistic)} of {self.column}"

    def check(self, policy: Policy) -> None:
        """Refuse unknown columns, and statistics that a column does not have."""
        for name in self.groups:
            policy.countable(name)
        if len(set(self.groups)) != len(self.groups):
            raise Unsupported("The query groups by the same column twice.", "Name each column once.")
        if self.condition is not None:
            self.condition.check(policy)
        if self.statistic == "regression" and self.groups:
            raise Unsupported("A regression cannot be grouped.", "Use a condition (`where`) for each group.")
        for name in (self.column, *self.terms) if self.column else ():
            attribute = policy.countable(name)
            if self.statistic != "histogram" and not isinstance(attribute, Numeric):
                raise Unsupported(
                    f'"{name}" is a category: it can be counted, not averaged.', "Ask count().by(...) instead."
                )
            if isinstance(attribute, Numeric) and not attribute.fits_floats:
                raise Unsupported(
                    f'"{name}" has bounds above 1e100 or a step below 1e-100.', "Declare it in another unit."
                )

    def question(self, policy: Policy) -> dict[str, Any]:
        """Return the query with its universe and unit: its identity in the ledger."""
        public = policy.described
        seen = {
            self.column,
            *self.terms,
            *self.groups,
            *(self.condition.columns() if self.condition is not None else ()),
        }
        whole = isinstance(policy.dataset.unit, EachPerson)  # which of a person's rows count depends on all columns
        columns = {name: of for name, of in public["attributes"].items() if whole or name in seen}
        identity: dict[str, Any] = {"ask": self.statistic, "column": self.column, "by": list(self.groups)}
        identity["where"] = self.condition.identity() if self.condition is not None else None
        identity["share"] = str(self.share) if self.share is not None else None
        if self.terms:
            identity["on"], identity["method"] = list(self.terms), self.method
        return {
            **identity,
            "of": columns,
            "unit": public["dataset"]["unit"],
            "rows": policy.dataset.rows,
            "edition": policy.dataset.edition,
        }


def count() -> Query:
    """Return the query for the number of rows: ``count().where(col("age") >= 30).by("sex")``."""
    return Query("count")


def sum(column: str) -> Query:
    """The sum of a column."""
    return Query("sum", column)


def mean(column: str) -> Query:
    """The mean of a column."""
    return Query("mean", column)


def variance(column: str) -> Query:
    """The sample variance of a column."""
    return Query("variance", column)


def std(column: str) -> Query:
    """The sample standard deviation of a column."""
    return Query("std", column)


def quantile(column: str, share: Number) -> Query:
    """Return the query for a quantile: the value below which a fraction of the rows is."""
    try:
        fraction = exact(share)
    except (TypeError, ValueError):
        fraction = Fraction(-1)
    if not 0 < fraction < 1 or fraction.denominator > 10_000:
        raise Unsupported(
            "A quantile must be between 0 and 1, with at most four decimals.",
            "Use `min` and `max` for the lowest and the highest value.",
        )
    return Query("quantile", column, share=fraction)


def median(column: str) -> Query:
    """The median of a column."""
    return quantile(column, Fraction(1, 2))


def min(column: str) -> Query:
    """Return the query for the lowest value of a column, up to the rank that the answer states."""
    return Query("min", column)


def max(column: str) -> Query:
    """Return the query for the highest value of a column, up to the rank that the answer states."""
    return Query("max", column)


def histogram(column: str) -> Query:
    """The number of rows in every bin (or value) of a column."""
    return Query("histogram", column)


def regression(formula: str, *, method: Literal["k-norm", "functional"] = "k-norm") -> Query:
    """Intercept and slopes of a linear regression: ``regression("pay ~ age + hours")``."""
    left, tilde, right = formula.partition("~")
    terms = tuple(name.strip() for name in right.split("+"))
    names = (left.strip(), *terms)
    if not tilde or not all(names) or len(set(names)) != len(names) or len(terms) > MOST_TERMS:
        raise Unsupported(
            "A regression formula needs one column on the left of ~ and different columns on the right.",
            f'For example "pay ~ age + hours", with at most {MOST_TERMS} columns on the right.',
        )
    if method not in ("k-norm", "functional"):
        raise Unsupported('The `method` of a regression must be "k-norm" or "functional".')
    return Query("regression", names[0], terms=terms, method=method)
