"""The columns of a policy as models use them, and synthetic codes as a table with the policy's values."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.arrays import Floats, Ints
from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.policy import (
    Attribute,
    Category,
    Date,
    Gap,
    Key,
    Moment,
    Numeric,
    Policy,
    Shape,
    Text,
    Timestamp,
)
from tidegate.policy import Decimal as DecimalColumn
from tidegate.policy.categories import OTHER
from tidegate.policy.orders import in_order
from tidegate.policy.synthesis import Follows, followed_texts
from tidegate.synthesize.cells import MOST_VALUES, exact_decimal, grid_code
from tidegate.synthesize.cells import column_of as column_of
from tidegate.synthesize.facts import Column

EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class Columns:
    """The columns of a synthetic table: learned, computed from others, numbered, or left out with a reason.

    Attributes:
        follows: Columns that are a function of another one.
        gaps: Columns that are never below another one, with the gap that is learned under its own name.
        sums: Columns that are the sum of others.
    """

    policy: Policy
    learnt: tuple[Column, ...]
    follows: dict[str, Follows]
    numbered: tuple[str, ...]
    left_out: dict[str, str]
    gaps: dict[str, Gap] = field(default_factory=dict)
    sums: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a synthetic table, in the policy's order."""
        present = {*(column.name for column in self.learnt), *self.derived, *self.numbered}
        return tuple(name for name in self.policy.attributes if name in present)

    @cached_property
    def derived(self) -> tuple[str, ...]:
        """The computed columns, each after those that it is computed from."""
        sources: dict[str, tuple[str, ...]] = {name: (rule.column,) for name, rule in self.follows.items()}
        sources |= {name: (gap.start,) for name, gap in self.gaps.items()} | self.sums
        return tuple(in_order(sources))

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of a learned column: the policy's, or a gap."""
        gaps = {gap.name: gap for gap in self.gaps.values()}
        return gaps[name] if name in gaps else self.policy.attributes[name]

    def codes(self, learned: Ints) -> dict[str, Ints]:
        """Return the codes of all learned and computed columns, by name; a code past the last value means missing.

        A computed column is missing where a column is missing that it is computed from.
        """
        codes = {column.name: learned[:, index] for index, column in enumerate(self.learnt)}
        for name in self.derived:
            if name in self.follows:
                codes[name] = self._followed(name, codes[self.follows[name].column])
            elif name in self.gaps:
                gap = self.gaps[name]
                codes[name] = _end_codes(gap, codes[gap.start], codes[gap.name])
            else:
                codes[name] = self._added(name, codes)
        return codes

    def to_arrow(self, codes: Ints, *, seed: int = 0, first: int = 0) -> pa.Table:
        """Return codes of the learned columns as a table with the policy's values, in the policy's order.

        A date in cells of weeks, months, quarters or years is a uniform day of its cell, drawn by the public `seed`. `first`
        is the number of rows before these, if a long table is made in parts.
        """
        rows, codes_by_name = len(codes), self.codes(codes)
        within = {name: _uniform(seed, name, rows, first) for name in codes_by_name}
        for name in self.derived:
            if name in self.gaps:  # not before its start on the same cell of the grid
                gap = self.gaps[name]
                same = codes_by_name[name] + gap.shift == codes_by_name[gap.start]
                after = within[gap.start] + (1 - within[gap.start]) * within[name]
                within[name] = np.where(same, after, within[name])
        arrays = {}
        for name, attribute in self.policy.attributes.items():
            if name in codes_by_name:
                arrays[name] = values_of(attribute, codes_by_name[name], within=within[name])
            elif name in self.numbered:
                arrays[name] = pa.array(np.arange(first + 1, first + rows + 1))
        return pa.table(arrays)

    def _followed(self, name: str, codes: Ints) -> Ints:
        """Return the codes of a column that is a function of another column's codes."""
        rule, attribute = self.follows[name], self.policy.attributes[name]
        texts = followed_texts(self.policy.attributes[rule.column])
        followed_codes = np.array([code_of(attribute, rule.values[text]) for text in texts])
        return np.append(followed_codes, attribute.size)[np.minimum(codes, len(texts))]

    def _added(self, name: str, codes: Mapping[str, Ints]) -> Ints:
        """Return the codes of a sum; the policy was refused if it were not always a value of its column."""
        attributes = self.policy.attributes
        terms = {part: of for part in self.sums[name] if isinstance(of := attributes[part], Numeric)}
        total = attributes[name]
        assert isinstance(total, Numeric)  # noqa: S101  (the policy was checked)
        lowest = sum((term.low for term in terms.values()), -total.low)
        code = np.full(len(codes[self.sums[name][0]]), int(lowest / total.width))
        missing = np.zeros(len(code), bool)
        for part, term in terms.items():
            missing |= codes[part] >= term.size
            if term.size > 1:
                code = code + int(term.width / total.width) * np.minimum(codes[part], term.size - 1)
        return np.where(missing, total.size, code)

    def says(self) -> list[str]:
        """Return one sentence for each column that is not learned."""
        notes = [f"{name} follows from {rule.column}" for name, rule in self.follows.items()]
        notes += [f"{name} is {gap.start} plus a learned gap" for name, gap in self.gaps.items()]
        notes += [f"{name} is the sum of {', '.join(parts)}" for name, parts in self.sums.items()]
        notes += [f"{name} contains row numbers instead of keys" for name in self.numbered]
        listed = {column.name: self.attribute(column.name) for column in self.learnt}
        notes += [
            f"{name} is {_unlisted(attribute)} where it is not a listed number"
            for name, attribute in listed.items()
            if isinstance(attribute, Category) and attribute.outside == "other" and attribute.value_type is int
        ]
        return notes + [f"{name} is left out ({why})" for name, why in self.left_out.items()]


