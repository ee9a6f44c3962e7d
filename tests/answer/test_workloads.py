"""Counts from one measurement: exact without noise, equal to least squares, priced for every change of a unit."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tidegate as tg
from tidegate.accounting import DiscreteGaussian, DiscreteLaplace, Target, budget_of
from tidegate.answer.mechanisms.estimates import half_width
from tidegate.answer.mechanisms.mechanism import axes_of, noise_of
from tidegate.answer.repeat import asked_again
from tidegate.answer.request import Query
from tidegate.answer.result import Answers, Preview
from tidegate.answer.run import plan_request
from tidegate.answer.spending import RequestedLoss
from tidegate.answer.workloads import Strategy, one_by_one_variance, plan_workload
from tidegate.answer.workloads.dense import Dense, dense_strategies
from tidegate.answer.workloads.marginals import Marginals, marginal_strategies
from tidegate.errors import Unsupported
from tidegate.noise import SeededBits
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Identification, Integer, Key, Policy
from tidegate.tables import open_table

GUARANTEES = ("worst-case", "average")
LOSSES = {"worst-case": RequestedLoss(Fraction(1)), "average": RequestedLoss(Fraction(1, 20), "z")}
COLUMNS = {
    "age": Integer(0, 9, bins=(3, 6)),
    "sex": Category(("f", "m")),
    "city": Category(("a", "b", "c"), missing="value"),
}


def small_policy(guarantee: str, *, rows: int | None = 60, person: int = 0) -> Policy:
    unit = EachPerson("who", person) if person else EachRow()
    columns = {**COLUMNS, "who": Key()} if person else COLUMNS
    promise = Identification("0.5", protect=("age",), guarantee=guarantee)
    return Policy(Dataset("people", rows=rows, unit=unit), columns, promise)


def small_frame(rows: int = 60, seed: int = 3) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(0, 10, rows).astype(float),
            "sex": random.choice(["f", "m"], rows),
            "city": random.choice(["a", "b", "c", None], rows),
            "who": [f"p{number % 25}" for number in range(rows)],
        }
    )
    frame.loc[frame.index % 7 == 0, "age"] = np.nan
    return frame


def ranges(count: int, size: int, *, seed: int = 7) -> list[Query]:
    random = np.random.default_rng(seed)
    ends = [sorted(random.integers(0, size, 2).tolist()) for _ in range(count)]
    return [tg.count().where((tg.col("x") >= low) & (tg.col("x") <= high)) for low, high in ends]


BATCHES: dict[str, list[Query]] = {
    "ranges": [tg.count().where((tg.col("age") >= low) & (tg.col("age") < low + 4)) for low in range(7)],
    "all ranges": [
        tg.count().where((tg.col("age") >= low) & (tg.col("age") <= high))
        for low in range(10)
        for high in range(low, 10)
    ],
    "ranges and total": [tg.count(), tg.histogram("age"), tg.count().where(tg.col("age") < 5)],
    "conditions on two columns": [
        tg.count().where((tg.col("age") >= 3) & (tg.col("sex") == "f")),
        tg.count().where((tg.col("age") < 5) | (tg.col("sex") == "m")).by("sex"),
        tg.count().by("sex"),
    ],
    "missing values": [
        tg.count().by("city"),
        tg.count().where(tg.col("age").missing()).by("city"),
        tg.count().where(~(tg.col("age") >= 5)).by("city"),
    ],
    "tables": [
        tg.count().by("sex"),
        tg.count().by("city"),
        tg.count().by("city", "sex"),
        tg.histogram("age").by("sex"),
    ],
    "bins and values": [tg.histogram("age"), tg.count().by("age", "sex"), tg.count().by("sex", "age")],
}


def strategies(queries: list[Query], policy: Policy, loss: RequestedLoss) -> list[Strategy]:
    return [*dense_strategies(queries, policy, loss), *marginal_strategies(queries, policy, loss)]


class CountsOnce:
    """A table that counts the same cells once, for several strategies."""

    def __init__(self, policy: Policy, frame: pd.DataFrame) -> None:
        self._table, self._counts = open_table(policy, frame), {}

    def count(self, axes: Any, where: Any = None) -> Any:
        name = (tuple(axes), repr(where))
        if name not in self._counts:
            self._counts[name] = self._table.count(axes, where=where)
        return self._counts[name]


def true_counts(query: Query, table: Any, policy: Policy) -> Any:
    return np.asarray(table.count(axes_of(query, policy), where=query.condition), np.int64)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("rows", [60, None])
@pytest.mark.parametrize("batch", [name for name in BATCHES if name != "all ranges"])
def test_without_noise_every_strategy_returns_the_true_counts(batch: str, rows: int | None, guarantee: str) -> None:
    policy, queries = small_policy(guarantee, rows=rows), BATCHES[batch]
    table: Any = CountsOnce(policy, small_frame())
    candidates = strategies(queries, policy, LOSSES[guarantee])
    assert candidates
    for strategy in candidates:
        exact = [part.tolist() for part in strategy.exact(table)]
        for query, estimated in zip(queries, strategy.estimate(exact), strict=True):
            expected = true_counts(query, table, policy)
            assert estimated.values.shape == expected.shape == estimated.deviations.shape
            assert np.abs(estimated.values - expected).max() < 1e-8, (strategy.name, query.says())


def neighbors(policy: Policy) -> list[list[tuple[Any, ...]]]:
    """Return all possible rows of one unit: every single row, and no row or two rows for a person."""
    rows = list(product([None, 0, 4, 9], ["f", "m"], ["a", None]))
    if isinstance(policy.dataset.unit, EachRow):
        return [[row] for row in rows]
    return [[], *([row] for row in rows), *(list(pair) for pair in combinations(rows[::5], 2)), [rows[0], rows[0]]]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("batch", "person"), [("ranges", 0), ("conditions on two columns", 0), ("tables", 0), ("ranges", 2), ("tables", 2)]
)
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_no_change_of_a_unit_exceeds_what_the_event_prices(batch: str, guarantee: str, person: int) -> None:
    """Every strategy, every possible content of one unit: distances of the measured integers and the ball around them."""
    policy = small_policy(guarantee, person=person, rows=None if person else 4)
    others = [(1.0, "f", "a"), (5.0, "m", "b"), (None, "f", None)]
    tables: list[Any] = []
    for own in neighbors(policy):
        listed = [(*row, f"o{index}") for index, row in enumerate(others)] + [(*row, "me") for row in own]
        tables.append(CountsOnce(policy, pd.DataFrame(listed, columns=["age", "sex", "city", "who"])))
    for strategy in strategies(BATCHES[batch], policy, LOSSES[guarantee]):
        check_prices(strategy, [[part.reshape(-1) for part in strategy.exact(table)] for table in tables])


def check_prices(strategy: Strategy, measured: list[list[Any]]) -> None:
    noises: Any = strategy.noises if isinstance(strategy, Marginals) else (strategy.event,)
    for part, noise in enumerate(noises):
        points = np.array([numbers[part] for numbers in measured], np.float64)
        apart = points[:, None] - points[None, :]
        if isinstance(noise, DiscreteLaplace):
            assert np.abs(apart).sum(axis=2).max() <= float(noise.sensitivity)
            continue
        assert (apart**2).sum(axis=2).max() <= float(noise.squared_diameter) + 1e-9
        assert enclosing(points) <= float(noise.squared_radius) + 1e-6


def enclosing(points: Any) -> float:
    """Return the squared radius of the smallest ball around points, from below: the best center of a long search."""
    center = points.mean(axis=0)
    best = math.inf
    for step in range(1000):
        distances = ((points - center) ** 2).sum(axis=1)
        farthest = int(distances.argmax())
        best = min(best, float(distances[farthest]))
        center = center + (points[farthest] - center) / (step + 2)
    return best * (1 - 1e-2)  # the search is that close to the optimum


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("batch", ["ranges", "tables", "missing values"])
def test_deviations_are_those_of_weighted_least_squares(batch: str, guarantee: str) -> None:
    """A dense solution of the same measurement, with the public number of rows as an equation."""
    policy, queries = small_policy(guarantee), BATCHES[batch]
    for strategy in strategies(queries, policy, LOSSES[guarantee]):
        rows, variances = dense_measurement(strategy)
        size = strategy.domain.size  # type: ignore[attr-defined]
        precision = (rows / variances[:, None]).T @ rows
        system = np.block([[precision, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
        covariance = np.linalg.pinv(system)[:size, :size]
        for query, part in zip(queries, strategy.expected(), strict=True):
            matrix = strategy.domain.matrix(query)  # type: ignore[attr-defined]
            exact = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", matrix, covariance, matrix), 0)).reshape(
                part.deviations.shape
            )
            assert (part.deviations >= exact - 1e-6).all()
            in_bins = isinstance(strategy, Marginals) and any(axis.firsts for axis in axes_of(query, policy))
            if not in_bins:
                assert np.allclose(part.deviations, exact, rtol=1e-5, atol=1e-6), (strategy.name, query.says())


def dense_measurement(strategy: Any) -> tuple[Any, Any]:
    """Return every measured number as a row over all cells, and its variance."""
    if isinstance(strategy, Dense):
        return strategy.sums.astype(float), np.full(len(strategy.sums), noise_of(strategy.event).variance)
    cells = np.arange(strategy.domain.size).reshape(strategy.domain.shape)
    rows, variances = [], []
    for axes, weight in zip(strategy.measured, strategy._weights, strict=True):
        moved = np.moveaxis(cells, axes, range(len(axes))).reshape(
            math.prod(strategy.domain.shape[a] for a in axes), -1
        )
        for group in moved:
            row = np.zeros(strategy.domain.size)
            row[group] = 1
            rows.append(row)
            variances.append(1 / weight)
    return np.array(rows), np.array(variances)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_intervals_contain_the_truth_at_least_as_often_as_stated(guarantee: str) -> None:
    """200 measurements of 55 ranges, 80% intervals, at least 76%: each range alone misses that with probability under 0.1."""
    policy, frame, queries = small_policy(guarantee), small_frame(), BATCHES["all ranges"]
    strategy = plan_workload(queries, policy, LOSSES[guarantee])
    assert strategy is not None
    table: Any = CountsOnce(policy, frame)
    exact = strategy.exact(table)
    truths = [true_counts(query, table, policy) for query in queries]
    bits, inside = SeededBits(5), []
    for _ in range(200):
        for estimated, truth in zip(strategy.estimate(strategy.perturb(exact, bits=bits)), truths, strict=True):
            inside.append(abs(estimated.values - truth) <= half_width(estimated.deviations, estimated.largest, 0.8))
    assert np.mean(inside) >= 0.76


def test_moment_generating_function_of_whole_laplace_noise_is_below_the_continuous_one() -> None:
    """The Chernoff bound of intervals uses the continuous one."""
    for scale in (0.05, 0.3, 1.0, 4.0, 100.0):
        ratio = math.exp(-1 / scale)
        for part in np.linspace(0.01, 0.99, 50):
            theta = part / scale
            whole = (1 - ratio) ** 2 / ((1 - ratio * math.exp(theta)) * (1 - ratio * math.exp(-theta)))
            assert whole <= 1 / (1 - part**2) * (1 + 1e-9)


SPEC = {  # section 7 of the specification: RMSE of 100 ranges and of prefixes over 73 values, rho 0.05
    ("ranges", "worst-case"): {"one": 106.15, "histogram": 7.47, "tree of 10": 8.42},
    ("ranges", "average"): {"one": 10.35, "histogram": 7.23, "tree of 3": 5.23},
    ("prefixes", "worst-case"): {"one": 76.43, "histogram": 7.46, "tree of 10": 7.02},
    ("prefixes", "average"): {"one": 8.78, "histogram": 7.22, "tree of 3": 4.18},
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("workload", "guarantee"), SPEC, ids=str)
def test_errors_of_ranges_are_those_of_the_specification(workload: str, guarantee: str) -> None:
    """The ranges are random, and other implementations split trees elsewhere: within 10%."""
    promise = Identification("0.05", protect=("x",), guarantee=guarantee)
    policy = Policy(Dataset("d", rows=10_000), {"x": Integer(0, 72, missing="lowest")}, promise)
    prefixes = [tg.count().where(tg.col("x") <= last) for last in range(73)]
    queries = ranges(100, 73) if workload == "ranges" else prefixes
    budget = budget_of(policy)
    loss = RequestedLoss(budget.ceiling.value, budget.unit)
    errors = {strategy.name: math.sqrt(strategy.variance()) for strategy in strategies(queries, policy, loss)}
    errors["one"] = math.sqrt(one_by_one_variance(queries, policy, loss))
    for name, expected in SPEC[workload, guarantee].items():
        assert errors[name] == pytest.approx(expected, rel=0.1), name
    best = plan_workload(queries, policy, loss)
    assert best is not None
    assert math.sqrt(best.variance()) <= {"worst-case": 7.6, "average": 5.3}[guarantee]


@pytest.mark.parametrize(("guarantee", "expected"), [("worst-case", (16.98, 15.82)), ("average", (4.86, 4.97))])
def test_errors_of_weighted_tables_are_those_of_the_specification(
    guarantee: str, expected: tuple[float, float]
) -> None:
    sizes = {"a": 73, "b": 16, "c": 7, "d": 5, "e": 2}
    columns = {name: Integer(0, size - 1, missing="lowest") for name, size in sizes.items()}
    promise = Identification("0.05", protect=("a",), guarantee=guarantee)
    policy = Policy(Dataset("d", rows=10_000), columns, promise)
    queries = [tg.count().by(name) for name in sizes] + [tg.count().by(*pair) for pair in combinations(sizes, 2)]
    loss = RequestedLoss(Target("a", Fraction(99), Fraction(1, 20), guarantee).limit.value, budget_of(policy).unit)
    [strategy] = marginal_strategies(queries, policy, loss)
    parts = [float((part.deviations**2).mean()) for part in strategy.expected()]
    assert math.sqrt(np.mean(parts[:5])) == pytest.approx(expected[0], rel=0.01)
    assert math.sqrt(np.mean(parts[5:])) == pytest.approx(expected[1], rel=0.01)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_answers_are_charged_once_stored_and_consistent(tmp_path: Path, guarantee: str) -> None:
    policy, queries = small_policy(guarantee), BATCHES["tables"]
    with tg.Session(policy, table=small_frame(), folder=tmp_path) as session:
        before = session.preview(queries, share="0.5", plan="auto")
        answers = session.answer(queries, share="0.5", plan="auto")
        again = session.answer(queries, share="0.5", plan="auto")
        assert before.cost == answers.cost == session.account.spent
        assert not again.cost
        assert again.to_dict()["answers"] == answers.to_dict()["answers"]
        assert np.allclose(answers[2].noisy.sum(axis=0), answers[0].noisy)  # city by sex, and sex
        assert np.isclose(answers[1].noisy.sum(), 60)  # the public number of rows, cities without a value included
        assert Answers.from_dict(answers.to_dict(), policy).to_dict() == answers.to_dict()
        assert Preview.from_dict(before.to_dict(), policy).to_dict() == before.to_dict()
        assert session.ledger.verify().problems == []
        [charge] = [entry for entry in session.ledger.entries() if entry.kind == "charge"]
        repeated = asked_again(charge.content(), policy)
        assert repeated is not None
        loss = {repeated.unit: str(repeated.loss)}
        assert not session.answer(list(repeated.queries), plan=repeated.planning, **loss).cost


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_price_is_at_most_the_requested_loss(guarantee: str) -> None:
    policy, loss = small_policy(guarantee), LOSSES[guarantee]
    for queries in BATCHES.values():
        for strategy in strategies(queries, policy, loss):
            price = strategy.event.price
            paid = price.z if loss.unit == "z" else price.pure
            assert paid is not None
            assert loss.amount * Fraction(999, 1000) <= paid.value <= loss.amount


def test_other_statistics_are_answered_one_by_one() -> None:
    policy, loss = small_policy("average"), LOSSES["average"]
    for queries in ([tg.mean("age"), tg.count()], [tg.count()], [tg.median("age"), tg.sum("age")]):
        assert plan_request(queries, policy, loss=loss, planning="auto").strategy is None


def test_noise_is_gaussian_on_average_and_laplace_in_the_worst_case() -> None:
    kinds = {"worst-case": DiscreteLaplace, "average": DiscreteGaussian}
    for guarantee, kind in kinds.items():
        strategy = plan_workload(BATCHES["all ranges"], small_policy(guarantee), LOSSES[guarantee])
        assert strategy is not None
        assert isinstance(strategy.event, kind)


def test_unknown_plan_is_refused(tmp_path: Path) -> None:
    with (
        tg.Session(small_policy("average"), table=small_frame(), folder=tmp_path) as session,
        pytest.raises(Unsupported, match="one-by-one"),
    ):
        session.answer([tg.count()], share="0.1", plan="best")  # type: ignore[arg-type]


def test_several_sql_statements_are_one_request(tmp_path: Path) -> None:
    with tg.Session(small_policy("average"), table=small_frame(), folder=tmp_path) as session:
        statements = [
            "SELECT COUNT(*) FROM people WHERE age BETWEEN 2 AND 5",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex",
        ]
        answers = session.answer(statements, share="0.2", plan="auto")
        assert [answer.values.shape for answer in answers] == [(), (2,)]
