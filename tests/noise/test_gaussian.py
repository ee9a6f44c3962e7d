"""Discrete Gaussian noise: exact coins, probabilities, sigmas, quantiles, and draws with a stated false-alarm rate."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from claims.probabilities import ENOUGH, Words, bits, chance, chance_of_both
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import average as slow
from reference import laplace as slow_laplace

from tidegate.noise import Gaussian, Laplace, SeededBits, discrete_gaussian, discrete_laplace, gaussian, sigma_for
from tidegate.noise import bernoulli as coins
from tidegate.noise import bits as bit_sources
from tidegate.noise import laplace as laplace_noise
from tidegate.noise.laplace import LARGEST

F = Fraction
ALPHA, DRAWS, OTHER_DRAWS = 1e-6, 50_000, 10_000
SIGMAS = [F(1, 2), F(224_500, 262_144), F(3), F(62)]  # the second is 0.8564
Sampler = Callable[..., np.ndarray]


# Coins


class Recorder:
    """Every coin lands on heads; the exponents of all coins that were thrown for a proposal are added up."""

    def __init__(self, size: int) -> None:
        self.exponents = [F(0)] * size
        self.pending: list[int] = []

    def half_square(self, numerators: np.ndarray, denominator: int, bits: Any) -> np.ndarray:
        assert all(0 <= n <= denominator for n in numerators.tolist())
        for index, n in enumerate(numerators.tolist()):
            self.exponents[index] += F(n, denominator) ** 2 / 2
        return np.ones(numerators.size, np.bool_)

    def throw(
        self, heads: np.ndarray, times: np.ndarray, numerators: np.ndarray, denominator: int, bits: Any
    ) -> np.ndarray:
        for index, (count, n) in enumerate(zip(times.tolist(), numerators.tolist(), strict=True)):
            assert count >= 0
            assert 0 <= n <= denominator
            self.exponents[index] += count * F(n, denominator)
        return heads


@pytest.mark.parametrize("sigma", [*SIGMAS, F(1, 3), F(1), F(22, 7), F(10**6, 7), F(LARGEST, 3)], ids=str)
def test_coins_of_a_proposal_have_exactly_its_exponent(sigma: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """(|y| - sigma)**2 / (2 sigma**2) for every |y| up to 12 sigma (for large sigmas, for some of them)."""
    last = int(12 * sigma) + 1
    magnitudes = np.unique(np.linspace(0, last, builtin_min(last + 1, 2_000)).astype(np.int64))
    recorder = Recorder(magnitudes.size)
    monkeypatch.setattr(gaussian, "_exp_minus_half_square", recorder.half_square)
    monkeypatch.setattr(gaussian, "_throw", recorder.throw)
    assert gaussian._accept(magnitudes, sigma, SeededBits(1)).all()
    assert recorder.exponents == [(y - sigma) ** 2 / (2 * sigma**2) for y in magnitudes.tolist()]


def builtin_min(first: int, second: int) -> int:
    return first if first < second else second


def test_repeated_coins_are_all_thrown(monkeypatch: pytest.MonkeyPatch) -> None:
    thrown: list[tuple[list[int], int]] = []

    def heads(numerators: np.ndarray, denominator: int, *, bits: Any) -> np.ndarray:
        thrown.append((numerators.tolist(), denominator))
        return np.ones(numerators.size, np.bool_)

    monkeypatch.setattr(gaussian, "exp_minus_fraction", heads)
    start = np.array([True, False, True, True])
    after = gaussian._throw(start, np.array([2, 5, 0, 3]), np.array([1, 2, 3, 4]), 7, SeededBits(1))
    assert after.tolist() == [True, False, True, True]
    assert thrown == [([1, 4], 7), ([1, 4], 7), ([4], 7)]


def test_one_tail_rejects(monkeypatch: pytest.MonkeyPatch) -> None:
    tails = lambda numerators, denominator, *, bits: np.zeros(numerators.size, np.bool_)  # noqa: E731
    monkeypatch.setattr(gaussian, "exp_minus_fraction", tails)
    after = gaussian._throw(np.ones(2, np.bool_), np.array([1, 0]), np.array([1, 1]), 7, SeededBits(1))
    assert after.tolist() == [False, True]


class More(Exception):
    """A script of draws has ended; the next draw is below this bound."""


def every_script(sampler: Callable[[], bool], deepest: int) -> tuple[Fraction, Fraction]:
    """Return the exact probability of heads over all draws below a bound, and of those not decided after `deepest`."""
    yes, undecided, scripts = F(0), F(0), [((), F(1))]
    while scripts:
        script, probability = scripts.pop()
        remaining = iter(script)

        def draw(bound: int, *, size: int, bits: Any, left: Any = remaining) -> np.ndarray:
            assert size == 1
            if bound == 1:
                return np.zeros(1, np.int64)
            for value in left:
                return np.array([value])
            raise More(bound)

        try:
            with patch.object(gaussian, "below", draw):
                yes += probability if sampler() else 0
        except More as more:
            bound = more.args[0]
            if len(script) < deepest:
                scripts += [((*script, value), probability / bound) for value in range(bound)]
            else:
                undecided += probability
    return yes, undecided


@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 3), (2, 3), (3, 3), (1, 2), (1, 1), (3, 4)])
def test_coin_of_half_a_square_is_exact(n: int, d: int) -> None:
    throw = lambda: bool(gaussian._exp_minus_half_square(np.array([n]), d, SeededBits(1))[0])  # noqa: E731
    low, undecided = every_script(throw, 6 if d > 1 else 5)
    exact = mpmath.exp(-mpmath.mpf(n * n) / (2 * d * d))
    assert slow.many_digits(low) <= exact + 1e-14
    assert exact <= slow.many_digits(low + undecided) + 1e-14
    assert undecided < F(1, 6)


@pytest.mark.parametrize("sigma", [*SIGMAS, F(1, 9), F(22, 7)], ids=str)
def test_accepted_proposals_have_the_gaussian_probabilities(sigma: Fraction) -> None:
    """The discrete Laplace distribution times the acceptance is proportional to exp(-y**2 / (2 sigma**2))."""
    with mpmath.workdps(slow.DIGITS):
        for y in range(int(8 * sigma) + 4):
            accepted = mpmath.exp(-slow.many_digits((y - sigma) ** 2 / (2 * sigma**2)))
            product = slow_laplace.probability(sigma, y) * accepted
            start = slow_laplace.probability(sigma, 0) * mpmath.exp(-mpmath.mpf(1) / 2)
            expected = slow.gaussian_weight(sigma, y)
            assert mpmath.almosteq(product / start, expected, rel_eps=mpmath.mpf(10) ** -50)


# No floats


EXACT_FUNCTIONS = [
    discrete_gaussian,
    gaussian._accept,
    gaussian._throw,
    gaussian._exp_minus_half_square,
    sigma_for,
    discrete_laplace,
    laplace_noise._magnitudes,
    coins.exp_minus_fraction,
    coins.geometric,
    bit_sources.below,
    bit_sources._within,
    bit_sources._fill,
]
INEXACT = {"float", "exp", "log", "log1p", "expm1", "sqrt", "float64", "float32", "random", "erfc", "round", "mean"}


def inexact(tree: ast.AST) -> list[str]:
    """Return what could make a float: its literals, true division of integers, and functions of real numbers."""
    marks = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            marks.append(f"literal {node.value}")
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            marks += [name] if name in INEXACT else []
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            marks.append(f"division {ast.unparse(node)}")
    return marks


@pytest.mark.parametrize("function", EXACT_FUNCTIONS, ids=lambda function: function.__name__)
def test_sampler_uses_no_float(function: Callable[..., Any]) -> None:
    allowed = ["division squared_radius / (2 * z)"] if function is sigma_for else []  # of two fractions
    assert inexact(ast.parse(inspect.getsource(function))) == allowed


def test_float_in_a_sampler_is_detected() -> None:
    assert inexact(ast.parse("x = np.exp(-y / 2.0)")) != []
    assert inexact(ast.parse("x /= s")) != []


# Sigma


positive = st.builds(F, st.integers(1, 2**60), st.integers(1, 2**60))


@given(positive, positive)
@settings(max_examples=200)
def test_sigma_is_the_smallest_on_its_grid(squared_radius: Fraction, z: Fraction) -> None:
    assume(squared_radius / (2 * z) <= F(LARGEST) ** 2)
    sigma = sigma_for(squared_radius, z)
    assert squared_radius / (2 * sigma**2) <= z
    grid = 2**20
    while sigma * grid > LARGEST:
        grid //= 2
    assert (sigma * grid).denominator == 1
    smaller = sigma - F(1, grid)
    assert smaller <= 0 or squared_radius / (2 * smaller**2) > z
    assert sigma.numerator <= LARGEST
    assert sigma.denominator <= LARGEST


@given(st.integers(1, 2**40))
def test_sigma_on_the_grid_is_exact(n: int) -> None:
    sigma = F(n, 2**20)
    assert sigma_for(F(1, 4), F(1, 4) / (2 * sigma**2)) == sigma


def test_loss_that_needs_too_much_noise_is_refused() -> None:
    largest = F(1, 2 * LARGEST**2)
    assert sigma_for(F(1), largest) == LARGEST
    with pytest.raises(ValueError, match="too small"):
        sigma_for(F(1), largest * F(999, 1000))


@pytest.mark.parametrize("sigma", [F(0), F(-1), F(LARGEST + 1), F(1, LARGEST + 1)], ids=str)
def test_sigma_out_of_range_is_refused(sigma: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        discrete_gaussian(sigma, size=1, bits=SeededBits(1))


@pytest.mark.parametrize("sigma", [F(LARGEST), F(1, LARGEST), F(LARGEST, LARGEST - 1), F(1, 2**20)], ids=str)
def test_sampler_accepts_extreme_sigmas(sigma: Fraction) -> None:
    drawn = discrete_gaussian(sigma, size=200, bits=SeededBits(1))
    assert (drawn.dtype, drawn.shape) == (np.int64, (200,))
    assert np.abs(drawn).max() <= 12 * sigma
    assert sigma < F(1, 9) or np.abs(drawn).max() > 0


def test_no_draws_are_possible() -> None:
    assert discrete_gaussian(F(3), size=0, bits=SeededBits(1)).size == 0


# Quantiles


@cache
def magnitudes(sigma: Fraction, count: int) -> list[mpmath.mpf]:
    """Return P(|sum of draws| <= q) for q = 0, 1, ..., by convolution in 40 digits."""
    with mpmath.workdps(40):
        single = slow.gaussian_table(sigma)
        single = {z: p for z, p in single.items() if p > mpmath.mpf(10) ** -34}
        table = {0: mpmath.mpf(1)}
        for _ in range(count):
            longer: dict[int, mpmath.mpf] = {}
            for a, p in table.items():
                for b, q in single.items():
                    longer[a + b] = longer.get(a + b, mpmath.mpf(0)) + p * q
            table = {z: p for z, p in longer.items() if p > mpmath.mpf(10) ** -34}
        reached, within = [], mpmath.mpf(0)
        for q in range(max(table) + 1):
            within += table[q] + (table[-q] if q else 0)
            reached.append(within)
        return reached


def slow_quantile(sigma: Fraction, count: int, probability: float) -> int:
    """Return the smallest q with P(|sum| <= q) >= probability."""
    return next(q for q, reached in enumerate(magnitudes(sigma, count)) if reached >= probability)


PROBABILITIES = [0.0, 0.01, 0.3, 0.5, 0.8, 0.95, 0.99, 0.9983, 1 - 1e-6, 1 - 1e-9]


@pytest.mark.parametrize("sigma", [F(1, 9), F(1, 2), F(7, 8), F(1), F(22, 7), F(20), F(63)], ids=str)
def test_quantile_of_one_draw_is_the_smallest(sigma: Fraction) -> None:
    for p in PROBABILITIES:
        assert Gaussian(sigma).quantile(p) == slow_quantile(sigma, 1, p)
        assert Gaussian(sigma).sum_quantile(1, p) == slow_quantile(sigma, 1, p)


@pytest.mark.parametrize("sigma", [F(1, 2), F(7, 8), F(3)], ids=str)
def test_quantile_widens_as_soon_as_it_falls_short(sigma: Fraction) -> None:
    for q, reached in enumerate(magnitudes(sigma, 1)):
        if float(reached) > 1 - 1e-8:
            break
        assert Gaussian(sigma).quantile(float(reached) - 1e-10) == q
        assert Gaussian(sigma).quantile(float(reached) + 1e-10) == q + 1


def tail_of_large_sigma(sigma: Fraction, width: int) -> mpmath.mpf:
    """Return P(|Z| > width) in 40 digits."""
    with mpmath.workdps(40):
        inner = mpmath.fsum(slow.gaussian_weight(sigma, z) for z in range(1, width + 1))
        total = mpmath.sqrt(2 * mpmath.pi) * slow.many_digits(sigma)  # Poisson: the rest is below exp(-19 sigma**2)
        return 1 - (1 + 2 * inner) / total


@pytest.mark.parametrize("sigma", [F(64), F(100), F(1001, 3)], ids=str)
def test_quantile_of_wide_noise_is_never_too_small_and_hardly_too_large(sigma: Fraction) -> None:
    """From sigma 64 on it is that of a normal variable: at most one more than the smallest."""
    for p in (0.5, 0.9, 0.95, 0.99):
        q = Gaussian(sigma).quantile(p)
        assert tail_of_large_sigma(sigma, q) <= 1 - p
        assert tail_of_large_sigma(sigma, q - 2) > 1 - p
        assert tail_of_large_sigma(sigma, q - 1) > (1 - p) * (1 - 1e-3)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("sigma", [F(1, 3), F(7, 8), F(1), F(3, 2), F(3)], ids=str)
def test_quantile_of_a_sum_is_never_too_small(sigma: Fraction, count: int) -> None:
    for p in PROBABILITIES[1:-1]:
        ours, exact = Gaussian(sigma).sum_quantile(count, p), slow_quantile(sigma, count, p)
        assert ours >= exact
        if sigma >= 1:
            assert ours <= exact + 1 + (p > 1 - 1e-5)
        else:
            assert ours <= 3 * exact + 4  # a bound for all sums of narrow noise


@pytest.mark.parametrize(
    ("sigma", "count"), [(F(1), 2), (F(3), 10), (F(3), 10**6), (F(7, 2), 10**8), (F(1, 2), 10**8)], ids=str
)
def test_quantile_of_any_number_of_draws_ends(sigma: Fraction, count: int) -> None:
    """Also where the distance from a normal distribution alone would exceed the tail."""
    for p in (0.5, 0.95, 1 - 1e-6, 1 - 1e-9, 1 - 2.0**-52, 1 - 2.0**-53):
        width = Gaussian(sigma).sum_quantile(count, p)
        normal = float(sigma) * count**0.5 * float(mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(p)))
        assert 0.9 * normal - 1 <= width <= 3 * normal + 9 * float(sigma) * count**0.5


def test_smallest_tails_have_quantiles() -> None:
    for sigma in (F(1, 2), F(3), F(62), F(99)):
        assert Gaussian(sigma).quantile(1 - 2.0**-53) >= Gaussian(sigma).quantile(1 - 2.0**-52)
        assert Gaussian(sigma).difference_quantile(1e-20) >= Gaussian(sigma).difference_quantile(1e-15)


def test_sum_of_no_draws_is_zero() -> None:
    assert Gaussian(F(3)).sum_quantile(0, 0.95) == 0
    assert Laplace(F(3)).sum_quantile(0, 0.95) == 0


@pytest.mark.parametrize("sigma", [F(1, 2), F(7, 8), F(3)], ids=str)
def test_quantile_of_a_difference_is_the_smallest(sigma: Fraction) -> None:
    """By symmetry, a difference of two draws is distributed as their sum."""
    within = magnitudes(sigma, 2)
    for tail in (0.4, 0.1, 0.025, 1e-3, 1e-6):
        beyond = [(1 - reached) / 2 for reached in within]
        exact = next(q for q, p in enumerate(beyond) if p <= tail)
        assert Gaussian(sigma).difference_quantile(tail) == exact


@pytest.mark.parametrize("noise", [Gaussian(F(1, 2)), Gaussian(F(3)), Gaussian(F(99)), Laplace(F(5))], ids=str)
def test_more_confidence_never_narrows_an_interval(noise: Gaussian | Laplace) -> None:
    for count in (1, 2, 9):
        widths = [noise.sum_quantile(count, p) for p in PROBABILITIES]
        assert widths == sorted(widths)
    tails = [noise.difference_quantile(tail) for tail in (1e-6, 1e-3, 0.1, 0.4)]
    assert tails == sorted(tails, reverse=True)


# Variance


@pytest.mark.parametrize("sigma", [F(1, 9), F(1, 2), F(7, 8), F(2), F(3), F(31, 10), F(20)], ids=str)
def test_gaussian_variance_is_exact(sigma: Fraction) -> None:
    with mpmath.workdps(40):
        exact = mpmath.fsum(z * z * p for z, p in slow.gaussian_table(sigma).items())
    assert Gaussian(sigma).variance == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("scale", [F(1, 9), F(1), F(7, 2), F(20), F(10**6)], ids=str)
def test_laplace_variance_is_exact(scale: Fraction) -> None:
    with mpmath.workdps(60):
        ratio = slow_laplace.ratio(scale)
        assert Laplace(scale).variance == pytest.approx(float(2 * ratio / (1 - ratio) ** 2), rel=1e-12)


# Draws


@cache
def edges(sigma: Fraction, enough: float) -> tuple[list[int], np.ndarray]:
    """Return the last integers of all cells but one, and the exact probability of each cell; none is below `enough`."""
    table = slow.gaussian_table(sigma, 25)
    last_integers, cells, inside, remaining = [], [], 0.0, 1.0
    least = max(enough, 0.0 if sigma < 4 else 0.02)
    for z in sorted(table):
        inside += float(table[z])
        if inside >= least and remaining - inside >= least:
            last_integers.append(z)
            cells.append(inside)
            remaining, inside = remaining - inside, 0.0
    return last_integers, np.array([*cells, 1 - sum(cells)])


def counts(drawn: np.ndarray, sigma: Fraction, enough: float) -> np.ndarray:
    last, probabilities = edges(sigma, enough)
    return np.bincount(np.searchsorted(last, drawn), minlength=probabilities.size)


def frequencies(sampler: Sampler, sigma: Fraction) -> float:
    enough = 1.01 * ENOUGH / DRAWS
    drawn = sampler(sigma, size=DRAWS, bits=bits(f"gaussian {sigma}"))
    return chance(counts(drawn, sigma, enough), edges(sigma, enough)[1])


def neighbors(sampler: Sampler, sigma: Fraction) -> float:
    """Return the chance of pairs of neighbors: they fall into pairs of cells with the product of the probabilities."""
    drawn = sampler(sigma, size=DRAWS, bits=bits(f"gaussian neighbors {sigma}"))
    last, p = edges(sigma, 0.1)
    cell = np.searchsorted(last, drawn)
    return chance(np.bincount(cell[::2] * p.size + cell[1::2], minlength=p.size**2), np.outer(p, p).ravel())


@cache
def opendp_draws(sigma: Fraction) -> np.ndarray:
    """Draw with OpenDP, which has no seed: this claim is a fresh one in every run."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * OTHER_DRAWS))


