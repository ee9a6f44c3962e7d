"""The compiled controller decides like a literal rescan of the queue, for all tests and tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from reference.release import RememberingController
from release.settings import random_plan, reference_of, reference_tests, skewed_requests

from tidegate.policy.concealment import TESTS
from tidegate.release.gate import Gate

PAIRS = [pair for size in (1, 2, 5) for pair in combinations(TESTS, size)]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("tests", PAIRS, ids="+".join)
@pytest.mark.parametrize("seed", range(3))
def test_every_decision_equals_the_literal_rescan(tests: tuple[str, ...], seed: int) -> None:
    random = np.random.default_rng([seed, *map(TESTS.index, tests)])
    for _ in range(4):
        plan = random_plan(tests, random)
        gate, reference = Gate(plan), reference_of(plan)
        for number, (x, y) in enumerate(skewed_requests(plan, 120, random)):
            ours = gate.decide(np.array([gate.cell(x, y)]), np.array([number]))
            assert ours.released.tolist() == reference.request(x, y)
        assert gate.counts.tolist() == reference.counts
        assert gate.waiting == len(reference.queue)


def test_random_settings_cover_waiting_and_released_requests() -> None:
    """Otherwise the comparison above would compare nothing."""
    waited = freed = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        plan = random_plan(("mutual-information", "kullback-leibler"), random)
        reference = reference_of(plan)
        for x, y in skewed_requests(plan, 120, random):
            freed += len(reference.request(x, y)) > 1
        waited += len(reference.queue)
    assert waited > 100
    assert freed > 30


@pytest.mark.parametrize("tests", PAIRS[:5], ids="+".join)
def test_batch_is_decided_like_single_requests(tests: tuple[str, ...]) -> None:
    random = np.random.default_rng(11)
    for _ in range(5):
        plan = random_plan(tests, random)
        requested = list(skewed_requests(plan, 200, random))
        cells, numbers = np.array([Gate(plan).cell(*xy) for xy in requested]), np.arange(len(requested))
        one_by_one, batch = Gate(plan), Gate(plan)
        together = batch.decide(cells, numbers)
        for item in range(len(requested)):
            alone = one_by_one.decide(cells[item : item + 1], numbers[item : item + 1])
            assert alone.released.tolist() == together.after(item).tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("tests", PAIRS, ids="+".join)
def test_loaded_gate_continues_exactly(tests: tuple[str, ...]) -> None:
    random = np.random.default_rng(5)
    plan = random_plan(tests, random)
    requested = list(skewed_requests(plan, 160, random))
    whole, reference = Gate(plan), reference_of(plan)
    for number, (x, y) in enumerate(requested):
        if number == 80:
            again = Gate(plan)
            again.load(whole.counts.T.ravel(), [(n, again.cell(a, b)) for n, a, b in reference.queue])
            whole = again
        ours = whole.decide(np.array([whole.cell(x, y)]), np.array([number]))
        assert ours.released.tolist() == reference.request(x, y)


@pytest.mark.parametrize("tests", PAIRS[:5], ids="+".join)
def test_withdrawn_requests_are_removed(tests: tuple[str, ...]) -> None:
    random = np.random.default_rng(8)
    plan = random_plan(tests, random)
    gate, reference = Gate(plan), reference_of(plan)
    for number, (x, y) in enumerate(skewed_requests(plan, 200, random)):
        if reference.queue and number % 7 == 0:
            gone, a, b = reference.queue[int(random.integers(len(reference.queue)))]
            assert reference.withdraw(gone)
            assert gate.withdraw(gone, gate.cell(a, b))
            assert not gate.withdraw(gone, gate.cell(a, b))
        assert gate.decide(np.array([gate.cell(x, y)]), np.array([number])).released.tolist() == reference.request(x, y)


ANYBODY = [pair for pair in PAIRS if {"mutual-information", "dixon"} & set(pair)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("tests", ANYBODY, ids="+".join)
def test_blocks_by_age_decide_like_a_scan_of_all_cells(tests: tuple[str, ...]) -> None:
    random = np.random.default_rng([21, *map(TESTS.index, tests)])
    plan = random_plan(tests, random, values=30, targets=40)
    requested = list(skewed_requests(plan, 6_000, random))
    scan, blocks = Gate(plan, block_above=10**9), Gate(plan, block_above=0)
    cells, numbers = np.array([scan.cell(*xy) for xy in requested]), np.arange(len(requested))
    for start in range(0, len(requested), 1_500):
        part = slice(start, start + 1_500)
        expected = scan.decide(cells[part], numbers[part])
        result = blocks.decide(cells[part], numbers[part])
        assert result.released.tolist() == expected.released.tolist()
        assert result.ends.tolist() == expected.ends.tolist()
        for number in range(start, start + 1_500, 97):
            assert blocks.withdraw(number, int(cells[number])) == scan.withdraw(number, int(cells[number]))
    assert scan.waiting == blocks.waiting
    assert scan.waiting > 100 or "mutual-information" not in tests


@pytest.mark.parametrize("tests", ANYBODY[:3], ids="+".join)
def test_blocks_by_age_decide_like_the_literal_rescan(tests: tuple[str, ...]) -> None:
    random = np.random.default_rng([22, *map(TESTS.index, tests)])
    plan = random_plan(tests, random, values=8, targets=9)
    gate, reference = (
        Gate(plan, block_above=0),
        RememberingController(reference_tests(plan), plan.baseline, plan.targets),
    )
    for number, (x, y) in enumerate(skewed_requests(plan, 400, random)):
        assert gate.decide(np.array([gate.cell(x, y)]), np.array([number])).released.tolist() == reference.request(x, y)
