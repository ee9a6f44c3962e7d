"""Queries: frozen values that can be stored, compared, and priced before any row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain
from tidegate.policy import EachPerson, Key, Moment, Numeric, Policy
from tidegate.policy.hiding import refuse_combination
from tidegate.policy.predicates import Predicate
from tidegate.policy.row_source import read_row_source, rows_for
from tidegate.tables.expressions import full_name, holds, names_in, rename_condition
from tidegate.tables.mappings import Grouping
from tidegate.tables.universe import base_columns, grouping_of, measured_of, truth_of

Statistic = Literal[
    "count",
    "persons",
    "distinct",
    "sum",
    "mean",
    "variance",
    "std",
    "quantile",
    "min",
    "max",
    "histogram",
    "regression",
]
WORDS = {"variance": "the variance", "std": "the standard deviation", "min": "the lowest", "max": "the highest"}
WORDS_ALONE = {"count": "the number of rows", "persons": "the number of persons"}  # statistics without a column
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
    table: str = ""  # of linked tables: the rows, as "visits", "visits join patients" or "patients left join visits"

    def where(self, condition: Predicate | str) -> Query:
        """Return the query for the rows that meet a condition: ``.where(col("age") >= 30)``, or as SQL: ``.where("age >= 30")``."""
        condition = holds(condition) if isinstance(condition, str) else condition
        return replace(self, condition=condition if self.condition is None else self.condition & condition)

    def by(self, *columns: str) -> Query:
        """Return the query for every value of columns (as listed in the policy) or of SQL expressions: ``.by("age // 10")``."""
        return replace(self, groups=(*self.groups, *columns))

    def of(self, table: str) -> Query:
        """Return the query about the rows of one of several linked tables: ``count().of("visits")``."""
        return replace(self, table=table)

    def __str__(self) -> str:
        return self.says()

    def says(self) -> str:
        """Return the query as text."""
        where = f" where {self.condition.says()}" if self.condition is not None else ""
        by = f" by {', '.join(self.groups)}" if self.groups else ""
        of = f" of {self.table}" if self.table else ""
        return f"{self._what()}{of}{where}{by}"

    def _what(self) -> str:
        if self.statistic in WORDS_ALONE:
            return WORDS_ALONE[self.statistic]
        if self.statistic == "distinct":
            return f"the number of different values of {self.column}"
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

    def target(self, policy: Policy) -> Policy:
        """Return the policy of the rows that the query is about: of linked tables, their description as one table."""
        return policy.flat(read_row_source(policy, self.table)) if policy.tables else policy

    def resolve(self, policy: Policy) -> Query:
        """Return the query with full names of columns, and with its rows, if the policy has linked tables."""
        if not policy.tables:
            return self

        def full(name: str) -> str:
            return full_name(policy, name)

        condition = rename_condition(self.condition, full) if self.condition is not None else None
        named = replace(
            self,
            column=full(self.column) if self.column else "",
            terms=tuple(full(name) for name in self.terms),
            groups=tuple(full(name) for name in self.groups),
            condition=condition,
        )
        if self.table:
            return replace(named, table=str(read_row_source(policy, self.table)))
        columns = [
            name for text in (named.column, *named.terms, *named.groups) if text for name in names_in(policy, text)
        ]
        columns += sorted(condition.columns()) if condition is not None else []
        return replace(named, table=str(rows_for(policy, columns)))

    def check(self, policy: Policy) -> None:
        """Refuse unknown columns, statistics that a column does not have, and what a hiding promise covers."""
        self._check_form(policy)
        refuse_combination(policy.hidings, self.bases(policy) if policy.hidings else (), "The query")

    def _check_form(self, policy: Policy) -> None:
        for name in self.groups:
            grouping_of(policy, name)
        if len(set(self.groups)) != len(self.groups):
            raise Unsupported("The query groups by the same column twice.", "Name each column once.")
        if self.condition is not None:
            self.condition.check(policy)
            for text in self.condition.tests():
                truth_of(policy, text)
        if self.statistic == "persons" and not isinstance(policy.dataset.unit, EachPerson):
            raise Unsupported(
                "Persons can only be counted if the unit is a person.", "Every row is one person here: ask count()."
            )
        if self.statistic in ("persons", "distinct"):
            for name in self.groups:
                attribute = grouping_of(policy, name)
                if isinstance(attribute, Grouping):
                    attribute.mapped.check_listed(name)
        if self.statistic == "distinct":
            self._check_distinct(policy)
            return
        if self.statistic == "regression" and self.groups:
            raise Unsupported(
                "A regression, a correlation or a covariance cannot be grouped.",
                "Ask for one group at a time, by a condition (WHERE).",
            )
        for name in (self.column, *self.terms) if self.column else ():
            expression = self.statistic not in ("histogram", "regression")
            attribute = measured_of(policy, name) if expression else policy.countable(name)
            if self.statistic != "histogram" and not isinstance(attribute, Numeric):
                raise Unsupported(
                    f'"{name}" is a category: it can be counted, not averaged.', "Ask count().by(...) instead."
                )
            if isinstance(attribute, Moment) and self.statistic in ("sum", "regression"):
                raise Unsupported(
                    f'"{name}" is a {attribute.kind}: it has no sum.', "Ask for its mean, median, lowest or highest."
                )
            if isinstance(attribute, Numeric) and not attribute.fits_floats:
                raise Unsupported(
                    f'"{name}" has bounds above 1e100 or a step below 1e-100.', "Declare it in another unit."
                )

    def _check_distinct(self, policy: Policy) -> None:
        unit = policy.dataset.unit
        if isinstance(unit, EachPerson) and self.column == unit.key:
            raise Unsupported(f'"{self.column}" names the person.', "Ask persons() for the number of persons.")
        if not isinstance(policy.attributes.get(self.column), Key):
            grouping_of(policy, self.column)

    def bases(self, policy: Policy) -> set[str]:
        """Return the policy's columns that the query uses."""
        named = {self.column, *self.terms, *self.groups} - {""}
        conditioned = self.condition.columns() if self.condition is not None else set()
        return {base for name in named | conditioned for base in base_columns(policy, name)}

    def question(self, policy: Policy) -> dict[str, Any]:
        """Return the query with its universe and unit: its identity in the ledger. `policy` is that of its rows."""
        public = policy.described
        seen = self.bases(policy)
        whole = isinstance(policy.dataset.unit, EachPerson)  # which of a person's rows count depends on all columns
        columns = {name: of for name, of in public["attributes"].items() if whole or name in seen}
        identity: dict[str, Any] = {"ask": self.statistic, "column": self.column, "by": list(self.groups)}
        identity["where"] = self.condition.identity() if self.condition is not None else None
        identity["share"] = str(self.share) if self.share is not None else None
        if self.terms:
            identity["on"], identity["method"] = list(self.terms), self.method
        if self.table:
            identity["table"] = self.table
            digests = {of.foreign: of.digest for of in policy.references.values() if of.foreign in seen}
            identity |= {"references": digests} if digests else {}
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


def persons() -> Query:
    """Return the query for the number of persons who have a row: ``persons().where(col("urgent") == True)``."""
    return Query("persons")


def distinct(column: str) -> Query:
    """Return the query for the number of different values of a column."""
    return Query("distinct", column)


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
