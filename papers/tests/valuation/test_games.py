"""Shapley's value by its axioms and by every order; the core of games that are known; errors that sampling states."""

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
    return game(3, lambda who: min(len(who & {0}), len(who & {1, 2})))


def majority(players: int = 3) -> np.ndarray:
    return (2 * sizes(players) > players).astype(float)


@given(games())
@settings(max_examples=60)
def test_the_value_is_the_average_over_all_orders_of_arrival(worth: np.ndarray) -> None:
    assert shapley(worth) == pytest.approx([float(share) for share in shapley_by_orders(worth)], abs=1e-9)


@given(games(8))
def test_everything_is_handed_out(worth: np.ndarray) -> None:
    assert shapley(worth).sum() == pytest.approx(worth[-1], abs=1e-9)


@given(games(), st.data())
def test_whoever_adds_nothing_gets_nothing(worth: np.ndarray, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, worth.size.bit_length() - 1))
    joined = np.repeat(worth.reshape(-1, 1, 1 << place), 2, axis=1).ravel()
    assert shapley(joined)[place] == pytest.approx(0, abs=1e-12)
    assert np.delete(shapley(joined), place) == pytest.approx(shapley(worth), abs=1e-9)


@given(games())
def test_equals_get_the_same(worth: np.ndarray) -> None:
    """Two who are worth the same in every company: a game, and the same game with a second copy of its first player."""
    players = worth.size.bit_length() - 1
    twin = np.array([worth[(mask & (worth.size - 1)) | (mask >> players & 1)] for mask in range(2 * worth.size)])
    shares = shapley(twin)
    assert shares[0] == pytest.approx(shares[-1], abs=1e-9)


@given(games(5), st.integers(0, 99))
def test_the_value_of_two_games_adds_up(worth: np.ndarray, seed: int) -> None:
    other = np.random.default_rng(seed).integers(-8, 8, worth.size).astype(float)
    assert shapley(worth + 3 * other) == pytest.approx(shapley(worth) + 3 * shapley(other), abs=1e-9)


@paper("Textbook games: one left and two right gloves; majority of three")
def test_known_games_have_their_known_values_and_cores() -> None:
    known = golden("valuation")
    assert shapley(glove()) == pytest.approx(known["glove"]["shapley"])
    only = least_core(glove())
    assert not only.core_is_empty
    assert only.division == pytest.approx(known["glove"]["core"], abs=1e-9)
    assert shapley(majority()) == pytest.approx(known["majority"]["shapley"])
    none = least_core(majority())
    assert none.core_is_empty is not known["majority"]["core_nonempty"]
    assert none.excess == pytest.approx(known["majority"]["least_excess"])


def test_a_player_who_is_not_needed_would_make_the_glove_owner_leave() -> None:
    shares = shapley(glove())
    assert not in_core(shares, glove())
    assert worst_group(shares, glove()) == ((0, 1), pytest.approx(1 / 6))


@given(st.integers(1, 6), st.integers(0, 9999))
@settings(max_examples=40)
def test_a_convex_game_has_its_value_in_its_core(players: int, seed: int) -> None:
    """Sums of games that pay a group which is complete are convex."""
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
    found = least_core(worth)
    players = found.division.size
    assert found.division.sum() == pytest.approx(worth[-1], abs=1e-7)
    if players < 2:
        return
    assert shortfall(found.division, worth) == pytest.approx(found.excess, abs=1e-7)
    random = np.random.default_rng(players)
    for spread in (0.01, 1.0, 10.0):
        other = found.division + spread * random.standard_normal(players)
        other += (worth[-1] - other.sum()) / players
        assert shortfall(other, worth) >= found.excess - 1e-7


def test_the_least_core_of_twenty_players_is_found() -> None:
    worth = np.sqrt(sizes(19))
    server = np.concatenate([np.zeros_like(worth), worth])  # the last player is the server
    found = least_core(server)
    assert not found.core_is_empty
    assert worst_group(found.division, server)[1] <= 1e-6


@paper("A server and eight clients, earning the square root of the clients")
def test_the_server_gets_the_mean_of_the_gains() -> None:
    known = golden("valuation")["server"]
    clients = known["clients"]
    shares = server_and_clients(np.sqrt(np.arange(clients + 1)))
    assert (shares.server, shares.client) == pytest.approx((known["server"], known["client"]), abs=1e-9)
    everyone = shapley(game(clients + 1, lambda who: len(who - {0}) ** 0.5 if 0 in who else 0.0))
    assert everyone == pytest.approx([shares.server] + [shares.client] * clients, abs=1e-9)


