"""Conditions on rows, as frozen values: ``col("age") >= 30``, combined with ``&``, ``|``, ``~``.

A condition sees what the public may know: the value on the attribute's grid (clamped), or the listed category. Missing
makes a comparison unknown, as in SQL; only rows for which the condition is true are counted.
"""

from __future__ import annotations

import math
import operator as op
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, Literal

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain
from tidegate.policy.attributes import Category, Numeric, Scalar
from tidegate.policy.policy import Policy

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Value = Fraction | str | bool
DEEPEST = 50  # conditions within conditions
MOST_COMPARISONS = 2_000  # in one condition
MOST_NESTED = 200  # parts of a chain that are nested in a ledger
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
        raise TypeError("combine conditions with &, | and ~ (and parentheses), not with and, or and not")

    def check(self, policy: Policy) -> None:
        """Refuse unknown columns and comparisons that mean nothing."""
        raise NotImplementedError

    def columns(self) -> set[str]:
        """The columns that it looks at."""
        raise NotImplementedError

    def says(self) -> str:
        """The condition in words."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The condition as JSON values."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """The condition as ledgers have it: it names a stored answer, so it never changes."""
        return self.to_dict()


@dataclass(frozen=True)
class Compare(Predicate):
    """A column against a value of the request."""

    column: str
    operator: Operator
    value: Value

    def check(self, policy: Policy) -> None:
        attribute = policy.countable(self.column)
        if isinstance(attribute, Numeric) and not isinstance(self.value, Fraction):
            raise Unsupported(f'"{self.column}" is a number; compare it with one.')
        if isinstance(attribute, Category):
            if self.operator not in ("=", "!="):
                raise Unsupported(f'"{self.column}" is a category: it is equal or not, never less or more.')
            category_value(attribute, self.column, self.value)

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
        policy.countable(self.column)

    def columns(self) -> set[str]:
        return {self.column}

    def says(self) -> str:
        return f"{self.column} is missing"

    def to_dict(self) -> dict[str, Any]:
        return {"missing": self.column}


@dataclass(frozen=True, init=False)
class Chain(Predicate):
    """Two or more conditions with one word between them. A chain that begins with one of the same word goes on with it, so
    that long conditions are wide and not deep."""

    parts: tuple[Predicate, ...]
    word: ClassVar[str]

    def __init__(self, *parts: Predicate) -> None:
        first = parts[0].parts if parts and type(parts[0]) is type(self) else parts[:1]
        flat = (*first, *parts[1:])
        if len(flat) < 2:
            raise Unsupported(f"A condition with `{self.word}` needs at least two parts.", "Combine two conditions.")
        object.__setattr__(self, "parts", flat)
        object.__setattr__(self, "depth", _checked_depth(1 + max(part.depth for part in flat)))
        object.__setattr__(self, "count", _checked_count(sum(part.count for part in flat)))

    def check(self, policy: Policy) -> None:
        for part in self.parts:
            part.check(policy)

    def columns(self) -> set[str]:
        return {column for part in self.parts for column in part.columns()}

    def says(self) -> str:
        return f"({f' {self.word} '.join(part.says() for part in self.parts)})"

    def to_dict(self) -> dict[str, Any]:
        return {self.word: [part.to_dict() for part in self.parts]}

    def identity(self) -> dict[str, Any]:
        """Two by two from the left, as the first ledgers have it; long chains, which those could not hold, as they are."""
        parts = [part.identity() for part in self.parts]
        if len(parts) > MOST_NESTED:
            return {self.word: parts}
        return reduce(lambda left, right: {self.word: [left, right]}, parts)


class Both(Chain):
    """All of them."""

    word = "and"


class Either(Chain):
    """At least one of them."""

    word = "or"


def _checked_depth(depth: int) -> int:
    if depth > DEEPEST:
        raise Unsupported(
            f"A condition is nested more than {DEEPEST} levels deep.", "Write it with fewer parentheses or `~`."
        )
    return depth


def _checked_count(count: int) -> int:
    if count > MOST_COMPARISONS:
        raise Unsupported(
            f"A condition has more than {MOST_COMPARISONS:,} comparisons.",
            "Use ranges (`between`), or ask for groups and add up those that you need.",
        )
    return count


@dataclass(frozen=True)
class Opposite(Predicate):
    """Not that; unknown stays unknown."""

    one: Predicate

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _checked_depth(1 + self.one.depth))
        object.__setattr__(self, "count", self.one.count)

    def check(self, policy: Policy) -> None:
        self.one.check(policy)

    def columns(self) -> set[str]:
        return self.one.columns()

    def says(self) -> str:
        return f"not ({self.one.says()})"

    def to_dict(self) -> dict[str, Any]:
        return {"not": self.one.to_dict()}

    def identity(self) -> dict[str, Any]:
        return {"not": self.one.identity()}


class Column:
    """A column to compare: ``Column("age") >= 30``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _compare(self, operator: Operator, value: Number | Scalar) -> Predicate:
        return Compare(self.name, operator, as_value(value))

    def __ge__(self, value: Number) -> Predicate:
        return self._compare(">=", value)

    def __gt__(self, value: Number) -> Predicate:
        return self._compare(">", value)

    def __le__(self, value: Number) -> Predicate:
        return self._compare("<=", value)

    def __lt__(self, value: Number) -> Predicate:
        return self._compare("<", value)

    def __eq__(self, value: Number | Scalar) -> Predicate:  # type: ignore[override]
        return self._compare("=", value)

    def __ne__(self, value: Number | Scalar) -> Predicate:  # type: ignore[override]
        return self._compare("!=", value)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: list[Number | Scalar]) -> Predicate:
        """One of several values."""
        if not values:
            raise Unsupported("isin needs at least one value.")
        tests = [self._compare("=", value) for value in values]
        return Either(*tests) if len(tests) > 1 else tests[0]

    def between(self, low: Number, high: Number) -> Predicate:
        """From low to high, both included."""
        return Both(self._compare(">=", low), self._compare("<=", high))

    def missing(self) -> Predicate:
        """No value."""
        return Missing(self.name)


