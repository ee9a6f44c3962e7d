"""The price of counts, sums and squares together, enumerated: the maximum over all pairs of persons."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting import Moments

scales = st.one_of(st.none(), st.fractions(Fraction(1, 20), 20))


def sums(rows: tuple[int, ...]) -> tuple[int, int, int]:
    return len(rows), sum(rows), sum(d * d for d in rows)


def distance(first: tuple[int, ...], second: tuple[int, ...], scale: tuple[Fraction | None, ...]) -> Fraction:
    return sum(
        (abs(a - b) / s for a, b, s in zip(sums(first), sums(second), scale, strict=True) if s is not None), Fraction(0)
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
def test_price_equals_the_worst_pair_of_persons(event: Moments) -> None:
    worst = max(distance(first, second, event.scales) for first in persons(event) for second in persons(event))
    assert worst == event.loss


@given(events(always=True))
def test_price_of_a_public_number_of_rows_equals_the_worst_pair(event: Moments) -> None:
    worst = max(distance(first, second, event.scales) for first in persons(event) for second in persons(event))
    assert worst == event.loss


@given(events(always=False))
def test_grouped_price_covers_leaving_and_entering_a_cell(event: Moments) -> None:
    grouped = Moments(event.lowest, event.highest, event.rows, event.scales, grouped=True)
    nothing: tuple[int, ...] = ()
    worst = max(distance(first, nothing, event.scales) for first in persons(event))
    assert grouped.loss == 2 * worst
    assert grouped.loss >= event.loss


@given(events(always=False), st.fractions(Fraction(1, 10), 10))
def test_price_is_inversely_proportional_to_the_scales(event: Moments, factor: Fraction) -> None:
    wider = tuple(scale * factor if scale is not None else None for scale in event.scales)
    assert Moments(event.lowest, event.highest, event.rows, wider).loss * factor == event.loss  # type: ignore[arg-type]
