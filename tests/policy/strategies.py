"""Random policies, for properties that must hold for all of them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tidegate.policy import (
    Attribute,
    Boolean,
    Category,
    Concealment,
    Dataset,
    Date,
    EachPerson,
    EachRow,
    Grid,
    Identification,
    Integer,
    Items,
    Key,
    Loss,
    Moment,
    Numeric,
    Policy,
    Shape,
    Shapes,
    Timestamp,
)

missing = st.sampled_from(["dropped", "value"])
number_missing = st.sampled_from(["dropped", "value", "lowest"])
words = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8).filter(lambda word: word != "?")
probabilities = st.one_of(
    st.decimals(Decimal("0.001"), Decimal("0.999"), places=3),
    st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000),
)


@st.composite
def integers(draw: Any) -> Integer:
    low, size = draw(st.integers(-(10**6), 10**6)), draw(st.integers(2, 500))
    bins = draw(st.sets(st.integers(low + 1, low + size - 1), max_size=4))
    return Integer(low, low + size - 1, tuple(sorted(bins)), draw(number_missing))


@st.composite
def grids(draw: Any) -> Grid:
    low, step = draw(st.fractions(-1000, 1000, max_denominator=64)), draw(st.fractions(Fraction(1, 50), 50))
    return Grid(low, low + step * draw(st.integers(1, 300)), step, (), draw(number_missing))


@st.composite
def categories(draw: Any) -> Category:
    kind = draw(st.sampled_from([words, st.integers(-99, 99)]))
    outside = draw(st.sampled_from(["missing", "other"]))
    return Category(tuple(draw(st.lists(kind, min_size=1, max_size=6, unique=True))), draw(missing), outside)


@st.composite
def dates(draw: Any) -> Date:
    some_day = st.dates(min_value=date(1900, 1, 1), max_value=date(9000, 1, 1))
    ends = sorted([draw(some_day), draw(some_day)])
    grid = draw(st.sampled_from(["month", "quarter", "year"]))
    return Date(
        ends[0],
        max(ends[1], ends[0] + timedelta(400)),
        grid,
        draw(number_missing),
        draw(st.sampled_from(["clamp", "missing"])),
    )


@st.composite
def timestamps(draw: Any) -> Timestamp:
    start = draw(st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)))
    grid, zone = draw(st.sampled_from([("hour", "Europe/Paris"), ("hour", ""), ("30-minutes", "Asia/Kolkata")]))
    return Timestamp(start, start + timedelta(hours=draw(st.integers(2, 300))), grid, zone, draw(number_missing))


def shapes_of(attribute: Attribute) -> st.SearchStrategy[Shape]:
    """How a column may be cut."""
    if not isinstance(attribute, Numeric):
        return st.builds(Shape, ordered=st.booleans())
    if isinstance(attribute, Moment):
        return st.builds(Shape, cells=st.one_of(st.none(), st.integers(1, 50)), heaped=st.booleans())
    places = st.lists(st.integers(1, attribute.size - 1).map(attribute.value), unique=True, max_size=3).map(sorted)
    cut = st.one_of(st.builds(dict, cells=st.integers(1, 50)), st.builds(dict, edges=places))
    return st.builds(
        lambda cut, atoms, heaped: Shape(**cut, atoms=atoms, heaped=heaped),
        cut,
        st.one_of(st.none(), places),
        st.booleans(),
    )


@st.composite
def policies(draw: Any) -> Policy:
    names = draw(st.lists(words, min_size=3, max_size=6, unique=True))
    kinds = st.one_of(integers(), grids(), categories(), dates(), timestamps(), st.builds(Boolean, missing))
    attributes: dict[str, Any] = {name: draw(kinds) for name in names[:-1]}
    attributes[names[-1]] = Key()
    attributes["basket"] = Items(("milk", "bread"))
    unit = draw(st.sampled_from([EachRow(), EachPerson(names[-1], 3), EachPerson(names[-1], 1, "salt")]))
    rows = draw(st.integers(1, 10**6))
    promise = draw(st.sampled_from(["values", "persons", "none"]))
    identification = None
    if promise == "values":
        identification = Identification(
            draw(probabilities), protect=tuple(names[:2]), prior={names[0]: draw(probabilities)}
        )
    elif promise == "persons":
        known = draw(st.one_of(st.none(), st.integers(0, rows - 1)))
        identification = Identification(draw(probabilities), worlds="persons", population=rows + 7, known=known)
    loss = draw(st.one_of(st.none(), st.builds(Loss, probabilities)))
    hides = Concealment(
        reveals=names[0], about=(names[1],), releases=(names[0], names[-1]), significance=draw(probabilities)
    )
    concealments = {draw(words): hides} if draw(st.booleans()) else {}
    dataset = Dataset(
        "people",
        draw(st.sampled_from(["", "people.csv", 'a "quoted" path'])),
        unit,
        rows,
        edition=draw(st.sampled_from(["", "2026-11"])),
        records=None if isinstance(unit, EachRow) else draw(st.sampled_from([None, 10**6])),
    )
    shaped = draw(st.lists(st.sampled_from(names[:-1]), unique=True, max_size=2))
    shapes = {name: draw(shapes_of(attributes[name])) for name in shaped}
    synthesis = Shapes(shapes, {}, (names[-1],) if draw(st.booleans()) else (), draw(st.booleans()))
    return Policy(dataset, attributes, identification, loss, concealments, synthesis=synthesis)
