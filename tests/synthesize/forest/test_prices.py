"""Every step of the forest costs at most its stated loss: by enumeration of all neighbors, from exact distributions.

Worlds are the tables that differ in the rows of one unit. In each world the divergence of a step's output to a reference
distribution, which depends on the other rows alone, is at most order * z; between two worlds it is at most order * zcdp;
and a pure step has ratios of at most exp(epsilon). The noise is the one that the code requested: the samplers of `meter`
are replaced by recorders. Every later step is asked after the same history, which a script writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest
from reference import exponential as slow
from reference.average import gaussian_divergence
from reference.forest import (
    ORDERS,
    divergences,
    exponential_log_law,
    permute_and_flip_log_law,
    shift_divergence,
)
from reference.permute_and_flip import probabilities as permute_and_flip_law
from synthesize.forest.prices import AT_MOST_ONE, Law, Recorder, excess, ratio
from synthesize.forest.surveys import Watched, by_z, learn, pairwise, pure, wide_column

from tidegate.noise import SeededBits, sigma_for
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import maps, meter, model, plan
from tidegate.synthesize.mechanisms.forest.meter import Meter

LIMITS = {"pure": pure(3), "z": by_z(4), "pairwise z": pairwise(4)}
FAULT = 1.2  # a planted fault exceeds its price by more than this factor


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(meter, "discrete_laplace", recorder.laplace)
    monkeypatch.setattr(meter, "discrete_gaussian", recorder.gaussian)
    monkeypatch.setattr(meter, "exponential_choice", recorder.exponential)
    monkeypatch.setattr(meter, "permute_and_flip", recorder.permute_and_flip)
    return recorder


# ---- all tables of up to 4 rows and 3 columns

ROW_TYPES = np.array(list(product((-1, 0, 1), repeat=3)))  # -1: not listed
ABSENT = 0  # the row type that no column lists
PAIRS = list(permutations(range(3), 2))


def type_counts(rows: int) -> np.ndarray:
    """Return every table of some rows as counts of its row types."""
    tables = combinations_with_replacement(range(len(ROW_TYPES)), rows)
    return np.array([np.bincount(table, minlength=len(ROW_TYPES)) for table in tables])


def pair_cells(i: int, j: int) -> np.ndarray:
    """Return which of the 4 cells of two columns each row type is in: (row types, 4)."""
    left, right = ROW_TYPES[:, i], ROW_TYPES[:, j]
    listed = (left >= 0) & (right >= 0)
    return np.stack([listed & (2 * left + right == cell) for cell in range(4)], axis=1).astype(np.int64)


def explained(tables: np.ndarray) -> np.ndarray:
    """Return the number of rows that a function of i explains in j, for all ordered pairs: (tables, 6)."""
    return np.stack([(tables @ pair_cells(i, j)).reshape(-1, 2, 2).max(axis=2).sum(axis=1) for i, j in PAIRS], axis=1)


def misfits(tables: np.ndarray) -> np.ndarray:
    """Return the sum of absolute differences from a model of each unordered pair, and 0 for none: (tables, 4)."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    each = [np.abs(tables @ pair_cells(i, j) - at).sum(axis=1) for (i, j), at in zip(pairs, MODELS, strict=True)]
    return np.stack([*each, np.zeros(len(tables), np.int64)], axis=1)


def neighborhoods(reach: int, rows: int = 4) -> Iterator[np.ndarray]:
    """Yield, for all rows of the others, the tables with every possible set of the unit's rows; the first has none."""
    units = type_counts(reach)
    assert units[0][ABSENT] == reach
    for others in type_counts(rows - reach):
        yield others + units


MODELS = np.random.default_rng(5).integers(0, 3, (3, 4))


@cache
def score_sets(scores: Callable[[np.ndarray], np.ndarray], reach: int) -> tuple[np.ndarray, ...]:
    """Return the scores of all worlds for all rows of the others, each set once: a shift of all scores changes no choice."""
    sets = {}
    for tables in neighborhoods(reach):
        worlds = np.unique(scores(tables), axis=0)
        worlds = worlds - worlds.max()
        sets[worlds.tobytes()] = worlds
    return tuple(sets.values())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", LIMITS)
