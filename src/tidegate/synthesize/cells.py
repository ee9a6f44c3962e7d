"""The public cells of a column, or the start cells of one whose cells a model finds from the rows.

A category has one cell per value, and so does a number with at most 160 values. A number, a date or a time with more values is
adaptive: it has a few start cells, and a model finds its cells from the rows. Declared cells, edges and bins are used instead.
The models before forest/2 need public cells (`adaptive=False`): one per value up to 512 values, else 150 of equal width and the
two ends, or days, months or years, or quarters of an hour. Stored tables depend on that rule, so it never changes.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal
from fractions import Fraction

from tidegate.errors import Unsupported
from tidegate.policy import Attribute, Category, Gap, Integer, Moment, Numeric, Shape, Time
from tidegate.synthesize.facts import Column

MOST_SINGLE = 160  # values up to which every value of a number has its own cell
ONE_EACH = 512  # the same without adaptive cells
EVEN_CELLS, LOG_CELLS = 150, 40
MOST_VALUES = 2**53  # every engine's floating point represents codes up to here exactly
EXACTLY = Context(prec=40)  # logarithms to 40 digits: the same cells on every machine


def column_of(name: str, attribute: Attribute, shape: Shape, *, adaptive: bool = True) -> Column:
    """Return one column with its public cells, or with its start cells if it is adaptive."""
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
    adaptive = adaptive and _is_adaptive(attribute, shape)
    return Column(
        name,
        attribute.size,
        _start_cells(attribute, shape) if adaptive else starts_of(attribute, shape),
        even=shape.scale == "linear",
        missing=missing,
        heaped=shape.heaped,
        whole=isinstance(attribute.upper if isinstance(attribute, Gap) else attribute, Integer),
        adaptive=adaptive,
    )


def _is_adaptive(attribute: Numeric, shape: Shape) -> bool:
    """Return whether a model finds the cells: there are many values, and the policy does not say how to divide them."""
    declared = shape.cells is not None or shape.edges or attribute.cuts or shape.scale != "linear"
    return attribute.size > MOST_SINGLE and not declared


def _start_cells(attribute: Numeric, shape: Shape) -> tuple[int, ...]:
    """Return the cells that an adaptive column starts with; declared atoms have their own."""
    from tidegate.synthesize.mechanisms.forest.cells import start_cells

    atoms = [grid_code(attribute, atom) for atom in shape.atoms or ()]
    starts = {*start_cells(attribute.size), *atoms, *(code + 1 for code in atoms)}
    return tuple(sorted(start for start in starts if start < attribute.size))


def starts_of(attribute: Numeric, shape: Shape) -> tuple[int, ...]:
    """Return the first code of every cell of a number."""
    inner, atoms = _inner_starts(attribute, shape), shape.atoms
    if atoms is None:
        whole = attribute.size > ONE_EACH and not shape.edges and not attribute.cuts
        whole = whole and not (isinstance(attribute, Moment) and getattr(attribute, "outside", "") == "missing")
        atoms = (attribute.low, attribute.high) if whole else ()
    single_codes = [grid_code(attribute, atom) for atom in atoms]
    starts = {0, *inner, *single_codes, *(code + 1 for code in single_codes)}
    return tuple(sorted(start for start in starts if start < attribute.size))


def _inner_starts(attribute: Numeric, shape: Shape) -> list[int]:
    if shape.edges:
        return [math.ceil((edge - attribute.low) / attribute.width) for edge in shape.edges]
    if shape.cells is None and attribute.size <= ONE_EACH:
        return list(range(attribute.size))
    if shape.cells is None and isinstance(attribute, Moment):
        return _calendar_starts(attribute)
    if shape.cells is None and attribute.cuts and shape.scale == "linear":
        return list(attribute.bin_starts())
    if shape.scale == "log":
        return _log_starts(attribute, shape.cells or LOG_CELLS)
    count = min(shape.cells or EVEN_CELLS, attribute.size)
    return [attribute.size * n // count for n in range(count)]


def _calendar_starts(attribute: Moment) -> list[int]:
    """Return the first code of every day, month or year (of every quarter of an hour of a day): the finest of at most 512."""
    if isinstance(attribute, Time):
        return list(range(-attribute.origin % (900 // attribute.step), attribute.size, 900 // attribute.step))
    first, last = attribute.label(0), attribute.label(attribute.size - 1)
    days = [dt.date.fromordinal(n) for n in range(first.toordinal(), last.toordinal() + 1)]
    for unit in (days, [day for day in days if day.day == 1], [day for day in days if (day.month, day.day) == (1, 1)]):
        if len(unit) <= ONE_EACH:
            break
    return [
        0,
        *(math.ceil(position) for day in unit if (position := attribute.position(day)) is not None and position > 0),
    ]


def _log_starts(attribute: Numeric, count: int) -> list[int]:
    """Return cells whose ends grow by a constant factor, from the first value above zero to the last."""
    first = attribute.low if attribute.low > 0 else attribute.low + attribute.width
    if first >= attribute.high:
        return [0]
    start, whole = exact_decimal(first), EXACTLY.ln(exact_decimal(attribute.high / first))
    parts = [EXACTLY.divide(EXACTLY.multiply(whole, Decimal(n)), Decimal(count)) for n in range(count)]
    edges = [EXACTLY.multiply(start, EXACTLY.exp(part)) for part in parts]
    return [
        grid_code(attribute, first),
        *(math.ceil((Fraction(e) - attribute.low) / attribute.width) for e in edges[1:]),
    ]


def exact_decimal(value: Fraction) -> Decimal:
    """Return a fraction as a decimal number of at most 40 digits."""
    return EXACTLY.divide(Decimal(value.numerator), Decimal(value.denominator))


def grid_code(attribute: Numeric, value: Fraction) -> int:
    """Return the code of a number on its grid."""
    return int((value - attribute.low) / attribute.width)
