"""A statistic next to its critical value is decided by exact arithmetic, not by floating point."""

from __future__ import annotations

from collections.abc import Callable
from decimal import localcontext
from fractions import Fraction
from functools import cache, partial
from itertools import count as numbers_from
from typing import Any

import numpy as np
import pytest
from release import ties
from release.settings import skewed_requests
from release.ties import OFFSETS, CountingGate, Counts, below, is_admitted, loaded_gate, plan_for, table_value_near

from tidegate.policy import Profile
from tidegate.release import _kernels as kernels
from tidegate.release.gate import BLOCK_ABOVE, REFRESH, Gate
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import Plan
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.dixon import dixon_critical

SURELY = 9e-14  # relatively nearer than this, no test trusts floating point


def a_state(seed: int) -> tuple[list[int], Counts, int, int]:
    """Return a baseline, released counts, and a value and target of the next request."""
    random = np.random.default_rng(seed)
    values, targets = int(random.integers(2, 7)), int(random.integers(2, 5))
    most = int(random.choice([3, 30, 3000]))
    baseline = [int(w) for w in random.integers(1, 20, values)]
    counts = random.integers(0, most, (values, targets))
    return baseline, counts, int(random.integers(values)), int(random.integers(targets))


def after(counts: Counts, value: int, target: int) -> Counts:
    more = counts.copy()
    more[value, target] += 1
    return more


# Mutual information and Kullback-Leibler: the critical value is chosen


@pytest.mark.one_in(3)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("test", ["mutual-information", "kullback-leibler"])
def test_near_tie_is_decided_as_with_80_digits(test: str, offset: float) -> None:
    decided = []
    for seed in range(25):
        weights, counts, value, target = a_state(seed)
        baseline = plan_for(test, weights, counts.shape[1]).baseline
        more = after(counts, value, target)
        alone = test == "kullback-leibler"
        statistic = ties.divergence(more[:, target], baseline) if alone else ties.total(more, baseline)
        size = int(more[:, target].sum() if alone else more.sum())
        plan = plan_for(test, weights, counts.shape[1], critical={size: table_value_near(statistic, offset)})
        critical = REGISTERED[test](plan)._critical(size)  # type: ignore[attr-defined]
        gate = loaded_gate(plan, counts)
        decided.append(below(statistic, critical))
        assert is_admitted(gate, value, target) == decided[-1]
        if ties.nearness(statistic, critical) < SURELY:
            assert gate.settled, "floating point decided"
    assert {True, False} <= set(decided) if abs(offset) < 2e-16 else set(decided) == {offset > 0}


def test_floating_point_decides_some_near_ties_wrongly() -> None:
    """Otherwise exact arithmetic would be useless, and these tests would show nothing."""
    wrong = 0
    for seed in range(200):
        weights, counts, value, target = a_state(seed)
        baseline = plan_for("kullback-leibler", weights, counts.shape[1]).baseline
        column = after(counts, value, target)[:, target]
        statistic = ties.divergence(column, baseline)
        plan = plan_for(
            "kullback-leibler", weights, counts.shape[1], critical={int(column.sum()): table_value_near(statistic, 0)}
        )
        critical = REGISTERED["kullback-leibler"](plan)._critical(int(column.sum()))  # type: ignore[attr-defined]
        result = sums(gate := loaded_gate(plan, counts))
        step = 2.0 * (result["gain"][gate.cell(value, target)] - result["cost"][target])
        wrong += bool(result["distances"][target] + step < critical) != below(statistic, critical)
    assert wrong > 10


@pytest.mark.parametrize("test", ["mutual-information", "kullback-leibler"])
@pytest.mark.parametrize(("critical", "leaves"), [(0.0, False), (5e-324, True)])
def test_zero_is_not_below_a_critical_value_of_zero(test: str, critical: float, leaves: bool) -> None:
    """A target exactly on the baseline has a statistic of exactly 0: the only one that a critical value can equal."""
    counts = np.array([[3, 6], [5, 10], [6, 14]])
    size = 15 if test == "kullback-leibler" else 45
    gate = loaded_gate(plan_for(test, [3, 5, 7], 2, critical={size: critical}), counts)
    assert is_admitted(gate, 2, 0) == leaves
    assert gate.settled


