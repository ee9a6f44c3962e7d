"""The value of respondents, measured by what their reports teach."""

from __future__ import annotations

import numpy as np
import pytest
from tidegate_papers.valuation.games import game, sampled_shapley, shapley
from tidegate_papers.valuation.payoff import Learned

from tidegate.collect.reconstruct import SquareWave, square_wave_channel
from tidegate.errors import Unsupported

BINS = 16
TRUTH = np.exp(-(((np.arange(BINS) - 5) / 3) ** 2))
TRUTH /= TRUTH.sum()
CHANNEL = square_wave_channel(SquareWave(2.0), BINS)


def make_players(*sizes: int) -> Learned:
    """Return players with these numbers of respondents, who all report by the same channel."""
    random, chances = np.random.default_rng(4), CHANNEL.forward(TRUTH)
    counts = np.array([random.multinomial(size, chances / chances.sum()) for size in sizes], float)
    return Learned(counts, CHANNEL, TRUTH)


def test_more_respondents_are_worth_more() -> None:
    payoff = make_players(20_000, 200, 0)
    shares = shapley(game(3, payoff))
    assert shares[0] > shares[1] > 0 == pytest.approx(shares[2])
    assert shares.sum() == pytest.approx(payoff(frozenset({0, 1, 2})))
    assert 0.7 < payoff(frozenset({0, 1, 2})) <= 1


def test_sampled_orders_agree_with_the_exact_value_within_their_error() -> None:
    payoff = make_players(5_000, 500, 500, 50)
    sampled = sampled_shapley(4, payoff, orders=60, reach=2.0, random=np.random.default_rng(1))
    assert (np.abs(sampled.shares - shapley(game(4, payoff))) <= sampled.error).all()


def test_uniform_truth_has_no_payoff() -> None:
    with pytest.raises(Unsupported, match="known without any report"):
        Learned(np.ones((2, 4)), CHANNEL, np.full(BINS, 1 / BINS))
    with pytest.raises(Unsupported, match="one row for every player"):
        Learned(np.ones(4), CHANNEL, TRUTH)
