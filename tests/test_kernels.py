"""Kernels: the interpreted and the compiled form give identical results, and small work never waits for the compiler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate import kernels
from tidegate.demo.soldiers import BASELINE, SHARES, concealment
from tidegate.extras import cache_folder
from tidegate.kernels import compiled_only, kernel, wait_for_kernels
from tidegate.release.gate import Gate
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import make_plan
from tidegate.risk import _paths
from tidegate.synthesize.mechanisms.forest import _kernels as forest


@pytest.fixture(autouse=True)
def plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret all work of a test, unless it asks for the compiler."""
    monkeypatch.setattr(kernels, "LARGE", 10**15)
    monkeypatch.setattr(kernels, "PATIENCE", 10**15)


@kernel()
def square(x: Any) -> Any:
    return x * x


@kernel(work=lambda values: int(values.size))
def sum_of_squares(values: Any) -> Any:
    total = 0.0
    for value in values:
        total += square(value)
    return total


@pytest.fixture
def fresh_kernels() -> Iterator[None]:
    """The two kernels of this file, as if no call had compiled them."""
    for tested in (square, sum_of_squares):
        tested._ready.clear()
        tested._pending.clear()
    yield
    wait_for_kernels()


def both(function: Any, *arguments: Any) -> tuple[Any, Any]:
    """Return the results of the interpreted and of the compiled form, from copies of the arguments."""
    copies = [[np.copy(part) if isinstance(part, np.ndarray) else part for part in arguments] for _ in range(2)]
    interpreted = function(*copies[0])
    with compiled_only():
        compiled = function(*copies[1])
    for first, second in zip(*copies, strict=True):
        assert np.array_equal(first, second)
    return interpreted, compiled


# Identical results


@pytest.mark.parametrize("test", sorted(REGISTERED))
def test_decisions_and_their_state_are_identical(test: str) -> None:
    """Every number of the machine, bit by bit, after 1,500 requests of random cells and some withdrawals."""
    plan = make_plan(concealment(tests=(test,)), BASELINE, SHARES)
    rng = np.random.default_rng(1)
    cells = rng.integers(0, plan.values * plan.targets, 1_500)
    gates = []
    for is_compiled in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "_forced", [is_compiled])
            gate = Gate(plan)
            decisions = gate.decide(cells[:1_000], np.arange(1_000))
            withdrawn = [gate.withdraw(number, int(cells[number])) for number in range(0, 1_000, 50)]
            later = gate.decide(cells[1_000:], np.arange(1_000, 1_500))
            gates.append((gate, decisions, withdrawn, later, gate.admissible()))
    (first, *firsts), (second, *seconds) = gates
    for name, a, b in zip(first._machine._fields, first._machine, second._machine, strict=True):
        assert a.tobytes() == b.tobytes(), name
    assert firsts[1] == seconds[1]
    assert (firsts[3] == seconds[3]).all()
    for a, b in zip(firsts[0::2], seconds[0::2], strict=True):
        assert (a.released == b.released).all()
        assert (a.ends == b.ends).all()


def test_simulated_paths_are_identical() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    values, targets = _paths.alias_table(shares), _paths.alias_table(np.array([0.6, 0.4]))
    sizes = np.array([5, 20, 60])
    first, second = both(_paths.grow_paths, sizes, 0, 7, np.uint64(5), *values, *targets, -np.log(shares))
    assert first.tobytes() == second.tobytes()


def test_exact_sums_are_identical() -> None:
    first, second = both(
        _paths.expected_divergence, np.array([1, 9, 400, 90_000]), np.array([0.1, 0.35]), np.array([3, 2])
    )
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("size", [1, 2, 17, 60])
def test_densities_are_identical(size: int) -> None:
    rng = np.random.default_rng(size)
    values, widths = rng.normal(50, 20, size), rng.integers(1, 9, size).astype(np.float64)
    first, second = both(forest.average_density, values, widths, rng.uniform(0.01, 1, size), 3.5)
    assert first.tobytes() == second.tobytes()


def test_exchanged_rows_are_identical() -> None:
    rng = np.random.default_rng(3)
    places = rng.integers(0, 20, (4, 300))
    chosen, slots, offers = (rng.integers(0, most, count) for most, count in ((300, 80), (80, 500), (300, 500)))
    over, price = rng.normal(0, 3, 20), rng.uniform(0.1, 2, 20)
    first, second = both(forest.exchange_rows, chosen, places, over, price, slots, offers)
    assert (first == second).all()
    assert (first != chosen).any()