def test_exact_arithmetic_is_unused_far_from_the_critical_value() -> None:
    """Otherwise the tests here would count nothing."""
    for test in ("mutual-information", "kullback-leibler"):
        for seed in range(25):
            weights, counts, value, target = a_state(seed)
            gate = loaded_gate(plan_for(test, weights, counts.shape[1], critical={1: 1e9}), counts)
            assert is_admitted(gate, value, target)
            assert gate.settled == []


# Chi-square: the statistic is rational, the critical value follows from the significance


def significance_near(critical: Callable[[float], float], target: float, *, steps: int = 80) -> float:
    """Return the level whose critical value is nearest to the target."""
    low, high = 1e-12, 1 - 1e-12  # a higher level has a lower critical value
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if critical(middle) > target else (low, middle)
    return low


@pytest.mark.one_in(3)
@pytest.mark.parametrize("merging", ["forward", "smaller-neighbour", "smallest-first"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_chi_square_near_tie_is_decided_as_with_fractions(merging: str, offset: float) -> None:
    for seed in range(12):
        random = np.random.default_rng([seed, 4])
        values = int(random.integers(2, 6))
        weights = [int(w) for w in random.integers(5, 12, values)]
        counts = random.integers(6, 40, (values, 2))
        more = after(counts, 1, 0)
        baseline = plan_for("chi-square", weights, 2).baseline
        statistic = ties.pearson(more[:, 0], baseline)
        critical = partial(chi_square_critical, values - 1)
        level = significance_near(critical, float(statistic * (1 + Fraction(offset))))
        plan = plan_for("chi-square", weights, 2, significance=Fraction(level), merging=merging)
        gate = loaded_gate(plan, counts)
        assert is_admitted(gate, 1, 0) == (statistic < Fraction(critical(level)))
        if abs(float(statistic / Fraction(critical(level)) - 1)) < SURELY:
            assert gate.settled, "floating point decided"


def test_chi_square_that_equals_its_critical_value_has_reached_it() -> None:
    counts = np.array([[12, 0], [23, 0]])  # with one more 12 and 24 of 36, where 18 and 18 are expected: exactly 4
    level = significance_near(partial(chi_square_critical, 1), 4.0)
    levels = [level + item * np.spacing(level) for item in range(-300, 300)]
    level = next(p for p in levels if chi_square_critical(1, p) == 4.0)
    for near, leaves in ((level, False), (level * (1 - 1e-13), True), (level * (1 + 1e-13), False)):
        gate = loaded_gate(plan_for("chi-square", [1, 1], 2, significance=Fraction(float(near))), counts)
        assert is_admitted(gate, 1, 0) == leaves == (Fraction(chi_square_critical(1, near)) > 4)
        assert gate.settled


# Dixon: critical values lie on a grid, so states are sought that come near


def dixon_states(count: int) -> list[tuple[Counts, float]]:
    """Return states of three targets (one exactly on the baseline) and the index of their coefficient on the grid of 2^-33."""
    random = np.random.default_rng(9)
    columns = np.add(random.integers(0, 60, (2, count, 3)), [1, 0, 0])
    share = np.array([0.5, 0.25, 0.25])
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(columns > 0, columns / columns.sum(axis=2, keepdims=True), 1.0)
        distances = (part * np.log(part / share)).sum(axis=2, where=columns > 0)
    high, low = distances.max(axis=0), distances.min(axis=0)
    usable = (low > 1e-3) & (high - low > 0.02)
    coefficient = np.where(usable, (high - low) / high, 0.25)
    return [
        (np.column_stack([[2, 1, 1], columns[0, i], columns[1, i]]), float(coefficient[i]))
        for i in np.argsort(np.abs(coefficient * 2**32 % 1 - 0.5) + ~usable)[:6]
    ]


@pytest.mark.long  # 3 s; the other tests' near ties are in every run
def test_dixon_near_tie_is_decided_as_with_80_digits() -> None:
    baseline = plan_for("dixon", [2, 1, 1], 3).baseline
    decided, near = [], []
    critical = cache(partial(dixon_critical, 3))  # searches for neighbors on the grid start with the same 30 steps
    for counts, coefficient in dixon_states(400_000):
        value = int(np.argmax(counts[:, 1] > 0))
        before = counts.copy()
        before[value, 1] -= 1
        statistic = ties.dixon(counts, baseline)
        for grid in (0, 1, -1, 3, -9):
            level = significance_near(critical, coefficient + grid * 2.0**-32, steps=44)
            gate = loaded_gate(plan_for("dixon", [2, 1, 1], 3, significance=Fraction(level)), before)
            decided.append(below(statistic, critical(level)))
            near.append(ties.nearness(statistic, critical(level)))
            assert is_admitted(gate, value, 1) == decided[-1]
            assert gate.settled or near[-1] > 1e-9, "floating point decided"
    assert min(near) < 1e-13
    assert set(decided) == {True, False}


# Posterior: rho itself is granted, whatever is above is not


@pytest.mark.one_in(3)
@pytest.mark.parametrize("offset", [*OFFSETS, 1e-30, -1e-30])
def test_posterior_of_exactly_rho_is_granted_and_more_is_denied(offset: float) -> None:
    for seed in range(20):
        random = np.random.default_rng([seed, 6])
        values, prior = int(random.integers(2, 6)), Fraction(1, 7)
        weights, shape = random.integers(1, 15, (2, values)).tolist()
        counts = random.integers(0, 25, (values, 3))
        profile = [Fraction(v, sum(shape)) for v in shape]
        baseline = plan_for("kullback-leibler", weights, 3).baseline
        value = max(range(values), key=lambda x: profile[x] / baseline[x])
        while ties.odds(after(counts, value, 1)[:, 1], baseline, prior, profile) <= Fraction(1, 5):
            counts[value, 1] += 1
        exact = ties.odds(after(counts, value, 1)[:, 1], baseline, prior, profile)
        allowed = exact * (1 + Fraction(offset))
        rho = allowed / (1 + allowed)
        more: dict[str, Any] = {"rho": rho, "profiles": {"p": Profile(prior=prior, values=shape)}}
        gate = loaded_gate(plan_for("posterior", weights, 3, **more), counts)
        assert is_admitted(gate, value, 1) == (offset >= 0)
        if abs(offset) < 1e-9:
            assert gate.settled, "floating point decided"


# More ties than one


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("values", [20, 70])
def test_many_ties_in_one_state_are_all_decided_exactly(values: int, leaves: bool) -> None:
    """With equal expectations, the first record of every cell is the same tie."""
    statistic = ties.divergence([1] + [0] * (values - 1), [Fraction(1, values)] * values)
    critical = {1: table_value_near(statistic, 1e-14 if leaves else -1e-14), 2: 1e-3}
    gate = CountingGate(plan_for("kullback-leibler", [1] * values, 3, critical=critical))
    result = gate.decide(np.arange(3 * values), np.arange(3 * values))
    assert result.released.tolist() == ([0, values, 2 * values] if leaves else [])
    assert len(gate.settled) == (3 if leaves else 3 * values)


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("values", [20, 70])
@pytest.mark.parametrize("block_above", [0, BLOCK_ABOVE], ids=["in blocks", "in one piece"])
def test_many_ties_in_the_queue_are_all_decided_exactly(values: int, leaves: bool, block_above: int) -> None:
    column = [1] + [0] * (values - 1)
    statistic = 2 * ties.divergence(column, [Fraction(1, values)] * values)
    critical = {1: 1e9, 2: table_value_near(statistic, 1e-14 if leaves else -1e-14), 3: 1e-3}
    gate = CountingGate(plan_for("mutual-information", [1] * values, 3, critical=critical), block_above=block_above)
    gate.load(np.zeros(3 * values, np.int64), [(number, number) for number in range(values)])
    result = gate.decide(np.array([values]), np.array([values]))
    assert result.released.tolist() == ([values, 0] if leaves else [values])
    assert len(gate.settled) >= (1 if leaves else values)


@pytest.mark.parametrize("digits", [3, 200])
@pytest.mark.parametrize("test", ["mutual-information", "kullback-leibler", "dixon"])
def test_decimal_context_of_the_application_has_no_effect(test: str, digits: int) -> None:
    weights, counts = [2, 1, 1], np.array([[2, 10, 3], [1, 4, 21], [1, 0, 9]])
    more = after(counts, 0, 2)
    baseline = plan_for(test, weights, 3).baseline
    for offset in (1e-13, -1e-13):
        if test == "dixon":
            critical_value = float(ties.dixon(more, baseline)) + offset * 1e3
            plan = plan_for(
                test,
                weights,
                3,
                significance=Fraction(significance_near(partial(dixon_critical, 3), critical_value, steps=44)),
            )
            leaves = below(ties.dixon(more, baseline), REGISTERED[test](plan)._critical(3))  # type: ignore[attr-defined]
        else:
            alone = test == "kullback-leibler"
            statistic = ties.divergence(more[:, 2], baseline) if alone else ties.total(more, baseline)
            size, leaves = int(more[:, 2].sum() if alone else more.sum()), offset > 0
            plan = plan_for(test, weights, 3, critical={size: table_value_near(statistic, offset)})
        with localcontext() as context:
            context.prec = digits
            gate = loaded_gate(plan, counts)
            assert is_admitted(gate, 0, 2) == leaves
            assert gate.settled


# Drift

DRIFTING = {
    "sums": ("mutual-information", "kullback-leibler"),
    "odds": ("kullback-leibler", "posterior"),
    "order": ("dixon", "chi-square"),
}


def a_long_plan(tests: tuple[str, ...]) -> Plan:
    more: dict[str, Any] = {}
    if "posterior" in tests:
        more = {"rho": "0.6", "profiles": {"p": Profile(prior="0.2", values=(1, 3, 5, 9, 7, 4, 2, 0))}}
    table = {n: 20.0 + 3.0 * np.log1p(n) for n in (1, 10, 100, 1000)}
    return plan_for(tests, (5, 9, 14, 20, 16, 11, 6, 2), 6, critical=table, significance="0.01", **more)


def sums(gate: Gate) -> dict[str, Any]:
    machine = gate._machine
    active = int(machine.whole[kernels.ACTIVE])
    return {
        "total": machine.numbers[kernels.TOTAL],
        "distances": machine.sums[kernels.DISTANCES],
        "gain": machine.weights[kernels.GAIN],
        "cost": machine.sums[kernels.COST],
        "evidence": machine.evidence,
        "ordered": machine.sums[kernels.ORDERED, :active],
    }


@pytest.mark.one_in(3)
@pytest.mark.parametrize("tests", DRIFTING.values(), ids=list(DRIFTING))
def test_sums_do_not_drift_over_200_000_decisions(tests: tuple[str, ...]) -> None:
    plan, random = a_long_plan(tests), np.random.default_rng(3)
    never, often, start = Gate(plan), Gate(plan), numbers_from(0, 50_000)
    fair = random.choice(8, 200_000, p=plan.floats)
    tilted = np.array([x for x, _ in skewed_requests(plan, 200_000, random)])
    values = np.where(random.random(200_000) < 0.7, fair, tilted)
    cells = random.integers(0, 6, 200_000) * 8 + values
    for first in [next(start) for _ in range(4)]:
        part, numbers = cells[first : first + 50_000], np.arange(first, first + 50_000)
        expected, other = never.decide(part, numbers), often.decide(part, numbers)
        assert expected.released.tolist() == other.released.tolist()
        often._machine.whole[kernels.STEPS] = REFRESH + 1  # rebuild every sum before the next decision
        fresh = Gate(plan)
        fresh.load(np.ascontiguousarray(never.counts.T).ravel())
        for name, built in sums(fresh).items():
            for drifted in (sums(never)[name], sums(often)[name]):
                np.testing.assert_allclose(drifted, built, rtol=1e-9, atol=1e-9, err_msg=name)
    assert never.released > 50_000
    assert never.waiting > 1_000
