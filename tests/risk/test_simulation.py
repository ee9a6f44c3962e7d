"""Critical values by simulation: kernels equal references, levels hold, tables are cached."""

from __future__ import annotations

import json
import math
import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from claims.probabilities import SEED, at_least
from hypothesis import given
from hypothesis import strategies as st
from reference import exposure as reference

from tidegate.errors import Unsupported
from tidegate.risk import cache as cache_module
from tidegate.risk import simulation
from tidegate.risk._cumulants import Cumulants, column_cumulants, column_mean, spaced, standard_gamma, total_cumulants
from tidegate.risk._paths import alias_table, grow_paths
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.simulation import CriticalTable, critical_order_statistic, target_table, total_table

ALPHA = 1e-7
SKEWED = [0.5, 0.25, 0.15, 0.07, 0.03]
HUNDRED = np.full(100, 0.01)
THOUSAND = np.full(1000, 0.001)


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache_folder(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(shared_cache))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache folder."""
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def is_unlikely(times: int, draws: int, low: float, high: float) -> bool:
    """Return whether the count of an event of probability low .. high has a chance below ALPHA."""
    return at_least(times, draws, high) < ALPHA or at_least(draws - times, draws, 1 - low) < ALPHA


def samples(baseline: np.ndarray, weights: np.ndarray, size: int, draws: int) -> np.ndarray:
    """Return G of whole tables, drawn by numpy at once."""
    generator = np.random.default_rng([size, *SEED.encode()])
    statistics = []
    for _ in range(draws):
        sizes = generator.multinomial(size, weights)
        counts = generator.multinomial(sizes, baseline)
        logs = [np.log(np.maximum(each, 1)) for each in (counts, sizes)]
        statistics.append(2 * ((counts * (logs[0] - np.log(baseline))).sum() - (sizes * logs[1]).sum()))
    return np.array(statistics)


# Kernels and their reference implementations


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_path_equals_the_reference(values: list[int], targets: list[int]) -> None:
    baseline, weights = (np.array(each) / sum(each) for each in (values, targets))
    x, y = alias_table(baseline), alias_table(weights)
    sizes = np.array([1, 2, 3, 7, 30])
    ours = grow_paths(sizes, 3, 5, np.uint64(2**64 - 5), *x, *y, -np.log(baseline))
    for path in (3, 4):
        slow = reference.grow_path(
            sizes.tolist(),
            reference.words(2**64 - 5, path),
            (x[0].tolist(), x[1].tolist()),
            (y[0].tolist(), y[1].tolist()),
            baseline.tolist(),
        )
        np.testing.assert_allclose(ours[:, path - 3], slow, rtol=1e-11, atol=1e-11)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_alias_table_draws_each_index_with_its_share(parts: list[int]) -> None:
    shares = np.array(parts) / sum(parts)
    odds, other = alias_table(shares)
    stay = odds / 2**32
    drawn = stay.copy()
    np.add.at(drawn, other, 1 - stay)
    np.testing.assert_allclose(drawn / len(parts), shares, atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_means_are_exact_and_cumulants_close(size: int) -> None:
    baseline = [Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)]
    mean, variance, third = reference.moments(size, baseline)
    shares = np.array([float(share) for share in baseline])
    sizes = np.array([size])
    assert column_mean(sizes, shares)[0] == pytest.approx(mean, rel=1e-11)
    grown = grow_paths(sizes, 0, 20_000, np.uint64(1), *alias_table(shares), *alias_table(np.ones(1)), -np.log(shares))
    ours = column_cumulants(sizes, shares, (sizes, grown))
    assert ours.variance[0] == pytest.approx(variance, rel=0.12)  # a fixed stream; 12% are above 5 deviations
    assert ours.third[0] == pytest.approx(third, rel=0.35, abs=0.3)


@pytest.mark.parametrize("share", [0.3, 0.01])
def test_mean_of_large_samples_continues_that_of_small_ones(share: float) -> None:
    """The sum over all counts and the series that replaces it, on both sides of the change."""
    change = round(2000 / share)
    shares = np.array([share, 1 - share])
    sizes = np.array([change - 1, change, change + 1, change + 2])
    means = column_mean(sizes, shares)
    assert np.ptp(means) < 1e-7
    assert means[0] > 1  # chi-square's mean comes from above


def test_gamma_with_chi_square_skewness_has_its_quantiles() -> None:
    for freedom in (1, 9, 45, 99_000):
        ours = freedom + math.sqrt(2 * freedom) * standard_gamma(math.sqrt(8 / freedom), 0.2)
        assert ours == pytest.approx(chi_square_critical(freedom, 0.2), rel=1e-9)
    near = [standard_gamma(skew, 0.2) for skew in (-2e-4, -0.9e-4, 0, 0.9e-4, 2e-4)]
    np.testing.assert_allclose(near, near[2], atol=2e-5)
    assert standard_gamma(-0.5, 0.2) == pytest.approx(-standard_gamma(0.5, 0.8))


@pytest.mark.parametrize(
    ("first", "last", "expected"), [(1, 4, [1, 2, 3, 4]), (3, 2, []), (5, 12, [5, 8, 12]), (9, 9, [9])]
)
def test_sizes_are_dense_then_geometric(first: int, last: int, expected: list[int]) -> None:
    assert spaced(first, last, dense=4, ratio=1.5).tolist() == expected


# The order statistic


@pytest.mark.parametrize(
    ("sample", "significance", "value"),
    [
        ([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.2, 8.0),
        ([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10], Fraction(3, 10), 7.0),
        ([1.0, 2, 3, 4, 5, 6, 7, 7, 7, 10], 0.2, 7.0),  # four of ten reach 7: twice as many as said, no more
        ([1.0, 2, 3, 4, 5, 7, 7, 7, 7, 10], 0.2, 10.0),  # five would
        ([3.0] * 10, 0.2, 3.0 + 3e-6),
        ([3.0, 3.0 + 1e-12, 3.0 - 1e-12] * 10, 0.2, 3.0 + 3e-6),
    ],
)
def test_order_statistic_is_a_sample_value_or_just_above(sample, significance, value) -> None:
    assert critical_order_statistic(np.array(sample), significance) == pytest.approx(value, rel=1e-10)


def test_first_record_is_released_if_values_are_equally_likely() -> None:
    """They all have the same statistic: a rule with it as the critical value would never release anything."""
    first = -2 * math.log(0.1)
    assert np.quantile(np.full(100, first), 0.8) == first
    assert target_table([0.1] * 10, 0.2).at(1) > first * (1 + 1e-7)


def test_small_exact_distributions_have_the_critical_values() -> None:
    baseline = [Fraction(share).limit_denominator(100) for share in SKEWED]
    table = target_table(baseline, 0.2)
    for size in range(1, 6):
        law = reference.distribution(size, baseline)
        value = table.at(size)
        below = float(sum(chance for statistic, chance in law.items() if statistic < value - 1e-9))
        reach = 1 - below
        above = 1 - float(sum(chance for statistic, chance in law.items() if statistic <= value + 1e-9))
        assert any(abs(statistic - value) < 1e-9 for statistic in law)
        slack = 5.5 * math.sqrt(0.16 / simulation.PATHS)  # ALPHA
        assert above <= 0.2 + slack
        assert 0.2 - slack <= reach <= 0.4 + slack


# Levels


@pytest.mark.long  # test_large_sparse_table_keeps_its_level is cheaper
@pytest.mark.claim
@pytest.mark.parametrize("significance", [pytest.param(0.2, marks=pytest.mark.long), 0.05])
def test_independent_tables_reach_their_value_at_the_stated_rate(significance: float) -> None:
    """Across the change from simulated to approximated sizes, for a table on which both can be checked."""
    baseline, weights = np.array(SKEWED), np.linspace(1, 3, 40) / np.linspace(1, 3, 40).sum()
    table = total_table(baseline, weights, significance)
    direct = simulation.STEPS // simulation.PATHS
    assert table.sizes[-1] > 2 * direct
    draws = 10_000
    for size in (40, 300, direct, direct + 1, 2 * direct):
        reached = int((samples(baseline, weights, size, draws) >= table.at(size)).sum())
        error = 6 * math.sqrt(significance * (1 - significance) / simulation.PATHS)  # of the table itself
        assert not is_unlikely(reached, draws, significance - error, significance + error)


def fit_column(plan: simulation._Plan) -> Cumulants:
    sizes = np.arange(1, 400)
    return column_cumulants(sizes, plan.baseline, (sizes, plan.grow(sizes, np.ones(1), 5)))


@pytest.mark.claim
@pytest.mark.long
def test_three_moments_agree_with_whole_tables() -> None:
    """Within 6 standard errors of the level (ALPHA 1e-8 each); at 40 targets the fit itself is better than that."""
    baseline, weights = np.array(SKEWED), np.linspace(1, 3, 40) / np.linspace(1, 3, 40).sum()
    plan = simulation._Plan(baseline, weights, 0.2, 20_000, 12345)
    sizes = np.array([100, 300, 1000, 3000])
    fitted = plan.cumulants(sizes)
    for row, size in enumerate(sizes):
        tables = samples(baseline, weights, int(size), 20_000)
        for level in (0.2, 0.05, 0.01):
            off = (tables >= fitted.quantile(level)[row]).mean() - level
            assert abs(off) < 6 * math.sqrt(2 * level * (1 - level) / 20_000)
        together = total_cumulants(np.array([size]), np.full(40, 1 / 40), fit_column(plan))
        if size <= 300:  # the planted fault: all targets alike
            assert abs((tables >= together.quantile(0.2)[0]).mean() - 0.2) > 6 * math.sqrt(0.32 / 20_000)


@pytest.mark.long
@pytest.mark.parametrize("size", [6_000, 200_000])
def test_large_sparse_table_keeps_its_level(size: int) -> None:
    """100 x 1000: whole tables by numpy compared with three moments; the chi-square distribution would refuse all or nothing."""
    table = total_table(HUNDRED, THOUSAND, 0.2)
    draws = 300
    tables = samples(HUNDRED, THOUSAND, size, draws)
    assert not is_unlikely(int((tables >= table.at(size)).sum()), draws, 0.18, 0.22)
    assert is_unlikely(int((tables >= table.beyond).sum()), draws, 0.18, 0.22)
    one_more = np.interp(
        size, table.sizes, np.append(table.values[1:], table.values[-1])
    )  # a table shifted by one size
    assert is_unlikely(int((tables >= one_more).sum()), draws, 0.18, 0.22)


def test_linear_mean_does_not_vary_across_targets() -> None:
    """A linear function of numbers per target that add up to N adds up to a constant."""
    sizes = np.arange(1, 200)
    column = column_cumulants(sizes, HUNDRED)
    linear = type(column)(sizes, 3.0 * sizes, np.ones(sizes.size), np.zeros(sizes.size))
    total = total_cumulants(np.array([1000]), np.full(50, 0.02), linear)
    assert total.mean[0] == pytest.approx(3000)
    assert total.variance[0] == pytest.approx(50, rel=1e-6)


def test_stricter_level_is_stricter_at_every_size() -> None:
    strict, lenient = (target_table(SKEWED, level, paths=3_000).dense(30) for level in (0.2, 0.05))
    assert (strict[1:] <= lenient[1:]).all()


# Where the chi-square distribution takes over


def test_small_table_changes_at_the_published_size_or_never_steps_down() -> None:
    for baseline, weights in [(SKEWED, [1.0]), ([0.1] * 10, [0.2] * 5), ([0.5, 0.5], [0.5, 0.5])]:
        table = total_table(baseline, weights, 0.2, paths=5_000)
        freedom = (len(baseline) - 1) * len(weights)
        usual = 2 * len(baseline) * len(weights)
        assert table.sizes[-1] >= usual
        assert table.beyond == chi_square_critical(freedom, 0.2)
        assert table.beyond - table.values[-1] > -0.2 * math.sqrt(2 * freedom)  # the grain of 2 x 2; 0.4 would freeze
        assert total_table(baseline, weights, 0.2, paths=5_000, published=True).sizes[-1] == usual


@pytest.mark.long  # the next test simulates a sparse table in every run
def test_only_the_published_rule_steps_down_on_a_sparse_table() -> None:
    deviation = math.sqrt(2 * 99 * 1000)
    ours, theirs = (total_table(HUNDRED, THOUSAND, 0.2, published=each) for each in (False, True))
    assert theirs.sizes[-1] == 200_000
    assert theirs.values[-1] - theirs.beyond > 20 * deviation
    assert abs(ours.values[-1] - ours.beyond) < 0.02 * deviation


@pytest.mark.long  # test_interpolated_values_follow_a_sparse_table is cheaper
def test_rare_value_delays_the_change_not_the_result() -> None:
    """A value with probability 1e-6 adds its degree of freedom only after about a million records."""
    common = (1 - 1e-6) / 3
    table = target_table([common, common, common, 1e-6], 0.2, paths=5_000)
    assert table.sizes[-1] > 10**6
    assert table.at(5_000) == pytest.approx(chi_square_critical(2, 0.2), rel=0.05)
    assert table.beyond == chi_square_critical(3, 0.2)


# The table as a value


@given(st.data())
def test_dense_values_equal_single_lookups(data: st.DataObject) -> None:
    sizes = sorted(data.draw(st.sets(st.integers(1, 60), min_size=1)))
    values = data.draw(st.lists(st.floats(0, 100), min_size=len(sizes), max_size=len(sizes)))
    table = CriticalTable(np.array(sizes), np.array(values), 50.0)
    assert table.dense(70).tolist() == [table.at(number) for number in range(71)]
    assert table.at(0) == math.inf
    assert all(table.at(size) == value for size, value in zip(sizes, values, strict=True))
    again = CriticalTable.from_dict(json.loads(json.dumps(table.to_dict())))
    assert again == table
    assert again.fingerprint == table.fingerprint
    assert hash(again) == hash(table)
    other = CriticalTable(table.sizes, table.values, 51.0)
    assert other != table
    assert other.fingerprint != table.fingerprint


def test_interpolated_values_follow_a_sparse_table() -> None:
    """Every record adds about 9.2 to G. The critical value of the smaller size would not release the next record."""
    table = total_table(HUNDRED, THOUSAND, 0.2, paths=1_000)
    index = int(np.searchsorted(table.sizes, 300))
    low, high = table.sizes[index : index + 2]
    assert high - low > 4
    assert table.at(int(low) + 2) - table.at(int(low)) > 10
    assert table.at(int(high)) == table.values[index + 1]


def test_table_is_immutable() -> None:
    table = target_table(SKEWED, 0.2, paths=1_000)
    with pytest.raises(ValueError, match="read-only"):
        table.values[0] = 0


@pytest.mark.parametrize("shares", [[1.0], [0.5, 0.4], [0.5, 0.5, 0.0], [1.5, -0.5]])
def test_invalid_baseline_is_refused(shares: list[float]) -> None:
    with pytest.raises(Unsupported, match="baseline"):
        target_table(shares, 0.2)


# The cache


def test_table_is_computed_once_and_deterministic(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress_calls: list[tuple[int, int]] = []
    first = target_table(SKEWED, 0.2, paths=3_000, progress=lambda done, total: progress_calls.append((done, total)))
    assert progress_calls[-1] == (progress_calls[-1][1],) * 2
    assert [file.suffix for file in cache.iterdir()] == [".json"]
    progress_calls.clear()
    assert target_table(SKEWED, Fraction(1, 5), paths=3_000, progress=lambda *_: progress_calls.append((0, 0))) == first
    assert not progress_calls
    monkeypatch.setenv("TIDEGATE_CACHE", str(cache / "elsewhere"))
    assert target_table(SKEWED, 0.2, paths=3_000) == first
    assert target_table(SKEWED, 0.2, paths=3_001) != first


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"beyond": ', '"beyond": 9'),
        lambda text: text.replace('"key": "', '"key": "0'),
    ],
    ids=["cut off", "empty", "foreign", "changed", "another key"],
)
def test_damaged_cache_file_is_computed_again(cache: Path, harm) -> None:
    whole = target_table(SKEWED, 0.2, paths=1_000)
    (file,) = cache.iterdir()
    text = file.read_text("utf-8")
    file.write_text(harm(text), "utf-8")
    assert file.read_text("utf-8") != text
    assert target_table(SKEWED, 0.2, paths=1_000) == whole
    assert file.read_text("utf-8") == text


def test_unwritable_cache_folder_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "file" / "cache"))
    assert cache_module.load_or_compute("a", lambda: {"b": 1}) == {"b": 1}
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv("TIDEGATE_CACHE", str(closed / "cache"))
    assert cache_module.load_or_compute("a", lambda: {"b": 1}) == {"b": 1}


def test_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_module.cache_folder() == tmp_path / "tidegate"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert cache_module.cache_folder() == tmp_path / "me" / ".cache" / "tidegate"