def col(name: str) -> Column:
    """A column to compare: ``col("age") >= 30``."""
    return Column(name)


def as_value(value: Number | Scalar) -> Value:
    """Numbers as exact fractions; text and truth as they are."""
    return value if isinstance(value, str | bool) else exact(value)


def category_value(attribute: Category, column: str, value: Value) -> Scalar:
    """A request's value as the category lists it, or a refusal that names the list's size."""
    found = int(value) if isinstance(value, Fraction) and value.denominator == 1 else value
    if not isinstance(found, Fraction) and type(found) is attribute.value_type and found in attribute.codes:
        return found
    raise Unsupported(
        f'{shown(value)} is not among the {attribute.size:,} values that the policy lists for "{column}".'
    )


def code_bounds(attribute: Numeric, operator: Operator, value: Fraction) -> tuple[Operator, int] | bool:
    """A comparison of values as one of codes; True or False where it holds for all codes or for none."""
    place = (value - attribute.low) / attribute.width
    if operator in ("=", "!="):
        if place.denominator == 1 and 0 <= place < attribute.size:
            return operator, int(place)
        return operator == "!="
    code = math.ceil(place) if operator in ("<", ">=") else math.floor(place)
    return operator, min(max(code, -1), attribute.size)


def shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(plain(value)) if isinstance(value, Fraction) else str(value)


def recorded(value: Value) -> Any:
    return {"number": str(value)} if isinstance(value, Fraction) else value


def holds(predicate: Predicate, policy: Policy, codes: dict[str, int | None]) -> bool | None:
    """Whether a condition holds for given codes (None: missing); None where that is unknown, as in SQL."""
    if isinstance(predicate, Missing):
        return codes[predicate.column] is None
    if isinstance(predicate, Opposite):
        inner = holds(predicate.one, policy, codes)
        return None if inner is None else not inner
    if isinstance(predicate, Chain):
        found = {holds(part, policy, codes) for part in predicate.parts}
        decisive = isinstance(predicate, Either)
        return decisive if decisive in found else None if None in found else not decisive
    if not isinstance(predicate, Compare):
        raise TypeError("an unknown condition")
    return _compared(predicate, policy, codes[predicate.column])


def _compared(predicate: Compare, policy: Policy, code: int | None) -> bool | None:
    attribute: Any = policy.attribute(predicate.column)
    if code is None:
        return None
    if isinstance(attribute, Category):
        equal = attribute.values[code] == category_value(attribute, predicate.column, predicate.value)
        return equal if predicate.operator == "=" else not equal
    bounds = code_bounds(attribute, predicate.operator, predicate.value)  # type: ignore[arg-type]
    return bounds if isinstance(bounds, bool) else bool(OPERATORS[bounds[0]](code, bounds[1]))
