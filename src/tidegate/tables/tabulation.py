"""The value of an expression for every combination of its columns' values, computed once and without rows.

If the combinations are too many, but every column is used in parts that have fewer values, those values are combined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from tidegate.errors import Unsupported
from tidegate.extras import late
from tidegate.policy import Attribute, Numeric, Policy
from tidegate.tables.expressions import column_name, columns_of, parse_expression, runnable, write
from tidegate.tables.mappings import Ints, Mapped, has_few_cells
from tidegate.tables.scratch import ScratchFailed, scratch

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = late("pyarrow")

MOST_COMBINATIONS = 2**21
MOST_SHOWN = 80  # characters of an expression in a message
UNIVERSE = "universe"
VALUES = (exp.Column, exp.Func, exp.Binary, exp.Unary, exp.Between, exp.In)  # nodes that a column can replace
UNITS = ("hour", "day", "week", "month", "quarter", "year")


def short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."


@dataclass(frozen=True)
class Tabulated:
    """The value of an expression for every combination of its columns; missing is the last code of each.

    If there are `classes`, combinations are those of classes of codes that the expression does not distinguish.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]  # with missing
    values: pa.Array
    classes: tuple[Ints, ...] = ()

    def mapped(self, codes: Ints) -> Mapped:
        """Return numbers for the combinations."""
        return Mapped(self.names, self.sizes, codes, self.classes)


def tabulate(policy: Policy, text: str) -> Tabulated:
    """Return the value of an expression for every combination of its columns."""
    node = parse_expression(text)
    named = columns_of(node)
    references = {name: policy.references[name] for name in named if name in policy.references}
    names = list(dict.fromkeys(references[name].foreign if name in references else name for name in named))
    attributes = [_universe_of(policy, name) for name in names]
    sizes = tuple(attribute.size + 1 for attribute in attributes)
    if math.prod(sizes) > MOST_COMBINATIONS:
        classes = None if references else classes_of(policy, node, names)
        if classes is None or math.prod(classes.sizes) > MOST_COMBINATIONS:
            raise Unsupported(
                f"{short(text)} combines {' x '.join(f'{size - 1:,}' for size in sizes)} values, which is too many for one expression.",
                "Use coarser parts (CAST(x AS DATE), FLOOR(x / 10)), add up sums instead (SUM(x) + SUM(y)), join conditions by AND, or declare a coarser grid in the policy.",
            )
        universe = {name: values.take(codes) for name, values, codes in classes.combinations()}
        return Tabulated(tuple(names), classes.sizes, _evaluate(classes.node, universe, text), classes.of_codes)
    codes, repeat = {}, 1
    for index in range(len(names) - 1, -1, -1):
        codes[names[index]] = np.tile(np.repeat(np.arange(sizes[index]), repeat), math.prod(sizes[:index]))
        repeat *= sizes[index]
    columns = {}
    for index, name in enumerate(named):
        if name in references:
            columns[f"c{index}"] = _referred(references[name]).take(pa.array(codes[references[name].foreign]))
        else:
            columns[f"c{index}"] = values_of(policy.attribute(name)).take(pa.array(codes[name]))
    numbers = {name: index for index, name in enumerate(named)}
    numbered = runnable(node).transform(lambda part: _numbered(part, numbers))
    return Tabulated(tuple(names), sizes, _evaluate(numbered, columns or {"c": pa.array([0])}, text))


def _evaluate(node: Any, universe: dict[str, pa.Array], text: str) -> pa.Array:
    """Return the value of an expression for every row of a public table. `text` is its name in a refusal."""
    with suppress(ScratchFailed):
        query = f"SELECT {write(node)} AS value FROM {UNIVERSE}"  # noqa: S608
        return scratch().run(query, {UNIVERSE: pa.table(universe)})["value"].combine_chunks()
    raise Unsupported(
        f"{text[:80]} cannot be computed on the values that the policy lists.",
        "Check the types: text is written 'north', dates DATE '2024-12-31', and patterns must be complete.",
    )


@dataclass(frozen=True)
class Classes:
    """An expression over parts of columns, and the classes of codes for which all parts of a column are equal.

    `parts` holds the index of a part's column and the part's value for each class, by the name of the part in `node`.
    """

    node: Any
    parts: dict[str, tuple[int, pa.Array]]
    sizes: tuple[int, ...]
    of_codes: tuple[Ints, ...]

    def combinations(self) -> Iterator[tuple[str, pa.Array, pa.Array]]:
        """Yield the name of each part, its values, and its class in every combination."""
        for name, (index, values) in self.parts.items():
            repeat, times = math.prod(self.sizes[index + 1 :]), math.prod(self.sizes[:index])
            yield name, values, pa.array(np.tile(np.repeat(np.arange(self.sizes[index]), repeat), times))


def classes_of(policy: Policy, node: Any, names: Sequence[str]) -> Classes | None:
    """Return the classes of codes that an expression does not distinguish, if every column is used in parts of its own.

    For example, CAST(discharged AS DATE) - CAST(admitted AS DATE) distinguishes days of two columns of hours.
    """
    parts: dict[str, tuple[str, Any]] = {}
    whole = _cut(runnable(node).transform(_truncate_difference), parts)
    values_of_parts: dict[str, tuple[int, pa.Array]] = {}
    sizes, of_codes = [], []
    for index, name in enumerate(names):
        values = values_of(policy.attribute(name))
        own = {part: part_node for part, (column, part_node) in parts.items() if column == name}
        results = {
            part: _evaluate(_numbered_part(part_node), {"c0": values}, write(node)) for part, part_node in own.items()
        }
        firsts, classes = _distinguish(list(results.values()))
        if not has_few_cells(classes):
            return None
        codes = pa.array([*firsts, len(values) - 1])
        values_of_parts |= {part: (index, result.take(codes)) for part, result in results.items()}
        of_codes.append(np.append(classes, len(firsts)))
        sizes.append(len(firsts) + 1)
    return Classes(whole, values_of_parts, tuple(sizes), tuple(of_codes))


