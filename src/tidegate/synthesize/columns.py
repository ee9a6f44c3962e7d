"""The columns of a policy as models use them, and synthetic codes as a table with the policy's values.

By default a category has one cell per value, and so does a number with at most 512 values. A number with more values has the
policy's bins. Without bins, its two ends are cells of one value, with about 150 cells of equal width between them (40 growing
cells on a log scale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.arrays import Ints
from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.policy import Attribute, Category, Grid, Integer, Key, Numeric, Policy, Shape
from tidegate.policy.synthesis import Follows, followed_texts
from tidegate.synthesize.facts import Column

ONE_EACH = 512  # values up to which every value has its own cell
EVEN_CELLS, LOG_CELLS = 150, 40
MOST_VALUES = 2**53  # every engine's floating point represents codes up to here exactly
EXACTLY = Context(prec=40)  # logarithms to 40 digits: the same cells on every machine


@dataclass(frozen=True)
class Columns:
    """The columns of a synthetic table: learned, determined by another column, numbered, or left out with a reason."""

    policy: Policy
    learnt: tuple[Column, ...]
    follows: dict[str, Follows]
    numbered: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a synthetic table, in the policy's order."""
        present = {*(column.name for column in self.learnt), *self.follows, *self.numbered}
        return tuple(name for name in self.policy.attributes if name in present)

    def to_arrow(self, codes: Ints) -> pa.Table:
        """Return codes of the learned columns as a table with the policy's values, in the policy's order."""
        codes_by_name = {column.name: codes[:, index] for index, column in enumerate(self.learnt)}
        arrays = {}
        for name, attribute in self.policy.attributes.items():
            if name in codes_by_name:
                arrays[name] = values_of(attribute, codes_by_name[name])
            elif name in self.follows:
                arrays[name] = self._followed(name, codes_by_name[self.follows[name].column])
            elif name in self.numbered:
                arrays[name] = pa.array(np.arange(1, len(codes) + 1))
        return pa.table(arrays)

    def _followed(self, name: str, codes: Ints) -> pa.Array:
        """Return the column that is determined by another column's codes; it is missing where that column is missing."""
        rule, attribute = self.follows[name], self.policy.attributes[name]
        texts = followed_texts(self.policy.attributes[rule.column])
        followed_codes = np.array([code_of(attribute, rule.values[text]) for text in texts])
        return values_of(attribute, np.append(followed_codes, attribute.size)[np.minimum(codes, len(texts))])

    def says(self) -> list[str]:
        """Return one sentence for each column that is not learned."""
        notes = [f"{name} follows from {rule.column}" for name, rule in self.follows.items()]
        notes += [f"{name} contains row numbers instead of keys" for name in self.numbered]
        return notes + [f"{name} is left out ({why})" for name, why in self.left_out.items()]


def columns_of(policy: Policy, only: Sequence[str] = ()) -> Columns:
    """Return the columns of a policy, or some of them, for synthesis."""
    for name in only:
        if name not in policy.attributes:
            raise UnknownColumn(
                f'There is no column "{name}" in policy "{policy.dataset.name}".',
                did_you_mean(name, policy.attributes),
                column=name,
            )
    names = [name for name in policy.attributes if not only or name in only]
    shapes, follows = policy.synthesis, {}
    learnt, numbered, left_out = [], [], {}
    for name in names:
        attribute = policy.attributes[name]
        if name in shapes.leave_out and name not in only:
            left_out[name] = "by the policy"
        elif name in shapes.follows and shapes.follows[name].column in names:
            follows[name] = shapes.follows[name]
        elif isinstance(attribute, Key) and shapes.fresh_keys:
            numbered.append(name)
        elif not attribute.countable:
            left_out[name] = "a key" if isinstance(attribute, Key) else "a set of items"
        else:
            learnt.append(column_of(name, attribute, shapes.columns.get(name, Shape())))
    if len(learnt) < 1:
        raise Unsupported(
            "There is no column to learn: keys and sets of items cannot be learned.",
            "Name columns with public values.",
        )
    return Columns(policy, tuple(learnt), follows, tuple(numbered), left_out)


def column_of(name: str, attribute: Attribute, shape: Shape) -> Column:
    """Return one column with its public cells."""
    missing = getattr(attribute, "missing", "dropped") == "value"
    if isinstance(attribute, Category):
        size = attribute.size
        return Column(name, size, tuple(range(size)), ordered=shape.ordered, missing=missing)
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no cells")
    if attribute.size > MOST_VALUES:
        raise Unsupported(
            f'"{name}" has {attribute.size:,} possible values; the limit is {MOST_VALUES:,}.', "Choose a wider step."
        )
    return Column(
        name,
        attribute.size,
        starts_of(attribute, shape),
        even=shape.scale == "linear",
        missing=missing,
        heaped=shape.heaped,
        whole=isinstance(attribute, Integer),
    )