def agreement(sampler: Sampler, sigma: Fraction) -> float:
    enough = 1.01 * ENOUGH / OTHER_DRAWS
    ours = sampler(sigma, size=DRAWS, bits=bits(f"gaussian agreement {sigma}"))
    return chance_of_both(counts(ours, sigma, enough), counts(opendp_draws(sigma), sigma, enough))


def with_faults(**faults: Callable[..., Any]) -> Sampler:
    """Return the sampler with some of its helpers replaced."""

    def faulty(sigma: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
        with ExitStack() as stack:
            for name, fault in faults.items():
                stack.enter_context(patch.object(gaussian, name, fault))
            return published(sigma, size=size, bits=bits)

    return faulty


def published(sigma: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    """Draw by the published algorithm, which serves all sources that are neither secure nor seeded."""
    return discrete_gaussian(sigma, size=size, bits=Words(bits))


def keep_all(magnitudes: np.ndarray, sigma: Fraction, bits: SeededBits) -> np.ndarray:
    return np.ones(magnitudes.size, np.bool_)


def twice_the_exponent(magnitudes: np.ndarray, sigma: Fraction, bits: SeededBits) -> np.ndarray:
    accept = ORIGINAL_ACCEPT
    return accept(magnitudes, sigma, bits) & accept(magnitudes, sigma, bits)


def without_the_square(
    heads: np.ndarray, times: np.ndarray, numerators: np.ndarray, denominator: int, bits: Any
) -> np.ndarray:
    """Throw a - 1 coins of exp(-1/2) where (a - 1)**2 belong."""
    fewer = np.sqrt(times).astype(np.int64) if denominator == 2 and (numerators == 1).all() else times
    return ORIGINAL_THROW(heads, fewer, numerators, denominator, bits)


def tenth_less_noise(sigma: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    return discrete_gaussian(sigma * 9 / 10, size=size, bits=bits)


def rounded(sigma: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    generator = np.random.default_rng(bits.words(4).tolist())
    return np.rint(generator.normal(0, float(sigma), size)).astype(np.int64)


def neighbors_share_a_sign(sigma: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    drawn = discrete_gaussian(sigma, size=size, bits=bits)
    return np.abs(drawn) * np.repeat(np.sign(drawn[::2]), 2)


ORIGINAL_ACCEPT, ORIGINAL_THROW = gaussian._accept, gaussian._throw
FAULTS: dict[str, Sampler] = {
    "proposals always kept": with_faults(_accept=keep_all),
    "twice the exponent": with_faults(_accept=twice_the_exponent),
    "a coin for a square of coins": with_faults(_throw=without_the_square),
    "a tenth less noise": tenth_less_noise,
    "rounded": rounded,
    "neighbors share a sign": neighbors_share_a_sign,
}
CLAIMS: dict[str, Callable[[Sampler, Fraction], float]] = {
    "frequencies": frequencies,
    "neighbors": neighbors,
    "OpenDP": agreement,
}


@pytest.mark.claim
@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
@pytest.mark.parametrize("sampler", [discrete_gaussian, published])
def test_noise_has_its_distribution(sampler: Sampler, sigma: Fraction) -> None:
    assert frequencies(sampler, sigma) > ALPHA


@pytest.mark.claim
@pytest.mark.parametrize("sigma", [F(7, 8), F(3), F(62)], ids=str)
def test_neighboring_draws_are_independent(sigma: Fraction) -> None:
    assert neighbors(discrete_gaussian, sigma) > ALPHA


@pytest.mark.claim
@pytest.mark.parametrize("sigma", [F(1, 2), F(13, 2)], ids=str)
def test_noise_agrees_with_opendp(sigma: Fraction) -> None:
    assert agreement(discrete_gaussian, sigma) > ALPHA


@pytest.mark.claim
def test_noise_drawn_in_small_batches_has_the_same_distribution() -> None:
    def few_at_a_time(sigma: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
        return np.concatenate([discrete_gaussian(sigma, size=n % 400, bits=bits) for n in range(size // 190)])[:size]

    assert frequencies(few_at_a_time, F(3)) > ALPHA


PLANTED = [
    *(("frequencies", sigma, "proposals always kept") for sigma in SIGMAS),
    *(("frequencies", sigma, "twice the exponent") for sigma in SIGMAS[1:]),  # at 1/2, 0 and 1 have the same exponent
    *(("frequencies", sigma, "a tenth less noise") for sigma in SIGMAS),
    ("frequencies", F(3), "a coin for a square of coins"),
    ("frequencies", F(7, 8), "rounded"),
    ("neighbors", F(3), "neighbors share a sign"),
    ("OpenDP", F(13, 2), "proposals always kept"),
    ("OpenDP", F(13, 2), "twice the exponent"),
]


@pytest.mark.claim
@pytest.mark.parametrize(("claim", "sigma", "fault"), PLANTED, ids=str)
def test_planted_fault_in_the_noise_is_detected(claim: str, sigma: Fraction, fault: str) -> None:
    assert CLAIMS[claim](FAULTS[fault], sigma) < ALPHA


@pytest.mark.claim
@pytest.mark.long  # the same claim with 50,000 draws stays
@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_million_draws_have_their_distribution(sigma: Fraction) -> None:
    size = 1_000_000
    enough = 1.01 * ENOUGH / size
    drawn = discrete_gaussian(sigma, size=size, bits=bits(f"gaussian million {sigma}"))
    assert chance(counts(drawn, sigma, enough), edges(sigma, enough)[1]) > ALPHA


def test_draws_of_a_distribution_are_those_of_its_sampler() -> None:
    assert (Gaussian(F(3)).draw(50, bits=SeededBits(7)) == discrete_gaussian(F(3), size=50, bits=SeededBits(7))).all()
    assert partial(Laplace(F(3)).draw, bits=SeededBits(7))(50).size == 50


@pytest.mark.parametrize("tail", [0.3, 0.05, 1e-6])
def test_difference_of_wide_noise_has_the_quantile_of_its_sum(tail: float) -> None:
    """From sigma 64 on the tail is an integral: never too small, and at most one more than the smallest."""
    sigma = 100
    steps = np.arange(-1500, 1501)
    weights = np.exp(-(steps**2) / (4 * sigma**2))
    weights /= weights.sum()
    smallest = next(width for width in range(1500) if weights[steps > width].sum() <= tail)
    assert smallest <= Gaussian(Fraction(sigma)).difference_quantile(tail) <= smallest + 1
