"""The rounds of a sequential model: exactly the exponential mechanism, and nothing of the rows in what is public."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from baselines.small_tables import PAY, SEX, TOWN, X, Y, neighbors, quiet, tables, walk
from claims.probabilities import bits, chance
from tidegate_papers.baselines.regressions import Number
from tidegate_papers.baselines.rounds import PAIRED, Chooser, normal_cuts, rate_for
from tidegate_papers.baselines.sequential import Sequential

from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.private_rows import ArrayRows

ALPHA, RUNS = 1e-6, 4_000
SMALL = Column("x", 3, (0, 1, 2))


def most_lost(
    columns: list[Column],
    table: np.ndarray,
    path: tuple[int, ...],
    others: list[np.ndarray] | None = None,
    **options: Any,
) -> float:
    """Return the largest log ratio of a round over all neighbors, as a share of its loss."""
    rounds, largest = walk(columns, table, path, **options), 0.0
    for other in others or neighbors(table, columns):
        for before, after in zip(rounds, walk(columns, other, path, **options), strict=True):
            ratios = [abs(math.log(a / b)) for a, b in zip(before.chances, after.chances, strict=True)]
            largest = max(largest, max(ratios) / float(before.epsilon))
    return largest


@pytest.mark.parametrize("path", [(), (1, 1, 1, 1), (2, 0, 1, 2)], ids=str)
def test_no_round_over_one_number_exceeds_its_loss(path: tuple[int, ...]) -> None:
    """Every table of three rows, every neighbor, every candidate."""
    for table in tables([SMALL], 3):
        assert most_lost([SMALL], table, path) <= 1 + 1e-12


@pytest.mark.one_in(3)
@pytest.mark.parametrize("columns", [[SMALL, Y], [SMALL, SEX], [PAY, X]], ids=["numbers", "logistic", "missing"])
def test_no_round_over_two_columns_exceeds_its_loss(columns: list[Column]) -> None:
    every = tables(columns, 2)
    for table in every[:: max(len(every) // 3, 1)]:
        assert most_lost(columns, table, (1, 2, 1, 0, 2, 1, 3, 1, 1), epsilon=Fraction(2)) <= 1 + 1e-12


def test_several_rows_of_a_person_are_charged() -> None:
    """One of two rows changed: half of the loss of a person with both."""
    table = np.array([[0], [2]])
    assert most_lost([SMALL], table, (), reach=2) <= 0.5 + 1e-12


def test_too_small_sensitivity_exceeds_the_loss() -> None:
    """All weight of a row moves from a full cell of one candidate into an empty one, and stays in one cell of another."""
    wide, table = Column("x", 300, (0,)), np.zeros((20, 1), np.int64)
    other = table.copy()
    other[0] = 150
    how = {"others": [other], "model": Sequential(many=400, some=2), "epsilon": Fraction(1, 10)}
    assert 0.4 < most_lost([wide], table, (), **how) <= 1
    assert most_lost([wide], table, (), fault=4, **how) > 1.5


@pytest.mark.long  # test_no_round_over_two_columns_exceeds_its_loss checks its probabilities exactly
def test_output_follows_the_exponential_mechanism() -> None:
    """All paths of a tiny problem by enumeration, compared with 4,000 runs. Alpha 1e-6."""
    table, model, epsilon = np.array([[0], [1], [1]]), Sequential(many=2, some=1), Fraction(40)
    rows, facts = ArrayRows(table, [SMALL]), Facts((SMALL,), 3)
    expected: dict[tuple[int, ...], float] = {}
    for path in np.ndindex(2, 3, 2, 2):
        rounds = walk([SMALL], table, path, epsilon=epsilon, model=model)
        last = tuple(np.concatenate([choice.candidates[k] for choice, k in zip(rounds, path, strict=True)]).tolist())
        expected[last] = float(math.prod(choice.chances[k] for choice, k in zip(rounds, path, strict=True)))
    assert sum(expected.values()) == pytest.approx(1)
    drawn: dict[tuple[int, ...], int] = dict.fromkeys(expected, 0)
    source = bits("rounds")
    for _ in range(RUNS):
        diary = Diary(epsilon)
        model.learn(facts, rows, diary, bits=source, progress=quiet)
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
def test_public_choices_do_not_depend_on_the_rows(columns: list[Column]) -> None:
    """At the same earlier outputs: names, losses, sensitivities, candidates. Only the probabilities change."""
    random, rows = np.random.default_rng(1), 40
    sizes = [column.size + column.missing for column in columns]
    first, other = (np.column_stack([random.integers(0, size, rows) for size in sizes]) for _ in range(2))
    for column, size in enumerate(sizes):  # the same counts of categories, so that their noisy counts are the same
        if not columns[column].ordered or columns[column].missing:
            other[:, column] = random.permutation(first[:, column])
        else:
            other[:, column] = np.minimum(other[:, column], size - 2)
    path = tuple(random.integers(0, 50, 60))
    here, there = (walk(columns, table, path) for table in (first, other))
    assert [r.name for r in here] == [r.name for r in there]
    assert any(a.chances != b.chances for a, b in zip(here, there, strict=True))
    for a, b in zip(here, there, strict=True):
        assert (a.epsilon, a.sensitivity) == (b.epsilon, b.sensitivity)
        assert (a.candidates == b.candidates).all()


def test_seed_that_depends_on_the_rows_is_detected() -> None:
    """A model whose seed depends on the rows gives other candidates."""
    table, other = np.array([[0], [1], [1]]), np.array([[0], [2], [1]])
    here = walk([SMALL], table, model=Sequential(many=3, some=2, seed=int(table.sum())))
    there = walk([SMALL], other, model=Sequential(many=3, some=2, seed=int(other.sum())))
    assert any((a.candidates != b.candidates).any() for a, b in zip(here, there, strict=True))


def test_rate_never_exceeds_the_requested_loss() -> None:
    for epsilon in (Fraction(1, 3), Fraction(1, 10**15), Fraction(10**9 + 7, 10**12 + 39), Fraction(123456789, 7)):
        rate = rate_for(2 * 16, epsilon)
        assert 0 < rate <= epsilon / (2 * 2 * 16)
        assert rate.denominator <= 2**62
        assert float(rate) == pytest.approx(float(epsilon / 64), rel=1e-5)


def test_rate_too_small_to_represent_is_zero_and_chooses_uniformly() -> None:
    """Rounded up to 2**-60 it would cost more than requested."""
    assert rate_for(2 * 16, Fraction(3, 10**20)) == 0
    chooser = Chooser(Diary(Fraction(1)), 1, bits("even"))
    request = (Fraction(3, 10**20), lambda: np.array([[7], [8]]), lambda tried: np.array([0, 2**40]))
    chosen = [int(chooser.choose("x", *request, sensitivity=32)[0]) for _ in range(2_000)]
    assert chance(np.bincount(chosen, minlength=9)[7:], np.array([0.5, 0.5])) > ALPHA


def test_cell_of_a_row_does_not_depend_on_its_position() -> None:
    """Residuals within a bit of a cut: matrix products round them by position, so other rows would matter."""
    random, cut = np.random.default_rng(3), normal_cuts(PAIRED)[2]
    for size in (1_001, 1_003, 5_000):
        weights, row = random.normal(size=6), random.normal(size=6)
        state = Number(SMALL, (), 0.0, 1.0, weights, 1.0)
        value = cut + float(weights @ row)
        near = [np.nextafter(value, value + way) for way in (-1, 1)]
        for edge in (value, *near):
            assert len(np.unique(state.cells(np.full(size, edge), np.repeat(row[:, None], size, 1)))) == 1


def test_zero_loss_returns_the_first_candidate_and_reads_no_row() -> None:
    chooser = Chooser(Diary(Fraction(1)), 1, bits("nothing"))
    chosen = chooser.choose("x", Fraction(0), lambda: np.array([[7], [8]]), lambda tried: 1 // 0, sensitivity=1)
    assert chosen.tolist() == [7]
