"""SQL expressions on every engine: the same integers as a twin in Python that evaluates each row by itself."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.tables import code_of, counted_rows
from tables.conftest import ATTRIBUTES, EACH_ROW, POLICIES, SCHEMA, arrow, rows

from tidegate.answer import Query, count, distinct, persons, sum
from tidegate.answer.mechanisms import mechanism_for
from tidegate.errors import Unsupported
from tidegate.policy import Category, Dataset, Date, Grid, Integer, Items, Numeric, Policy, Time, Timestamp
from tidegate.policy.predicates import col
from tidegate.tables import Table, mappings, open_table, tabulation
from tidegate.tables.expressions import holds, parse_expression, rename_condition
from tidegate.tables.mappings import DROPPED, Mapped, regular_cells
from tidegate.tables.tabulation import values_of as universe_of
from tidegate.tables.universe import truth_of

Values = dict[str, Any]


def values_of(row: Values) -> Values:
    """Return the values of a row on the public grids; None for missing ones."""
    values = {}
    for name, attribute in ATTRIBUTES.items():
        if attribute.kind == "key":
            values[name] = row[name]
            continue
        code: Any = code_of(row[name], attribute)
        known = code is not None and 0 <= code < attribute.size
        label = attribute.label(code) if known else None
        values[name] = float(label) if isinstance(attribute, Numeric) and label is not None else label
    return values


def decade(v: Values) -> Any:
    return None if v["age"] is None else v["age"] // 10 * 10


def even_town(v: Values) -> Any:
    return v["town"] if v["age"] is not None and v["age"] % 2 == 0 else None


GROUPED: dict[str, Callable[[Values], Any]] = {
    "age // 10 * 10": decade,
    "CASE WHEN age % 2 = 0 THEN town END": even_town,
    "COALESCE(town, 'nowhere')": lambda v: v["town"] or "nowhere",
    "pay > 0": lambda v: None if v["pay"] is None else v["pay"] > 0,
}
ABOVE = "age / 16 - 2 > pay"  # for each pay, one interval of ages


def is_above(v: Values) -> Any:
    return None if v["age"] is None or v["pay"] is None else v["age"] / 16 - 2 > v["pay"]


CONDITIONS: dict[str, Callable[[Values], Any]] = {
    "UPPER(town) LIKE '%B%'": lambda v: v["town"] is not None and "B" in v["town"].upper(),
    "age % 2 = 0": lambda v: v["age"] is not None and v["age"] % 2 == 0,
    "age + 10 * sex > 50 OR town IS NULL": lambda v: (
        (v["age"] is not None and v["sex"] is not None and v["age"] + 10 * v["sex"] > 50) or v["town"] is None
    ),
    ABOVE: is_above,
    f"({ABOVE}) IS NULL": lambda v: is_above(v) is None,
    "age % 3 > pay": lambda v: v["age"] is not None and v["pay"] is not None and v["age"] % 3 > v["pay"],
    "NOT member": lambda v: v["member"] is False,
    "WIDTH_BUCKET(age, 20, 60, 4) = 2": lambda v: v["age"] is not None and 30 <= v["age"] < 40,
}
SUMMED: dict[str, Callable[[Values], Any]] = {
    "2 * pay + 1": lambda v: None if v["pay"] is None else 2 * v["pay"] + 1,
    "7 - age": lambda v: None if v["age"] is None else 7 - v["age"],
    "age * sex": lambda v: None if v["age"] is None or v["sex"] is None else v["age"] * v["sex"],
    "CASE WHEN town = 'Aby' THEN age ELSE 1 END": lambda v: v["age"] if v["town"] == "Aby" else 1,
}


@pytest.fixture
def on_any_engine(
    request: pytest.FixtureRequest, engine_name: str, parquet: Path, tmp_path: Path
) -> Callable[[Policy], Table]:
    if engine_name == "sqlite":
        connection = ibis.sqlite.connect(tmp_path / "people.sqlite")
        connection.create_table("people", arrow(rows()))
        return lambda policy: open_table(policy, connection.table("people"))
    if engine_name == "postgres":
        url = request.getfixturevalue("people_in_postgres")
        return lambda policy: open_table(policy, url)
    if engine_name == "spark":
        request.getfixturevalue("spark")
        return lambda policy: open_table(policy, f"spark://local[2]?parquet={parquet}")
    return lambda policy: open_table(policy, parquet)


@pytest.fixture(params=["duckdb", "postgres", "sqlite", pytest.param("spark", marks=pytest.mark.spark)])
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list(POLICIES))
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES[request.param]


def counted(policy: Policy) -> list[Values]:
    """Return the rows that count, by the twin: at most k of each person."""
    return [values_of(row) for row in counted_rows(rows(), policy)]


def cells(query: Query, table: Table) -> dict[Any, int]:
    from tidegate.answer.mechanisms.mechanism import axes_of

    numbers = mechanism_for(query).exact(query, table).numbers[0]
    labels = axes_of(query, table.policy)[0].labels()
    return {label: int(number) for label, number in zip(labels, numbers, strict=True) if number}


@pytest.mark.one_in(2)
def test_groups_and_conditions_equal_the_twin(on_any_engine: Callable[[Policy], Table], policy: Policy) -> None:
    table, twin = on_any_engine(policy), counted(policy)
    for text, evaluate in GROUPED.items():
        expected = Counter(evaluate(values) for values in twin)
        numbers = cells(count().by(text), table)
        dropped = set(expected) - set(numbers)
        assert {label: n for label, n in expected.items() if label not in dropped} == numbers
        assert dropped <= {None}
    for text, is_true in CONDITIONS.items():
        query = count().where(text)
        expected_count = len([values for values in twin if is_true(values)])
        assert int(mechanism_for(query).exact(query, table).numbers[0]) == expected_count, text


@pytest.mark.one_in(2)
def test_sums_equal_the_twin(on_any_engine: Callable[[Policy], Table], policy: Policy) -> None:
    table, twin = on_any_engine(policy), counted(policy)
    for text, evaluate in SUMMED.items():
        query = sum(text)
        terms = [value for values in twin if (value := evaluate(values)) is not None]
        event = mechanism_for(query).event(query, policy, epsilon=1)  # type: ignore[arg-type]
        exact = mechanism_for(query).exact(query, table).numbers[0]
        stored = {"moments": [None, exact.tolist() if hasattr(exact, "tolist") else int(exact), None]}
        read = mechanism_for(query).read(query, policy, event, stored, confidence=0.95)
        assert math.isclose(float(read.noisy), math.fsum(terms), rel_tol=1e-9, abs_tol=1e-6), text


@pytest.mark.one_in(2)
def test_distinct_values_and_persons_equal_the_twin(on_any_engine: Callable[[Policy], Table], policy: Policy) -> None:
    table, twin = on_any_engine(policy), counted(policy)
    query = distinct("age // 5").by("town")
    pairs = {(v["town"], v["age"] // 5) for v in twin if v["age"] is not None}
    assert cells(query, table) == dict(Counter(town for town, _ in pairs))
    if policy is POLICIES["each person"]:
        by_town = persons().where("age % 2 = 0").by("CASE WHEN age % 2 = 0 THEN town END")
        members = {(v["person"], even_town(v)) for v in twin if v["age"] is not None and v["age"] % 2 == 0}
        expected = Counter(town for _, town in members)
        assert cells(by_town, table) == {label: n for label, n in expected.items() if label in cells(by_town, table)}
        above = {(v["person"], is_above(v)) for v in twin}
        assert cells(persons().by(ABOVE), table) == dict(Counter(outcome for _, outcome in above))
        everyone = {row["person"] for row in rows() if row["person"] is not None}
        assert int(mechanism_for(persons()).exact(persons(), table).numbers[0]) == len(everyone)


def test_conditions_are_looked_up_by_intervals_if_these_are_few() -> None:
    policy = POLICIES[EACH_ROW]
    short = truth_of(policy, ABOVE).shortest
    assert not short.has_few_runs
    assert short.intervals is not None
    assert len(short.intervals.numbers) < 60
    assert truth_of(policy, "age % 3 > pay").shortest.intervals is None, "as many intervals as combinations"


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 2**32),
    smooth=st.booleans(),
    most=st.integers(0, 40),
)
def test_intervals_have_the_number_of_every_combination(
    sizes: tuple[int, ...], seed: int, smooth: bool, most: int
) -> None:
    draw = np.random.default_rng(seed)
    codes = draw.integers(DROPPED, most, math.prod(sizes), endpoint=True)
    codes = np.sort(codes.reshape(sizes), axis=-1).reshape(-1) if smooth else codes
    mapped = Mapped(tuple("abc"[: len(sizes)]), sizes, codes)
    intervals = mapped.intervals
    if intervals is None:
        return
    looked_up = np.full(len(codes), mapped.usual)
    for prefix, packed in zip(intervals.prefixes.tolist(), intervals.packed.tolist(), strict=True):
        first, last = divmod(packed // intervals.factor, intervals.width)
        start = prefix * intervals.width
        assert (looked_up[start + first : start + last + 1] == mapped.usual).all(), "disjoint"
        looked_up[start + first : start + last + 1] = packed % intervals.factor + DROPPED
    assert (looked_up == codes).all()
    assert 4 * mapped.listed <= int((codes != mapped.usual).sum())


IN_PARTS: dict[str, Callable[[Values], Any]] = {  # conditions whose columns occur in parts that have fewer values
    "FLOOR(age / 10) > 2 * FLOOR(pay)": lambda v: (
        v["age"] is not None and v["pay"] is not None and v["age"] // 10 > 2 * math.floor(v["pay"])
    ),
    "CASE WHEN age IN (20, 30, 31, 44) THEN 1 ELSE 0 END = CASE WHEN pay > 1 THEN 1 ELSE 0 END": lambda v: (
        (v["age"] in (20, 30, 31, 44)) == (v["pay"] is not None and v["pay"] > 1)
    ),
    "COALESCE(age // 20, 9) = 9 OR FLOOR(pay) = 1": lambda v: (
        v["age"] is None or (v["pay"] is not None and v["pay"] // 1 == 1)
    ),
}


@pytest.mark.one_in(2)
def test_conditions_on_classes_of_codes_equal_the_twin(
    on_any_engine: Callable[[Policy], Table], policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulation, "MOST_COMBINATIONS", 300)  # age and pay have 784
    with pytest.raises(Unsupported, match="too many for one expression"):
        count().where("age > 16 * pay + 1").check(policy)
    table, twin = on_any_engine(policy), counted(policy)
    for text, is_true in IN_PARTS.items():
        assert truth_of(policy, text).classes
        query = count().where(text)
        assert int(mechanism_for(query).exact(query, table).numbers[0]) == len([v for v in twin if is_true(v)]), text
    numbers = cells(count().by("FLOOR(age / 30) = FLOOR(pay)"), table)
    pairs = [None if None in (v["age"], v["pay"]) else v["age"] // 30 == v["pay"] // 1 for v in twin]
    assert {label: numbers.get(label, 0) for label in (True, False)} == {
        label: pairs.count(label) for label in (True, False)
    }


DAYS = Date(dt.date(2024, 2, 20), dt.date(2024, 4, 10))
HOURS = Timestamp(dt.date(2024, 3, 29), dt.date(2024, 4, 2), "hour", "Europe/Paris")
QUARTERS = Time(dt.time(7), dt.time(9), "15-minutes")
MOMENTS = Policy(
    Dataset("moments"),
    {
        "day": DAYS,
        "hour": HOURS,
        "clock": QUARTERS,
        "code": Category(("a1", "a2", "b1"), "value"),
        "n": Integer(-9, 40, (), "value"),
    },
)


@pytest.mark.parametrize(
    "text",
    [
        "DATE_DIFF('month', day, hour)",
        "DATE_DIFF('day', hour, day) > 3",
        "CAST(hour AS DATE) - CAST(DATE_TRUNC('week', day) AS DATE)",
        "CASE WHEN CAST(hour AS DATE) = day THEN 'same' WHEN MONTH(day) = 4 THEN 'april' END",
        "EXTRACT(isodow FROM day) = n % 7",
        "SUBSTRING(code, 1, 1) = 'a' AND EXTRACT(hour FROM clock) = 8 AND ABS(n) > 3",
        "COALESCE(SUBSTRING(code, 1, 1), '?') LIKE 'a!%' ESCAPE '!' OR n IS NULL",
        "CASE WHEN n BETWEEN 0 AND 9 THEN FLOOR(n / 5) ELSE -1 END + CASE WHEN code IN ('a1', 'b1') THEN 1 ELSE 0 END",
        "NULLIF(SIGN(n), 0) * LENGTH(code)",
    ],
)
def test_classes_of_codes_give_the_value_of_every_combination(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tabulation.tabulate(MOMENTS, text)
    assert not whole.classes
    parts = tabulation.classes_of(MOMENTS, parse_expression(text), whole.names)
    assert parts is not None
    monkeypatch.setattr(tabulation, "MOST_COMBINATIONS", math.prod(whole.sizes) - 1)
    short = tabulation.tabulate(MOMENTS, text)
    assert math.prod(short.sizes) < math.prod(whole.sizes)
    assert short.sizes == tuple(classes[-1] + 1 for classes in short.classes)
    codes = np.indices(whole.sizes).reshape(len(whole.sizes), -1)
    positions = np.ravel_multi_index(
        [classes[of] for classes, of in zip(short.classes, codes, strict=True)], short.sizes
    )
    assert short.values.take(pa.array(positions)).to_pylist() == whole.values.to_pylist()
    for classes, size in zip(short.classes, short.sizes, strict=True):
        assert (classes == size - 1).sum() == 1, "only the missing value is in the last class"


@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=12), is_regular=st.booleans())
def test_regular_cells_are_those_of_their_arithmetic(lengths: list[int], is_regular: bool) -> None:
    lengths = (
        [min(lengths[0], 4), *([4] * (len(lengths) - 2)), min(lengths[-1], 4)][: len(lengths)]
        if is_regular
        else lengths
    )
    classes = np.repeat(np.arange(len(lengths)), lengths)
    cells_of_codes = regular_cells(classes)
    if cells_of_codes is not None:
        offset, width = cells_of_codes
        assert ((np.arange(len(classes)) + offset) // width == classes).all()
    elif is_regular:
        pytest.fail(f"{lengths} are regular")


def test_length_of_a_stay_between_two_hours_is_counted_in_days() -> None:
    start, draw = dt.datetime(2023, 1, 1), random.Random(4)
    hours = Timestamp(start.date(), dt.date(2024, 12, 31), "hour")
    policy = Policy(Dataset("stays", rows=500), {"admitted": hours, "discharged": hours})
    stays = [(begin, begin + draw.randrange(400)) for begin in (draw.randrange(16_000) for _ in range(500))]
    columns = [[start + dt.timedelta(hours=hour) for hour in column] for column in zip(*stays, strict=True)]
    table = open_table(policy, pa.table(dict(zip(("admitted", "discharged"), columns, strict=True))))
    query = count().where("DATE_DIFF('day', admitted, discharged) > 7")
    assert int(mechanism_for(query).exact(query, table).numbers[0]) == len(
        [1 for a, b in stays if b // 24 - a // 24 > 7]
    )
    with pytest.raises(Unsupported, match=r"CAST\(x AS DATE\)"):
        count().where("discharged - admitted > INTERVAL 7 DAYS").check(policy)


@given(
    low=st.decimals(-(10**9), 10**9, places=0),
    step=st.decimals("0.00001", 50, places=5),
    size=st.integers(1, 60),
)
def test_values_of_a_grid_are_exact(low: Decimal, step: Decimal, size: int) -> None:
    grid = Grid(str(low), str(low + step * (size - 1)), str(step))
    values = universe_of(grid).to_pylist()
    assert [Fraction(value) for value in values[:-1]] == [grid.value(code) for code in range(size)]
    assert values[-1] is None


def test_values_of_a_grid_without_decimals_are_floats() -> None:
    thirds = Grid(0, 2, "1/3")
    assert universe_of(thirds).to_pylist() == [*(float(thirds.value(code)) for code in range(7)), None]


def test_intervals_are_packed_only_if_engines_divide_them_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.repeat([0, 1, 0, 2], 25)
    intervals = Mapped(("a", "b"), (4, 25), codes).intervals
    assert intervals is not None
    assert (intervals.factor, intervals.width) == (4, 25)
    for most, is_packed in ((4 * (25**2 + 1) + 1, True), (4 * (25**2 + 1), False)):
        monkeypatch.setattr(mappings, "MOST_PACKED", most)
        assert (Mapped(("a", "b"), (4, 25), codes).intervals is not None) == is_packed


@pytest.mark.parametrize(
    ("text", "what", "do"),
    [
        ("person = 'p1'", '"person" ', "COUNT(DISTINCT ...) is possible for a key."),
        ("basket = 'milk'", '"basket" has no listed values', "Use another column."),
        (" AND ".join(["age + pay > 1"] * 20), "age + pay > 1 AND age + pay > 1", "Use coarser parts"),
    ],
)
def test_expression_without_a_universe_is_refused_with_a_next_step(
    text: str, what: str, do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulation, "MOST_COMBINATIONS", 300)
    policy = Policy(Dataset("people"), {**ATTRIBUTES, "basket": Items(("milk", "bread"))})
    with pytest.raises(Unsupported) as raised:
        tabulation.tabulate(policy, text)
    assert raised.value.what.startswith(what)
    assert raised.value.do.startswith(do)
    assert len(raised.value.what) < 200


def test_condition_on_two_dates_of_many_days_is_answered() -> None:
    start, days = dt.date(2021, 1, 1), 1000
    dates = Date(start, start + dt.timedelta(days - 1))
    policy = Policy(Dataset("stays", rows=2000), {"admitted": dates, "discharged": dates})
    draw = random.Random(5)
    stays: list[tuple[int | None, int | None]] = [
        (begin, min(days - 1, begin + draw.randrange(-3, 15)))
        for begin in (draw.randrange(5, days) for _ in range(1990))
    ]
    stays += [(None, 3), (4, None)] * 5
    values = [
        [None if code is None else start + dt.timedelta(code) for code in column] for column in zip(*stays, strict=True)
    ]
    table = open_table(policy, pa.table({"admitted": values[0], "discharged": values[1]}))
    query = count().where("discharged - admitted BETWEEN 3 AND 7 OR discharged - admitted = -1")
    expected = [stay for stay in stays if None not in stay and (3 <= stay[1] - stay[0] <= 7 or stay[1] - stay[0] == -1)]
    assert int(mechanism_for(query).exact(query, table).numbers[0]) == len(expected)
    with pytest.raises(Unsupported, match="too irregular"):
        count().where("(discharged - admitted) % 3 = 0").check(policy)


def test_columns_are_those_of_the_engines() -> None:
    assert set(SCHEMA.names) == set(ATTRIBUTES)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("CAST(age AS BLOB)", "cannot be converted to VARBINARY"),
        ("age::json", "cannot be converted to JSON"),
        ("COALESCE(*, 1)", "stands for rows"),
        ("age AT TIME ZONE 'UTC' > 1", "AT TIME ZONE cannot be used"),
        ("RANDOM() < 0.5", "RANDOM cannot be used"),
        ("age IN (SELECT 1)", "A subquery on private rows"),
        ("LAMBDA x: x", "neither a column nor an expression"),
        (" + ".join(["age"] * 6000), "too long"),
    ],
    ids=lambda text: text[:20],
)
def test_expression_outside_of_the_list_is_refused_by_its_name(text: str, what: str) -> None:
    with pytest.raises(Unsupported, match=what):
        parse_expression(text)


def test_columns_of_a_condition_are_renamed_wherever_they_are() -> None:
    condition = ((col("age") > 3) | col("town").missing()) & ~(col("age") == 5) & holds("age % 2 = 0")
    renamed = rename_condition(condition, lambda text: text.replace("age", "people.age").replace("town", "people.town"))
    assert renamed.says() == condition.says().replace("age", "people.age").replace("town", "people.town")
    assert rename_condition(renamed, lambda text: text.replace("people.", "")) == condition
