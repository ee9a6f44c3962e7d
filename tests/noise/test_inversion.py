"""Inversion of exact cumulative probabilities: tables, digits on demand, coins of wide noise, draws, and secure bits.

A draw by inversion is a function of a uniform number. The tests compare that function with cumulative probabilities in many
digits, over every number where that is possible. What is sampled has the same claims as the published algorithms.
"""

from __future__ import annotations

import ast
import inspect
import os
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from claims import test_noise_claims as laplace_claims
from claims.probabilities import Words
from hypothesis import given
from hypothesis import strategies as st
from noise import test_gaussian as gaussian_claims
from noise.test_gaussian import ALPHA, inexact
from noise.test_scripts import Exhausted, Script

from tidegate.noise import SecureBits, SeededBits, discrete_gaussian, discrete_laplace, inversion
from tidegate.noise.inversion import (
    GaussianCells,
    LaplaceCells,
    Table,
    exp_minus,
    gaussian_table,
    laplace_table,
    unit_of,
)
from tidegate.noise.laplace import LARGEST

F = Fraction
SCALES = [F(1, 9), F(1, 2), F(1), F(10), F(20, 3), F(2_000_000, 123_457), F(31), F(1000), F(10**9, 7), F(LARGEST, 3)]
NARROW = [scale for scale in SCALES if unit_of(scale, 16) == 0]
DIGITS = 120


