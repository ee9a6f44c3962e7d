"""Formulas such as ``income ~ age + sex``; ``income[>50K] ~ .`` explains one value of a category by all other columns.

A name that contains + or ~ is written between backticks. A number enters as it is, a category as indicators of its values
except the first. A category as outcome is modeled as one of its values against the rest: the named one, or the last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.policy import Attribute, Category, Numeric
from tidegate.synthesize.quality.codes import CodedTable

TERM = re.compile(r"`[^`]*`|[^+~]+")
MOST_TERMS, MOST_VALUES = 8, 6  # of a default formula


@dataclass(frozen=True)
class Formula:
    """An outcome (one value of it if it is a category) and the columns that explain it."""

    outcome: str
    value: str | int | bool | None
    terms: tuple[str, ...]

    def __str__(self) -> str:
        chosen = "" if self.value is None else f"[{self.value}]"
        return f"{self.outcome}{chosen} ~ {' + '.join(self.terms)}"


def parse(text: str, attributes: Mapping[str, Attribute]) -> Formula:
    """Return the formula of a text, over existing columns."""
    left, tilde, right = _split_sides(text)
    if not tilde or not left or not right:
        raise Unsupported(
            "A formula needs an outcome, ~, and columns joined by +.", 'For example "income ~ age + sex".'
        )
    outcome, value = _outcome(left, attributes)
    named = [part.strip().strip("`") for part in TERM.findall(right) if part.strip()]
    names = [name for name in attributes if name != outcome] if named == ["."] else named
    terms = tuple(dict.fromkeys(_known(name, attributes) for name in names))
    if not terms or outcome in terms:
        raise Unsupported("A formula needs at least one column on its right other than the outcome.")
    return Formula(outcome, value, terms)


def default_formula(attributes: Mapping[str, Attribute], target: str = "") -> Formula | None:
    """Return a default formula, chosen by public facts alone, or None if there are not two columns.

    The outcome is the target, else the last column of two values, else the last number. Numbers explain it first, then short
    categories.
    """
    if target and target not in attributes:
        raise UnknownColumn(f'There is no column "{target}" to compare.', did_you_mean(target, attributes))
    outcome = target or _last_outcome(attributes)
    numbers = [n for n, a in attributes.items() if n != outcome and isinstance(a, Numeric) and a.size > 1]
    short = [
        n for n, a in attributes.items() if n != outcome and isinstance(a, Category) and 2 <= a.size <= MOST_VALUES
    ]
    terms = tuple([*numbers, *sorted(short, key=lambda name: attributes[name].size)][:MOST_TERMS])
    if not outcome or not terms:
        return None
    attribute = attributes[outcome]
    return Formula(outcome, attribute.values[-1] if isinstance(attribute, Category) else None, terms)


def matrices(formula: Formula, table: CodedTable) -> tuple[Floats, Floats]:
    """Return the outcome and the columns of the right side (the first is 1), over rows with a value in all of them."""
    used = table.only((formula.outcome, *formula.terms))
    sizes = np.array([attribute.size for attribute in used.attributes.values()])
    rows = used.codes[((used.codes >= 0) & (used.codes < sizes)).all(axis=1)]
    attributes = list(used.attributes.values())
    outcome = _values(rows[:, 0], attributes[0], formula.value)
    columns = [_columns(rows[:, index], attribute) for index, attribute in enumerate(attributes) if index]
    return outcome, np.column_stack([np.ones(len(rows)), *columns])


def column_names(formula: Formula, attributes: Mapping[str, Attribute]) -> list[str]:
    """Return the name of each coefficient."""
    names = ["intercept"]
    for name in formula.terms:
        attribute = attributes[name]
        listed = attribute.values[1:] if isinstance(attribute, Category) else ()
        names += [f"{name} = {value}" for value in listed] if isinstance(attribute, Category) else [name]
    return names


def _split_sides(text: str) -> tuple[str, str, str]:
    hidden = re.sub(r"`[^`]*`", lambda match: "x" * len(match.group()), text)
    index = hidden.find("~")
    if index < 0 or hidden.count("~") != 1:
        return text.strip(), "", ""
    return text[:index].strip(), "~", text[index + 1 :].strip()


def _outcome(left: str, attributes: Mapping[str, Attribute]) -> tuple[str, str | int | bool | None]:
    name, value = left.strip("`"), ""
    if name not in attributes and left.endswith("]"):
        name, _, value = left[:-1].partition("[")
        name = name.strip().strip("`")
    attribute = attributes[_known(name, attributes)]
    if not isinstance(attribute, Category):
        return name, None
    if not value:
        return name, attribute.values[-1]
    for listed in attribute.values:
        if str(listed) == value.strip():
            return name, listed
    raise Unsupported(f'"{name}" has no value "{value}".', did_you_mean(value, map(str, attribute.values)))


def _known(name: str, attributes: Mapping[str, Attribute]) -> str:
    if name not in attributes:
        raise UnknownColumn(f'There is no column "{name}" to compare.', did_you_mean(name, attributes), column=name)
    return name


def _last_outcome(attributes: Mapping[str, Attribute]) -> str:
    pairs = [name for name, a in attributes.items() if isinstance(a, Category) and a.size == 2]
    numbers = [name for name, a in attributes.items() if isinstance(a, Numeric) and a.size > 1]
    return (pairs or numbers or [""])[-1]


def _values(codes: NDArray[np.int64], attribute: Attribute, value: str | int | bool | None) -> Floats:
    if isinstance(attribute, Category):
        chosen = attribute.values.index(value if value is not None else attribute.values[-1])
        return np.asarray(codes == chosen, np.float64)
    return _numbers(codes, attribute)


def _columns(codes: NDArray[np.int64], attribute: Attribute) -> Floats:
    if isinstance(attribute, Category):
        return np.asarray(codes[:, None] == np.arange(1, attribute.size), np.float64)
    return _numbers(codes, attribute)[:, None]


def _numbers(codes: NDArray[np.int64], attribute: Attribute) -> Floats:
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set is not a number")
    return np.asarray(float(attribute.low) + codes * float(attribute.width), np.float64)