def _end_codes(gap: Gap, starts: Ints, gaps: Ints) -> Ints:
    """Return the codes of a column at learned distances from another one, within its bounds and never below it."""
    missing = (starts >= gap.lower.size) | (gaps >= gap.size)
    ends = np.where(missing, 0, starts) + np.where(missing, 0, gaps) - gap.shift
    return np.where(missing, gap.upper.size, np.clip(ends, 0, gap.upper.size - 1))


def columns_of(policy: Policy, only: Sequence[str] = (), *, adaptive: bool = True) -> Columns:
    """Return the columns of a policy, or some of them, for synthesis. Models before forest/2 need `adaptive=False`.

    A column is computed if all columns that it is computed from are among them; otherwise it is learned itself.
    """
    for name in only:
        if name not in policy.attributes:
            raise UnknownColumn(
                f'There is no column "{name}" in policy "{policy.dataset.name}".',
                did_you_mean(name, policy.attributes),
                column=name,
            )
    names = [name for name in policy.attributes if not only or name in only]
    shapes, sources = policy.synthesis, policy.synthesis.sources
    follows, gaps, sums = {}, {}, {}
    learnt, numbered, left_out = [], [], {}
    for name in names:
        attribute = policy.attributes[name]
        is_computed = name in sources and set(sources[name]) <= {*names}
        if name in shapes.leave_out and name not in only:
            left_out[name] = "by the policy"
        elif is_computed and name in shapes.follows:
            follows[name] = shapes.follows[name]
        elif is_computed and name in shapes.sums:
            sums[name] = shapes.sums[name]
        elif is_computed:
            gaps[name] = shapes.gap(name, policy.attributes)
            learnt.append(column_of(gaps[name].name, gaps[name], Shape(), adaptive=adaptive))
        elif isinstance(attribute, Key) and shapes.fresh_keys:
            numbered.append(name)
        elif isinstance(attribute, Text):
            left_out[name] = "text"
        elif not attribute.countable:
            left_out[name] = "a key" if isinstance(attribute, Key) else "a set of items"
        else:
            learnt.append(column_of(name, attribute, shapes.columns.get(name, Shape()), adaptive=adaptive))
    if len(learnt) < 1:
        raise Unsupported(
            "There is no column to learn: keys, text and sets of items cannot be learned.",
            "Name columns with public values.",
        )
    return Columns(policy, tuple(learnt), follows, tuple(numbered), left_out, gaps, sums)


