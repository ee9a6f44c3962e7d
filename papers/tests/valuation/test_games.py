"""Shapley's value by its axioms and by every order; the core of known games; stated errors of sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims.probabilities import SEED
from golden.papers import golden, paper
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference.valuation import shapley_by_orders, shortfall
from tidegate_papers.valuation.games import (
    game,
    in_core,
    is_convex,
    least_core,
    sampled_shapley,
    sampling_error,
    server_and_clients,
    server_and_groups,
    shapley,
    sizes,
    totals,
    worst_group,
)

from tidegate.errors import Unsupported

AMOUNTS = st.integers(-64, 64).map(lambda whole: whole / 8)


@st.composite
def games(draw: st.DrawFn, most: int = 6) -> np.ndarray:
    players = draw(st.integers(1, most))
    worth = draw(arrays(float, 1 << players, elements=AMOUNTS))
    worth[0] = 0
    return worth


def glove() -> np.ndarray:
    return game(3, lambda group: min(len(group & {0}), len(group & {1, 2})))


def majority(players: int = 3) -> np.ndarray:
    return (2 * sizes(players) > players).astype(float)


@given(games())
@settings(max_examples=60)
def test_value_is_the_average_over_all_orders_of_arrival(worth: np.ndarray) -> None:
    assert shapley(worth) == pytest.approx([float(share) for share in shapley_by_orders(worth)], abs=1e-9)


@given(games(8))
def test_everything_is_handed_out(worth: np.ndarray) -> None:
    assert shapley(worth).sum() == pytest.approx(worth[-1], abs=1e-9)


@given(games(), st.data())
def test_player_who_adds_nothing_gets_nothing(worth: np.ndarray, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, worth.size.bit_length() - 1))
    joined = np.repeat(worth.reshape(-1, 1, 1 << index), 2, axis=1).ravel()
    assert shapley(joined)[index] == pytest.approx(0, abs=1e-12)
    assert np.delete(shapley(joined), index) == pytest.approx(shapley(worth), abs=1e-9)


@given(games())
def test_equal_players_get_the_same(worth: np.ndarray) -> None:
    """Two players with the same worth in every group: a game with a second copy of its first player."""
    players = worth.size.bit_length() - 1
    doubled = np.array([worth[(mask & (worth.size - 1)) | (mask >> players & 1)] for mask in range(2 * worth.size)])
    shares = shapley(doubled)
    assert shares[0] == pytest.approx(shares[-1], abs=1e-9)


@given(games(5), st.integers(0, 99))
def test_value_of_a_sum_of_games_is_the_sum_of_values(worth: np.ndarray, seed: int) -> None:
    other = np.random.default_rng(seed).integers(-8, 8, worth.size).astype(float)
    assert shapley(worth + 3 * other) == pytest.approx(shapley(worth) + 3 * shapley(other), abs=1e-9)


@paper("Textbook games: one left and two right gloves; majority of three")
def test_known_games_have_known_values_and_cores() -> None:
    known = golden("valuation")
    assert shapley(glove()) == pytest.approx(known["glove"]["shapley"])
    only = least_core(glove())
    assert not only.core_is_empty
    assert only.division == pytest.approx(known["glove"]["core"], abs=1e-9)
    assert shapley(majority()) == pytest.approx(known["majority"]["shapley"])
    none = least_core(majority())
    assert none.core_is_empty is not known["majority"]["core_nonempty"]
    assert none.excess == pytest.approx(known["majority"]["least_excess"])


def test_share_of_a_superfluous_player_makes_the_glove_owner_leave() -> None:
    shares = shapley(glove())
    assert not in_core(shares, glove())
    assert worst_group(shares, glove()) == ((0, 1), pytest.approx(1 / 6))


@given(st.integers(1, 6), st.integers(0, 9999))
@settings(max_examples=40)
def test_convex_game_has_its_value_in_its_core(players: int, seed: int) -> None:
    """Sums of games that pay a complete group are convex."""
    random, masks = np.random.default_rng(seed), np.arange(1 << players)
    worth = np.zeros(masks.size)
    for needed in random.integers(1, masks.size, 5):
        worth += random.random() * ((masks & needed) == needed)
    assert is_convex(worth)
    assert in_core(shapley(worth), worth)
    assert not least_core(worth).core_is_empty


@given(games())
@settings(max_examples=60)
def test_no_division_beats_the_least_core(worth: np.ndarray) -> None:
    least = least_core(worth)
    players = least.division.size
    assert least.division.sum() == pytest.approx(worth[-1], abs=1e-7)
    if players < 2:
        return
    assert shortfall(least.division, worth) == pytest.approx(least.excess, abs=1e-7)
    random = np.random.default_rng(players)
    for spread in (0.01, 1.0, 10.0):
        other = least.division + spread * random.standard_normal(players)
        other += (worth[-1] - other.sum()) / players
        assert shortfall(other, worth) >= least.excess - 1e-7


def test_least_core_of_twenty_players_is_found() -> None:
    worth = np.sqrt(sizes(19))
    server = np.concatenate([np.zeros_like(worth), worth])  # the last player is the server
    least = least_core(server)
    assert not least.core_is_empty
    assert worst_group(least.division, server)[1] <= 1e-6


@paper("A server and eight clients, earning the square root of the clients")
def test_server_gets_the_mean_of_the_gains() -> None:
    known = golden("valuation")["server"]
    clients = known["clients"]
    shares = server_and_clients(np.sqrt(np.arange(clients + 1)))
    assert (shares.server, shares.client) == pytest.approx((known["server"], known["client"]), abs=1e-9)
    everyone = shapley(game(clients + 1, lambda players: len(players - {0}) ** 0.5 if 0 in players else 0.0))
    assert everyone == pytest.approx([shares.server] + [shares.client] * clients, abs=1e-9)


@given(arrays(float, st.integers(2, 7), elements=AMOUNTS))
def test_closed_forms_agree_with_the_exact_value_and_core(gain: np.ndarray) -> None:
    clients, shares = gain.size - 1, server_and_clients(gain)
    worth = game(gain.size, lambda players: gain[len(players) - 1] if 0 in players else 0.0)
    assert shapley(worth) == pytest.approx([shares.server] + [shares.client] * clients, abs=1e-9)
    for client in (shares.client_in_core, shares.client_in_core + 0.01):
        division = np.array([gain[-1] - clients * client] + [client] * clients)
        stays = client <= shares.client_in_core and client >= 0
        assert in_core(division, worth) is stays


def test_shared_knowledge_is_worth_little_to_each() -> None:
    worths, members = [1.0, 0.5], [2, 3]
    server, each = server_and_groups(worths, members)
    group = [0, 0, 1, 1, 1]

    def payoff(players: frozenset[int]) -> float:
        return sum(worths[g] for g in {group[i] for i in players if i < 5}) if 5 in players else 0.0

    assert shapley(game(6, payoff)) == pytest.approx([*(each[g] for g in group), server], abs=1e-12)


ALPHA, PLAYERS = 1e-6, 8


def measured_payoffs() -> np.ndarray:
    random = np.random.default_rng(1)
    each = random.random(PLAYERS)
    return np.asarray(1 - np.exp(-totals(each)))


@pytest.mark.claim
def test_sampled_value_is_within_its_stated_error() -> None:
    """Correct code fails once in a million runs: that is the requested confidence."""
    worth = measured_payoffs()
    random = np.random.default_rng(list(f"{SEED}/shapley".encode()))
    sampled = sampled_shapley(
        PLAYERS,
        lambda players: worth[sum(1 << i for i in players)],
        orders=2000,
        reach=1.0,
        random=random,
        confidence=1 - ALPHA,
    )
    assert (np.abs(sampled.shares - shapley(worth)) <= sampled.error).all()
    assert sampled.error.max() < 0.08
    assert sampled.shares.sum() == pytest.approx(worth[-1])


@pytest.mark.claim
def test_sampling_with_the_server_always_last_is_detected() -> None:
    worth = np.concatenate([np.zeros(1 << 7), np.sqrt(sizes(7)) / 7**0.5])  # player 7 is the server

    class Last(np.random.Generator):
        def permutation(self, x: int, axis: int = 0) -> np.ndarray:  # type: ignore[override]
            return np.append(super().permutation(x - 1), x - 1)

    sampled = sampled_shapley(
        8,
        lambda players: worth[sum(1 << i for i in players)],
        orders=2000,
        reach=1.0,
        random=Last(np.random.PCG64(1)),
        confidence=1 - ALPHA,
    )
    assert (np.abs(sampled.shares - shapley(worth)) > sampled.error).any()


def test_error_of_a_few_orders_holds_exactly() -> None:
    """All outcomes of 12 fair coins, enumerated: the bound fails less often than stated."""
    orders, failing = 12, 0.1
    outcomes = (np.arange(1 << orders)[:, None] >> np.arange(orders) & 1).astype(float)
    error = sampling_error(outcomes.var(axis=1, ddof=1), orders, reach=1.0, failing=failing)
    assert (np.abs(outcomes.mean(axis=1) - 0.5) > error).mean() <= failing
    assert (np.abs(outcomes.mean(axis=1) - 0.5) > error / 2).mean() > failing  # half of the error would not hold


SAMPLING = {"players": 1, "orders": 2, "reach": 1.0, "confidence": 0.5}
NO_SAMPLING = [
    {"players": 0},
    {"orders": 1},
    *({"confidence": wrong} for wrong in (-0.5, 0.0, 1.0, 1.5)),
    *({"reach": wrong} for wrong in (-0.5, 0.0, np.inf)),
]


@pytest.mark.parametrize("wrong", NO_SAMPLING, ids=str)
def test_sampling_with_an_undefined_error_is_refused(wrong: dict[str, float]) -> None:
    def sampled(**options: Any) -> float:
        return float(sampled_shapley(payoff=len, random=np.random.default_rng(1), **options).shares[0])

    assert sampled(**SAMPLING) == 1
    with pytest.raises(Unsupported, match="Sampling needs a player, two orders, a `confidence` between 0 and 1"):
        sampled(**{**SAMPLING, **wrong})


def test_bad_games_are_refused_with_a_message() -> None:
    with pytest.raises(Unsupported, match="21 players"):
        game(21, len)
    with pytest.raises(Unsupported, match="payoffs are not those of all groups"):
        shapley(np.zeros(6))
    with pytest.raises(Unsupported, match="no finite payoff"):
        shapley(np.array([0, np.nan]))
    with pytest.raises(Unsupported, match="cannot be divided"):
        least_core(np.ones(4))
    with pytest.raises(Unsupported, match="more than the reach"):
        sampled_shapley(3, lambda players: len(players) ** 3.0, orders=9, reach=1.0, random=np.random.default_rng(1))
    with pytest.raises(Unsupported, match="n at least 1"):
        server_and_clients([1.0])
    with pytest.raises(Unsupported, match="at least one member"):
        server_and_groups([1.0], [0])
