"""Conditions on rows, as frozen values: ``col("age") >= 30``, combined with ``&``, ``|``, ``~``.

A condition applies to the public form of a value: the value on the attribute's grid (clamped), or the listed category. A
missing value makes a comparison unknown, as in SQL; only rows for which the condition is true are counted.
"""

from __future__ import annotations

import datetime as dt
import math
import operator as op
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, Literal

from tidegate.errors import Unsupported, did_you_mean
from tidegate.exact import Number, exact, plain
from tidegate.policy.attributes import Numeric, Scalar
from tidegate.policy.calendar import Moment
from tidegate.policy.categories import Category, Text
from tidegate.policy.policy import Policy

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Value = Fraction | str | bool
Comparable = Number | Scalar | dt.date | dt.time
MOST_NAMED, MOST_COMPARED = 10, 1_000  # values of a category in a message
DEEPEST = 50  # levels of nested conditions
MOST_COMPARISONS = 2_000  # comparisons in one condition
MOST_NESTED = 200  # parts of a chain that are stored nested
OPERATORS: dict[str, Any] = {"=": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}


class Predicate:
    """A condition on one row: `depth` levels of conditions, `count` comparisons in all."""

    depth: int = 1
    count: int = 1

    def __and__(self, other: Predicate) -> Predicate:
        return Both(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        return Either(self, other)

    def __invert__(self) -> Predicate:
        return Opposite(self)

    def __bool__(self) -> bool:
        raise TypeError("Combine conditions with &, | and ~ (and parentheses), not with and, or and not.")

    def check(self, policy: Policy) -> None:
        """Refuse unknown columns and meaningless comparisons."""
        raise NotImplementedError

    def columns(self) -> set[str]:
        """Return the columns that the condition uses."""
        raise NotImplementedError

    def compared(self) -> set[str]:
        """Return the columns that are compared with values themselves, not within an expression."""
        return self.columns()

    def tests(self) -> set[str]:
        """Return the expressions that are evaluated over the universe of their columns."""
        return set()

    def says(self) -> str:
        """Return the condition as text."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as JSON values."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Return the condition as stored in ledgers. It identifies a stored answer, so its form never changes."""
        return self.to_dict()


@dataclass(frozen=True)
class Compare(Predicate):
    """A column against a value of the request."""

    column: str
    operator: Operator
    value: Value

    def check(self, policy: Policy) -> None:
        attribute = policy.countable(self.column)
        ordered = isinstance(attribute, Numeric)
        if not ordered and self.operator not in ("=", "!="):
            kind = "category" if isinstance(attribute, Category) else attribute.kind
            raise Unsupported(f'Column "{self.column}" is a {kind} and has no order.', "Compare it with = or !=.")
        if isinstance(attribute, Category):
            category_value(attribute, self.column, self.value)
        elif isinstance(attribute, Numeric | Text) and attribute.position(self.value) is None:
            kind = f"a {attribute.kind}" if isinstance(attribute, Moment | Text) else "numeric"
            raise Unsupported(f'Column "{self.column}" is {kind}.', f"Compare it with {attribute.comparable}.")

    def columns(self) -> set[str]:
        return {self.column}

    def says(self) -> str:
        return f"{self.column} {self.operator} {shown(self.value)}"

    def to_dict(self) -> dict[str, Any]:
        return {"compare": [self.column, self.operator, recorded(self.value)]}


@dataclass(frozen=True)
class Missing(Predicate):
    """The column has no value (or one that the policy does not list)."""

    column: str

    def check(self, policy: Policy) -> None:
        if not isinstance(policy.attribute(self.column), Text):  # of text without buckets, only the presence is known
            policy.countable(self.column)

    def columns(self) -> set[str]:
        return {self.column}

    def says(self) -> str:
        return f"{self.column} is missing"

    def to_dict(self) -> dict[str, Any]:
        return {"missing": self.column}


@dataclass(frozen=True)
class Holds(Predicate):
    """An SQL expression of columns is true: ``UPPER(region) = 'NORTH'``. `of` are its columns."""

    text: str
    of: tuple[str, ...]

    def check(self, policy: Policy) -> None:
        for name in self.of:
            if name not in policy.references:
                policy.countable(name)

    def columns(self) -> set[str]:
        return set(self.of)

    def compared(self) -> set[str]:
        return set()

    def tests(self) -> set[str]:
        return {self.text}

    def says(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        return {"holds": self.text}


@dataclass(frozen=True, init=False)
class Chain(Predicate):
    """Two or more conditions joined by one operator.

    A chain whose first part is a chain of the same operator is flattened, so that long conditions are wide and not deep.
    """

    parts: tuple[Predicate, ...]
    word: ClassVar[str]

    def __init__(self, *parts: Predicate) -> None:
        first = parts[0].parts if parts and type(parts[0]) is type(self) else parts[:1]
        flat = (*first, *parts[1:])
        if len(flat) < 2:
            raise Unsupported(f"A condition with `{self.word}` needs at least two parts.", "Combine two conditions.")
        object.__setattr__(self, "parts", flat)
        object.__setattr__(self, "depth", _check_depth(1 + max(part.depth for part in flat)))
        object.__setattr__(self, "count", _check_count(sum(part.count for part in flat)))

    def check(self, policy: Policy) -> None:
        for part in self.parts:
            part.check(policy)

    def columns(self) -> set[str]:
        return {column for part in self.parts for column in part.columns()}

    def compared(self) -> set[str]:
        return {column for part in self.parts for column in part.compared()}

    def tests(self) -> set[str]:
        return {text for part in self.parts for text in part.tests()}

    def says(self) -> str:
        return f"({f' {self.word} '.join(part.says() for part in self.parts)})"

    def to_dict(self) -> dict[str, Any]:
        return {self.word: [part.to_dict() for part in self.parts]}

    def identity(self) -> dict[str, Any]:
        """Return pairs nested from the left, as in the first ledgers; long chains, which those could not store, flat."""
        parts = [part.identity() for part in self.parts]
        if len(parts) > MOST_NESTED:
            return {self.word: parts}
        return reduce(lambda left, right: {self.word: [left, right]}, parts)


class Both(Chain):
    """All conditions are true."""

    word = "and"


class Either(Chain):
    """At least one condition is true."""

    word = "or"


def _check_depth(depth: int) -> int:
    if depth > DEEPEST:
        raise Unsupported(
            f"A condition is nested more than {DEEPEST} levels deep.", "Write it with fewer parentheses or `~`."
        )
    return depth


def _check_count(count: int) -> int:
    if count > MOST_COMPARISONS:
        raise Unsupported(
            f"A condition has more than {MOST_COMPARISONS:,} comparisons.",
            "Use ranges (`between`), or query groups and add up those that you need.",
        )
    return count


@dataclass(frozen=True)
class Opposite(Predicate):
    """The negation of a condition; unknown stays unknown."""

    inner: Predicate

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _check_depth(1 + self.inner.depth))
        object.__setattr__(self, "count", self.inner.count)

    def check(self, policy: Policy) -> None:
        self.inner.check(policy)

    def columns(self) -> set[str]:
        return self.inner.columns()

    def compared(self) -> set[str]:
        return self.inner.compared()

    def tests(self) -> set[str]:
        return self.inner.tests()

    def says(self) -> str:
        return f"not ({self.inner.says()})"

    def to_dict(self) -> dict[str, Any]:
        return {"not": self.inner.to_dict()}

    def identity(self) -> dict[str, Any]:
        return {"not": self.inner.identity()}


class Column:
    """A column to compare: ``Column("age") >= 30``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _compare(self, operator: Operator, value: Comparable) -> Predicate:
        return Compare(self.name, operator, as_value(value))

    def __ge__(self, value: Comparable) -> Predicate:
        return self._compare(">=", value)

    def __gt__(self, value: Comparable) -> Predicate:
        return self._compare(">", value)

    def __le__(self, value: Comparable) -> Predicate:
        return self._compare("<=", value)

    def __lt__(self, value: Comparable) -> Predicate:
        return self._compare("<", value)

    def __eq__(self, value: Comparable) -> Predicate:  # type: ignore[override]
        return self._compare("=", value)

    def __ne__(self, value: Comparable) -> Predicate:  # type: ignore[override]
        return self._compare("!=", value)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Sequence[Comparable]) -> Predicate:
        """Return the condition that the column has one of several values."""
        if not values:
            raise Unsupported("`isin` requires at least one value.")
        tests = [self._compare("=", value) for value in values]
        return Either(*tests) if len(tests) > 1 else tests[0]

    def between(self, low: Comparable, high: Comparable) -> Predicate:
        """Return the condition that the column is from low to high, both included."""
        return Both(self._compare(">=", low), self._compare("<=", high))

    def missing(self) -> Predicate:
        """Return the condition that the column has no value."""
        return Missing(self.name)


def col(name: str) -> Column:
    """Return a column to compare: ``col("age") >= 30``."""
    return Column(name)


def as_value(value: Comparable) -> Value:
    """Return numbers as exact fractions, dates and times in ISO 8601; text and truth values unchanged."""
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value if isinstance(value, str | bool) else exact(value)


def category_value(attribute: Category, column: str, value: Value) -> Scalar:
    """Return a request's value as the category lists it, or raise Unsupported."""
    listed = int(value) if isinstance(value, Fraction) and value.denominator == 1 else value
    if not isinstance(listed, Fraction) and type(listed) is attribute.value_type and listed in attribute.codes:
        return listed
    names = [str(name) for name in attribute.values]
    nearest = did_you_mean(str(value), names) if len(names) <= MOST_COMPARED else ""
    nearest = f"{nearest} " if nearest.startswith("Did") else ""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    raise Unsupported(
        f'{shown(value)} is not one of the {attribute.size:,} values that the policy lists for "{column}".',
        f"{nearest}Listed: {', '.join(names[:MOST_NAMED])}{more}.",
    )


def code_bounds(attribute: Numeric | Text, operator: Operator, value: Value) -> tuple[Operator, int] | bool:
    """Return a comparison of values as one of codes; True or False if it holds for all codes or for none."""
    position = attribute.position(value)
    if position is None:
        raise Unsupported(f"{shown(value)} cannot be compared.", f"Compare with {attribute.comparable}.")
    if operator in ("=", "!="):
        if position.denominator == 1 and 0 <= position < attribute.size:
            return operator, int(position)
        return operator == "!="
    code = math.ceil(position) if operator in ("<", ">=") else math.floor(position)
    return operator, min(max(code, -1), attribute.size)


def shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(plain(value)) if isinstance(value, Fraction) else str(value)


def recorded(value: Value) -> Any:
    return {"number": str(value)} if isinstance(value, Fraction) else value


def holds(predicate: Predicate, policy: Policy, codes: dict[str, int | None]) -> bool | None:
    """Return whether a condition holds for codes (None: missing); None if that is unknown, as in SQL."""
    if isinstance(predicate, Missing):
        return codes[predicate.column] is None
    if isinstance(predicate, Opposite):
        result = holds(predicate.inner, policy, codes)
        return None if result is None else not result
    if isinstance(predicate, Chain):
        outcomes = {holds(part, policy, codes) for part in predicate.parts}
        decisive = isinstance(predicate, Either)
        return decisive if decisive in outcomes else None if None in outcomes else not decisive
    if not isinstance(predicate, Compare):
        raise TypeError("The condition is of an unknown type.")
    return _compare_code(predicate, policy, codes[predicate.column])


def _compare_code(predicate: Compare, policy: Policy, code: int | None) -> bool | None:
    attribute: Any = policy.attribute(predicate.column)
    if code is None:
        return None
    if isinstance(attribute, Category):
        equal = attribute.values[code] == category_value(attribute, predicate.column, predicate.value)
        return equal if predicate.operator == "=" else not equal
    bounds = code_bounds(attribute, predicate.operator, predicate.value)
    return bounds if isinstance(bounds, bool) else bool(OPERATORS[bounds[0]](code, bounds[1]))