def _truncate_difference(node: Any) -> Any:
    """Truncate both ends of a DATE_DIFF, which counts the boundaries of its unit between them."""
    unit = node.text("unit").lower() if isinstance(node, exp.DateDiff) else ""
    if unit in UNITS:
        for end in ("this", "expression"):
            truncated = exp.TimestampTrunc(this=node.args[end].copy(), unit=exp.var(unit.upper()))
            node.set(end, truncated)
    return node


def _cut(node: Any, parts: dict[str, tuple[str, Any]]) -> Any:
    """Replace the largest parts of an expression that use one column by columns, and note them by name."""
    columns = {column_name(column) for column in node.find_all(exp.Column)}
    is_value = isinstance(node, VALUES) and not isinstance(node.parent, exp.Escape)
    is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    if len(columns) == 1 and is_value and not is_branch:
        name = f"c{len(parts)}"
        parts[name] = (columns.pop(), node.copy())
        return exp.column(name)
    if columns:
        for child in list(node.iter_expressions()):
            replacement = _cut(child, parts)
            if replacement is not child:
                child.replace(replacement)
    return node


def _numbered_part(node: Any) -> Any:
    return node.transform(lambda part: exp.column("c0") if isinstance(part, exp.Column) else part)


def _distinguish(results: list[pa.Array]) -> tuple[list[int], Ints]:
    """Return the first code of each class of codes with equal values, and the class of every code but the missing one."""
    classes = np.zeros(len(results[0]), np.int64)
    for result in results:
        if not pa.types.is_null(result.type):
            encoded = result.dictionary_encode("encode")
            indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
            _, classes = np.unique(classes * (len(encoded.dictionary) + 1) + indices, return_inverse=True)
    _, firsts, classes = np.unique(classes[:-1], return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return firsts[order].tolist(), ranks[classes]


def _referred(reference: Any) -> pa.Array:
    """Return the values of a reference column in the order of the foreign key's codes, then a missing one."""
    missing = reference.attribute.size
    codes = [missing if code is None else code for code in reference.codes]
    return values_of(reference.attribute).take(pa.array([*codes, missing]))


def _numbered(node: Any, numbers: dict[str, int]) -> Any:
    return exp.column(f"c{numbers[column_name(node)]}") if isinstance(node, exp.Column) else node


def _universe_of(policy: Policy, name: str) -> Attribute:
    attribute = policy.attribute(name)
    if not attribute.countable or attribute.kind in ("text", "items", "key"):
        raise Unsupported(
            f'"{name}" {attribute.describe() if attribute.kind == "key" else "has no listed values"}, so it cannot be part of a condition or an expression.',
            f'COUNT("{name}") and "{name}" IS NULL are possible.'
            if attribute.kind == "text"
            else "COUNT(DISTINCT ...) is possible for a key."
            if attribute.kind == "key"
            else "Use another column.",
        )
    if attribute.size >= MOST_COMBINATIONS:
        raise Unsupported(
            f'"{name}" has {attribute.size:,} values, too many for an expression.',
            "Compare the column itself with a number, or declare a coarser step.",
        )
    return attribute


def values_of(attribute: Attribute) -> pa.Array:
    """Return the values of a column in the order of its codes, then a missing one."""
    labels = attribute.labels()
    if (
        isinstance(attribute, Numeric)
        and labels
        and isinstance(labels[0], int | float | Fraction)
        and not isinstance(labels[0], bool)
    ):
        if (
            attribute.low.denominator == attribute.width.denominator == 1
            and max(abs(attribute.low), abs(attribute.high)) < 2**62
        ):
            low, width = int(attribute.low), int(attribute.width)
            return pa.array([*range(low, low + width * attribute.size, width), None], pa.int64())
        digits = _decimals(attribute)
        if digits is None:
            return pa.array([*(float(attribute.value(code)) for code in range(attribute.size)), None], pa.float64())
        start, step = int(attribute.low * 10**digits), int(attribute.width * 10**digits)
        return _decimals_of(start + step * np.arange(attribute.size, dtype=np.int64), digits)
    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64()}
    return pa.array([*labels, None], kinds.get(type(labels[0]))) if labels else pa.nulls(1)


def _decimals_of(scaled: Ints, digits: int) -> pa.Array:
    """Return whole numbers below 10^18 as decimals with this number of digits after the point, then a missing one."""
    halves = np.stack([scaled, scaled >> 63], axis=1)  # the 128 bits of each, the lower half first
    parts = [None, pa.py_buffer(np.ascontiguousarray(halves))]
    decimals = pa.Array.from_buffers(pa.decimal128(18, digits), len(scaled), parts)
    return pa.concat_arrays([decimals, pa.nulls(1, decimals.type)])


def _decimals(attribute: Numeric) -> int | None:
    """Return the decimals of a grid; None if they do not end or are too many."""
    for digits in range(10):
        if all((end * 10**digits).denominator == 1 for end in (attribute.low, attribute.width)):
            return digits if max(abs(attribute.low), abs(attribute.high)) * 10**digits < 10**17 else None
    return None
