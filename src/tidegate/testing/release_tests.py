"""The contract of a test of released records, and a gate that decides literally by such tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.arrays import Ints
from tidegate.release.gate import Decisions
from tidegate.release.mechanisms.test import Test
from tidegate.release.plan import Plan
from tidegate.testing.contract import Contract

NEAR = 1e-9  # relative to a critical value: closer, floating point can differ from exact arithmetic


class LiteralGate:
    """Decides requests by tests alone, from the definition: after every release all waiting requests are tested, oldest first.

    Slow and obvious. `tidegate.audit.observe` can attack your own test with `observe(plan, profile,
    control=lambda plan: LiteralGate(plan, [MyTest(plan)]))`.
    """

    def __init__(self, plan: Plan, tests: Sequence[Test]) -> None:
        self.plan, self.tests = plan, tests
        self.counts = np.zeros((plan.values, plan.targets), np.int64)
        self._waiting: list[tuple[int, int]] = []

    def decide(self, cells: Ints, numbers: Ints) -> Decisions:
        """Decide requests in order: each is released, with those that it makes possible, or waits."""
        out: list[int] = []
        ends = []
        for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True):
            self._waiting.append((number, cell))
            out += self._rescan()
            ends.append(len(out))
        return Decisions(np.array(out, np.int64), np.array(ends, np.int64))

    def admits(self, cell: int) -> bool:
        """Return whether one more record of a cell passes every test."""
        target, value = divmod(cell, self.plan.values)
        after = self.counts.copy()
        after[value, target] += 1
        return all(test.holds(after, target) for test in self.tests)

    def _rescan(self) -> list[int]:
        freed: list[int] = []
        while (index := next((n for n, (_, cell) in enumerate(self._waiting) if self.admits(cell)), None)) is not None:
            number, cell = self._waiting.pop(index)
            target, value = divmod(cell, self.plan.values)
            self.counts[value, target] += 1
            freed.append(number)
        return freed


def check_release_test(kind: type[Test], plan: Plan, *, requests: int = 200, seed: int = 1) -> Contract:
    """Check the contract of a test of released records, on one plan. Only requests are sampled; all clauses are exact."""
    contract = Contract(f"test {getattr(kind, 'name', kind.__name__)}")
    contract.clause("it states its name, its measure, what it detects and what it does not", _words, kind)
    contract.clause("it holds before anything is released", _empty, kind, plan)
    contract.clause("it holds exactly if every reading is below its critical value", _agrees, kind, plan, seed)
    contract.clause("the same counts give the same verdict, and are not changed", _pure, kind, plan, seed)
    contract.clause("a group in which one value dominates has to wait", _held_back, kind, plan, requests)
    contract.clause("records that follow the baseline are released", _lets_out, kind, plan, requests, seed)
    return contract


def _words(kind: type[Test]) -> str:
    missing = [name for name in ("name", "measure", "sees", "blind") if not str(getattr(kind, name, "")).strip()]
    return f"nothing is stated for {', '.join(missing)}" if missing else ""


def _empty(kind: type[Test], plan: Plan) -> str:
    counts = np.zeros((plan.values, plan.targets), np.int64)
    over = [reading for reading in kind(plan).readings(counts) if not reading.value < reading.critical]
    return f"{len(over)} readings are not below their critical value" if over else ""


def _some_counts(plan: Plan, seed: int) -> list[tuple[Ints, int]]:
    """Return counts of many kinds, with the target that changed last."""
    random = np.random.default_rng(seed)
    cases = []
    for size in (1, 2, 5, 10, 30, 100, 300):
        for tilt in (0.0, 0.5, 2.0):
            target = int(random.integers(plan.targets))
            weights = plan.floats * np.exp(tilt * random.standard_normal(plan.values))
            counts = np.zeros((plan.values, plan.targets), np.int64)
            for y in range(plan.targets):
                shares = weights / weights.sum() if y == target else plan.floats
                counts[:, y] = random.multinomial(size, shares)
            cases.append((counts, target))
    return cases


def _agrees(kind: type[Test], plan: Plan, seed: int) -> str:
    test = kind(plan)
    for counts, target in _some_counts(plan, seed):
        own = [reading for reading in test.readings(counts) if reading.target in (None, target)]
        if any(abs(reading.value - reading.critical) <= NEAR * abs(reading.critical) for reading in own):
            continue
        below = all(reading.value < reading.critical for reading in own)
        if test.holds(counts, target) != below:
            return (
                f"{int(counts.sum())} records: readings say {'release' if below else 'wait'}, but the verdict differs"
            )
    return ""


def _pure(kind: type[Test], plan: Plan, seed: int) -> str:
    for counts, target in _some_counts(plan, seed):
        before = counts.copy()
        verdicts = {kind(plan).holds(counts, target) for _ in range(2)}
        if len(verdicts) > 1 or (counts != before).any():
            return "a second call differs from the first"
    return ""


def _held_back(kind: type[Test], plan: Plan, requests: int) -> str:
    """Check that a group is held back: all follow the baseline, then one requests its rarest value repeatedly."""
    gate, rarest = LiteralGate(plan, [kind(plan)]), int(np.argmin(plan.floats))
    gate.counts += np.round(requests * plan.floats).astype(np.int64)[:, None]
    groups = np.arange(plan.targets)
    gate.counts[(rarest + 1 + groups) % plan.values, groups] += groups % 5  # no two groups are quite alike
    for _ in range(10 * requests):
        if not gate.admits(rarest):
            return ""
        gate.counts[rarest, 0] += 1
    return (
        f"{10 * requests} records of one value of one group were released after {requests} that followed the baseline"
    )


def _lets_out(kind: type[Test], plan: Plan, requests: int, seed: int) -> str:
    """Release blocks that follow the baseline as closely as whole records can."""
    random = np.random.default_rng(seed)
    cells = np.concatenate(
        [
            random.permutation(
                [
                    y * plan.values + x
                    for y in range(plan.targets)
                    for x in range(plan.values)
                    for _ in range(int(share))
                ]
            )
            for share in [1] * max(1, requests // (plan.values * plan.targets))
        ]
    )
    gate = LiteralGate(plan, [kind(plan)])
    gate.decide(cells, np.arange(len(cells)))
    return "" if gate.counts.sum() else "nothing was released"
