"""Public cells from the policy alone, and codes back to the policy's values."""

from __future__ import annotations

import datetime as dt
import itertools
import warnings
from dataclasses import replace
from decimal import Decimal as Number
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.strategies import categories, grids, integers
from support.towns import ATTRIBUTES, policy

from tidegate.errors import UnknownColumn, Unsupported
from tidegate.policy import (
    Category,
    Dataset,
    Date,
    Decimal,
    Follows,
    Grid,
    Integer,
    Key,
    Loss,
    Order,
    Policy,
    Shape,
    Shapes,
)
from tidegate.synthesize.columns import column_of, columns_of, values_of


def test_short_columns_have_a_cell_for_every_value() -> None:
    for attribute in (Category(("b", "a")), Integer(17, 90, bins=(30,)), Integer(1, 160), Grid(0, 1, "0.01")):
        column = column_of("x", attribute, Shape())
        assert column.starts == tuple(range(attribute.size))
        assert not column.adaptive
    assert not column_of("x", Category(("b", "a")), Shape()).ordered
    assert column_of("x", Category(("b", "a")), Shape(ordered=True)).ordered
    assert not column_of("x", Grid(0, 1, "0.01"), Shape()).whole
    names = Category(tuple(f"town {n}" for n in range(300)))
    assert column_of("x", names, Shape()).starts == tuple(range(300))


GOLDEN = (
    *(0, 1, 2, 4, 6, 9, 13, 21, 32, 49, 62, 75, 115, 125, 178, 187, 250, 274, 312, 375, 422, 437, 500, 562, 625, 649),
    *(687, 750, 812, 875, 937, 999),
)


def test_wide_numbers_and_dates_start_with_few_cells_and_are_adaptive() -> None:
    days = Date(dt.date(2015, 1, 1), dt.date(2017, 9, 26))
    for attribute in (Integer(1, 1_000), Grid(0, "99.9", "0.1"), days):
        column = column_of("x", attribute, Shape())
        assert (column.starts, column.adaptive, column.even) == (GOLDEN, True, True)
    assert column_of("x", Integer(0, 160), Shape()).adaptive
    assert column_of("x", Integer(0, 2**53 - 1), Shape()).starts[-1] == 2**53 - 1
    atoms = column_of("x", Integer(0, 999), Shape(atoms=(500, 800), heaped=True))
    assert atoms.starts == tuple(sorted({*GOLDEN, 501, 800, 801}))


def test_declared_cells_edges_bins_and_scales_are_not_adaptive() -> None:
    for shape in (Shape(cells=7), Shape(edges=(9,)), Shape("log")):
        assert not column_of("x", Integer(0, 9_999), shape).adaptive
    assert not column_of("x", Integer(0, 9_999, bins=(100,)), Shape()).adaptive