@given(arrays(float, st.integers(2, 7), elements=AMOUNTS))
def test_closed_forms_of_a_server_agree_with_the_exact_value_and_core(gain: np.ndarray) -> None:
    clients, shares = gain.size - 1, server_and_clients(gain)
    worth = game(gain.size, lambda who: gain[len(who) - 1] if 0 in who else 0.0)
    assert shapley(worth) == pytest.approx([shares.server] + [shares.client] * clients, abs=1e-9)
    for client in (shares.client_in_core, shares.client_in_core + 0.01):
        division = np.array([gain[-1] - clients * client] + [client] * clients)
        stays = client <= shares.client_in_core and client >= 0
        assert in_core(division, worth) is stays


def test_what_many_know_is_worth_little_to_each() -> None:
    worths, members = [1.0, 0.5], [2, 3]
    server, each = server_and_groups(worths, members)
    group = [0, 0, 1, 1, 1]

    def payoff(who: frozenset[int]) -> float:
        return sum(worths[g] for g in {group[i] for i in who if i < 5}) if 5 in who else 0.0

    assert shapley(game(6, payoff)) == pytest.approx([*(each[g] for g in group), server], abs=1e-12)


ALPHA, PLAYERS = 1e-6, 8


def measured() -> np.ndarray:
    random = np.random.default_rng(1)
    each = random.random(PLAYERS)
    return np.asarray(1 - np.exp(-totals(each)))


@pytest.mark.claim
def test_a_sampled_value_is_within_its_stated_error() -> None:
    """Fails on true code once in a million runs: that is the confidence asked for."""
    worth = measured()
    random = np.random.default_rng(list(f"{SEED}/shapley".encode()))
    found = sampled_shapley(
        PLAYERS,
        lambda who: worth[sum(1 << i for i in who)],
        orders=2000,
        reach=1.0,
        random=random,
        confidence=1 - ALPHA,
    )
    assert (np.abs(found.shares - shapley(worth)) <= found.error).all()
    assert found.error.max() < 0.08
    assert found.shares.sum() == pytest.approx(worth[-1])


@pytest.mark.claim
def test_the_claim_has_teeth_a_server_that_always_comes_last_is_noticed() -> None:
    worth = np.concatenate([np.zeros(1 << 7), np.sqrt(sizes(7)) / 7**0.5])  # player 7 is the server

    class Last(np.random.Generator):
        def permutation(self, x: int, axis: int = 0) -> np.ndarray:  # type: ignore[override]
            return np.append(super().permutation(x - 1), x - 1)

    found = sampled_shapley(
        8,
        lambda who: worth[sum(1 << i for i in who)],
        orders=2000,
        reach=1.0,
        random=Last(np.random.PCG64(1)),
        confidence=1 - ALPHA,
    )
    assert (np.abs(found.shares - shapley(worth)) > found.error).any()


def test_the_error_of_few_orders_of_a_coin_holds_exactly() -> None:
    """All outcomes of 12 fair coins, enumerated: the bound fails less often than it says."""
    orders, failing = 12, 0.1
    outcomes = (np.arange(1 << orders)[:, None] >> np.arange(orders) & 1).astype(float)
    error = sampling_error(outcomes.var(axis=1, ddof=1), orders, reach=1.0, failing=failing)
    assert (np.abs(outcomes.mean(axis=1) - 0.5) > error).mean() <= failing
    assert (np.abs(outcomes.mean(axis=1) - 0.5) > error / 2).mean() > failing  # half of it would not hold


SAMPLING = {"players": 1, "orders": 2, "reach": 1.0, "confidence": 0.5}
NO_SAMPLING = [
    {"players": 0},
    {"orders": 1},
    *({"confidence": wrong} for wrong in (-0.5, 0.0, 1.0, 1.5)),
    *({"reach": wrong} for wrong in (-0.5, 0.0, np.inf)),
]


@pytest.mark.parametrize("wrong", NO_SAMPLING, ids=str)
def test_sampling_without_an_error_that_can_be_stated_is_refused(wrong: dict[str, float]) -> None:
    def sampled(**asked: Any) -> float:
        return float(sampled_shapley(payoff=len, random=np.random.default_rng(1), **asked).shares[0])

    assert sampled(**SAMPLING) == 1
    with pytest.raises(Unsupported, match="sampling needs a player, two orders, a confidence between 0 and 1"):
        sampled(**{**SAMPLING, **wrong})


def test_bad_games_are_refused_with_a_sentence() -> None:
    with pytest.raises(Unsupported, match="21 players"):
        game(21, len)
    with pytest.raises(Unsupported, match="payoffs are not those of all groups"):
        shapley(np.zeros(6))
    with pytest.raises(Unsupported, match="no finite payoff"):
        shapley(np.array([0, np.nan]))
    with pytest.raises(Unsupported, match="cannot be divided"):
        least_core(np.ones(4))
    with pytest.raises(Unsupported, match="further than the reach"):
        sampled_shapley(3, lambda who: len(who) ** 3.0, orders=9, reach=1.0, random=np.random.default_rng(1))
    with pytest.raises(Unsupported, match="n at least 1"):
        server_and_clients([1.0])
    with pytest.raises(Unsupported, match="at least one member"):
        server_and_groups([1.0], [0])
