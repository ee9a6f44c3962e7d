"""Every operator, exactly: what the channel says, what the client draws, what is promised. Nothing here is sampled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st

from tidegate.collect.measures import measure
from tidegate.errors import Unsupported
from tidegate.operators import (
    GaussianNoise,
    Hybrid,
    LaplaceNoise,
    Operator,
    ProjectiveGeometry,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)
from tidegate.operators.exact_draws import ONE, WHOLE, SeededBytes, below, coin, exp_below, exp_minus
from tidegate.operators.gaussian import sigma_for
from tidegate.operators.square_wave import width
from tidegate.operators.uniform import half_width_for
from tidegate.risk.interval import shortest_run
from tidegate.risk.local import local_epsilon

F = Fraction
FACTS = golden("operators")
LIMITED: dict[str, Callable[..., Operator]] = {
    kind.name: kind
    for kind in (LaplaceNoise, SquareWave, Hybrid, RandomizedResponse, Unary, SubsetSelection, ProjectiveGeometry)
}
EPSILONS = [F(1, 1000), F(1, 10), F(1, 2), F(1), F(2), F(3), F(5), F(8), F(20)]


class Script:
    """Bytes that a test dictates; asking for more than there are ends the test."""

    def __init__(self, stream: bytes) -> None:
        self.left = stream

    def take(self, count: int) -> bytes:
        if count > len(self.left):
            raise EOFError
        taken, self.left = self.left[:count], self.left[count:]
        return taken


def whole(number: int) -> bytes:
    return number.to_bytes(6, "big")


def columns_sum_to_one(channel: list[list[Fraction]]) -> bool:
    return all(sum(column) == 1 for column in zip(*channel, strict=True))


def worst_ratio(channel: list[list[Fraction]]) -> Fraction | None:
    worst = F(1)
    for row in channel:
        if max(row) > 0:
            if min(row) == 0:
                return None
            worst = max(worst, max(row) / min(row))
    return worst


def below_exp(ratio: Fraction, epsilon: Fraction) -> bool:
    """ratio <= e**epsilon, by an independent library with 60 digits and directed care."""
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        return mpmath.mpf(ratio.numerator) / ratio.denominator <= exact * (1 + mpmath.mpf(10) ** -50)


# ---- the channel


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("values", [2, 3, 4, 7])
def test_channel_loss_is_at_most_epsilon_and_close_to_it(name: str, epsilon: Fraction, values: int) -> None:
    operator = LIMITED[name](values, epsilon=epsilon)
    channel = operator.exact_channel()
    assert columns_sum_to_one(channel)
    assert worst_ratio(channel) == operator.gamma
    assert operator.gamma is not None
    assert below_exp(operator.gamma, epsilon)
    assert math.isclose(operator.epsilon, epsilon, rel_tol=1e-5, abs_tol=1e-11)


@given(
    st.sampled_from(["laplace-noise", "square-wave", "randomized-response", "projective-geometry"]),
    st.integers(2, 120),
    st.integers(1, 1200),
)
def test_longer_grids_keep_their_epsilon_too(name: str, values: int, hundredths: int) -> None:
    epsilon = F(hundredths, 100)
    operator = LIMITED[name](values, epsilon=epsilon)
    channel = operator.channel_array()
    assert channel.shape == (operator.report_size, values)
    assert np.allclose(channel.sum(axis=0), 1, atol=1e-12)
    assert below_exp(operator.gamma, epsilon)
    assert local_epsilon(channel) == pytest.approx(operator.epsilon, rel=1e-9)
    assert operator.epsilon == pytest.approx(float(epsilon), rel=1e-6)


@given(st.integers(2, 30), st.integers(1, 12), st.integers(1, 60))
def test_published_noises_state_an_unlimited_loss(values: int, half: int, quarters: int) -> None:
    for operator in (UniformNoise(values, half_width=half), GaussianNoise(values, sigma=F(quarters, 4))):
        channel = operator.exact_channel()
        assert columns_sum_to_one(channel)
        assert worst_ratio(channel) is None
        assert operator.gamma is None
        assert math.isinf(operator.epsilon)
        assert measure(operator).to_dict()["epsilon"] == "unlimited"


ALL = [
    UniformNoise(6, half_width=2),
    GaussianNoise(6, sigma=F(3, 2)),
    *(LIMITED[name](6, epsilon=F(3, 2)) for name in LIMITED if name not in ("unary", "subset")),
]


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_array_equals_the_exact_channel_and_merging_is_summing(operator: Operator) -> None:
    exact = np.array([[float(p) for p in row] for row in operator.exact_channel()])
    assert np.allclose(operator.channel_array(), exact, atol=1e-15)
    merged = operator.channel_array(merge=4)
    by_hand = np.add.reduceat(exact, np.arange(0, operator.report_size, 4), axis=0)
    assert np.allclose(merged, np.stack([by_hand[:, :4].mean(axis=1), by_hand[:, 4:].mean(axis=1)], axis=1))


def test_arrays_of_sets_and_large_exact_channels_are_refused() -> None:
    with pytest.raises(Unsupported, match="support each value"):
        Unary(5, epsilon=F(1)).channel_array()
    with pytest.raises(Unsupported, match="more than 1,000,000 cells"):
        SquareWave(5000, epsilon=F(1)).exact_channel()


@pytest.mark.parametrize("name", ["randomized-response", "unary", "subset"])
@pytest.mark.parametrize("values", [2, 3, 6])
def test_support_probabilities_equal_those_of_the_channel(name: str, values: int) -> None:
    operator = LIMITED[name](values, epsilon=F(3, 2))
    supported = {value: F(0) for value in range(values)}
    for report, row in zip(operator.reports(), operator.exact_channel(), strict=True):
        for value in report if isinstance(report, list) else [report]:
            supported[value] += row[0]
    assert supported[0] == operator.p
    assert all(supported[value] == operator.q for value in range(1, values))


@pytest.mark.parametrize("name", ["randomized-response", "unary"])
@pytest.mark.parametrize("values", [2, 3, 5])
def test_two_layers_compose_to_the_stated_channel(name: str, values: int) -> None:
    epsilon, each = F(3), F(1)
    both, first = LIMITED[name](values, epsilon=epsilon, each=each), LIMITED[name](values, epsilon=epsilon)
    reports = list(both.reports())
    again = [[again_probability(both, stored, report) for stored in reports] for report in reports]
    composed = [
        [sum(p * row[v] for p, row in zip(line, first.exact_channel(), strict=True)) for v in range(values)]
        for line in again
    ]
    assert composed == both.exact_channel()
    assert below_exp(both.gamma, each)
    assert math.isclose(both.epsilon, each, rel_tol=1e-9)
    assert math.isclose(both.lifetime_epsilon, epsilon, rel_tol=1e-9)
    assert both.lifetime_gamma == first.gamma


def again_probability(operator: Operator, stored: object, report: object) -> Fraction:
    if isinstance(operator, RandomizedResponse):
        stay = F(operator.again, WHOLE)
        return stay if stored == report else (1 - stay) / (operator.values - 1)
    stay = F(operator.stay, WHOLE)
    flips = len(set(stored) ^ set(report))
    return stay ** (operator.values - flips) * (1 - stay) ** flips


# ---- parameters


@given(st.integers(2, 400), st.integers(1, 300))
def test_privacy_is_reached_and_not_much_exceeded(values: int, percent: int) -> None:
    privacy = F(percent, 100)
    width = privacy * (values - 1)
    for operator, slack in (
        (UniformNoise(values, half_width=half_width_for(values, privacy)), 4),
        (GaussianNoise(values, sigma=sigma_for(values, privacy)), 3),
    ):
        first, last = shortest_run(np.array(operator.weights, float))
        assert width <= last - first
        assert last - first <= width + slack


def test_noise_that_hides_nothing_is_refused() -> None:
    with pytest.raises(Unsupported, match="does not change any value"):
        GaussianNoise(5, sigma=F(1, 20))


@paper("Agrawal, Srikant 2000")
def test_on_a_fine_grid_the_noise_is_the_published_one() -> None:
    facts = FACTS["noise_for_100_percent"]
    assert half_width_for(10_001, F(1)) / 10_000 == pytest.approx(facts["half_width"], rel=2e-4)
    assert float(sigma_for(2_001, F(1))) / 2_000 == pytest.approx(facts["sigma"], rel=1e-3)


@paper("Li et al. 2020")
@pytest.mark.parametrize("row", FACTS["square_wave"], ids=str)
def test_on_a_fine_grid_the_square_wave_is_the_published_one(row: dict[str, float]) -> None:
    epsilon = F(str(row["epsilon"]))
    assert float(width(epsilon)) == pytest.approx(row["b"], abs=1e-9)
    fine = SquareWave(20_000, epsilon=epsilon)
    assert float(fine.near_each) * 20_000 == pytest.approx(row["p"], rel=1e-3)
    assert float(fine.far_each) * 20_000 == pytest.approx(row["q"], rel=1e-3)


@paper("Wang, Blocki, Li, Jha 2017")
@pytest.mark.parametrize(("epsilon", "variance"), FACTS["unary_variance"])
def test_variance_of_unary_encoding_is_the_published_one(epsilon: float, variance: float) -> None:
    assert Unary(50, epsilon=F(str(epsilon))).variance() == pytest.approx(variance, abs=1e-9)


@given(st.integers(2, 60), st.sampled_from([F(1, 2), F(1), F(2), F(4)]))
def test_subset_selection_is_never_worse_than_the_other_two(values: int, epsilon: Fraction) -> None:
    """Response is the set of one; unary has the same odds with a size left to chance."""
    subset = SubsetSelection(values, epsilon=epsilon).variance()
    assert subset <= RandomizedResponse(values, epsilon=epsilon).variance() * (1 + 1e-9)
    if values > 2:
        assert subset <= Unary(values, epsilon=epsilon).variance() * (1 + 1e-9)


@given(st.fractions(0, 100, max_denominator=10**6))
def test_powers_of_e_are_close_lower_bounds(power: Fraction) -> None:
    with mpmath.workdps(90):
        exact = mpmath.exp(mpmath.mpf(power.numerator) / power.denominator)
        below_it = mpmath.mpf(exp_below(power)) / ONE
        assert below_it <= exact
        assert below_it >= exact * (1 - mpmath.mpf(2) ** -100)
        assert abs(mpmath.mpf(exp_minus(power)) / ONE - 1 / exact) <= mpmath.mpf(2) ** -100


# ---- what the client draws


@given(st.integers(1, 256))
def test_bounded_integers_are_uniform_over_all_bytes(bound: int) -> None:
    drawn: Counter[int] = Counter()
    for byte in range(256):
        try:
            drawn[below(bound, Script(bytes([byte])))] += 1
        except EOFError:  # thrown away
            continue
    assert set(drawn) == set(range(bound))
    assert len(set(drawn.values())) == 1
    assert sum(drawn.values()) > 128


def test_two_bytes_are_read_big_endian() -> None:
    assert below(300, Script(b"\x01\x00")) == 256
    assert below(300, Script(b"\xff\xff\x00\x05")) == 5  # 65,535 is beyond 218 x 300: thrown away
    assert below(1, Script(b"")) == 0


@pytest.mark.parametrize("heads", [0, 1, WHOLE // 3, WHOLE])
def test_coin_shows_heads_for_exactly_the_stated_number_of_words(heads: int) -> None:
    assert not coin(heads, Script(whole(min(heads, WHOLE - 1)))) or heads == WHOLE
    assert heads == 0 or coin(heads, Script(whole(heads - 1)))


TABLES = [GaussianNoise(5, sigma=F(2)), LaplaceNoise(5, epsilon=F(1))]


@pytest.mark.parametrize("operator", TABLES, ids=lambda operator: operator.name)
def test_table_draws_every_index_with_exactly_its_weight(operator: Operator) -> None:
    """The first and the last word of every place fall on it: so every word between them does."""
    start = 0
    for index, weight in enumerate(operator.weights):
        for word in {start, start + weight - 1} if weight else ():
            assert operator.draw(Script(whole(word))) == index
        start += weight
    assert start == WHOLE
    assert operator.weights == operator.weights[::-1]


SMALL = [
    *(SquareWave(values, epsilon=F(1)) for values in (2, 4)),
    *(RandomizedResponse(values, epsilon=F(1)) for values in (2, 4)),
    *(SubsetSelection(values, epsilon=F(1, 2)) for values in (2, 3, 4)),
    *(ProjectiveGeometry(values, epsilon=F(1)) for values in (2, 4, 6)),
    *(UniformNoise(values, half_width=2) for values in (2, 4)),
    *(LaplaceNoise(values, epsilon=F(1)) for values in (2, 3, 4)),
    *(GaussianNoise(values, sigma=F(1, 2)) for values in (2, 3)),
    *(Unary(values, epsilon=F(1)) for values in (2, 3)),
]


@pytest.mark.parametrize("operator", SMALL, ids=lambda operator: f"{operator.name} {operator.values}")
def test_client_draws_exactly_the_channel(operator: Operator) -> None:
    """Every path of the sampler, with its exact probability: coins as intervals of words, integers as equal shares."""
    for value in range(operator.values):
        sampled = every_path(lambda bits, value=value: operator.sample(value, bits))
        expected = {str(report): operator.probability(report, value) for report in operator.reports()}
        possible = {report: p for report, p in expected.items() if p}
        rest = 1 - sum(sampled.values())  # draws that are thrown away again and again
        assert rest < F(1, 2**20)
        for report, p in possible.items():
            assert abs(sampled[report] / (1 - rest) - p) <= rest * 2


def every_path(sample: Callable[[Paths], object]) -> Counter[str]:
    """The probability of every result, following each draw into all of its outcomes, up to a depth."""
    chances: Counter[str] = Counter()
    waiting: list[tuple[tuple[int, ...], Fraction]] = [((), F(1))]
    while waiting:
        taken, chance = waiting.pop()
        paths = Paths(taken)
        try:
            chances[str(sample(paths))] += chance
        except Fork as fork:
            if chance > F(1, 2**26):
                waiting += [((*taken, i), chance * p) for i, p in enumerate(fork.chances)]
    return chances


class Fork(Exception):
    def __init__(self, chances: list[Fraction]) -> None:
        super().__init__()
        self.chances = chances


class Paths:
    """A source that forks where a draw is not yet decided; the samplers' own draws are put in its place."""

    def __init__(self, taken: tuple[int, ...]) -> None:
        self.taken = list(taken)

    def decide(self, chances: list[Fraction]) -> int:
        if self.taken:
            return self.taken.pop(0)
        raise Fork(chances)

    def take(self, count: int) -> bytes:
        raise AssertionError("the draws below are replaced")


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a source is `Paths`, coins and bounded integers (tested byte by byte above) fork instead of reading bytes."""
    from tidegate.operators import additive, projective_geometry, randomized_response, square_wave, subset, unary

    def forking_coin(heads: int, source: object) -> bool:
        if not isinstance(source, Paths):
            return coin(heads, source)
        return source.decide([F(heads, WHOLE), 1 - F(heads, WHOLE)]) == 0

    def forking_below(bound: int, source: object) -> int:
        return source.decide([F(1, bound)] * bound) if isinstance(source, Paths) else below(bound, source)

    for module in (randomized_response, square_wave, subset, unary, additive, projective_geometry):
        for name, fork in (("coin", forking_coin), ("below", forking_below)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, fork)
    draw = additive.AdditiveNoise.draw

    def forking_draw(self: additive.AdditiveNoise, source: object) -> int:
        if not isinstance(source, Paths):
            return draw(self, source)
        return source.decide([F(weight, self.total) for weight in self.weights])

    monkeypatch.setattr(additive.AdditiveNoise, "draw", forking_draw)


EVERY = [*ALL, Unary(6, epsilon=F(1)), SubsetSelection(6, epsilon=F(1))]


@pytest.mark.parametrize("operator", EVERY, ids=lambda operator: operator.name)
def test_every_report_is_accepted_and_others_are_not(operator: Operator) -> None:
    source = SeededBytes("accepted")
    assert all(operator.accepts(operator.sample(value % 6, source)) for value in range(200))
    wrong = [None, True, 1.0, "1", [True], [0, 0], [2, 1], [99], ["0"], {}]
    wrong += [-1, operator.report_size] if operator.form == "code" else [3]
    assert not any(operator.accepts(report) for report in wrong)


@pytest.mark.parametrize("operator", EVERY, ids=lambda operator: operator.name)
def test_basket_recipe_contains_only_integers(operator: Operator) -> None:
    def plain(value: object) -> bool:
        return isinstance(value, int | str) or (isinstance(value, list) and all(map(plain, value)))

    assert all(plain(value) for value in operator.recipe().values())


@pytest.mark.parametrize(("values", "epsilon"), list(product([2, 5, 40], [F(1, 2), F(2), F(8)])), ids=str)
def test_variance_of_a_square_wave_is_that_of_its_channel(values: int, epsilon: Fraction) -> None:
    operator = SquareWave(values, epsilon=epsilon)
    channel, reports = operator.channel_array(), np.arange(operator.report_size)
    means = reports @ channel
    slopes = np.diff(means)
    assert np.allclose(slopes, slopes[0])  # an affine map of the report is an unbiased estimate
    variances = (reports**2) @ channel - means**2
    assert operator.variance() == pytest.approx(variances.max() / slopes[0] ** 2, rel=1e-6)


def test_clamped_laplace_noise_is_as_informative_as_unclamped() -> None:
    """The likelihoods of all reports beyond an end are proportional, so nothing is lost."""
    operator = LaplaceNoise(8, epsilon=F(2))
    end = operator.likelihoods(7)
    r = math.exp(-operator.epsilon / 7)
    for beyond in (7, 9, 20):
        uncut = [r ** (beyond - value) for value in range(8)]
        ratios = [float(p) / q for p, q in zip(end, uncut, strict=True)]
        assert max(ratios) / min(ratios) == pytest.approx(1, abs=1e-9)
