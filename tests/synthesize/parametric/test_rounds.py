"""The rounds of a sequential model: exactly the exponential mechanism, and nothing of the rows in what is public."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import bits, chance
from synthesize.parametric.small_tables import PAY, SEX, TOWN, X, Y, neighbours, quiet, tables, walk

from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.parametric.candidates import Chooser, rate_for
from tidegate.synthesize.mechanisms.parametric.scores import PAIRED, normal_cuts
from tidegate.synthesize.mechanisms.parametric.sequential import Sequential
from tidegate.synthesize.mechanisms.parametric.states import Number
from tidegate.synthesize.private_rows import ArrayRows

ALPHA, RUNS = 1e-6, 4_000
SMALL = Column("x", 3, (0, 1, 2))


def most_lost(
    columns: list[Column], table: np.ndarray, path: tuple[int, ...], others: list[np.ndarray] | None = None, **how: Any
) -> float:
    """The largest logarithm of a ratio that a round has over all neighbours, as a share of what it may cost."""
    here, found = walk(columns, table, path, **how), 0.0
    for other in others or neighbours(table, columns):
        for one, two in zip(here, walk(columns, other, path, **how), strict=True):
            ratios = [abs(math.log(a / b)) for a, b in zip(one.chances, two.chances, strict=True)]
            found = max(found, max(ratios) / float(one.epsilon))
    return found


@pytest.mark.parametrize("path", [(), (1, 1, 1, 1), (2, 0, 1, 2)], ids=str)
def test_no_round_over_one_number_loses_more_than_it_says(path: tuple[int, ...]) -> None:
    """Every table of three rows, every neighbour, every candidate."""
    for table in tables([SMALL], 3):
        assert most_lost([SMALL], table, path) <= 1 + 1e-12


@pytest.mark.parametrize("columns", [[SMALL, Y], [SMALL, SEX], [PAY, X]], ids=["numbers", "logistic", "missing"])
def test_no_round_over_two_columns_loses_more_than_it_says(columns: list[Column]) -> None:
    every = tables(columns, 2)
    for table in every[:: max(len(every) // 3, 1)]:
        assert most_lost(columns, table, (1, 2, 1, 0, 2, 1, 3, 1, 1), epsilon=Fraction(2)) <= 1 + 1e-12


def test_several_rows_of_a_person_are_paid_for() -> None:
    """One of two rows turned: half of what a person with both may cost."""
    table = np.array([[0], [2]])
    assert most_lost([SMALL], table, (), reach=2) <= 0.5 + 1e-12


def test_the_claim_has_teeth() -> None:
    """All of a row's weight goes from a full cell of one candidate into an empty one, and stays in one cell of another."""
    wide, table = Column("x", 300, (0,)), np.zeros((20, 1), np.int64)
    other = table.copy()
    other[0] = 150
    how = {"others": [other], "model": Sequential(many=400, some=2), "epsilon": Fraction(1, 10)}
    assert 0.4 < most_lost([wide], table, (), **how) <= 1
    assert most_lost([wide], table, (), fault=4, **how) > 1.5


def test_the_output_is_distributed_as_the_exponential_mechanism_says() -> None:
    """All paths of a tiny problem by enumeration against 4,000 runs. Alpha 1e-6."""
    table, model, epsilon = np.array([[0], [1], [1]]), Sequential(many=2, some=1), Fraction(40)
    rows, facts = ArrayRows(table, [SMALL]), Facts((SMALL,), 3)
    expected: dict[tuple[int, ...], float] = {}
    for path in np.ndindex(2, 3, 2, 2):
        rounds = walk([SMALL], table, path, epsilon=epsilon, model=model)
        last = tuple(np.concatenate([one.candidates[k] for one, k in zip(rounds, path, strict=True)]).tolist())
        expected[last] = float(math.prod(one.chances[k] for one, k in zip(rounds, path, strict=True)))
    assert sum(expected.values()) == pytest.approx(1)
    drawn: dict[tuple[int, ...], int] = dict.fromkeys(expected, 0)
    source = bits("rounds")
    for _ in range(RUNS):
        diary = Diary(epsilon)
        model.learn(facts, rows, diary, split={}, bits=source, progress=quiet)
        drawn[tuple(np.concatenate([step.value for step in diary.steps]).tolist())] += 1
    common = [key for key, p in expected.items() if p * RUNS >= 250]
    counts = np.array([*(drawn[key] for key in common), RUNS - sum(drawn[key] for key in common)])
    p = np.array([*(expected[key] for key in common), 1 - sum(expected[key] for key in common)])
    keep = p * RUNS >= 200
    assert len(common) >= 4
    assert chance(counts[keep], p[keep] / p[keep].sum()) > ALPHA
    wrong = p[keep][::-1] / p[keep].sum()
    assert chance(counts[keep], wrong) < ALPHA


