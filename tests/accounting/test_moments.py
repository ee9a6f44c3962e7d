"""The price of counts, sums and squares together, enumerated: no pair of persons costs more, and one costs as much."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting import Moments

scales = st.one_of(st.none(), st.fractions(Fraction(1, 20), 20))


def sums(rows: tuple[int, ...]) -> tuple[int, int, int]:
    return len(rows), sum(rows), sum(d * d for d in rows)


def distance(one: tuple[int, ...], other: tuple[int, ...], scale: tuple[Fraction | None, ...]) -> Fraction:
    return sum(
        (abs(a - b) / s for a, b, s in zip(sums(one), sums(other), scale, strict=True) if s is not None), Fraction(0)
    )


def persons(event: Moments) -> list[tuple[int, ...]]:
    """Every set of rows that a person can have."""
    values = range(event.lowest, event.highest + 1)
    sizes = [event.rows] if event.always else range(event.rows + 1)
    return [rows for size in sizes for rows in combinations_with_replacement(values, size)]


def events(always: bool) -> st.SearchStrategy[Moments]:
    def build(low: int, span: int, rows: int, scale: list[Fraction | None]) -> Moments:
        first = None if always else scale[0]
        if first is None and scale[1] is None and scale[2] is None:
            scale[1] = Fraction(1)
        return Moments(low, low + span, rows, (first, scale[1], scale[2]), always=always)

    return st.builds(
        build, st.integers(-6, 3), st.integers(0, 8), st.integers(1, 2), st.lists(scales, min_size=3, max_size=3)
    )


@given(events(always=False))
def test_the_price_is_the_worst_pair_of_persons(event: Moments) -> None:
    found = max(distance(one, other, event.scales) for one in persons(event) for other in persons(event))
    assert found == event.loss


@given(events(always=True))
def test_where_rows_are_always_there_the_price_is_the_worst_pair_too(event: Moments) -> None:
    found = max(distance(one, other, event.scales) for one in persons(event) for other in persons(event))
    assert found == event.loss


@given(events(always=False))
def test_over_cells_a_person_leaves_one_and_another_enters_the_next(event: Moments) -> None:
    grouped = Moments(event.lowest, event.highest, event.rows, event.scales, grouped=True)
    nothing: tuple[int, ...] = ()
    worst = max(distance(one, nothing, event.scales) for one in persons(event))
    assert grouped.loss == 2 * worst
    assert grouped.loss >= event.loss


@given(events(always=False), st.fractions(Fraction(1, 10), 10))
def test_the_price_falls_in_proportion_as_all_scales_grow(event: Moments, factor: Fraction) -> None:
    wider = tuple(scale * factor if scale is not None else None for scale in event.scales)
    assert Moments(event.lowest, event.highest, event.rows, wider).loss * factor == event.loss  # type: ignore[arg-type]