@pytest.mark.parametrize("reach", [1, 2])
def test_counts_and_scalars_cost_at_most_their_stated_loss(mode: str, reach: int, recorder: Recorder) -> None:
    counted = {"margin": np.stack([ROW_TYPES[:, 0] == code for code in (0, 1)], axis=1).astype(np.int64)}
    counted["pair"] = pair_cells(0, 1)
    for parts in (1_000, 200_000):
        law = measured(mode, reach, recorder, lambda m, p=parts: m.counts("counts", p, lambda: np.zeros(4, np.int64)))
        units = type_counts(reach)  # counts without the unit cancel
        for cells in counted.values():
            worlds = units @ cells
            assert excess(law, worlds, worlds[0]) <= AT_MOST_ONE
        scalar = measured(mode, reach, recorder, lambda m, p=parts: m.scalar("scalar", p, lambda: 0))
        intervals = {tuple(np.unique(explained(tables)[:, 0]).tolist()) for tables in neighborhoods(reach)}
        assert (
            max(excess(scalar, np.array(values)[:, None], np.zeros(1), scalar=True) for values in intervals)
            <= AT_MOST_ONE
        )
        assert max(excess(law, worlds, worlds[0]) for worlds in [units @ pair_cells(0, 1)]) > 0.9  # not wasteful


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", LIMITS)
@pytest.mark.parametrize("reach", [1, 2])
def test_choices_cost_at_most_their_stated_loss(mode: str, reach: int, recorder: Recorder) -> None:
    for parts in (1_000, 500_000):
        largest = 0.0
        for scores, sensitivity in ((explained, 1), (misfits, 2)):
            law = measured(mode, reach, recorder, lambda m, p=parts, s=sensitivity: choose(m, p, s))
            largest = max(largest, *(excess(law, worlds, np.zeros(0)) for worlds in score_sets(scores, reach)))
        assert 0.2 < largest <= AT_MOST_ONE


@pytest.mark.parametrize("reach", [1, 2])
def test_pure_counts_also_cost_their_stated_z(reach: int, recorder: Recorder) -> None:
    """To the distribution of the middle logarithms, on a grid: all outputs of two cells but a share below exp(-40)."""
    law = measured("pure", reach, recorder, lambda m: m.counts("counts", 400_000, lambda: np.zeros(2, np.int64)))
    assert law.loss.pure is not None
    scale = float(law.parameter)
    grid = np.arange(-int(50 * scale), int(50 * scale) + 1)
    noise = {shift: -np.abs(grid - shift) / scale for shift in range(reach + 1)}
    log_each = {shift: log - np.logaddexp.reduce(log) for shift, log in noise.items()}
    shifts = [(a, b) for a, b in product(range(reach + 1), repeat=2) if a + b <= reach]
    worlds = np.array([(log_each[a][:, None] + log_each[b]).ravel() for a, b in shifts])
    middle = (worlds.max(axis=0) + worlds.min(axis=0)) / 2
    middle = middle - np.logaddexp.reduce(middle)
    for order in ORDERS:
        assert ratio(float(divergences(order, worlds, middle).max()), order * law.loss.z) <= AT_MOST_ONE
        assert (
            max(
                ratio(float(divergences(order, p, q)), order * law.loss.zcdp)
                for p, q in product(worlds, repeat=2)
                if p is not q
            )
            <= AT_MOST_ONE
        )


def choose(at: Meter, parts: int, sensitivity: int) -> int:
    return at.choice("choice", parts, lambda: np.arange(4), sensitivity=sensitivity)


def measured(mode: str, reach: int, recorder: Recorder, ask: Callable[[Meter], Any]) -> Law:
    """Return what a step of the meter does."""
    diary = Diary(LIMITS[mode])
    ask(Meter(diary, reach=reach, bits=SeededBits(1)))
    return Law(recorder.kind, recorder.parameter, diary.steps[0].loss)


# ---- every step of whole runs


class Script(Diary):
    """A diary that measures every step, writes down the measurement, and goes on as a fixed history says."""

    def __init__(self, limit: Loss, recorder: Recorder, rows: Rows, *, seed: int) -> None:
        super().__init__(limit)
        self._recorder, self._rows, self._seed = recorder, rows, seed
        self.laws: list[tuple[str, Law, np.ndarray]] = []

    def step(self, name: str, loss: Fraction | Loss, measure: Callable[[], np.ndarray]) -> np.ndarray:
        def play() -> np.ndarray:
            raw = np.atleast_1d(measure())
            stated = loss if isinstance(loss, Loss) else Loss.of_pure(loss)
            is_choice = name.startswith("choice")
            raw = self._recorder.scores if is_choice else self._rows.counted if name.startswith("spikes") else raw
            self.laws.append((name, Law(self._recorder.kind, self._recorder.parameter, stated), raw))
            generator = np.random.default_rng([self._seed, len(self.laws)])
            if is_choice:
                return generator.integers(0, raw.size, 1)
            if name.startswith("test"):
                return np.array([4])
            return np.array([1]) if name.startswith("spikes") else generator.integers(0, 9, raw.size)

        return super().step(name, loss, play)


class Rows(Watched):
    """Rows that write down their last counts of single codes."""

    counted = np.zeros(0, np.int64)

    def places(self, column: Column) -> np.ndarray:
        self.counted = super().places(column)
        return self.counted


SMALL = (
    Column("a", 2, (0, 1), ordered=False, missing=True),
    Column("b", 2, (0, 1), ordered=False),
    wide_column("c", 200),
    Column("d", 6, (0, 3), heaped=True),
)
UNITS = np.array([[-1, -1, -1, -1], *product((0, 1), (0, 1), (0, 60), (4,)), [2, 1, 60, 0], [-1, 0, 199, 5]])