@pytest.mark.parametrize("weights", [[3, 0, 5, 1], [0, 0], [7]])
@pytest.mark.parametrize("size", [0, 1, 2, 333])
def test_drawn_indexes_are_identical(weights: list[int], size: int) -> None:
    raw = np.random.default_rng(4).integers(0, 2**64, size, dtype=np.uint64)
    first, second = both(forest.spread_ints, np.array(weights), raw)
    assert first.tolist() == second.tolist() == forest.spread_ints.py_func(np.array(weights), raw).tolist()
    assert first.dtype == second.dtype


@pytest.mark.parametrize("size", [0, 1, 5_000])
def test_sums_over_rows_are_identical(size: int) -> None:
    """NumPy's form and the compiled loop, bit by bit; some cells are empty."""
    rng = np.random.default_rng(size)
    left, right = rng.integers(0, 7, size).astype(np.int32), rng.integers(0, 9, size).astype(np.int32)
    weights, target = rng.uniform(0.1, 3, size), rng.uniform(0, size, 70)
    first, second = both(forest.weighted_counts, left, right, weights, 7, 9)
    assert first.tobytes() == second.tobytes()
    first, second = both(forest.rake_weights, left * 9 + right, target, weights, 0.25, 4.0)
    assert first.tobytes() == second.tobytes()
    for count in (9, 2**17):
        for first, second in zip(*both(forest.sort_by_group, right, count), strict=True):
            assert first.tolist() == second.tolist()


def test_coarser_tables_are_identical() -> None:
    rng = np.random.default_rng(6)
    table, left, right = rng.normal(0, 1e6, (30, 20)), np.arange(30) // 4, np.arange(20) % 3
    first, second = both(forest.coarsen_table, table, left, right, rng.normal(0, 1e-3, (8, 3)))
    assert first.tobytes() == second.tobytes()


def test_kernels_call_each_other_in_both_forms() -> None:
    first, second = both(sum_of_squares, np.arange(50.0))
    assert first == second == 40_425


# When the compiler runs


def test_small_work_does_not_load_the_compiler() -> None:
    """A new process decides requests of the demo, and numba is not imported."""
    script = """
import sys, numpy as np
from tidegate.demo.soldiers import BASELINE, SHARES, concealment
from tidegate.release.gate import Gate
from tidegate.release.plan import make_plan
gate = Gate(make_plan(concealment(), BASELINE, SHARES))
gate.decide(np.zeros(30, np.int64), np.arange(30))
print("numba" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout.split() == ["False"]


@pytest.mark.usefixtures("fresh_kernels")
def test_large_work_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "LARGE", 100)
    assert sum_of_squares(np.ones(100)) == 100
    assert not sum_of_squares._ready
    assert sum_of_squares(np.ones(101)) == 101
    assert sum_of_squares._ready


@pytest.mark.usefixtures("fresh_kernels")
def test_small_work_that_adds_up_is_compiled_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "PATIENCE", -1.0)
    assert sum_of_squares(np.ones(5)) == 5  # interpreted: the compiler has just begun
    wait_for_kernels()
    assert sum_of_squares._ready
    monkeypatch.setattr(sum_of_squares, "py_func", None)  # the compiled form answers from now on
    assert sum_of_squares(np.ones(6)) == 6


@pytest.mark.usefixtures("fresh_kernels")
def test_other_types_are_interpreted_until_they_are_compiled() -> None:
    with compiled_only():
        sum_of_squares(np.ones(5))
    assert len(sum_of_squares._ready) == 1
    assert sum_of_squares(np.ones(5, np.int64)) == 5
    assert sum_of_squares(np.ones((5, 2))[:, 0]) == 5
    assert len(sum_of_squares._ready) == 1


def test_compiled_integers_wrap_as_interpreted_ones_do() -> None:
    first, second = both(_paths._mix, np.uint64(2**63 + 12345))
    assert first == second


# The folder of compiled kernels


def test_folder_is_that_of_the_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tidegate

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "tidegate" / f"kernels-{tidegate.__version__}"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.long  # compiles everything: half a minute
def test_warm_fills_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    warm = [sys.executable, "-c", "from tidegate.cli import main; main()", "warm", "--json"]
    subprocess.run(warm, capture_output=True, check=True, timeout=600)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert {"advance", "rebuild", "average_density"} <= {path.name.split("-")[0].split(".")[-1] for path in files}
    subprocess.run(warm, capture_output=True, check=True, timeout=600)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == files
