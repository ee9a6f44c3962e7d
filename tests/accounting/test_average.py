"""Identification on average: small universes by enumeration, rounding in the safe direction, and prices in three units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import average as slow

from tidegate.accounting import (
    FREE,
    ZERO,
    Amount,
    Choices,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Filtered,
    GaussianBox,
    GaussianMoments,
    KNorm,
    Moments,
    Price,
    Target,
    Together,
    average_identification_after,
    average_loss_for,
    average_yes_no,
    budget_of,
    event_from_dict,
    identification_after,
    loss_for,
    zcdp_for,
)
from tidegate.policy import Dataset, Identification, Integer, Policy

F = Fraction
TINY = 1e-12  # the errors of the enumeration in floats
PARTS, PART = 6, 400  # about 2,080 universes: in the others, a window covers every value


# Universes


def rows_to_one(weights: np.ndarray) -> np.ndarray:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def laplace_channel(random: np.random.Generator, worlds: int) -> np.ndarray:
    outputs = random.integers(0, 6, worlds)
    return rows_to_one(np.exp(-np.abs(np.arange(-20, 27) - outputs[:, None]) / random.uniform(0.3, 5)))


def gaussian_channel(random: np.random.Generator, worlds: int) -> np.ndarray:
    outputs, sigma = random.integers(0, 6, worlds), random.uniform(0.4, 5)
    return np.exp(slow.gaussian_log_weights(sigma, outputs, np.arange(-25, 32)))


def exponential_channel(random: np.random.Generator, worlds: int) -> np.ndarray:
    scores = random.integers(-3, 4, (worlds, random.integers(2, 6)))
    return rows_to_one(np.exp(random.uniform(0.05, 1) * scores))


def any_channel(random: np.random.Generator, worlds: int) -> np.ndarray:
    return random.dirichlet(np.full(random.integers(2, 7), random.uniform(0.2, 5)), worlds) + 0.0


def revealing_channel(random: np.random.Generator, worlds: int) -> np.ndarray:
    """Return a channel in which some responses exclude some worlds: there is no pure loss."""
    channel = random.dirichlet(np.ones(4), worlds) * (random.random((worlds, 4)) < 0.8)
    channel[:, 0] += 0.1
    return rows_to_one(channel)


CHANNELS = [laplace_channel, gaussian_channel, exponential_channel, any_channel, revealing_channel]


def channel_of(random: np.random.Generator, worlds: int) -> np.ndarray:
    return CHANNELS[random.integers(len(CHANNELS))](random, worlds)


def adaptive_pair(random: np.random.Generator, worlds: int) -> tuple[np.ndarray, float]:
    """Return two mechanisms, of which the second depends on the first response, and their loss on the worst path."""
    first = any_channel(random, worlds)
    seconds = [channel_of(random, worlds) for _ in range(first.shape[1])]
    joint = [first[:, [response]] * second for response, second in enumerate(seconds)]
    return np.hstack(joint), slow.smallest_radius(first) + max(slow.smallest_radius(second) for second in seconds)


def universe(random: np.random.Generator) -> tuple[np.ndarray, float, np.ndarray]:
    """Return a channel, its loss, and the prior of the rows on which each guess is right.

    Some universes have rows of two columns, of which the guess names one.
    """
    values = int(random.integers(2, 8))
    labels = np.repeat(np.arange(values), random.integers(1, 3))
    prior = random.dirichlet(np.full(labels.size, random.uniform(0.3, 4)))
    if random.random() < 0.3:
        prior = np.full(labels.size, 1 / labels.size)
    within = int(random.integers(0, 3)) if values > 3 else 0
    if random.random() < 0.25:
        channel, z = adaptive_pair(random, labels.size)
    else:
        channel = channel_of(random, labels.size)
        z = slow.smallest_radius(channel)
    return channel, z, slow.guess_masses(prior, labels.tolist(), within)


def universes(first: int, count: int) -> Iterator[tuple[float, float, Fraction]]:
    """Yield the exact success, the loss and the random guess of random universes."""
    for seed in range(first, first + count):
        channel, z, masses = universe(np.random.default_rng(seed))
        q = F(float(masses.sum(axis=1).max())).limit_denominator(10**15) + F(1, 10**15)
        if q < 1:
            yield slow.best_success(channel, masses), z, q


@pytest.mark.long  # test_bound_is_rounded_up_and_hardly_above_the_exact_one is exact
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_no_guesser_exceeds_its_bound_in_random_universes(part: int) -> None:
    gaps = []
    for success, z, q in universes(part * PART, PART):
        bound = float(average_identification_after(Amount.up(F(z)), q))
        assert success <= bound + TINY
        gaps.append((bound - success) / (1 - float(q)))
    assert len(gaps) > 0.8 * PART
    assert min(gaps) < 0.02  # some universe comes close: the bound is not empty


def test_loss_that_is_too_small_is_detected() -> None:
    """Planted fault: a quarter of the loss, as if the noise had half of its sigma."""
    broken = [
        success > float(average_identification_after(Amount.up(F(z) / 4), q)) + TINY
        for success, z, q in universes(0, PART // 2)
    ]
    assert sum(broken) >= 5


def yes_no_channel(z: float) -> np.ndarray:
    """Return a coin with two worlds whose loss is z around its middle, by bisection."""
    low, high = 0.5, 1 - 1e-9
    for _ in range(50):
        p = (low + high) / 2
        fits = slow.radius(np.array([[p, 1 - p], [1 - p, p]]), np.array([0.5, 0.5])) <= z
        low, high = (p, high) if fits else (low, p)
    return np.array([[low, 1 - low], [1 - low, low]])


@pytest.mark.parametrize("z", [0.01, 0.1, 0.4])
def test_bound_is_nearly_reached_by_a_coin(z: float) -> None:
    """The largest gain over a random guess is reached to within 5%."""
    success = float(yes_no_channel(z)[0, 0])
    bound = float(average_yes_no(Amount.up(F(z))))
    assert success <= bound
    assert success - 0.5 >= 0.95 * (bound - 0.5)


# Windows in the worst case


def with_pure_loss(channel: np.ndarray, epsilon: float) -> np.ndarray:
    """Mix a channel with a constant one until its largest ratio is epsilon, from below."""
    constant = np.full_like(channel, 1 / channel.shape[1])
    low, high = 0.0, 1.0
    for _ in range(45):
        share = (low + high) / 2
        mixed = share * channel + (1 - share) * constant
        ratio = np.log(mixed.max(axis=0) / mixed.min(axis=0)).max()
        low, high = (share, high) if ratio <= epsilon else (low, share)
    return np.asarray(low * channel + (1 - low) * constant)


def test_posterior_of_every_window_is_at_most_rho_at_the_worst_case_limit() -> None:
    closest = 1.0
    for seed in range(300):
        random = np.random.default_rng(seed)
        size = int(random.integers(3, 9))
        prior, within = random.dirichlet(np.full(size, 2.0)), int(random.integers(0, 3))
        masses = slow.guess_masses(prior, range(size), within)
        q = F(float(masses.sum(axis=1).max())) + F(1, 10**14)
        if q >= 1:
            continue
        rho = q + (1 - q) * F(int(random.integers(1, 99)), 100)
        limit = Target("x", 1 / q, rho, window=within).limit
        channel = with_pure_loss(random.dirichlet(np.full(4, 0.3), size), float(limit))
        worst = float((masses @ channel / (prior @ channel)).max())
        assert worst <= float(rho) + TINY
        closest = min(closest, float(rho) - worst)
    assert closest < 0.01


@given(st.integers(2, 9), st.integers(0, 3), st.fractions(F(1, 100), F(99, 100)))
def test_worst_case_bound_of_a_window_is_reached(size: int, within: int, part: Fraction) -> None:
    """Randomized response on "is the value in the window?" has a posterior of exactly rho."""
    covered = 2 * within + 1
    assume(covered < size)
    q = F(covered, size)
    rho = q + (1 - q) * part
    odds = mpmath.exp(mpmath.mpf(str(float(Target("x", 1 / q, rho).limit))))
    posterior = float(q) * odds / (float(q) * odds + 1 - float(q))
    assert abs(posterior - float(rho)) < 1e-12


# Rounding


def exact(amount: Amount) -> mpmath.mpf:
    return mpmath.mpf(amount.grains) / 10**30


QS = [F(1, 2), F(1, 3), F(3, 7), F(1, 7), F(1, 45), F(1, 99), F(2, 997), F(1, 1000), F(10001, 1000001), F(1, 10**12)]
HARD = {
    "rho 3/4": lambda q: F(3, 4),
    "rho in the middle": lambda q: q + (1 - q) / 3,
    "rho a little above q": lambda q: q * F(101, 100),
    "rho just above q": lambda q: q + q / 10**5,
    "rho next to q": lambda q: q + q / 10**9,
    "rho at q": lambda q: q + q / 10**15,
    "rho near 1": lambda q: 1 - F(1, 10**6),
    "rho next to 1": lambda q: 1 - F(1, 10**12),
    "rho at 1": lambda q: 1 - F(1, 10**20),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", HARD)
def test_limit_is_rounded_down_and_hardly_below_the_supremum(case: str) -> None:
    """In 60 digits. Where the supremum is at order 1, the last grain counts."""
    with mpmath.workdps(slow.DIGITS):
        for q in QS:
            rho = HARD[case](q)
            if not q < rho < 1:
                continue
            limit, supremum = average_loss_for(rho, q), slow.ceiling(rho, q)
            assert exact(limit) <= supremum
            least = mpmath.mpf(10) ** -29  # of what is lost by rounding
            near = rho / q - 1  # the search is in floats, and its orders are limited
            tolerance = mpmath.mpf("0.5" if near < F(1, 10**6) else "1e-8" if near < F(2, 10**5) else "1e-12")
            assert exact(limit) >= supremum * (1 - tolerance) - least
            assert exact(limit) >= slow.closed_ceiling(rho, q) - least


@given(st.integers(2, 10**6), st.integers(1, 400))
@settings(max_examples=150)
def test_limit_at_order_one_is_right_to_the_last_grain(size: int, part: int) -> None:
    """The Kullback-Leibler divergence alone is sound, so the limit is not below it; where it is the supremum, not above."""
    q = F(1, size)
    rho = 1 - (1 - q) * F(part, 10_000)
    with mpmath.workdps(slow.DIGITS):
        first = slow.coin_divergence(mpmath.mpf(1), slow.many_digits(rho), slow.many_digits(q))
        limit = exact(average_loss_for(rho, q))
        assert limit >= first - mpmath.mpf(10) ** -29
        near = slow.coin_divergence(1 + mpmath.mpf(10) ** -9, slow.many_digits(rho), slow.many_digits(q)) / (
            1 + mpmath.mpf(10) ** -9
        )
        if near < first:  # decreasing from the start
            assert limit <= first


@given(st.integers(3, 10**5), st.integers(2, 50), st.fractions(F(1, 100), F(99, 100)))
def test_limit_of_several_guesses_is_the_closed_form_rounded_down(worlds: int, guesses: int, part: Fraction) -> None:
    assume(guesses < worlds)
    rho = F(guesses, worlds) + (1 - F(guesses, worlds)) * part
    with mpmath.workdps(slow.DIGITS):
        closed = slow.closed_ceiling(rho / guesses, F(1, worlds))
        limit = exact(average_loss_for(rho, F(1, worlds), guesses))
        assert closed - mpmath.mpf(10) ** -29 <= limit <= closed


@pytest.mark.one_in(3)
@pytest.mark.parametrize("q", QS, ids=str)
def test_bound_is_rounded_up_and_hardly_above_the_exact_one(q: Fraction) -> None:
    with mpmath.workdps(slow.DIGITS):
        for z in (F(1, 10**20), F(1, 10**9), F(1, 1000), F(1, 20), F(1, 3), F(1)):
            bound = F(average_identification_after(Amount.up(z), q))
            if bound == 1:
                assert z >= slow.ceiling(1 - F(1, 10**6), q)
                continue
            assert slow.ceiling(bound, q) >= slow.many_digits(z)
            below = bound - F(1, 10**10) * q  # the search is in floats
            assert below <= q or slow.ceiling(below, q) < slow.many_digits(z)


def test_order_one_is_included_where_rho_is_large() -> None:
    for q in (F(1, 2), F(1, 7), F(1, 45)):
        with mpmath.workdps(slow.DIGITS):
            s, guess = slow.many_digits(F(3, 4)), slow.many_digits(q)
            first = slow.coin_divergence(mpmath.mpf(1), s, guess)
            nearby = slow.coin_divergence(mpmath.mpf("1.0001"), s, guess) / mpmath.mpf("1.0001")
            assert abs(exact(average_loss_for(F(3, 4), q)) - first) < mpmath.mpf(10) ** -26
            assert nearby < first * (1 - mpmath.mpf(10) ** -6)


probability = st.integers(1, 999_999).map(lambda millionths: F(millionths, 10**6))
ordered = st.lists(probability, min_size=3, max_size=3, unique=True).map(sorted)


@given(ordered)
def test_limit_and_bound_are_inverse(probabilities: list[Fraction]) -> None:
    q, rho, _ = probabilities
    limit = average_loss_for(rho, q)
    after = average_identification_after(limit, q)
    assert F(after) >= rho * (1 - F(1, 10**11))
    assert F(after) <= rho * (1 + F(1, 10**11))
    assert Target("x", 1 / q, rho, "average").identification(limit) <= Decimal(
        rho.numerator
    ) / rho.denominator + Decimal("1e-15")


@given(ordered)
def test_limit_rises_with_rho_and_falls_with_q(probabilities: list[Fraction]) -> None:
    low, middle, high = probabilities
    assert average_loss_for(middle, low) <= average_loss_for(high, low)
    assert average_loss_for(high, middle) <= average_loss_for(high, low)


@given(probability, st.fractions(0, 3), st.fractions(0, 3))
def test_bound_rises_with_the_loss(q: Fraction, first: Fraction, second: Fraction) -> None:
    low, high = sorted((first, second))
    assert average_identification_after(Amount.up(low), q) <= average_identification_after(Amount.up(high), q)


@pytest.mark.parametrize("q", QS, ids=str)
def test_bound_rises_with_the_smallest_losses(q: Fraction) -> None:
    grains = [0, 1, 2, 10, 10**3, 10**6, 10**10, 10**15, 10**20, 10**25, 10**28, 10**30]
    bounds = [average_identification_after(Amount(count), q) for count in grains]
    assert all(low <= high for low, high in pairwise(bounds))
    assert all(q <= F(bound) <= 1 for bound in bounds)


@pytest.mark.parametrize("q", QS, ids=str)
def test_bound_is_never_above_the_closed_form(q: Fraction) -> None:
    with mpmath.workdps(slow.DIGITS):
        for count in (1, 10**6, 10**15, 10**22, 10**27, 10**29):
            far = mpmath.sqrt(-mpmath.log(slow.many_digits(q))) - mpmath.sqrt(mpmath.mpf(count) / 10**30)
            closed = mpmath.exp(-(far**2)) if far > 0 else mpmath.mpf(1)
            bound = average_identification_after(Amount(count), q)
            assert slow.many_digits(F(bound)) <= closed * (1 + mpmath.mpf(10) ** -13)


@given(st.fractions(0, 2))
def test_yes_no_limit_is_at_most_the_root_of_half_the_loss(z: Fraction) -> None:
    assert float(average_yes_no(Amount.up(z))) <= 0.5 + float(Amount.up(z)) ** 0.5 / 2**0.5 + 1e-12


@pytest.mark.parametrize(("rho", "q"), [(F(1, 2), F(1, 2)), (F(1, 3), F(1, 2)), (F(1), F(1, 2)), (F(2), F(1, 2))])
def test_rho_that_cannot_be_promised_is_refused(rho: Fraction, q: Fraction) -> None:
    with pytest.raises(ValueError, match="rho must be larger"):
        average_loss_for(rho, q)


def test_certain_guess_has_a_bound_of_one() -> None:
    assert average_identification_after(Amount(1), F(1)) == 1
    assert average_identification_after(Amount(1), F(1, 2), 2) == 1
    assert average_identification_after(Amount.up(100), F(1, 2)) == 1


# Targets


@given(st.integers(1, 60), st.integers(2, 60), st.integers(1, 12))
def test_target_reports_at_most_rho_within_its_limit(numerator: int, worlds: int, thirds: int) -> None:
    """For every rho, also one that has no finite decimal form."""
    rho = F(numerator, 61)
    assume(rho * worlds > 1)
    target = Target("x", F(worlds), rho, "average")
    spent = Amount(target.limit.grains * thirds // 12)
    reported = target.identification(Price(None, spent, spent))
    assert F(1, worlds) <= F(reported)
    assert F(reported) <= rho + F(1, 10**14)
    assert target.identification(Price(None, ZERO, target.limit + Amount.up(F(1, 10)))) > Decimal(numerator) / 61


def test_worst_case_target_has_no_bound_without_a_pure_loss() -> None:
    price = Price(None, ZERO, ZERO)
    assert Target("x", F(9), F(1, 2)).identification(price) == 1
    assert Target("x", F(9), F(1, 2), "average").identification(price) < F(1, 2)


def test_both_guarantees_use_the_same_number_of_worlds() -> None:
    prior = tuple(F(p, 100) for p in (4, 6, 10, 15, 20, 15, 10, 8, 7, 5))
    for within, q in ((0, F(1, 5)), (1, F(1, 2)), (2, F(7, 10)), (9, F(1))):
        targets = []
        for guarantee in ("worst-case", "average"):
            promise = Identification(
                "0.9", protect=("x",), prior={"x": prior}, guarantee=guarantee, within={"x": within}
            )
            targets += budget_of(Policy(Dataset("d"), {"x": Integer(0, 9)}, promise)).targets
        assert [target.worlds for target in targets] == [1 / q, 1 / q]


def test_persons_with_several_unknown_rows_have_as_many_guesses() -> None:
    promise = Identification("0.05", worlds="persons", population=1_000_000, known=0, guarantee="average")
    (target,) = budget_of(Policy(Dataset("d", rows=100), {"x": Integer(0, 1)}, promise)).targets
    assert (target.worlds, target.guesses) == (F(999_901), 100)
    bound = average_identification_after(target.limit, 1 / target.worlds, 100)
    assert F(bound) == pytest.approx(0.05, rel=1e-12)
    # the same loss for one row in secret: 100 times less than all of them together
    assert F(bound) <= 100 * F(average_identification_after(target.limit, 1 / target.worlds)) * F(101, 100)


# Prices


amounts = st.integers(0, 10**31).map(Amount)
prices = st.builds(Price, st.none() | amounts, amounts, amounts)


@given(prices, prices, prices)
def test_prices_add_up_in_every_unit_regardless_of_order(a: Price, b: Price, c: Price) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + FREE == a
    assert (a + b).zcdp.grains == a.zcdp.grains + b.zcdp.grains
    assert (a + b).z.grains == a.z.grains + b.z.grains
    unbounded = a.pure is None or b.pure is None
    assert ((a + b).pure is None) == unbounded
    assert unbounded or (a + b).pure.grains == a.pure.grains + b.pure.grains


@given(prices, prices)
def test_difference_of_prices_is_never_negative_and_never_bounds_the_unbounded(a: Price, b: Price) -> None:
    left = (a + b).minus(b)
    assert (left.zcdp, left.z) == (a.zcdp, a.z)
    assert left.pure == (None if b.pure is None else a.pure)
    assert a.minus(a + b).zcdp == a.minus(a + b).z == ZERO


@given(prices)
def test_price_survives_its_stored_form(price: Price) -> None:
    assert Price.from_dict(price.to_dict()) == price


@given(st.fractions(0, 5), st.fractions(0, 5))
def test_price_is_rounded_up_to_a_grain(zcdp: Fraction, z: Fraction) -> None:
    price = Price.up(None, zcdp, z)
    assert 0 <= price.zcdp.value - zcdp < F(1, 10**30)
    assert 0 <= price.z.value - z < F(1, 10**30)


def test_unbounded_price_is_not_nothing() -> None:
    assert Price(None, ZERO, ZERO)
    assert not FREE


positive = st.fractions(F(1, 50), 50)
sigmas = st.none() | positive


@st.composite
def moments(draw: st.DrawFn) -> Event:
    low, always = draw(st.integers(-9, 9)), draw(st.booleans())
    high = low + draw(st.integers(0, 9))
    sums = [None if always else draw(sigmas), draw(positive), draw(sigmas)]
    rows, cells = (1, 1) if always else (draw(st.integers(1, 4)), draw(st.integers(1, 9)))
    if draw(st.booleans()):
        return Moments(low, high, rows, (sums[0], sums[1], sums[2]), grouped=cells > 1, always=always)
    return GaussianMoments(low, high, rows, (sums[0], sums[1], sums[2]), cells, always)


@st.composite
def balls(draw: st.DrawFn) -> Event:
    radius, sigma = draw(positive), draw(positive)
    return DiscreteGaussian(radius, radius * draw(st.fractions(F(1, 2), 8)), sigma)


boxes = st.lists(st.tuples(st.integers(1, 9), positive), min_size=1, max_size=4)
single = (
    st.builds(DiscreteLaplace, positive, positive)
    | st.builds(Exponential, positive, positive, st.booleans())
    | st.builds(Choices, positive, positive, st.integers(1, 9))
    | st.builds(Filtered, positive, st.integers(1, 5))
    | st.builds(KNorm, st.tuples(st.integers(1, 9), st.integers(1, 9)), st.integers(1, 99), positive)
    | boxes.map(lambda sides: GaussianBox(tuple(b for b, _ in sides), tuple(s for _, s in sides)))
    | moments()
    | balls()
)
events = single | st.lists(single, min_size=1, max_size=3).map(lambda parts: Together((*parts, parts[0])))


@given(events)
@settings(max_examples=200)
def test_zcdp_is_at_most_four_times_z_for_every_event(event: Event) -> None:
    assert event.price.zcdp.grains <= 4 * event.price.z.grains


@given(events)
def test_pure_loss_limits_the_other_units(event: Event) -> None:
    """Every mechanism with pure loss e has zcdp of at most e**2 / 2, and z of at most e**2 / 8 or zcdp."""
    price = event.price
    assume(price.pure is not None)
    parts = len(event.parts) if isinstance(event, Together) else 1
    assert price.zcdp.value <= price.pure.value**2 / 2 + F(2 * parts, 10**30)
    assert price.z <= price.zcdp


@given(events)
def test_event_keeps_its_price_in_its_stored_form(event: Event) -> None:
    again = event_from_dict(event.to_dict())
    assert again == event
    assert again.price == event.price


@given(positive, positive)
def test_limit_of_epsilon_and_its_bound_are_as_before(loss: Fraction, more: Fraction) -> None:
    """The worst-case conversion is not changed by windows: 1 / q worlds, whatever q is."""
    worlds = 1 + more
    assert identification_after(Amount.up(loss), worlds) >= 1 / Decimal(str(float(worlds))) * (1 - Decimal("1e-12"))
    rho = F(identification_after(Amount.up(loss), worlds))
    assume(rho < 1)
    assert abs(float(loss_for(rho, worlds)) - float(loss)) <= 1e-9 * max(1.0, float(loss)) or float(loss) > 40


@pytest.mark.long  # 3 s in 30 digits
@given(st.fractions(Fraction(1, 1000), 40, max_denominator=10**6), st.sampled_from([1e-2, 1e-5, 1e-9, 1e-12]))
@settings(max_examples=60, deadline=None)
def test_zcdp_of_an_epsilon_keeps_its_delta_and_is_nearly_the_largest(epsilon: Fraction, delta: float) -> None:
    """The delta of a zcdp loss, minimized over a fine grid of orders in 30 digits: below the stated one, and not by much."""
    stated = Fraction(delta)
    loss = zcdp_for(epsilon, stated)

    def delta_of(grains: int) -> mpmath.mpf:
        with mpmath.workdps(30):
            z, e = mpmath.mpf(grains) / 10**30, mpmath.mpf(epsilon.numerator) / epsilon.denominator
            center = math.log(max(math.sqrt(-math.log(delta) / float(z)), 1e-3))
            orders = [1 + mpmath.exp(center + step / 200) for step in range(-400, 401)]
            return min(mpmath.exp((a - 1) * (a * z - e)) * (1 - 1 / a) ** a / (a - 1) for a in orders)

    assert delta_of(loss.grains) <= delta * (1 + 1e-3)  # the grid misses the best order by little
    assert delta_of(int(loss.grains * 1.01)) > delta