def many_digits(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def weights(cells: LaplaceCells | GaussianCells) -> list[mpmath.mpf]:
    """Return the weights of all cells that 100 digits see."""
    all_weights, power = [], 1 if isinstance(cells, LaplaceCells) else 2
    while not all_weights or all_weights[-1] > mpmath.mpf(10) ** -110:
        i = len(all_weights)
        weight = mpmath.exp(-many_digits(cells.rate) * i**power)
        all_weights.append(2 * weight if cells.folded and i else weight)
    return all_weights


def cumulative(cells: LaplaceCells | GaussianCells) -> list[mpmath.mpf]:
    """Return P(cell <= i) for i = 0, 1, ..., in 100 digits."""
    with mpmath.workdps(DIGITS):
        all_weights = weights(cells)
        total, reached, sums = mpmath.fsum(all_weights), mpmath.mpf(0), []
        for weight in all_weights:
            reached += weight
            sums.append(reached / total)
        return sums


def cells_of(kind: str, spread: Fraction) -> LaplaceCells | GaussianCells:
    table = laplace_table(spread) if kind == "laplace" else gaussian_table(spread)
    return table._cells


# Digits


@given(st.builds(F, st.integers(0, 10**9), st.integers(1, 10**6)), st.sampled_from([40, 95, 223]))
def test_exponential_is_within_its_bounds(exponent: Fraction, digits: int) -> None:
    low, error = exp_minus(exponent, digits)
    with mpmath.workdps(400):
        exact = mpmath.exp(-many_digits(exponent)) * 2**digits
        assert low <= exact <= low + error <= 2**digits
    assert 0 <= error <= 3


@pytest.mark.one_in(3)
@pytest.mark.parametrize("digits", [95, 159])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("spread", SCALES, ids=str)
def test_cumulative_probabilities_are_within_their_bounds(spread: Fraction, kind: str, digits: int) -> None:
    cells = cells_of(kind, spread)
    with mpmath.workdps(DIGITS):
        for exact, (low, high) in zip(cumulative(cells), cells.bounds(digits), strict=False):
            assert low <= exact * 2**digits + mpmath.mpf(2) ** -30
            assert exact * 2**digits - mpmath.mpf(2) ** -30 <= high <= 2**digits
            assert high - low < 2**32  # narrow enough to decide


@pytest.mark.parametrize("spread", NARROW, ids=str)
def test_folded_cells_have_the_probabilities_of_the_noise(spread: Fraction) -> None:
    """P(|Z| <= i) of the published distributions."""
    from reference import average, laplace

    with mpmath.workdps(DIGITS):
        for i, reached in enumerate(cumulative(LaplaceCells(1 / spread, folded=True))[:40]):
            assert mpmath.almosteq(reached, laplace.within(spread, i), rel_eps=mpmath.mpf(10) ** -70)
    table = average.gaussian_table(spread)
    for i, reached in enumerate(cumulative(GaussianCells(1 / spread**2 / 2, folded=True))[:40]):
        within = mpmath.fsum(p for z, p in table.items() if abs(z) <= i)
        assert mpmath.almosteq(reached, within, rel_eps=mpmath.mpf(10) ** -12)


# Tables


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("spread", SCALES, ids=str)
def test_table_holds_the_first_digits(spread: Fraction, kind: str) -> None:
    table = laplace_table(spread) if kind == "laplace" else gaussian_table(spread)
    with mpmath.workdps(DIGITS):
        digits = [int(mpmath.floor(reached * 2**31)) for reached in cumulative(table._cells)]
    assert table._floors.tolist() == digits[: table._floors.size]
    assert table._floors[-1] == 2**31 - 1


def inverted(sums: list[mpmath.mpf], number: int, digits: int) -> int:
    """Return the first cell whose cumulative probability exceeds the number."""
    with mpmath.workdps(DIGITS):
        return bisect_right(sums, mpmath.mpf(number) / mpmath.mpf(2) ** digits)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", [LaplaceCells, GaussianCells])
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("rate", [F(1, 3), F(2), F(1, 17)], ids=str)
def test_every_number_has_the_cell_of_its_inverse(
    kind: type[Any], folded: bool, rate: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 4,096 numbers of a table of 12 digits, each with four continuations for the case that they do not decide."""
    monkeypatch.setattr(inversion, "WIDTH", 12)
    monkeypatch.setattr(inversion, "GUIDE", 7)
    cells = kind(rate, folded)
    table, sums = Table(cells), cumulative(cells)
    for word in (0, 1, 2**63, 2**64 - 1):
        for number in range(2**12):
            (cell,) = table.invert(np.array([number], np.uint32), Script([word, 2**63, 2**63]))
            assert cell == inverted(sums, number << 192 | word << 128 | 2**63 << 64 | 2**63, 204)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("spread", [F(10), F(1000)], ids=str)
def test_further_digits_decide_a_tie(spread: Fraction, kind: str) -> None:
    """The next 64 digits of a cumulative probability, and their neighbors; at equality, 64 more."""
    table = laplace_table(spread) if kind == "laplace" else gaussian_table(spread)
    sums = cumulative(table._cells)
    for cell in (0, 1, 7, 60):
        with mpmath.workdps(DIGITS):
            digits = int(mpmath.floor(sums[cell] * mpmath.mpf(2) ** 159))
        number = np.array([digits >> 128], np.uint32)
        assert number[0] == table._floors[cell]
        middle, last = digits >> 64 & 2**64 - 1, digits & 2**64 - 1
        assert table.invert(number, Script([middle - 1])) == cell
        assert table.invert(number, Script([middle + 1])) == cell + 1
        assert table.invert(number, Script([middle, last - 1])) == cell
        assert table.invert(number, Script([middle, last + 1])) == cell + 1
        with pytest.raises(Exhausted):
            table.invert(number, Script([middle, last]))


def test_tail_has_no_end() -> None:
    """The largest numbers of a table continue beyond it."""
    table = laplace_table(F(1))
    assert table.invert(np.array([2**31 - 1], np.uint32), Script([2**64 - 1, 2**63])) > 60
    assert table.invert(np.array([2**31 - 1], np.uint32), Script([2**64 - 1, 2**64 - 1, 2**63])) > 100


# Coins of wide noise


class Coins:
    """Prepared coins: each is thrown as the sampler asks for it, with the probability that the sampler states."""

    def __init__(self, script: tuple[bool, ...], x: Fraction) -> None:
        self.script, self.x, self.probability = iter(script), x, F(1)

    def throw(self, probability: Fraction) -> np.ndarray:
        coin = next(self.script, None)
        if coin is None:
            raise Exhausted
        self.probability *= probability if coin else 1 - probability
        return np.array([coin])

    def less(self, digits: np.ndarray, numerators: np.ndarray, later: int, bits: Any) -> np.ndarray:
        return self.throw(self.x)

    def below(self, bound: int, *, size: int, bits: Any) -> np.ndarray:
        return 1 - self.throw(F(1, bound)).astype(np.int64)


@pytest.mark.parametrize("x", [F(1, 64), F(1, 3), F(1)], ids=str)
def test_series_of_coins_has_exactly_its_probability(x: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    heads, undecided = F(0), F(1)
    for length in range(1, 10):
        for script in product([False, True], repeat=length):
            coins = Coins(script, x)
            monkeypatch.setattr(inversion, "_less", coins.less)
            monkeypatch.setattr(inversion, "below", coins.below)
            second = lambda offsets, cells: np.ones(offsets.size, np.bool_)  # noqa: E731
            try:
                _, (accepted,) = inversion._place(np.array([3]), 5, np.array(6), second, SeededBits(1))
            except Exhausted:
                continue
            if next(coins.script, None) is None:
                undecided -= coins.probability
                heads += coins.probability if accepted else 0
    exact = mpmath.exp(-many_digits(x))
    assert many_digits(heads) <= exact <= many_digits(heads + undecided)
    assert undecided < F(1, 100)


@pytest.mark.parametrize("later", [0, 3])
@pytest.mark.parametrize("numerator", [0, 1, 37, 255, 2047])
def test_first_coin_has_exactly_its_probability(numerator: int, later: int) -> None:
    """Over all first digits, and all later digits where the first are equal."""
    digits = np.arange(2**16).astype(np.uint16)
    heads = 0
    for rest in range(2**later):
        script = Script([rest << (64 - later) if later else 0] * 2)
        heads += int(inversion._less(digits, np.full(2**16, numerator), later, script).sum())
    assert heads == numerator


@pytest.mark.parametrize("spread", [F(40), F(1000), F(10**9, 7), F(LARGEST, 3), F(LARGEST)], ids=str)
def test_coins_of_wide_noise_have_exactly_their_exponents(spread: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of the probabilities that are thrown, for cells and offsets over the whole range."""
    chances: list[Fraction] = []

    class Bounds:
        """Record the probability that a number below a bound is below what it is compared with."""

        def __init__(self, bound: int) -> None:
            self.bound = bound

        def __lt__(self, numerator: int) -> np.ndarray:
            assert 0 <= numerator <= self.bound
            chances.append(F(int(numerator), self.bound))
            return np.ones(1, np.bool_)

    def record(table: Any, unit: int, exponents: Any, second: Any, *, most: int, size: int, bits: Any) -> None:
        for cell in (0, 1, 2, 3, 40, 511, 1023):
            for offset in {0, 1, (1 << unit) // 2, (1 << unit) - 1} - {1 << unit}:
                chances.clear()
                cells, offsets = np.array([cell]), np.array([offset])
                numerator = int((offsets << exponents(cells)).item())
                assert numerator <= 1 << unit + inversion.CELLS
                second(offsets, cells)
                first = F(numerator, 1 << unit + inversion.CELLS)
                exponent = first * np.prod(chances) * last_coin(cell, offset, unit)
                assert exponent == expected(cell, offset, unit)

    def last_coin(cell: int, offset: int, unit: int) -> Fraction:
        return F(offset + (cell << unit + 1), 2 << unit + cell.bit_length()) if kind == "gaussian" else F(1)

    def expected(cell: int, offset: int, unit: int) -> Fraction:
        start = cell << unit
        if kind == "laplace":
            return offset / spread
        return ((start + offset) ** 2 - start**2) / (2 * spread**2)

    monkeypatch.setattr(inversion, "below", lambda bound, *, size, bits: Bounds(bound))
    monkeypatch.setattr(inversion, "_draw", record)
    for kind in ("laplace", "gaussian"):
        getattr(inversion, kind)(spread, size=1, bits=SeededBits(1))


@pytest.mark.parametrize("cell", [0, 1, 5, 1023])
@pytest.mark.parametrize("unit", [1, 7, 47])
def test_last_coin_compares_as_many_digits_as_its_cell_has(cell: int, unit: int) -> None:
    """The coin of (offset + 2 w cell) / (2 w 2**e): heads up to the numerator, tails from it on."""
    width, numerator = unit + 1 + cell.bit_length(), 1 + (cell << unit + 1)
    sigma = F(32 << unit)  # whose other two coins, of 18 words each, are always heads
    for number, heads in ((numerator - 1, True), (numerator, False)):
        second = second_coin_of(sigma, Script([0] * 36 + [number << 64 - width]))
        assert second(np.array([1]), np.array([cell])) == heads


def second_coin_of(sigma: Fraction, script: Script) -> Any:
    coins = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inversion, "_draw", lambda table, unit, exponents, second, **named: coins.append(second))
        inversion.gaussian(sigma, size=1, bits=script)
    return coins[0]


def test_offsets_are_uniform_over_their_cell() -> None:
    """Every value of the leading digits is one offset: of halves of words for short units, of words for long ones."""
    never = lambda offsets, cells: np.zeros(offsets.size, np.bool_)  # noqa: E731
    halves = [even << 29 | even + 1 << 61 for even in range(0, 8, 2)]
    offsets, _ = inversion._place(np.zeros(8, np.int64), 3, np.array(0), never, Script(halves))
    assert offsets.tolist() == list(range(8))
    words = [offset << 61 for offset in range(8)]
    offsets, _ = inversion._place(np.zeros(8, np.int64), 20, np.array(0), never, Script([*words, *[0] * 8]))
    assert offsets.tolist() == [offset << 17 for offset in range(8)]


# Draws


@pytest.mark.parametrize("draw", [inversion.laplace, inversion.gaussian])
@pytest.mark.parametrize("spread", [*SCALES, F(LARGEST), F(1, LARGEST), F(LARGEST, LARGEST - 1), F(33), F(64)], ids=str)
def test_sampler_accepts_every_spread(draw: Any, spread: Fraction) -> None:
    for size in (0, 1, 2, 3, 500):
        drawn = draw(spread, size=size, bits=SeededBits(size))
        assert (drawn.dtype, drawn.shape) == (np.int64, (size,))
    assert np.abs(drawn).max() <= 40 * spread
    assert spread < F(1, 2) or np.abs(drawn).max() > 0


def test_draw_beyond_the_limit_is_refused() -> None:
    class Far:
        """A table that returns a cell which no real draw reaches."""

        def __init__(self, cell: int) -> None:
            self.cell = cell

        def invert(self, numbers: np.ndarray, bits: Any) -> np.ndarray:
            return np.full(numbers.size, self.cell)

    for name, most in (("laplace", 2**14), ("gaussian", 2**10)):
        for cell in (most - 1, most):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(inversion, f"{name}_table", lambda spread, cell=cell: Far(cell))
                if cell < most:
                    drawn = getattr(inversion, name)(F(LARGEST), size=3, bits=SeededBits(1))
                    assert (np.abs(drawn) >> unit_of(F(LARGEST), 16 if name == "laplace" else 32) == cell).all()
                else:
                    with pytest.raises(OverflowError):
                        getattr(inversion, name)(F(LARGEST), size=3, bits=SeededBits(1))


def test_inversion_uses_no_float() -> None:
    source = inspect.getsource(inversion)
    fractions = ["(1 << unit) / scale", "(1 << unit) / sigma", "((1 << unit) / sigma) ** 2 / 2"]  # of fractions
    assert sorted(inexact(ast.parse(source))) == sorted(f"division {text}" for text in fractions)


@pytest.mark.claim
@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(20, 3), F(33), F(10**6, 7), F(2**40, 3)], ids=str)
def test_laplace_noise_has_its_distribution(scale: Fraction) -> None:
    assert laplace_claims.frequencies(inversion.laplace, scale) > ALPHA