@pytest.mark.parametrize(
    "columns", [[X, Y], [X, SEX, TOWN, Y, PAY]], ids=["two numbers", "five columns, parents chosen"]
)
def test_every_public_choice_stays_when_the_data_are_swapped(columns: list[Column]) -> None:
    """At the same earlier outputs: names, losses, sensitivities, candidates. Only the chances move."""
    random, rows = np.random.default_rng(1), 40
    sizes = [column.size + column.missing for column in columns]
    one, other = (np.column_stack([random.integers(0, size, rows) for size in sizes]) for _ in range(2))
    for column, size in enumerate(sizes):  # the same counts of categories, so that their noisy counts are the same
        if not columns[column].ordered or columns[column].missing:
            other[:, column] = random.permutation(one[:, column])
        else:
            other[:, column] = np.minimum(other[:, column], size - 2)
    path = tuple(random.integers(0, 50, 60))
    here, there = (walk(columns, table, path) for table in (one, other))
    assert [r.name for r in here] == [r.name for r in there]
    assert any(a.chances != b.chances for a, b in zip(here, there, strict=True))
    for a, b in zip(here, there, strict=True):
        assert (a.epsilon, a.sensitivity) == (b.epsilon, b.sensitivity)
        assert (a.candidates == b.candidates).all()


def test_a_planted_private_radius_is_noticed() -> None:
    """A model whose seed follows the rows gives other candidates."""
    one, other = np.array([[0], [1], [1]]), np.array([[0], [2], [1]])
    here = walk([SMALL], one, model=Sequential(many=3, some=2, seed=int(one.sum())))
    there = walk([SMALL], other, model=Sequential(many=3, some=2, seed=int(other.sum())))
    assert any((a.candidates != b.candidates).any() for a, b in zip(here, there, strict=True))


def test_rates_never_cost_more_than_asked() -> None:
    for epsilon in (Fraction(1, 3), Fraction(1, 10**15), Fraction(10**9 + 7, 10**12 + 39), Fraction(123456789, 7)):
        rate = rate_for(2 * 16, epsilon)
        assert 0 < rate <= epsilon / (2 * 2 * 16)
        assert rate.denominator <= 2**62
        assert float(rate) == pytest.approx(float(epsilon / 64), rel=1e-5)


def test_a_rate_too_small_to_write_is_none_at_all_and_chooses_evenly() -> None:
    """Rounded up to 2**-60 it would cost more than was asked."""
    assert rate_for(2 * 16, Fraction(3, 10**20)) == 0
    chooser = Chooser(Diary(Fraction(1)), 1, bits("even"))
    asked = (Fraction(3, 10**20), lambda: np.array([[7], [8]]), lambda tried: np.array([0, 2**40]))
    found = [int(chooser.choose("x", *asked, sensitivity=32)[0]) for _ in range(2_000)]
    assert chance(np.bincount(found, minlength=9)[7:], np.array([0.5, 0.5])) > ALPHA


def test_the_cell_of_a_row_does_not_depend_on_where_it_stands() -> None:
    """Residuals within a bit of a cut: matrix products round them by their place, and other rows would then count."""
    random, cut = np.random.default_rng(3), normal_cuts(PAIRED)[2]
    for size in (1_001, 1_003, 5_000):
        weights, one = random.normal(size=6), random.normal(size=6)
        state = Number(SMALL, (), 0.0, 1.0, weights, 1.0)
        value = cut + float(weights @ one)
        near = [np.nextafter(value, value + way) for way in (-1, 1)]
        for edge in (value, *near):
            assert len(np.unique(state.cells(np.full(size, edge), np.repeat(one[:, None], size, 1)))) == 1


def test_without_a_loss_the_first_candidate_is_taken_and_no_row_read() -> None:
    chooser = Chooser(Diary(Fraction(1)), 1, bits("nothing"))
    found = chooser.choose("x", Fraction(0), lambda: np.array([[7], [8]]), lambda tried: 1 // 0, sensitivity=1)
    assert found.tolist() == [7]
