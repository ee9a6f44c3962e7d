"""From a person's own value to its code, and from codes back to words. Nothing here quotes a value in an error."""

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


def code_of(question: Question, given: Any) -> int:
    """The code of a true value; numbers outside the bounds go to the nearest end, as the policy says of them.

    The code of a set of items has bit i set where item i of the vocabulary is in it.
    """
    universe = question.universe
    if isinstance(universe, Numeric):
        code = _number(question, universe, given)
        return bisect_right(universe.bin_starts(), code) - 1 if universe.cuts else code
    if isinstance(universe, Category):
        return _category(question, universe, given)
    if isinstance(universe, Items):
        return sum(1 << code for code in _basket(question, universe, given))
    raise Unsupported(f'"{question.attribute}" is neither a number nor a category.')


def _number(question: Question, grid: Numeric, given: Any) -> int:
    if given is None or (isinstance(given, float) and math.isnan(given)):
        if getattr(grid, "missing", "") == "lowest":
            return 0
        raise Unsupported(
            f'"{question.attribute}" needs a number; it was left empty.',
            "This collection has no place for a missing number. Nothing was sent.",
        )
    number = None
    with suppress(TypeError, ValueError):
        number = exact(given)
    if number is None:
        raise Unsupported(f'"{question.attribute}" needs a number.', f"{grid.describe()}. Nothing was sent.")
    nearest = math.floor((number - grid.low) / grid.width + Fraction(1, 2))
    return min(max(nearest, 0), grid.size - 1)


def _category(question: Question, universe: Category, given: Any) -> int:
    for code, value in enumerate(universe.values):
        if type(value) is type(given) and value == given:
            return code
    if universe.missing == "value":
        return universe.size
    raise Unsupported(
        f'"{question.attribute}" must be one of its {universe.size:,} listed values.',
        f"{', '.join(map(str, universe.values[:20]))}{', ...' if universe.size > 20 else ''}. Nothing was sent.",
    )


def _basket(question: Question, universe: Items, given: Any) -> list[int]:
    """Item codes; a word that is no item and one that is named twice are refused."""
    words = None if given is None or isinstance(given, str) else list(given)
    if words is None or any(not isinstance(word, str) for word in words):
        raise Unsupported(f'"{question.attribute}" needs a list of items.', "[] where there is none. Nothing was sent.")
    places = {word: code for code, word in enumerate(universe.vocabulary)}
    if any(word not in places for word in words):
        raise Unsupported(
            f'"{question.attribute}" names an item that is not one of its {len(places):,}.',
            "Leave it out, or check how it is written (in a CSV file items are set apart by semicolons). Nothing was sent.",
        )
    if len(set(words)) != len(words):
        raise Unsupported(
            f'"{question.attribute}" names an item twice.', "A basket is a set: name each once. Nothing was sent."
        )
    return [places[word] for word in words]


def words_of(question: Question, first: int, last: int | None = None) -> str:
    """A code, or a run of codes, in the attribute's own words: ``34``, ``19 to 63``, ``L1``, ``missing``."""
    universe, last = question.universe, first if last is None else last
    if isinstance(universe, Numeric):
        low, high = _lowest(universe, first), _lowest(universe, last + 1) - universe.width
        return say(low) if low == high else f"{say(low)} to {say(high)}"
    if isinstance(universe, Items):
        many = len(universe.vocabulary)
        return universe.vocabulary[first] if first < many else "the number of your items"
    values = getattr(universe, "values", ())
    return str(values[first]) if first < len(values) else "missing"


def _lowest(universe: Numeric, place: int) -> Fraction:
    """The lowest value at a place; places outside go on in steps of the grid, or of the last bin."""
    if not universe.cuts:
        return universe.value(place)
    starts = universe.bin_starts()
    if place < 0:
        return universe.low + place * universe.width
    beyond = max(0, place - len(starts))
    return universe.value(starts[place]) if place < len(starts) else universe.high + (1 + beyond) * universe.width
