"""Encoding: from a person's value to its code, and from codes to text. Errors never quote a value."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from contextlib import suppress
from fractions import Fraction
from typing import Any

from tidegate.errors import Unsupported
from tidegate.exact import exact, say
from tidegate.operators.prefix import TEXT_BYTES
from tidegate.policy.attributes import Integer, Items, Numeric
from tidegate.policy.calendar import Date, Moment
from tidegate.policy.categories import Boolean, Category, Text
from tidegate.policy.collection import Question

WHOLE_NUMBERS = 10**15  # up to which `say` returns all digits


def code_of(question: Question, value: Any) -> int:
    """Return the code of a true value. One outside the bounds is moved to the nearest or refused, as `outside` says.

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
    if isinstance(universe, Text):
        return _text(question, value)
    raise Unsupported(f'"{question.attribute}" is neither a number nor a category.')


def _text(question: Question, value: Any) -> int:
    """Return 64 bits: the first bytes of a text, cut between two characters and padded with zeros, or those of its SHA-256."""
    content = b""
    if isinstance(value, str) and "\0" not in value:
        with suppress(UnicodeEncodeError):
            content = value.encode()
    if not content:
        raise Unsupported(
            f'"{question.attribute}" needs a text of at least one character.',
            "Empty answers are not sent. Nothing was sent.",
        )
    if question.parameters.get("hashed"):
        return int.from_bytes(hashlib.sha256(content).digest()[:TEXT_BYTES], "big")
    return int.from_bytes(content[:TEXT_BYTES].decode(errors="ignore").encode().ljust(TEXT_BYTES, b"\0"), "big")


def text_of(code: int) -> str | None:
    """Return the text of 64 bits, as far as it was sent; None if no text has them."""
    content = code.to_bytes(TEXT_BYTES, "big").rstrip(b"\0")
    with suppress(UnicodeDecodeError):
        if content and b"\0" not in content:
            return content.decode()
    return None


def _number(question: Question, grid: Numeric, value: Any) -> int:
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    if is_missing and getattr(grid, "missing", "") != "lowest":
        raise Unsupported(
            f'"{question.attribute}" needs {grid.comparable}; it was left empty.',
            "This collection does not accept missing answers. Nothing was sent.",
        )
    if is_missing:
        return 0
    position = _position(grid, value)
    if position is None:
        raise Unsupported(f'"{question.attribute}" needs {grid.comparable}.', f"{grid.describe()}. Nothing was sent.")
    end = grid.size if isinstance(grid, Moment) else grid.size - 1  # the last moment of a cell is in it
    is_inside = 0 <= position < end or (position == end and not isinstance(grid, Moment))
    if is_inside or getattr(grid, "outside", "clamp") == "clamp":
        nearest = math.floor(position if isinstance(grid, Moment) else position + Fraction(1, 2))
        return min(max(nearest, 0), grid.size - 1)
    if getattr(grid, "missing", "") == "lowest":
        return 0
    raise Unsupported(f'"{question.attribute}" is outside its range.', f"{grid.describe()}. Nothing was sent.")


def _position(grid: Numeric, value: Any) -> Fraction | None:
    """Return where a true value is between codes; None if it is not a value of this kind."""
    if isinstance(grid, Moment):
        return grid.position(value.strip() if isinstance(value, str) else value)
    with suppress(TypeError, ValueError):
        return grid.position(exact(value))
    return None


def _category(question: Question, universe: Category, value: Any) -> int:
    code = universe.codes.get(value) if isinstance(value, str | int) else None
    if code is not None and type(universe.values[code]) is type(value):
        return code
    if universe.outside == "other" and value is not None:
        return universe.size - 1
    if universe.missing == "value":
        return universe.size
    raise Unsupported(
        f'"{question.attribute}" must be one of its {universe.size:,} listed values.',
        f"{', '.join(_word(universe, code) for code in range(min(20, universe.size)))}{', ...' if universe.size > 20 else ''}. Nothing was sent.",
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
    """Return a code, or a run of codes, as text: ``34``, ``19 to 63``, ``2024-03-01 to 2024-03-31``, ``L1``, ``missing``."""
    universe, last = question.universe, first if last is None else last
    if isinstance(universe, Moment):
        return _span(universe, first, last)
    if (
        isinstance(universe, Integer)
        and first == last
        and not universe.cuts
        and abs(universe.low + first) < WHOLE_NUMBERS
    ):
        return f"{int(universe.low) + first:,}"  # as below, in a tenth of the time: there can be a million
    if isinstance(universe, Numeric):
        low, high = _lowest(universe, first), _lowest(universe, last + 1) - universe.width
        return say(low) if low == high else f"{say(low)} to {say(high)}"
    if isinstance(universe, Items):
        is_item = first < len(universe.vocabulary)
        return universe.vocabulary[first] if is_item else "the number of your items"
    return _word(universe, first) if isinstance(universe, Category) and first < universe.size else "missing"


def _word(universe: Category, code: int) -> str:
    value = str(universe.values[code])
    return value.lower() if isinstance(universe, Boolean) else value


def _span(universe: Moment, first: int, last: int) -> str:
    """Return the first and the last day or minute of a run of cells."""
    if isinstance(universe, Date):
        start, end = (
            universe.start(universe.origin + first).isoformat(),
            universe.end(universe.origin + last).isoformat(),
        )
    else:
        minute = Fraction(60, universe.step)
        moments = universe.shown(Fraction(first)), universe.shown(last + 1 - minute)
        start, end = (moment.isoformat(*((" ",) if hasattr(moment, "date") else ()), "minutes") for moment in moments)
    return start if start == end else f"{start} to {end}"


def _lowest(universe: Numeric, index: int) -> Fraction:
    """Return the lowest value at an index; indexes outside continue in steps of the grid or of the last bin."""
    if not universe.cuts:
        return universe.value(index)
    starts = universe.bin_starts()
    if index < 0:
        return universe.low + index * universe.width
    beyond = max(0, index - len(starts))
    return universe.value(starts[index]) if index < len(starts) else universe.high + (1 + beyond) * universe.width