@pytest.mark.claim
@pytest.mark.parametrize("sigma", [F(1, 2), F(224_500, 262_144), F(3), F(62), F(65), F(1001, 3)], ids=str)
def test_gaussian_noise_has_its_distribution(sigma: Fraction) -> None:
    assert gaussian_claims.frequencies(inversion.gaussian, sigma) > ALPHA


@pytest.mark.claim
@pytest.mark.parametrize("sigma", [F(3), F(200)], ids=str)
def test_neighboring_draws_are_independent(sigma: Fraction) -> None:
    assert gaussian_claims.neighbors(inversion.gaussian, sigma) > ALPHA


@pytest.mark.claim
@pytest.mark.parametrize("sigma", [F(13, 2), F(90)], ids=str)
def test_noise_agrees_with_opendp(sigma: Fraction) -> None:
    assert gaussian_claims.agreement(inversion.gaussian, sigma) > ALPHA


def always_accepted(cells: np.ndarray, unit: int, exponents: Any, second: Any, bits: Any) -> Any:
    return PLACE(cells, unit, exponents, second, bits)[0], np.ones(cells.size, np.bool_)


PLACE = inversion._place


@pytest.mark.claim
def test_planted_fault_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide noise whose coins are not thrown is uniform within cells: 2,000,000 draws, cell by cell."""
    scale, size = F(20), 2_000_000
    monkeypatch.setattr(inversion, "unit_of", lambda spread, least: 2)  # wider cells than the noise has
    inversion.laplace_table.cache_clear()
    monkeypatch.setattr(inversion, "_place", always_accepted)
    drawn = inversion.laplace(scale, size=size, bits=SeededBits(1))
    inversion.laplace_table.cache_clear()
    within = np.bincount(np.abs(drawn[drawn > 0]) % 4, minlength=4)
    assert within[1] / within[3] < 1.02 < np.exp(2 / 20)  # the exact ratio is exp(2 / scale)


# Sources


def test_all_but_prepared_sources_are_inverted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inversion, "laplace", lambda scale, *, size, bits: "inverted")
    monkeypatch.setattr(inversion, "gaussian", lambda sigma, *, size, bits: "inverted")
    for draw in (discrete_laplace, discrete_gaussian):
        assert draw(F(3), size=2, bits=SecureBits()) == "inverted"
        assert draw(F(3), size=2, bits=SeededBits(1)) == "inverted"  # so that audits run what sessions run
        assert isinstance(draw(F(3), size=2, bits=Words(SeededBits(1))), np.ndarray)


@pytest.mark.parametrize("spread", [F(0), F(-1), F(LARGEST + 1), F(1, LARGEST + 1)], ids=str)
@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_spread_out_of_range_is_refused(draw: Any, spread: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        draw(spread, size=1, bits=SecureBits())


@pytest.fixture
def system_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own words instead of the words of the test's name."""
    monkeypatch.undo()


