"""Columns: intervals, channels and single values of sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tidegate.collect.reconstruct import GaussianNoise, UniformNoise
from tidegate.collect.trees import Column, atoms_column, column_of, noisy_column, plain_column
from tidegate.collect.trees.columns import picked, picked_channel
from tidegate.errors import Unsupported
from tidegate.operators import Operator
from tidegate.policy import Category, Integer, Question
from tidegate.policy.collection import operator_for

NUMBERS = {
    "uniform-noise": {"privacy": 1},
    "gaussian-noise": {"privacy": 1},
    "laplace-noise": {"epsilon": 2},
    "square-wave": {"epsilon": 2},
}
CATEGORIES = ("randomized-response", "unary", "subset")


def number(name: str, size: int) -> Operator:
    return operator_for(Question("x", Integer(0, size - 1), name, **NUMBERS[name]))


def category(name: str, size: int = 4) -> Operator:
    return operator_for(Question("x", Category(tuple("abcdefgh"[:size])), name, epsilon=1))


COLUMNS: dict[str, Column] = {
    **{f"{name} on {size}": column_of(number(name, size)) for name in NUMBERS for size in (2, 40, 333, 1_000)},
    **{name: column_of(category(name)) for name in CATEGORIES},
    "uniform": noisy_column(UniformNoise(3.0), 20, 80),
    "gaussian": noisy_column(GaussianNoise(10.0), 20, 80),
    "atoms": atoms_column(GaussianNoise(1.0), [0, 1, 2, 3, 4]),
    "plain": plain_column(np.arange(1_000.0)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_a_channel_sum_to_one_and_fit_the_edges(name: str) -> None:
    column = COLUMNS[name]
    assert column.channel.matrix.sum(axis=0) == pytest.approx(1, abs=1e-9)
    assert column.value_edges.size == column.intervals + 1 <= 101
    assert column.report_edges.size == column.channel.reports + 1


@pytest.mark.parametrize("name", COLUMNS)
def test_report_without_noise_is_nearest_to_its_value(name: str) -> None:
    column = COLUMNS[name].without_noise()
    assert column.plain
    assert column.nearest.tolist() == list(range(column.intervals))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NUMBERS)
def test_codes_of_an_operator_follow_its_channel(name: str) -> None:
    """Exact: the column's matrix is the operator's, with runs of reports summed and runs of values averaged."""
    operator = number(name, 333)
    column = column_of(operator)
    values = column.interval(np.arange(operator.values, dtype=float))
    reports = column.report(np.arange(operator.report_size, dtype=float))
    whole, expected = operator.channel_array(), np.zeros_like(column.channel.matrix)
    for s in range(operator.report_size):
        for j in range(operator.values):
            expected[reports[s], values[j]] += whole[s, j] / (values == values[j]).sum()
    assert column.channel.matrix == pytest.approx(expected, abs=1e-9)


def test_middle_of_the_noise_is_the_value() -> None:
    for name in NUMBERS:
        operator = number(name, 41)
        column = column_of(operator)
        center = round(float(column.channel.matrix[:, 20] @ np.arange(column.channel.reports)))
        assert column.nearest[column.report(np.array([center]))] == 20


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("name", CATEGORIES[1:])
def test_picked_member_of_a_set_has_the_stated_probabilities(name: str, size: int) -> None:
    """Exact: over every set, each of its members equally often; of the empty set any value."""
    operator, channel = category(name, size), picked_channel(category(name, size))
    sets = [s for count in range(size + 1) for s in combinations(range(size), count)]
    for value in range(size):
        chances = [Fraction(0)] * size
        for members in sets:
            for member in members or range(size):
                chances[member] += operator.probability(list(members), value) / len(members or range(size))
        assert channel[:, value] == pytest.approx([float(chance) for chance in chances], abs=1e-12)


def test_every_member_of_a_set_is_picked_equally_often() -> None:
    sets = np.zeros((30_000, 1), np.uint64)
    sets[:, 0] = 0b101100
    sets[::3, 0] = 0
    picks = picked(sets, values=6)
    nonempty = picks[sets[:, 0] > 0]
    assert set(nonempty.tolist()) == {2, 3, 5}
    assert np.bincount(nonempty, minlength=6)[[2, 3, 5]] == pytest.approx(len(nonempty) / 3, rel=0.02)
    assert np.bincount(picks[sets[:, 0] == 0]) == pytest.approx(10_000 / 6, rel=0.02)


def test_additive_operator_does_not_support_single_values() -> None:
    with pytest.raises(Unsupported):
        picked_channel(number("uniform-noise", 10))
