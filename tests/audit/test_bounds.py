"""Bounds from counts, compared exactly with binomial sums over all outcomes.

Only the last two tests are sampled; correct code fails each at most once in 1 / ALPHA runs.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from claims import probabilities

from tidegate.audit.bounds import (
    ThresholdEvent,
    best_event,
    epsilon_lower_bound,
    identification_probability,
    lower_bound,
    upper_bound,
)

ALPHA = 1e-6
SEED = int.from_bytes(probabilities.SEED.encode(), "big") % 2**32


def chance_of_at_least(k: int, n: int, p: Fraction) -> Fraction:
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("alpha", [0.2, 0.01, 1e-6])
def test_hits_have_probability_alpha_at_the_lower_bound(n: int, alpha: float) -> None:
    assert lower_bound(0, n, alpha=alpha) == 0
    for k in range(1, n + 1):
        assert float(chance_of_at_least(k, n, Fraction(lower_bound(k, n, alpha=alpha)))) == pytest.approx(
            alpha, rel=1e-9
        )


@pytest.mark.parametrize("n", [1, 7, 30])
def test_the_upper_bound_mirrors_the_lower_one(n: int) -> None:
    for k in range(n + 1):
        assert upper_bound(k, n, alpha=0.01) == 1 - lower_bound(n - k, n, alpha=0.01)


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("bound", [lower_bound, upper_bound])
def test_bounds_are_wrong_with_probability_at_most_alpha(n: int, bound: object) -> None:
    """Over all outcomes, at probabilities on both sides of every bound."""
    alpha = 0.05
    ends = [(lower_bound if bound is lower_bound else upper_bound)(k, n, alpha=alpha) for k in range(n + 1)]
    worst = Fraction(0)
    for true in {Fraction(end + shift).limit_denominator(10**6) for end in ends for shift in (-1e-5, 0, 1e-5)}:
        if not 0 < true < 1:
            continue
        wrong = [k for k, end in enumerate(ends) if (end > true if bound is lower_bound else end < true)]
        worst = max(worst, sum((math.comb(n, k) * true**k * (1 - true) ** (n - k) for k in wrong), Fraction(0)))
    assert worst <= alpha
    assert worst > alpha / 5  # and the bound is not trivial


def test_bounds_agree_with_those_of_the_claims() -> None:
    for k, n in ((1, 10), (300, 1000), (999, 1000)):
        assert lower_bound(k, n, alpha=1e-6) == pytest.approx(probabilities.lowest(k, n, alpha=1e-6), rel=1e-9)


def test_proven_loss_uses_both_bounds_and_is_never_negative() -> None:
    proven = epsilon_lower_bound(900, 1000, 100, 1000, alpha=0.02)
    assert proven == pytest.approx(math.log(lower_bound(900, 1000, alpha=0.01) / upper_bound(100, 1000, alpha=0.01)))
    assert epsilon_lower_bound(0, 1000, 0, 1000, alpha=0.02) == 0
    assert epsilon_lower_bound(100, 1000, 900, 1000, alpha=0.02) == 0
    assert epsilon_lower_bound(0, 0, 0, 0, alpha=0.02) == 0


def test_loss_above_the_true_one_is_proven_with_probability_at_most_alpha() -> None:
    """Exactly, over all pairs of counts: randomized response of loss ln 3 has probabilities 3/4 and 1/4."""
    n, alpha, missed = 25, 0.1, 0.0
    weights = [[math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)] for p in (0.75, 0.25)]
    for a in range(n + 1):
        for b in range(n + 1):
            if epsilon_lower_bound(a, n, b, n, alpha=alpha) > math.log(3):
                missed += weights[0][a] * weights[1][b]
    assert 0 < missed <= alpha


def test_identification_probability_follows_from_bayes() -> None:
    assert identification_probability(0.0, prior=0.1) == pytest.approx(0.1)
    assert identification_probability(math.log(9), prior=0.1) == pytest.approx(0.5)
    assert identification_probability(800.0, prior=0.1) == pytest.approx(1.0)
    epsilon, worlds = 1.3, 74
    assert identification_probability(epsilon, prior=1 / worlds) == pytest.approx(
        1 / (1 + (worlds - 1) * math.exp(-epsilon))
    )


# The chosen event


def test_best_event_is_in_the_column_that_differs() -> None:
    random = np.random.default_rng([SEED, 1])
    here = np.column_stack([random.normal(size=4000), random.integers(0, 9, 4000), random.geometric(0.5, 4000)])
    there = np.column_stack([random.normal(size=4000), random.integers(0, 9, 4000), 3 + random.geometric(0.5, 4000)])
    bound, event = best_event(here, there, alpha=ALPHA, names=("noise", "dice", "count"))
    assert event.startswith("count <=")
    assert bound > 2


def test_events_on_the_neighbor_count_unless_excluded() -> None:
    here, there = np.zeros(400), np.arange(400) % 2
    assert best_event(here, there, alpha=ALPHA)[0] > 1
    assert best_event(here, there, alpha=ALPHA, both=False)[0] < 0.8  # all are zero here, half of them there


@pytest.mark.long
def test_choosing_among_many_uninformative_events_proves_nothing() -> None:
    """Two hundred columns of the same distribution: with one half for both, the best of them would be far above."""
    random = np.random.default_rng([SEED, 2])
    for _ in range(20):
        here, there = random.random((300, 200)), random.random((300, 200))
        assert best_event(here, there, alpha=ALPHA)[0] == 0
    # the planted fault: an event that is chosen and bounded on the same draws accuses
    wrong = 0
    for _ in range(20):
        here, there = random.random((300, 200)), random.random((300, 200))
        counts = [
            (int(ThresholdEvent(c, ">=", 0.5).of(here).sum()), int(ThresholdEvent(c, ">=", 0.5).of(there).sum()))
            for c in range(200)
        ]
        wrong += max(epsilon_lower_bound(a, 300, b, 300, alpha=0.2) for a, b in counts) > 0
    assert wrong >= 15


def test_few_draws_prove_nothing() -> None:
    assert best_event([1.0], [2.0], alpha=ALPHA) == (0.0, "no event")
    assert best_event([], [], alpha=ALPHA)[0] == 0
