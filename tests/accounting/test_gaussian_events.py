"""Prices of Gaussian noise and of choices in groups: all rows of small universes, with exact divergences.

For every event, the possible integers of one unit are enumerated. The reference computes the smallest ball around them, and the
exact Renyi divergence of the noise around each of them from the noise around the center of the ball.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import average as slow

from tidegate.accounting import Amount, Choices, DiscreteGaussian, Exponential, GaussianBox, GaussianMoments, Price
from tidegate.accounting.gaussian import _sum_radius, ball_price
from tidegate.answer import Query, count, histogram, max, mean, median, quantile, regression, std, sum, variance
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.ranks import Ranks
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Grid, Identification, Integer, Key, Policy
from tidegate.policy.predicates import col

F = Fraction
NEAR = 1e-9  # relative, of the smallest ball and of divergences in floats
ORDERS = np.array([1.05, 1.3, 2.0, 2.5, 4.0, 7.5, 20.0, 60.0])


# The integers of one unit


@dataclass(frozen=True)
class Unit:
    """The possible integers of one row (in its cell), which are added up over rows, with the sigma of each number."""

    points: list[tuple[int, ...]]
    sigmas: tuple[Fraction, ...]
    cells: int = 1
    rows: int = 1

    @property
    def scaled(self) -> np.ndarray:
        return np.array(self.points, float) / np.array([float(sigma) for sigma in self.sigmas])

    def ball(self) -> tuple[float, float, np.ndarray]:
        """Return the squared radius (from below and above) and the center of the smallest ball, for all rows."""
        low, high, center = slow.enclosing_ball(self.scaled, self.cells)
        return low * self.rows**2, high * self.rows**2, center * self.rows

    def sums(self) -> set[tuple[tuple[int, ...], ...]]:
        """Return the integers of all possible data sets of the unit: for each cell a tuple of numbers."""
        nothing = (0,) * len(self.sigmas)
        placed = [(cell, point) for cell in range(self.cells) for point in self.points if any(point) or cell == 0]
        every = set()
        for rows in combinations_with_replacement(placed, self.rows):
            total = [list(nothing) for _ in range(self.cells)]
            for cell, point in rows:
                total[cell] = [a + b for a, b in zip(total[cell], point, strict=True)]
            every.add(tuple(map(tuple, total)))
        return every

    def squared_diameter(self) -> Fraction:
        """Return the largest squared distance of two data sets, exactly, in units of the sigmas."""
        sums = list(self.sums())
        flat = np.array(sums, dtype=object).reshape(len(sums), -1)
        weights = np.array([1 / sigma**2 for sigma in self.sigmas] * self.cells, dtype=object)
        return builtin_max(((flat - row) ** 2 @ weights).max() for row in flat)


def builtin_max(values: object) -> Fraction:
    return sorted(values)[-1]  # type: ignore[call-overload,no-any-return]


def moments_unit(event: GaussianMoments) -> Unit:
    """Return the numbers that a row can add: 1, d and d**2, those that were released; or nothing, unless it always counts."""
    powers = [power for power, sigma in enumerate(event.sigmas) if sigma is not None]
    points = [tuple(d**power for power in powers) for d in range(event.lowest, event.highest + 1)]
    if not event.always:
        points.append((0,) * len(powers))
    sigmas = tuple(sigma for sigma in event.sigmas if sigma is not None)
    return Unit(sorted(set(points)), sigmas, event.cells, event.rows)


@cache
def one_number(sigma: Fraction, values: tuple[int, ...], center: float) -> np.ndarray:
    """Return the exact divergences of the noise around integers from that around a center: (orders, values)."""
    wide = 14 * float(sigma) + 4
    low, high = builtin_min((*values, center)) - wide, float(builtin_max((*values, center))) + wide
    reach = float(ORDERS[-1]) * (high - low)
    support = np.arange(np.floor(low - reach), np.ceil(high + reach) + 1)
    logs = slow.gaussian_log_weights(float(sigma), np.array([*values, center]), support)
    own, other = logs[:-1], logs[-1]
    rows = []
    for order in ORDERS:
        rows.append(np.logaddexp.reduce(order * own + (1 - order) * other, axis=1) / (order - 1))
    return np.array(rows)


def builtin_min(values: tuple[float, ...]) -> float:
    return float(sorted(values)[0])


def needed(unit: Unit, center: np.ndarray) -> float:
    """Return the largest D_alpha / alpha of any data set of the unit, over orders, around a center in every cell."""
    sums = sorted(unit.sums())
    total = np.zeros((ORDERS.size, len(sums)))
    for position, sigma in enumerate(unit.sigmas):
        values = tuple(sorted({cell[position] for cells in sums for cell in cells}))
        each = one_number(sigma, values, float(center[position]) * float(sigma))
        for cell in range(unit.cells):
            total += each[:, [values.index(cells[cell][position]) for cells in sums]]
    return float((total / ORDERS[:, None]).max())


def is_sound(price: Price, unit: Unit) -> bool:
    """Return whether a price covers the smallest ball, the exact divergences from its center, and the farthest pair.

    Two integers that are D apart have a divergence of exactly alpha D**2 / (2 sigma**2) at every whole order.
    """
    low, _, center = unit.ball()
    enough = 2 * float(price.z) >= low * (1 - NEAR)
    covered = needed(unit, center) <= float(price.z) * (1 + NEAR) + 1e-12
    return enough and covered and price.zcdp.value >= unit.squared_diameter() / 2


# The theorem that the prices rest on


@pytest.mark.one_in(3)
@pytest.mark.parametrize("order", [F(1), F(3, 2), F(2), F(7, 2), F(10)], ids=str)
@pytest.mark.parametrize("sigma", [F(1, 2), F(7, 8), F(3)], ids=str)
def test_divergence_from_a_real_center_is_at_most_its_squared_distance(sigma: Fraction, order: Fraction) -> None:
    for mean_, center in product((0, 2), (F(0), F(1, 2), F(7, 3), F(-3, 4), F(1))):
        exact = slow.gaussian_divergence(order, mean_, center, sigma) / slow.many_digits(order)
        bound = slow.many_digits((mean_ - center) ** 2 / (2 * sigma**2))
        assert exact <= bound + mpmath.mpf(10) ** -13
        if center.denominator == 1 and order.denominator == 1:
            assert abs(exact - bound) < mpmath.mpf(10) ** -13


def test_floats_equal_the_divergences_in_many_digits() -> None:
    sigma, center = F(7, 8), F(7, 5)
    ours = one_number(sigma, (0, 1, 3), float(center))
    for position, value in enumerate((0, 1, 3)):
        for row, order in enumerate(ORDERS[1:5], start=1):
            exact = slow.gaussian_divergence(F(float(order)), value, center, sigma)
            assert ours[row, position] == pytest.approx(float(exact), rel=1e-10)


def test_reference_finds_smallest_balls() -> None:
    triangle = np.array([[1.0, 0.0], [-0.5, 3**0.5 / 2], [-0.5, -(3**0.5) / 2], [0.1, 0.1]])
    low, high, center = slow.enclosing_ball(triangle)
    assert low == pytest.approx(1) == high
    assert abs(center).max() < 1e-5
    for cells in (2, 3, 6):
        low, high, _ = slow.enclosing_ball(np.array([[0.0], [1.0]]), cells)
        assert low == pytest.approx(1 - 1 / cells) == high


# The table of free and exact radii


G = st.integers(2, 6)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("cells", [1, 2, 3, 5])
def test_counts_have_the_smallest_ball(cells: int, rows: int) -> None:
    unit = Unit([(0,), (1,)], (F(7, 8),), cells, rows)
    expected = F(rows**2) * (F(1, 4) if cells == 1 else F(cells - 1, cells))
    event = GaussianMoments(1, 1, rows, (F(7, 8), None, None), cells=cells)
    diameter = F(rows**2 * (2 if cells > 1 else 1))
    ball = DiscreteGaussian(expected, diameter, F(7, 8))
    assert unit.ball()[0] * (7 / 8) ** 2 == pytest.approx(float(expected), rel=1e-9)
    assert is_sound(ball.price, unit)
    assert ball.price.zcdp == Amount.up(unit.squared_diameter() / 2)
    assert is_sound(event.price, unit)


@given(st.integers(1, 40), st.fractions(F(1, 2), 9))
@settings(max_examples=30)
def test_number_is_free_beside_a_sum(reach: int, sigma: Fraction) -> None:
    alone = GaussianMoments(-reach, reach, 1, (None, sigma * reach, None))
    both = GaussianMoments(-reach, reach, 1, (sigma, sigma * reach, None))
    assert both.price.z == alone.price.z == Amount.up(1 / sigma**2 / 2)
    assert moments_unit(both).ball()[0] == pytest.approx(float(1 / sigma**2), rel=1e-9)


@given(st.integers(1, 40), st.fractions(F(1, 2), 9), st.fractions(1, 4))
@settings(max_examples=30)
def test_squares_are_free_beside_a_sum_if_every_row_counts(reach: int, sigma: Fraction, more: Fraction) -> None:
    sums, squares = sigma * reach, sigma * reach**2 * more
    alone = GaussianMoments(-reach, reach, 1, (None, sums, None), always=True)
    both = GaussianMoments(-reach, reach, 1, (None, sums, squares), always=True)
    assert both.price.z == alone.price.z == Amount.up(1 / sigma**2 / 2)
    assert moments_unit(both).ball()[0] <= float(1 / sigma**2) * (1 + NEAR)


@given(st.integers(1, 40), G, st.fractions(F(1, 2), 9), st.fractions(F(1, 2), 9))
@settings(max_examples=30)
def test_grouped_number_and_sum_add_their_parts(reach: int, cells: int, first: Fraction, second: Fraction) -> None:
    event = GaussianMoments(-reach, reach, 1, (first, second, None), cells=cells)
    expected = (1 - F(1, cells)) / first**2 + reach**2 / second**2
    assert event.price.z == Amount.up(expected / 2)
    assert moments_unit(event).ball()[0] == pytest.approx(float(expected), rel=1e-6)


@given(st.integers(-9, 9), st.integers(1, 18), st.fractions(F(1, 2), 9), st.booleans())
@settings(max_examples=40)
def test_single_sum_costs_half_of_its_range(low: int, span: int, sigma: Fraction, always: bool) -> None:
    event = GaussianMoments(low, low + span, 1, (None, sigma, None), always=always)
    ends = (low, low + span) if always else sorted((0, low, low + span))
    expected = F(ends[-1] - ends[0]) ** 2 / 4 / sigma**2
    assert event.price.z == Amount.up(expected / 2)
    assert moments_unit(event).ball()[0] == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("sigma", [F(1, 4), F(2)])
def test_all_three_sums_cost_more_than_the_largest_and_less_than_all(sigma: Fraction) -> None:
    sigmas = (sigma, sigma * 7, sigma * 49)
    event = GaussianMoments(-7, 7, 1, sigmas)
    parts = [GaussianMoments(-7, 7, 1, tuple(s if p == q else None for q, s in enumerate(sigmas))) for p in range(3)]
    each = [part.price.z for part in parts]
    assert sorted(each)[-1] < event.price.z <= each[0] + each[1] + each[2]


# Every event, by enumeration


positive = st.fractions(F(1, 3), 6, max_denominator=12)


@st.composite
def moments(draw: st.DrawFn) -> GaussianMoments:
    """Return number and sum, sum and squares, all three, or one of them, over bounds of any kind."""
    low = draw(st.integers(-4, 3))
    high = low + draw(st.integers(0, 4))
    always = draw(st.booleans())
    chosen = draw(st.sampled_from([(0, 1), (1, 2), (0, 1, 2), (1,), (2,), (0, 2)]))
    chosen = tuple(power for power in chosen if power or not always) or (1,)
    reach = builtin_max((abs(low), abs(high), 1))
    sigmas = [draw(positive) * reach**power if power in chosen else None for power in range(3)]
    rows, cells = (1, 1) if always else (draw(st.integers(1, 2)), draw(st.integers(1, 3)))
    return GaussianMoments(low, high, rows, (sigmas[0], sigmas[1], sigmas[2]), cells, always)


@pytest.mark.long  # test_price_of_sums_covers_many_cells and test_price_of_a_box_is_that_of_all_its_corners are cheaper
@given(moments())
@settings(max_examples=60)
def test_price_of_sums_covers_every_row_and_pair(event: GaussianMoments) -> None:
    assert is_sound(event.price, moments_unit(event))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("cells", [4, 5, 6])
@pytest.mark.parametrize("chosen", [(0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_price_of_sums_covers_many_cells(chosen: tuple[int, ...], cells: int) -> None:
    for low, high in ((-2, 2), (0, 3), (-3, 1), (1, 2)):
        sigmas = tuple(F(2) * 3**power if power in chosen else None for power in range(3))
        event = GaussianMoments(low, high, 1, (sigmas[0], sigmas[1], sigmas[2]), cells)
        assert is_sound(event.price, moments_unit(event))


@pytest.mark.parametrize("rows", [3, pytest.param(4, marks=pytest.mark.long)])
def test_price_of_sums_covers_persons_with_several_rows(rows: int) -> None:
    for low, high, cells in ((-1, 2, 1), (0, 2, 2), (-1, 1, 2)):
        event = GaussianMoments(low, high, rows, (F(3), F(5), F(9)), cells)
        assert is_sound(event.price, moments_unit(event))


@given(st.lists(st.tuples(st.integers(1, 4), positive), min_size=1, max_size=3))
@settings(max_examples=40)
def test_price_of_a_box_is_that_of_all_its_corners(sides: list[tuple[int, Fraction]]) -> None:
    event = GaussianBox(tuple(bound for bound, _ in sides), tuple(sigma for _, sigma in sides))
    unit = Unit(list(product(*(range(bound + 1) for bound in event.bounds))), event.sigmas)
    assert is_sound(event.price, unit)
    assert event.price.z == Amount.up(unit.squared_diameter() / 8)
    assert event.price.zcdp == Amount.up(unit.squared_diameter() / 2)


@given(st.fractions(F(1, 9), 9), st.fractions(F(1, 9), 99), st.fractions(F(1, 9), 9))
def test_distance_of_two_points_of_a_ball_is_at_most_two_radii(
    radius: Fraction, far: Fraction, sigma: Fraction
) -> None:
    price = DiscreteGaussian(radius, far, sigma).price
    assert price == ball_price(radius / sigma**2, far / sigma**2)
    assert price.pure is None
    assert price.z == Amount.up(radius / sigma**2 / 2)
    assert price.zcdp == Amount.up((far if far < 4 * radius else 4 * radius) / sigma**2 / 2)


WRONG = {
    "no bounds": lambda: GaussianBox((), ()),
    "a bound of 0": lambda: GaussianBox((0,), (F(1),)),
    "one sigma for two bounds": lambda: GaussianBox((1, 1), (F(1),)),
    "a sigma of 0": lambda: GaussianBox((1,), (F(0),)),
    "a radius of 0": lambda: DiscreteGaussian(F(0), F(1), F(1)),
    "a negative sigma": lambda: DiscreteGaussian(F(1), F(1), F(-1)),
    "no sums": lambda: GaussianMoments(0, 1, 1, (None, None, None)),
    "bounds in the wrong order": lambda: GaussianMoments(2, 1, 1, (F(1), None, None)),
    "no rows": lambda: GaussianMoments(0, 1, 0, (F(1), None, None)),
    "a public number that is released": lambda: GaussianMoments(0, 1, 1, (F(1), None, None), always=True),
    "groups of a public number": lambda: GaussianMoments(0, 1, 1, (None, F(1), None), cells=2, always=True),
    "persons of a public number": lambda: GaussianMoments(0, 1, 2, (None, F(1), None), always=True),
    "no groups": lambda: Choices(F(1), F(1), 0),
}


@pytest.mark.parametrize("case", WRONG)
def test_event_without_meaning_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        WRONG[case]()


# Planted faults


def half_radius(price: Price) -> Price:
    return replace(price, z=Amount.up(price.z.value / 4))


def without_rows(event: GaussianMoments) -> Price:
    """Forget that the rows of a person add up."""
    return replace(event, rows=1).price


def one_over_cells(cells: int, rows: int) -> Price:
    """Use 1 / G where (G - 1) / G belongs."""
    return ball_price(F(rows**2, cells) / F(49, 64), F(2 * rows**2) / F(49, 64))


def test_half_of_the_radius_is_detected() -> None:
    for event in (
        GaussianMoments(-2, 2, 1, (F(2), F(4), None)),
        GaussianMoments(-2, 2, 1, (F(2), F(4), F(8)), cells=3),
        GaussianMoments(-2, 3, 1, (None, F(5), F(30)), always=True),
        GaussianMoments(0, 3, 2, (None, F(5), None)),
    ):
        assert is_sound(event.price, moments_unit(event))
        assert not is_sound(half_radius(event.price), moments_unit(event))


def test_forgotten_number_of_rows_is_detected() -> None:
    event = GaussianMoments(-1, 2, 3, (F(3), F(5), F(9)), cells=2)
    assert is_sound(event.price, moments_unit(event))
    assert not is_sound(without_rows(event), moments_unit(event))


@pytest.mark.parametrize("cells", [3, 5])
def test_inverted_share_of_the_cells_is_detected(cells: int) -> None:
    assert not is_sound(one_over_cells(cells, 1), Unit([(0,), (1,)], (F(7, 8),), cells))


def test_forgotten_move_between_cells_is_detected() -> None:
    """Planted fault: the distance of a row that is added, where a row can leave one cell and enter another."""
    unit = Unit([(0,), (1,)], (F(2),), 4)
    price = DiscreteGaussian(F(3, 4), F(2), F(2)).price
    assert is_sound(price, unit)
    assert not is_sound(replace(price, zcdp=Amount.up(F(1, 8))), unit)


def test_free_number_without_its_share_of_sigma_is_detected() -> None:
    """Planted fault: the number is taken as free although its sigma is too small for that."""
    event = GaussianMoments(-4, 4, 1, (F(1, 2), F(8), None))
    alone = GaussianMoments(-4, 4, 1, (None, F(8), None))
    assert is_sound(event.price, moments_unit(event))
    assert not is_sound(alone.price, moments_unit(event))


# Events of mechanisms


ATTRIBUTES = {"x": Integer(0, 3), "y": Integer(-2, 1), "g": Category(("a", "b", "c")), "k": Key()}
QUERIES: dict[str, Callable[[], Query]] = {
    "count": lambda: count().where(col("x") >= 1),
    "count by group": lambda: count().by("g"),
    "histogram": lambda: histogram("x"),
    "sum": lambda: sum("y"),
    "sum by group": lambda: sum("x").by("g"),
    "mean": lambda: mean("x"),
    "mean by group": lambda: mean("y").by("g"),
    "sd": lambda: std("x"),
    "variance by group": lambda: variance("y").by("g"),
    "median": lambda: median("x"),
    "a quantile by group": lambda: quantile("x", "0.75").by("g"),
    "max": lambda: max("x"),
    "regression": lambda: regression("y ~ x"),
}


def small_policy(unit: EachRow | EachPerson, *, rows: int | None = 9, missing: str = "dropped") -> Policy:
    attributes = {**ATTRIBUTES, "x": Integer(0, 3, missing=missing), "y": Integer(-2, 1, missing=missing)}
    promise = Identification("0.6", protect=("x",), guarantee="average")
    return Policy(Dataset("d", unit=unit, rows=rows), attributes, promise)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_event_of_a_query_costs_at_most_z_and_hardly_less(name: str, rows: int) -> None:
    query = QUERIES[name]()
    for missing in ("dropped", "lowest"):
        policy = small_policy(EachRow() if rows == 1 else EachPerson("k", rows), missing=missing)
        for z in (F(1, 1000), F(7, 90), F(2)):
            price = mechanism_for(query).average_event(query, policy, z=z).price
            assert price.z.value <= z
            assert price.z.value >= z * F(99, 100)


@pytest.mark.parametrize("rows", [1, 2])
def test_events_of_counts_cover_every_row(rows: int) -> None:
    policy = small_policy(EachRow() if rows == 1 else EachPerson("k", rows))
    for query, cells in ((count(), 1), (count().by("g"), 3), (histogram("x"), 4)):
        event = mechanism_for(query).average_event(query, policy, z=F(1, 5))
        assert isinstance(event, DiscreteGaussian)
        assert is_sound(event.price, Unit([(0,), (1,)], (event.sigma,), cells, rows))


@pytest.mark.parametrize("missing", ["dropped", "lowest"])
@pytest.mark.parametrize("name", ["sum", "sum by group", "mean", "mean by group", "sd", "variance by group"])
def test_events_of_sums_cover_every_row(name: str, missing: str) -> None:
    query = QUERIES[name]()
    policy = small_policy(EachRow(), missing=missing)
    event = mechanism_for(query).average_event(query, policy, z=F(1, 5))
    assert isinstance(event, GaussianMoments)
    assert event.cells == (3 if "group" in name else 1)
    assert event.always == (missing == "lowest" and "group" not in name)
    assert is_sound(event.price, moments_unit(event))


def test_step_of_a_grid_does_not_change_the_price() -> None:
    promise = Identification("0.6", protect=("x",), guarantee="average")
    for attribute in (Integer(0, 8), Grid(0, 4, "0.5"), Grid(-1, 1, "0.25")):
        policy = Policy(Dataset("d", rows=9), {"x": attribute}, promise)
        event = mechanism_for(mean("x")).average_event(mean("x"), policy, z=F(1, 5))
        assert (event.lowest, event.highest) == (-4, 4)
        assert is_sound(event.price, moments_unit(event))


# Choices


def softmax(scores: np.ndarray, rate: Fraction) -> np.ndarray:
    logits = float(rate) * scores
    return np.asarray(np.exp(logits - np.logaddexp.reduce(logits, axis=-1)[..., None]))


@dataclass(frozen=True)
class Groups:
    """Scores of every candidate: without the unit (groups, candidates), and for every data set (worlds, groups, candidates)."""

    without: np.ndarray
    worlds: np.ndarray

    def divergences(self, rate: Fraction, reference: np.ndarray) -> float:
        """Return the largest D_alpha / alpha of any data set from a reference: choices in groups add up."""
        total = np.zeros((slow.ORDERS.size, len(self.worlds)))
        for group in range(self.without.shape[0]):
            total += slow.channel_divergences(softmax(self.worlds[:, group], rate), softmax(reference[group], rate))
        return float((total / slow.ORDERS[:, None]).max())

    @property
    def middle(self) -> np.ndarray:
        return (self.worlds.max(axis=0) + self.worlds.min(axis=0)) / 2

    def zcdp(self, rate: Fraction) -> float:
        return sorted(self.divergences(rate, world) for world in self.worlds)[-1]

    def pure(self, rate: Fraction) -> float:
        logs = np.log(softmax(self.worlds, rate))
        spread = logs[:, None] - logs[None]
        return float(spread.max(axis=3).sum(axis=2).max())


def rank_groups(query: Query, policy: Policy, groups: int, rows: int, known: np.ndarray) -> tuple[Choices, Groups]:
    """Return the scores of a query for every data set of a unit with at most `rows` rows, beside known rows."""
    mechanism = mechanism_for(query)
    assert isinstance(mechanism, Ranks)
    event = mechanism.average_event(query, policy, z=F(1, 10))
    size = known.shape[1]
    worlds = []
    placed = [(group, value) for group in range(groups) for value in range(size)] + [(0, -1)]
    for rows_of_unit in combinations_with_replacement(placed, rows):
        counts = known.copy()
        for group, value in rows_of_unit:
            counts[group, value] += value >= 0
        worlds.append([mechanism.scores(query, policy, event, cells) for cells in counts])
    without = np.array([mechanism.scores(query, policy, event, cells) for cells in known], float)
    return event, Groups(without, np.array(worlds, float))


def worst_groups(groups: int, moves: tuple[tuple[float, float], ...]) -> Groups:
    """Return two candidates in each group whose scores a unit moves in one group at a time, or not at all."""
    worlds = np.zeros((1 + groups * len(moves), groups, 2))
    for position, (group, moved) in enumerate(product(range(groups), moves), start=1):
        worlds[position, group] = moved
    return Groups(np.zeros((groups, 2)), worlds)


# Any two of them, and each and nothing, differ by at most 1 in every score.
APART, SWAPPED = ((1.0, -1.0),), ((1.0, 0.0), (0.0, 1.0))


def choices_are_sound(price: Price, rate: Fraction, scores: Groups) -> bool:
    """Return whether z covers the better of two references: without the unit, and in the middle of all scores."""
    needed_z = sorted(scores.divergences(rate, reference) for reference in (scores.without, scores.middle))[0]
    pure = price.pure
    bounded = pure is not None and scores.pure(rate) <= float(pure) * (1 + NEAR)
    return bounded and needed_z <= float(price.z) * (1 + NEAR) and scores.zcdp(rate) <= float(price.zcdp) * (1 + NEAR)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", ["median", "max", "a quantile by group"])
def test_price_of_choices_covers_every_row(name: str, rows: int) -> None:
    query = QUERIES[name]()
    policy = small_policy(EachRow() if rows == 1 else EachPerson("k", rows))
    groups = 3 if query.groups else 1
    for seed in range(4):
        known = np.random.default_rng(seed).integers(0, 4, (groups, 4))
        event, scores = rank_groups(query, policy, groups, rows, known)
        assert event.groups == groups
        moved = float(event.rate * event.sensitivity)
        assert choices_are_sound(event.price, event.rate, scores)
        assert scores.divergences(event.rate, scores.without) <= moved**2 / 2 * (1 + NEAR)
        assert scores.divergences(event.rate, scores.middle) <= groups * moved**2 / 8 * (1 + NEAR)


@pytest.mark.parametrize("moves", [APART, SWAPPED], ids=["apart", "swapped"])
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 6])
def test_price_of_choices_covers_any_scores(groups: int, moves: tuple[tuple[float, float], ...]) -> None:
    worst = worst_groups(groups, moves)
    for rate in (F(1, 20), F(1, 2), F(2)):
        assert choices_are_sound(Choices(F(1), rate, groups).price, rate, worst)
        assert worst.divergences(rate, worst.without) <= float(rate) ** 2 / 2
        assert worst.divergences(rate, worst.middle) <= groups * float(rate) ** 2 / 8


def test_one_group_costs_what_a_choice_costs() -> None:
    assert Choices(F(3), F(1, 7)).price == Exponential(F(3), F(1, 7)).price


@pytest.mark.parametrize(("groups", "eighths"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (99, 4)])
def test_price_of_choices_is_that_of_the_better_reference(groups: int, eighths: int) -> None:
    moved = F(3, 7)
    assert Choices(F(3), F(1, 7), groups).price.z == Amount.up(moved**2 * eighths / 8)


def test_choices_priced_as_one_choice_are_detected() -> None:
    """Planted fault: a unit that moves from one group to another is charged once."""
    for groups in (2, 4):
        worst, rate = worst_groups(groups, APART), F(1, 20)
        assert choices_are_sound(Choices(F(1), rate, groups).price, rate, worst)
        assert not choices_are_sound(Exponential(F(1), rate).price, rate, worst)


def test_half_of_the_range_of_choices_is_detected() -> None:
    worst, rate = worst_groups(1, SWAPPED), F(1, 20)
    price = Choices(F(1), rate).price
    assert choices_are_sound(price, rate, worst)
    assert not choices_are_sound(replace(price, z=Amount.up(price.z.value / 4)), rate, worst)
    assert not choices_are_sound(replace(price, zcdp=Amount.up(price.zcdp.value / 4)), rate, worst)


@pytest.mark.parametrize("cells", [2, 3, 7])
@pytest.mark.parametrize(("lowest", "highest"), [(0, 10), (2, 10), (-10, 0), (-10, -2), (-4, 10), (-10, 4)])
def test_sums_in_several_cells_fit_into_the_ball_and_those_of_one_sign_into_the_smallest(
    lowest: int, highest: int, cells: int
) -> None:
    """The ball around all values in one of the cells, and nothing; the center is at the same number in every cell."""
    points = np.array([value * cell for value in (lowest, highest, 0) for cell in np.eye(cells)])
    centers = np.linspace(min(lowest, 0), builtins.max(highest, 0), 100 * cells + 1)
    radii = [np.square(points - center).sum(axis=1).max() for center in centers]
    radius, smallest = float(_sum_radius(lowest, highest, cells, always=False)), builtins.min(radii)
    assert radius >= smallest * (1 - 2e-3)
    assert lowest * highest < 0 or radius == pytest.approx(smallest, rel=2e-3)