@pytest.mark.usefixtures("system_bits")
def test_source_has_no_state_to_steal() -> None:
    """Nothing to erase: an object without attributes, and no word of a draw in the module."""
    bits = SecureBits()
    bits.words(1000)
    assert vars(bits) == {}
    assert not [value for value in vars(inversion).values() if isinstance(value, SecureBits | SeededBits)]


@pytest.mark.usefixtures("system_bits")
def test_forked_process_draws_other_words() -> None:
    bits = SecureBits()
    bits.words(3)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, bits.words(100).tobytes())
        os._exit(0)
    ours = bits.words(100)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 800), np.uint64)
    os.close(read), os.close(write)
    assert theirs.size == 100
    assert not np.isin(ours, theirs).any()


@pytest.mark.usefixtures("system_bits")
def test_threads_never_share_words() -> None:
    bits = SecureBits()
    with ThreadPoolExecutor(8) as pool:
        words = np.concatenate(list(pool.map(bits.words, [100] * 80)))
    assert np.unique(words).size == 8000


@pytest.mark.usefixtures("system_bits")
def test_threads_share_tables_without_mixing_draws() -> None:
    """Tables are only read: 16 threads that start with an empty cache draw noise of the right width."""
    laplace_table.cache_clear()
    scales = [F(n, 7) for n in range(70, 86)]
    with ThreadPoolExecutor(16) as pool:
        draws = list(pool.map(lambda scale: discrete_laplace(scale, size=20_000, bits=SecureBits()), scales))
    for scale, drawn in zip(scales, draws, strict=True):
        assert np.abs(drawn).mean() == pytest.approx(float(scale), rel=0.08)  # 11 standard errors
