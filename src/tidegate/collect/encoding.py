"""Encoding: from a person's value to its code, and from codes to text. Errors never quote a value."""

from __future__ import annotations

import math
from bisect import bisect_right
from contextlib import suppress
from fractions import Fraction
from typing import Any

from tidegate.errors import Unsupported
from tidegate.exact import exact, say
from tidegate.policy.attributes import Category, Items, Numeric
from tidegate.policy.collection import Question


def code_of(question: Question, value: Any) -> int:
    """Return the code of a true value; numbers outside the bounds are moved to the nearest bound.

    The code of a set of items has bit i set if item i of the vocabulary is in the set.
    """
    universe = question.universe
    if isinstance(universe, Numeric):
        code = _number(question, universe, value)
        return bisect_right(universe.bin_starts(), code) - 1 if universe.cuts else code
    if isinstance(universe, Category):
        return _category(question, universe, value)
    if isinstance(universe, Items):
        return sum(1 << code for code in _basket(question, universe, value))
    raise Unsupported(f'"{question.attribute}" is neither a number nor a category.')


def _number(question: Question, grid: Numeric, value: Any) -> int:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        if getattr(grid, "missing", "") == "lowest":
            return 0
        raise Unsupported(
            f'"{question.attribute}" needs a number; it was left empty.',
            "This collection does not accept missing numbers. Nothing was sent.",
        )
    number = None
    with suppress(TypeError, ValueError):
        number = exact(value)
    if number is None:
        raise Unsupported(f'"{question.attribute}" needs a number.', f"{grid.describe()}. Nothing was sent.")
    nearest = math.floor((number - grid.low) / grid.width + Fraction(1, 2))
    return min(max(nearest, 0), grid.size - 1)


def _category(question: Question, universe: Category, value: Any) -> int:
    for code, listed in enumerate(universe.values):
        if type(listed) is type(value) and listed == value:
            return code
    if universe.missing == "value":
        return universe.size
    raise Unsupported(
        f'"{question.attribute}" must be one of its {universe.size:,} listed values.',
        f"{', '.join(map(str, universe.values[:20]))}{', ...' if universe.size > 20 else ''}. Nothing was sent.",
    )


def _basket(question: Question, universe: Items, value: Any) -> list[int]:
    """Return item codes; refuse unknown and repeated items."""
    words = None if value is None or isinstance(value, str) else list(value)
    if words is None or any(not isinstance(word, str) for word in words):
        raise Unsupported(
            f'"{question.attribute}" needs a list of items.', "Use [] for an empty basket. Nothing was sent."
        )
    codes = {word: code for code, word in enumerate(universe.vocabulary)}
    if any(word not in codes for word in words):
        raise Unsupported(
            f'"{question.attribute}" names an unknown item: it is not one of its {len(codes):,} items.',
            "Leave it out, or check its spelling (in a CSV file, items are separated by semicolons). Nothing was sent.",
        )
    if len(set(words)) != len(words):
        raise Unsupported(f'"{question.attribute}" names an item twice.', "Name each item once. Nothing was sent.")
    return [codes[word] for word in words]


def words_of(question: Question, first: int, last: int | None = None) -> str:
    """Return a code, or a run of codes, as text: ``34``, ``19 to 63``, ``L1``, ``missing``."""
    universe, last = question.universe, first if last is None else last
    if isinstance(universe, Numeric):
        low, high = _lowest(universe, first), _lowest(universe, last + 1) - universe.width
        return say(low) if low == high else f"{say(low)} to {say(high)}"
    if isinstance(universe, Items):
        is_item = first < len(universe.vocabulary)
        return universe.vocabulary[first] if is_item else "the number of your items"
    values = getattr(universe, "values", ())
    return str(values[first]) if first < len(values) else "missing"


def _lowest(universe: Numeric, index: int) -> Fraction:
    """Return the lowest value at an index; indexes outside continue in steps of the grid or of the last bin."""
    if not universe.cuts:
        return universe.value(index)
    starts = universe.bin_starts()
    if index < 0:
        return universe.low + index * universe.width
    beyond = max(0, index - len(starts))
    return universe.value(starts[index]) if index < len(starts) else universe.high + (1 + beyond) * universe.width