@pytest.fixture
def tiny_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tables of 4 rows use every kind of step; these constants are public and no part of a price."""
    monkeypatch.setattr(maps, "CHOICE_ERROR", 100.0)
    monkeypatch.setattr(maps, "TEST_DEVIATION", 20.0)
    monkeypatch.setattr(maps, "UNSEEN", 2.0)
    monkeypatch.setattr(plan, "PURE_ANCHOR", 2)
    monkeypatch.setattr(plan, "Z_ANCHOR", 1)
    monkeypatch.setattr(plan, "RAREST_SPIKE", 500.0)
    monkeypatch.setattr(model, "POOL", 500)


Steps = list[tuple[str, Law, np.ndarray]]


def runs(mode: str, reach: int, recorder: Recorder, *, seed: int) -> tuple[Steps, ...]:
    """Return the steps of the run in each world; the first world is the one without the unit's rows."""
    others = UNITS[np.random.default_rng(seed).integers(0, len(UNITS), 4 - reach)]
    out = []
    for unit in combinations_with_replacement(UNITS, reach):
        rows = Rows(np.concatenate([others, np.array(unit)]), SMALL)
        diary = Script(LIMITS[mode], recorder, rows, seed=seed)
        learn(Facts(SMALL, 4, reach, "b" if seed else ""), rows, diary)
        out.append(diary.laws)
    return tuple(out)


def step_excesses(worlds: Sequence[Steps]) -> dict[str, float]:
    """Return the largest ratio of a divergence to its price, by kind of step."""
    factors: dict[str, float] = {}
    for steps in zip(*worlds, strict=True):
        (name,), (law,) = {name for name, _, _ in steps}, {law for _, law, _ in steps}  # the same in every world
        values = np.array([raw for _, _, raw in steps])
        kind = " ".join(name.split()[: 3 if name.startswith("choice of") else 1])
        factors[kind] = max(factors.get(kind, 0.0), excess(law, values, values[0], scalar=name.startswith("test")))
    return factors


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("tiny_plans")
@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("mode", LIMITS)
def test_every_step_of_a_run_costs_at_most_its_stated_loss(mode: str, reach: int, recorder: Recorder) -> None:
    factors: dict[str, float] = {}
    for seed in range(2 // reach):
        for kind, factor in step_excesses(runs(mode, reach, recorder, seed=seed)).items():
            factors[kind] = max(factors.get(kind, 0.0), factor)
    expected = {"level", "margin", "choice", "choice of map", "test", "map", "pair"}
    assert set(factors) == expected | ({"spikes"} if mode == "pure" else set())
    assert max(factors.values()) <= AT_MOST_ONE, factors


# ---- planted faults


@pytest.mark.usefixtures("tiny_plans")
def test_half_the_variance_is_detected(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    right = recorder.gaussian
    monkeypatch.setattr(
        meter,
        "discrete_gaussian",
        lambda sigma, *, size, bits: right(sigma * Fraction(7072, 10_000), size=size, bits=bits),
    )
    factors = step_excesses(runs("z", 1, recorder, seed=0))
    assert all(factors[kind] > FAULT for kind in ("level", "margin", "map", "pair", "test")), factors


def test_permute_and_flip_at_the_price_of_the_exponential_mechanism_is_detected(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "exponential_choice", recorder.permute_and_flip)
    for scores, sensitivity in ((explained, 1), (misfits, 2)):
        law = measured("z", 1, recorder, lambda m, s=sensitivity: choose(m, 100, s))
        assert law.kind == "permute and flip"
        assert max(excess(law, worlds, np.zeros(0)) for worlds in score_sets(scores, 1)) > FAULT


@pytest.mark.usefixtures("tiny_plans")
def test_map_table_at_the_price_of_a_scalar_is_detected(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Meter.counts

    def counts(self: Meter, name: str, parts: int, count: Callable[[], np.ndarray]) -> np.ndarray:
        if not name.startswith("map"):
            return right(self, name, parts, count)
        sigma = sigma_for(Fraction(1, 4), LIMITS["z"].z * Fraction(parts, meter.PARTS))
        z = 1 / (8 * sigma**2)
        noisy = self._diary.step(name, Loss(None, z, 4 * z), lambda: self._add_gaussian(count(), sigma))
        return noisy.astype(np.float64)

    monkeypatch.setattr(Meter, "counts", counts)
    factors = step_excesses(runs("z", 1, recorder, seed=0))
    assert {kind for kind, factor in factors.items() if factor > AT_MOST_ONE} == {"map"}
    assert factors["map"] == pytest.approx(4, rel=1e-6)


def test_reference_distributions_agree_with_their_definitions() -> None:
    for order, distance, sigma in product(ORDERS, (Fraction(1, 2), Fraction(2)), (Fraction(3, 5), Fraction(7))):
        exact = float(gaussian_divergence(order, 0, distance, sigma))
        assert shift_divergence(order, 0, distance, sigma) == pytest.approx(exact, rel=1e-10)
    scores, rate = [0, 3, 5, 5, 9], Fraction(1, 3)
    exact = [float(p) for p in permute_and_flip_law(scores, rate)]
    assert np.exp(permute_and_flip_log_law(np.array([scores]), rate))[0] == pytest.approx(exact, rel=1e-12)
    exact = [float(p) for p in slow.probabilities(scores, rate)]
    assert np.exp(exponential_log_law(np.array(scores), rate)) == pytest.approx(exact, rel=1e-12)
