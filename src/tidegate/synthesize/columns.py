"""From a policy to what models know of its columns, and from codes back to a table with the policy's values.

By default a category has one cell a value, and so has a number with up to 512 places; a wider one has its bins where the
policy gives some, else its two ends as atoms and about 150 even cells between them (40 growing ones on a log scale).
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

ONE_EACH = 512  # places up to which every value has a cell of its own
EVEN_CELLS, LOG_CELLS = 150, 40
MOST_PLACES = 2**53  # codes are whole numbers that every engine's floating point holds
EXACTLY = Context(prec=40)  # logarithms to 40 digits: the same cells on every machine


@dataclass(frozen=True)
class Columns:
    """Which columns are learnt, which follow from them, which are numbered anew, and which are left out and why."""

    policy: Policy
    learnt: tuple[Column, ...]
    follows: dict[str, Follows]
    numbered: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a synthetic table, in the policy's order."""
        held = {*(column.name for column in self.learnt), *self.follows, *self.numbered}
        return tuple(name for name in self.policy.attributes if name in held)

    def to_arrow(self, codes: Ints) -> pa.Table:
        """Codes of the learnt columns as a table with the policy's values, in the policy's order."""
        given = {column.name: codes[:, place] for place, column in enumerate(self.learnt)}
        made = {}
        for name, attribute in self.policy.attributes.items():
            if name in given:
                made[name] = values_of(attribute, given[name])
            elif name in self.follows:
                made[name] = self._followed(name, given[self.follows[name].column])
            elif name in self.numbered:
                made[name] = pa.array(np.arange(1, len(codes) + 1))
        return pa.table(made)

    def _followed(self, name: str, codes: Ints) -> pa.Array:
        """The column that goes with another's codes; missing where that is."""
        one, attribute = self.follows[name], self.policy.attributes[name]
        texts = followed_texts(self.policy.attributes[one.column])
        places = np.array([code_of(attribute, one.values[text]) for text in texts])
        return values_of(attribute, np.append(places, attribute.size)[np.minimum(codes, len(texts))])

    def says(self) -> list[str]:
        """What happens to the columns that are not learnt, in sentences."""
        told = [f"{name} follows from {one.column}" for name, one in self.follows.items()]
        told += [f"{name} contains row numbers instead of keys" for name in self.numbered]
        return told + [f"{name} is left out ({why})" for name, why in self.left_out.items()]


def columns_of(policy: Policy, only: Sequence[str] = ()) -> Columns:
    """The columns of a policy (or some of them) for synthesis."""
    for name in only:
        if name not in policy.attributes:
            raise UnknownColumn(
                f'There is no column "{name}" in policy "{policy.dataset.name}".',
                did_you_mean(name, policy.attributes),
                column=name,
            )
    wanted = [name for name in policy.attributes if not only or name in only]
    shapes, follows = policy.synthesis, {}
    learnt, numbered, left_out = [], [], {}
    for name in wanted:
        attribute = policy.attributes[name]
        if name in shapes.leave_out and name not in only:
            left_out[name] = "by the policy"
        elif name in shapes.follows and shapes.follows[name].column in wanted:
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
    """One column with its public cells."""
    missing = getattr(attribute, "missing", "dropped") == "value"
    if isinstance(attribute, Category):
        size = attribute.size
        return Column(name, size, tuple(range(size)), ordered=shape.ordered, missing=missing)
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no cells")
    if attribute.size > MOST_PLACES:
        raise Unsupported(
            f'"{name}" has {attribute.size:,} possible values; the limit is {MOST_PLACES:,}.', "Choose a wider step."
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
    """The first code of every cell of a number."""
    inner, atoms = _cut(attribute, shape), shape.atoms
    if atoms is None:
        whole = attribute.size > ONE_EACH and not shape.edges and not attribute.cuts
        atoms = (attribute.low, attribute.high) if whole else ()
    alone = [_place(attribute, atom) for atom in atoms]
    starts = {0, *inner, *alone, *(place + 1 for place in alone)}
    return tuple(sorted(start for start in starts if start < attribute.size))


def _cut(attribute: Numeric, shape: Shape) -> list[int]:
    if shape.edges:
        return [math.ceil((edge - attribute.low) / attribute.width) for edge in shape.edges]
    if shape.cells is None and attribute.size <= ONE_EACH:
        return list(range(attribute.size))
    if shape.cells is None and attribute.cuts and shape.scale == "linear":
        return list(attribute.bin_starts())
    if shape.scale == "log":
        return _growing(attribute, shape.cells or LOG_CELLS)
    wanted = min(shape.cells or EVEN_CELLS, attribute.size)
    return [attribute.size * n // wanted for n in range(wanted)]


def _growing(attribute: Numeric, wanted: int) -> list[int]:
    """Cells whose ends grow by one factor, from the first place above zero to the last."""
    first = attribute.low if attribute.low > 0 else attribute.low + attribute.width
    if first >= attribute.high:
        return [0]
    start, whole = _decimal(first), EXACTLY.ln(_decimal(attribute.high / first))
    parts = [EXACTLY.divide(EXACTLY.multiply(whole, Decimal(n)), Decimal(wanted)) for n in range(wanted)]
    edges = [EXACTLY.multiply(start, EXACTLY.exp(part)) for part in parts]
    return [_place(attribute, first), *(math.ceil((Fraction(e) - attribute.low) / attribute.width) for e in edges[1:])]


def _decimal(value: Fraction) -> Decimal:
    return EXACTLY.divide(Decimal(value.numerator), Decimal(value.denominator))


def _place(attribute: Numeric, value: Fraction) -> int:
    return int((value - attribute.low) / attribute.width)


def code_of(attribute: Attribute, value: Any) -> int:
    """The code of a value that the policy names."""
    if isinstance(attribute, Category):
        return attribute.values.index(value)
    if isinstance(attribute, Numeric):
        return _place(attribute, Fraction(value))
    raise TypeError("A key or a set has no codes")


def values_of(attribute: Attribute, codes: Ints) -> pa.Array:
    """The values that codes stand for; a code past the last is missing."""
    gone = codes >= attribute.size
    if isinstance(attribute, Category):
        kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
        listed = pa.array(list(attribute.values), kinds[attribute.value_type])
        return listed.take(pa.array(np.where(gone, 0, codes), mask=gone))
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no values")
    return pa.array(_numbers(attribute, np.where(gone, 0, codes)), mask=gone)


def _numbers(attribute: Numeric, codes: Ints) -> Any:
    """Whole numbers where all are, else the nearest floats to the exact fractions (one division, rounded once)."""
    below = math.lcm(attribute.low.denominator, attribute.width.denominator)
    low, step = int(attribute.low * below), int(attribute.width * below)
    largest = max(abs(low), abs(low + step * attribute.size))
    if below == 1 and largest < 2**62:
        return low + step * codes
    if max(largest, below) >= MOST_PLACES:  # floats would round twice
        single, places = np.unique(codes, return_inverse=True)
        return np.array([float(attribute.value(int(code))) for code in single])[places]
    return (low + step * codes) / below


def too_wide(columns: Columns) -> bool:
    """Whether all are numbers on so fine a grid that no cells are useful: more than 10^6 places and none declared."""
    policy = columns.policy
    return all(
        isinstance(attribute := policy.attributes[column.name], Grid)
        and attribute.size > 10**6
        and not attribute.cuts
        and not policy.synthesis.columns.get(column.name, Shape()).edges
        and policy.synthesis.columns.get(column.name, Shape()).cells is None
        for column in columns.learnt
    )