def code_of(attribute: Attribute, value: Any) -> int:
    """Return the code of a value that the policy names."""
    if isinstance(attribute, Category):
        return attribute.values.index(value)
    if isinstance(attribute, Moment):
        return math.floor(attribute.position(value) or 0)
    if isinstance(attribute, Numeric):
        return grid_code(attribute, Fraction(value))
    raise TypeError("A key or a set has no codes")


def values_of(attribute: Attribute, codes: Ints, *, within: Floats | None = None) -> pa.Array:
    """Return the values of codes. A code past the last value means missing.

    `within`, from 0 to 1, is the position of a day in the cell of a date; without it, the day is the first.
    """
    missing = codes >= attribute.size
    if isinstance(attribute, Category):
        kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
        values = list(attribute.listed)
        if attribute.outside == "other":
            values.append({str: OTHER, int: _unlisted(attribute), bool: None}[attribute.value_type])  # type: ignore[arg-type]
        listed = pa.array(values, kinds[attribute.value_type])
        return listed.take(pa.array(np.where(missing, 0, codes), mask=missing))
    if not isinstance(attribute, Numeric):
        raise TypeError("A key or a set has no values")
    listed_codes = np.where(missing, 0, codes)
    if isinstance(attribute, Moment):
        return _moments(attribute, listed_codes, missing, within)
    if isinstance(attribute, DecimalColumn):
        distinct, inverse = np.unique(listed_codes, return_inverse=True)
        scale = max(-int(exact_decimal(number).as_tuple().exponent) for number in (attribute.low, attribute.width))
        kind = pa.decimal128(32, max(scale, 0))
        values = pa.array([exact_decimal(attribute.value(int(code))) for code in distinct], kind)
        return values.take(pa.array(inverse.reshape(-1), mask=missing))
    return pa.array(_numbers(attribute, listed_codes), mask=missing)


def _unlisted(attribute: Category) -> int:
    """Return the number that stands for all numbers that a category does not list."""
    return max((int(value) for value in attribute.listed if not isinstance(value, str)), default=0) + 1


def _uniform(seed: int, name: str, rows: int, first: int) -> Floats:
    """Return numbers from 0 to 1, the same for the same public seed, column and number of rows before."""
    digest = hashlib.sha256(f"{seed}/{name}{f'/{first}' if first else ''}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16]))).random(rows)


def _moments(attribute: Moment, codes: Ints, missing: Any, within: Floats | None) -> pa.Array:
    """Return dates as dates, points in time as instants (in UTC if the column has a zone), times of day as times."""
    if isinstance(attribute, Date):
        cells = np.arange(attribute.size)
        starts = np.array([attribute.start(attribute.origin + cell).toordinal() for cell in cells.tolist()])
        ends = np.array([attribute.end(attribute.origin + cell).toordinal() for cell in cells.tolist()])
        inside = 0 if within is None else np.floor(within * (ends - starts + 1)[codes]).astype(np.int64)
        days = (starts[codes] + inside - EPOCH.toordinal()).astype(np.int32)
        return pa.array(days, pa.int32(), mask=missing).cast(pa.date32())
    seconds = (attribute.origin + codes) * attribute.step  # type: ignore[attr-defined]
    zone = attribute.zone if isinstance(attribute, Timestamp) else ""
    kind = pa.timestamp("us", zone or None) if isinstance(attribute, Timestamp) else pa.time64("us")
    return pa.array(seconds * 1_000_000, pa.int64(), mask=missing).cast(kind)


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