def test_table_of_45_columns_needs_no_section_for_synthesis() -> None:
    attributes = {f"x{n}": Integer(0, 10**6) for n in range(15)} | {f"d{n}": Grid(0, 9, "0.001") for n in range(15)}
    attributes |= {f"c{n}": Category(("a", "b")) for n in range(15)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = columns_of(Policy(Dataset("d"), attributes, None, Loss(1)))
    assert len(columns.learnt) == 45
    assert columns.says() == []
    assert max(column.cells for column in columns.learnt) <= 33


def test_models_before_forest_2_keep_their_public_cells() -> None:
    """Stored tables are drawn from their diaries again, whose numbers belong to these cells."""
    column = column_of("weight", Integer(0, 1_500_000), Shape(), adaptive=False)
    assert column.starts[:2] == (0, 1)
    assert column.starts[-1] == 1_500_000
    widths = np.diff(column.starts[2:-1])
    assert (len(column.starts), widths.min(), widths.max()) == (152, 10_000, 10_000)
    assert column.starts[2] == 10_000
    assert not column.adaptive
    assert column_of("x", Integer(1, 512), Shape(), adaptive=False).starts == tuple(range(512))


def test_declared_bins_edges_cells_and_atoms_are_used() -> None:
    wide = Integer(0, 9_999, bins=(100, 5_000))
    assert column_of("x", wide, Shape()).starts == (0, 100, 5_000)
    assert column_of("x", wide, Shape(edges=(7,), atoms=(3,))).starts == (0, 3, 4, 7)
    assert column_of("x", wide, Shape(cells=4, atoms=())).starts == (0, 2_500, 5_000, 7_500)
    assert column_of("x", Integer(1, 10), Shape(cells=2)).starts == (0, 5)
    assert column_of("x", Grid(0, 10_000, "0.5"), Shape(edges=("2.25",), atoms=())).starts == (0, 5)  # from 2.5 on


def test_log_cells_start_above_zero_and_grow_by_a_constant_factor() -> None:
    column = column_of("gain", Integer(0, 99_999), Shape("log", 39, atoms=(0, 99_999)))
    assert column.starts[:2] == (0, 1)
    assert column.starts[-1] == 99_999
    assert not column.even
    inner = [start for start in column.starts if 50 < start < 99_999]
    ratios = [b / a for a, b in itertools.pairwise(inner)]
    assert max(ratios) / min(ratios) == pytest.approx(1, abs=0.03)
    assert column_of("x", Integer(5, 50_000), Shape("log")).starts[0] == 0
    assert column_of("x", Integer(0, 1), Shape("log", 3)).starts == (0,)


def test_missing_adds_a_cell_if_it_is_a_value() -> None:
    assert column_of("x", Integer(1, 3, missing="value"), Shape()).cells == 4
    assert column_of("x", Integer(1, 3, missing="lowest"), Shape()).cells == 3


def test_column_with_too_many_values_is_refused() -> None:
    with pytest.raises(Unsupported, match="possible values"):
        column_of("x", Integer(0, 2**60), Shape())


def test_keys_sets_and_excluded_columns_are_left_out_and_listed() -> None:
    columns = columns_of(replace(policy(), synthesis=Shapes(leave_out=("pay",))))
    assert [column.name for column in columns.learnt] == ["age", "gain", "town", "zip"]
    assert columns.left_out == {"person": "a key", "pay": "by the policy", "basket": "a set of items"}
    assert "person is left out (a key)" in columns.says()


def test_requested_columns_are_learned_even_if_their_source_is_not() -> None:
    assert [column.name for column in columns_of(policy(), ("zip", "age")).learnt] == ["age", "zip"]
    with pytest.raises(UnknownColumn, match='Did you mean "age"'):
        columns_of(policy(), ("agee",))
    with pytest.raises(Unsupported, match="no column to learn"):
        columns_of(policy(), ("person",))


def test_codes_become_policy_values_and_integers_stay_integers() -> None:
    columns = columns_of(policy())
    assert [column.name for column in columns.learnt] == ["age", "pay", "gain", "town"]
    table = columns.to_arrow(np.array([[0, 0, 7, 0], [73, 36, 99_999, 3], [72, 1, 0, 2]]))
    assert table.to_pydict() == {
        "age": [18, None, 90],
        "pay": [0.5, 9.5, 0.75],
        "gain": [7, 99_999, 0],
        "town": ["Aby", None, "Ceder"],
        "zip": [1, None, 9],
    }
    assert table.schema.field("age").type == pa.int64()


def test_very_large_integers_keep_every_digit() -> None:
    assert values_of(Integer(2**60, 2**60 + 5), np.array([3])).to_pylist() == [2**60 + 3]


def test_fresh_keys_are_row_numbers() -> None:
    columns = columns_of(replace(policy(), synthesis=Shapes(fresh_keys=True)))
    assert columns.to_arrow(np.zeros((3, 5), np.int64))["person"].to_pylist() == [1, 2, 3]
    assert "person contains row numbers instead of keys" in columns.says()


def test_column_can_follow_integers_and_booleans() -> None:
    attributes = {
        "level": Integer(1, 3),
        "name": Category(("low", "high")),
        "ok": Category((False, True)),
        "x": Grid(0, 1, "0.1"),
    }
    shapes = Shapes(
        follows={
            "name": Follows("level", {"1": "low", "2": "low", "3": "high"}),
            "x": Follows("ok", {"false": 0, "true": "0.3"}),
        }
    )
    with pytest.raises(Exception, match="cannot have"):
        Policy(Dataset("d"), attributes, None, Loss(1), synthesis=shapes)
    shapes = replace(shapes, follows={**shapes.follows, "x": Follows("ok", {"false": 0, "true": 0.3})})
    columns = columns_of(Policy(Dataset("d"), attributes, None, Loss(1), synthesis=shapes))
    assert columns.to_arrow(np.array([[0, 1], [2, 0]])).to_pydict() == {
        "level": [1, 3],
        "name": ["low", "high"],
        "ok": [True, False],
        "x": [0.3, 0.0],
    }


def test_chain_of_computed_columns_is_attached_in_order() -> None:
    attributes = {
        "code": Integer(1, 9),
        "total": Decimal("0", "200", "0.1"),
        "region": Category(("north", "south")),
        "town": Category(("Aby", "Berg"), "value"),
        "drugs": Grid(0, 100, "0.5", missing="value"),
        "visits": Integer(0, 50),
        "double": Grid(0, 300, "0.1"),
    }
    shapes = Shapes(
        follows={
            "region": Follows("town", {"Aby": "north", "Berg": "south"}),
            "code": Follows("region", {"north": 1, "south": 9}),
        },
        sums={"double": ("total", "code", "visits"), "total": ("drugs", "visits")},
    )
    columns = columns_of(Policy(Dataset("d"), attributes, None, Loss(1), synthesis=shapes))
    assert [column.name for column in columns.learnt] == ["town", "drugs", "visits"]
    assert columns.names == tuple(attributes)
    table = columns.to_arrow(np.array([[0, 3, 7], [1, 201, 50], [2, 200, 0]]))
    assert table.to_pydict() == {
        "code": [1, 9, None],
        "total": [Number("8.5"), None, Number(100)],
        "region": ["north", "south", None],
        "town": ["Aby", "Berg", None],
        "drugs": [1.5, None, 100.0],
        "visits": [7, 50, 0],
        "double": [16.5, None, None],
    }
    assert "code follows from region" in columns.says()
    assert "total is the sum of drugs, visits" in columns.says()
    alone = columns_of(columns.policy, ("total", "visits", "code"))
    assert [column.name for column in alone.learnt] == ["code", "total", "visits"]


def test_ordered_dates_in_months_are_ordered_by_day() -> None:
    attributes: dict[str, Any] = {
        name: Date(dt.date(2020, 1, 1), dt.date(2020, 12, 31), "month") for name in ("first", "middle", "last")
    }
    shapes = Shapes(orders={"middle": Order("first"), "last": Order("middle", "clip")})
    columns = columns_of(Policy(Dataset("d"), attributes, None, Loss(1), synthesis=shapes))
    assert [column.name for column in columns.learnt] == ["first", "middle - first", "last - middle"]
    assert "middle is first plus a learned gap" in columns.says()
    table = columns.to_arrow(np.tile(np.array([4, 0, 0]), (2_000, 1)), seed=3)
    first, middle, last = (table[name].to_pylist() for name in attributes)
    assert all(a <= b <= c for a, b, c in zip(first, middle, last, strict=True))
    assert {day.month for day in last} == {5}
    assert len(set(first)) == 31


def test_parts_of_a_long_table_have_their_own_numbers_and_days() -> None:
    attributes = {"id": Key(), "month": Date(dt.date(2020, 1, 1), dt.date(2020, 12, 31), "month")}
    columns = columns_of(Policy(Dataset("d"), attributes, None, Loss(1), synthesis=Shapes(fresh_keys=True)))
    codes = np.zeros((200, 1), np.int64)
    first, second = columns.to_arrow(codes, seed=1), columns.to_arrow(codes, seed=1, first=200)
    assert second["id"].to_pylist() == list(range(201, 401))
    assert first["month"] != second["month"]
    assert first == columns.to_arrow(codes, seed=1)


@given(st.one_of(integers(), grids(), categories()))
def test_every_code_becomes_its_nearest_value(attribute: Any) -> None:
    codes = np.arange(min(attribute.size, 50))
    values = values_of(attribute, np.append(codes, attribute.size)).to_pylist()
    assert values[-1] is None
    if isinstance(attribute, Category):
        others = {str: lambda: "(other)", int: lambda: max(attribute.listed) + 1, bool: lambda: None}
        other = others[attribute.value_type]()
        assert values[:-1] == [*attribute.listed, other][: attribute.size]
    else:
        assert values[:-1] == [float(attribute.value(int(code))) for code in codes]


@given(st.integers(1, 10**7), st.integers(1, 400), st.sampled_from(["linear", "log"]), st.integers(0, 5))
def test_cells_start_at_0_and_increase(size: int, cells: int, scale: str, low: int) -> None:
    column = column_of("x", Integer(low, low + size - 1), Shape(scale, cells))  # type: ignore[arg-type]
    assert column.starts[0] == 0  # Column itself refuses cells that do not rise
    assert len(column.starts) <= cells + 4


def test_facts_contain_no_keys() -> None:
    assert all(not isinstance(ATTRIBUTES[column.name], Key) for column in columns_of(policy()).learnt)