def starts_of(attribute: Numeric, shape: Shape) -> tuple[int, ...]:
    """Return the first code of every cell of a number."""
    inner, atoms = _inner_starts(attribute, shape), shape.atoms
    if atoms is None:
        whole = attribute.size > ONE_EACH and not shape.edges and not attribute.cuts
        atoms = (attribute.low, attribute.high) if whole else ()
    single_codes = [_code(attribute, atom) for atom in atoms]
    starts = {0, *inner, *single_codes, *(code + 1 for code in single_codes)}
    return tuple(sorted(start for start in starts if start < attribute.size))


def _inner_starts(attribute: Numeric, shape: Shape) -> list[int]:
    if shape.edges:
        return [math.ceil((edge - attribute.low) / attribute.width) for edge in shape.edges]
    if shape.cells is None and attribute.size <= ONE_EACH:
        return list(range(attribute.size))
    if shape.cells is None and attribute.cuts and shape.scale == "linear":
        return list(attribute.bin_starts())
    if shape.scale == "log":
        return _log_starts(attribute, shape.cells or LOG_CELLS)
    count = min(shape.cells or EVEN_CELLS, attribute.size)
    return [attribute.size * n // count for n in range(count)]


def _log_starts(attribute: Numeric, count: int) -> list[int]:
    """Return cells whose ends grow by a constant factor, from the first value above zero to the last."""
    first = attribute.low if attribute.low > 0 else attribute.low + attribute.width
    if first >= attribute.high:
        return [0]
    start, whole = _decimal(first), EXACTLY.ln(_decimal(attribute.high / first))
    parts = [EXACTLY.divide(EXACTLY.multiply(whole, Decimal(n)), Decimal(count)) for n in range(count)]
    edges = [EXACTLY.multiply(start, EXACTLY.exp(part)) for part in parts]
    return [_code(attribute, first), *(math.ceil((Fraction(e) - attribute.low) / attribute.width) for e in edges[1:])]


def _decimal(value: Fraction) -> Decimal:
    return EXACTLY.divide(Decimal(value.numerator), Decimal(value.denominator))


def _code(attribute: Numeric, value: Fraction) -> int:
    return int((value - attribute.low) / attribute.width)


def code_of(attribute: Attribute, value: Any) -> int:
    """Return the code of a value that the policy names."""
    if isinstance(attribute, Category):
        return attribute.values.index(value)
    if isinstance(attribute, Numeric):
        return _code(attribute, Fraction(value))
    raise TypeError("A key or a set has no codes")


def values_of(attribute: Attribute, codes: Ints) -> pa.Array:
    """Return the values of codes. A code past the last value means missing."""
    missing = codes >= attribute.size
    if isinstance(attribute, Category):
        kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
        listed = pa.array(list(attribute.values), kinds[attribute.value_type])
        return listed.take(pa.array(np.where(missing, 0, codes), mask=missing))
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no values")
    return pa.array(_numbers(attribute, np.where(missing, 0, codes)), mask=missing)


def _numbers(attribute: Numeric, codes: Ints) -> Any:
    """Return integers if all values are integers, else the floats nearest to the exact fractions (one division, rounded once)."""
    denominator = math.lcm(attribute.low.denominator, attribute.width.denominator)
    low, step = int(attribute.low * denominator), int(attribute.width * denominator)
    largest = max(abs(low), abs(low + step * attribute.size))
    if denominator == 1 and largest < 2**62:
        return low + step * codes
    if max(largest, denominator) >= MOST_VALUES:  # floats would round twice
        distinct, inverse = np.unique(codes, return_inverse=True)
        return np.array([float(attribute.value(int(code))) for code in distinct])[inverse]
    return (low + step * codes) / denominator


def too_wide(columns: Columns) -> bool:
    """Return whether all columns are numbers with more than 10^6 values and without declared cells: no cells are useful there."""
    policy = columns.policy
    return all(
        isinstance(attribute := policy.attributes[column.name], Grid)
        and attribute.size > 10**6
        and not attribute.cuts
        and not policy.synthesis.columns.get(column.name, Shape()).edges
        and policy.synthesis.columns.get(column.name, Shape()).cells is None
        for column in columns.learnt
    )
