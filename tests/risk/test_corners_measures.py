"""Measures of reports in rare cases: impossible reports, named looks, and single groups."""

from __future__ import annotations

import math
from fractions import Fraction
from inspect import signature

import numpy as np
import pytest
from tidegate_papers.valuation.games import (
    Shares,
    finite,
    game,
    in_core,
    is_convex,
    least_core,
    server_and_clients,
    server_and_groups,
    worst_group,
)

from tidegate.errors import Unsupported
from tidegate.risk import baskets, entropy, interval, local
from tidegate.risk._paths import alias_table
from tidegate.risk.baskets import Look
from tidegate.risk.cart import leaves_greedy, null_greedy, pmse_greedy

F = Fraction
CHANNEL = np.array([[0.5, 0.25, 0.0], [0.5, 0.5, 0.5], [0.0, 0.25, 0.5]])


def shortest(weights: list[float], confidence: float) -> int:
    """Return the smallest number of neighboring values with enough mass, by enumeration."""
    runs = [
        last - first
        for first in range(len(weights))
        for last in range(first, len(weights))
        if sum(weights[first : last + 1]) >= confidence * sum(weights) - 1e-9
    ]
    return min(runs)


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.75, 0.8, 1.0])
def test_channel_width_is_that_of_the_least_hidden_value(confidence: float) -> None:
    by_hand = min(shortest(CHANNEL[:, value].tolist(), confidence) for value in range(3))
    assert interval.noise_width(CHANNEL, confidence=confidence) == by_hand


def test_concluded_width_follows_bayes_rule() -> None:
    prior = np.array([0.5, 0.25, 0.25])
    joint = CHANNEL * prior
    widths = [shortest(row.tolist(), 0.7) for row in joint]
    least, mean = interval.concluded_width(CHANNEL, prior, confidence=0.7)
    assert least == min(widths)
    assert mean == pytest.approx(sum(w * row.sum() for w, row in zip(widths, joint, strict=True)))


def test_impossible_report_reveals_nothing() -> None:
    padded = np.vstack([CHANNEL, np.zeros(3)])
    prior = np.full(3, 1 / 3)
    assert interval.concluded_width(padded, prior) == interval.concluded_width(CHANNEL, prior)
    flat = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])
    assert (local.largest_ratio(flat), local.local_epsilon(flat)) == (1, 0)


def test_report_that_excludes_a_value_has_unlimited_loss() -> None:
    assert local.largest_ratio(CHANNEL) == local.local_epsilon(CHANNEL) == math.inf
    assert local.local_epsilon(np.array([[0.8, 0.2], [0.2, 0.8]])) == pytest.approx(math.log(4))


@pytest.mark.parametrize(
    ("look", "says"),
    [
        (Look(1, 1, "seen"), "seen"),
        (Look(3, 3, "seen"), "3 seen"),
        (Look(1, 0, "not seen"), "not seen"),
        (Look(2, 0, "not seen"), "none of 2 seen"),
        (Look(3, 1, "seen"), "1 of 3 seen, about one seen"),
        (Look(3, 2, "not seen"), "2 of 3 seen, about one not seen"),
    ],
)
def test_look_describes_what_was_seen(look: Look, says: str) -> None:
    assert str(look) == says


def test_looks_cover_all_counts_and_sides() -> None:
    looks = [(look.items, look.seen, look.about) for look in baskets.looks(2)]
    of_one_item = [(1, 0, "not seen"), (1, 1, "seen")]
    assert looks == [*of_one_item, (2, 0, "not seen"), (2, 1, "seen"), (2, 1, "not seen"), (2, 2, "seen")]


def test_impossible_look_is_not_a_breach() -> None:
    silent = baskets.breaches([F(1), F(0)], F(0), baskets.from_maximum([F(1), F(1, 3)]))
    assert [str(solution.look) for solution in silent] == ["not seen"]
    assert silent[0].after == silent[0].before == F(1, 3)


def test_basket_risk_needs_supports_and_lists_exempted_items() -> None:
    keep, insert, maximum = [F(1, 5), F(4, 5)], F(1, 10), [F(1), F(1, 4)]
    risk = baskets.basket_risk(
        keep, insert, level=F(1, 2), maximum=maximum, priors={"bread": F(3, 4), "milk": F(1, 2), "ale": F(2, 3)}
    )
    same_risk = baskets.basket_risk(keep, insert, level=F(1, 2), supports=baskets.from_maximum(maximum))
    assert risk.exempted == ("ale", "bread")
    assert (risk.worst, risk.size, same_risk.exempted) == (same_risk.worst, 1, ())
    assert risk.worst.after == F(8, 11)  # (4/5 * 1/4) / (4/5 * 1/4 + 1/10 * 3/4)
    assert not risk.holds
    assert baskets.basket_risk(keep, insert, level=F(8, 11), maximum=maximum).holds
    with pytest.raises(TypeError, match="either `maximum` or `supports`"):
        baskets.basket_risk(keep, insert, level=F(1, 2))


@pytest.mark.parametrize(
    ("keep", "insert", "vocabulary", "ratio"),
    [
        ([1], F(1, 2), None, 1),  # the empty basket is alone
        ([F(1, 2), F(1, 4), F(1, 4)], F(1, 2), 2, 1),  # and so is the full one
        ([1, 0], 0, None, 1),
        ([0, 1], 1, None, 1),
        ([F(1, 2), F(1, 2)], 0, None, math.inf),
        ([F(1, 2), F(1, 2)], 1, None, math.inf),
        ([0, 1], F(1, 2), None, math.inf),
    ],
)
def test_local_loss_of_single_or_excluded_baskets(keep: list, insert, vocabulary, ratio) -> None:
    loss = baskets.local_loss(keep, insert, vocabulary=vocabulary)
    assert (loss.any_two, loss.one_replaced) == (ratio, ratio)
    assert loss.epsilon == loss.epsilon_one_replaced == (math.inf if ratio == math.inf else 0)


def test_game_of_one_player_has_a_core() -> None:
    alone = np.array([0.0, 3.0])
    solution = least_core(alone)
    assert (solution.excess, solution.division.tolist(), solution.core_is_empty) == (0, [3.0], False)
    assert worst_group(np.array([3.0]), alone) == ((), 0.0)
    assert in_core(np.array([3.0]), alone)
    assert not in_core(np.array([2.0]), alone)


def test_majority_game_is_not_convex_and_has_an_empty_core() -> None:
    majority = game(3, lambda players: float(len(players) >= 2))
    assert not is_convex(majority)
    solution = least_core(majority)
    assert solution.core_is_empty
    assert solution.excess == pytest.approx(1 / 3)


def test_zero_gain_cannot_be_divided() -> None:
    with pytest.raises(Unsupported, match="empty group earns 1"):
        least_core(np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("client", "most", "inside"), [(0.0, 0.0, True), (1.0, 1.0, True), (1.1, 1.0, False), (-0.1, 1.0, False)]
)
def test_equal_division_is_in_the_core_up_to_the_last_marginal_gain(client: float, most: float, inside: bool) -> None:
    assert Shares(2.0, client, most).in_core is inside


def test_concave_gain_empties_the_core() -> None:
    assert server_and_clients([0, 1, 2]).in_core
    assert not server_and_clients([0, 4, 4]).in_core


@pytest.mark.parametrize("players", [0, 21])
def test_games_of_no_or_too_many_players_are_refused(players: int) -> None:
    with pytest.raises(Unsupported, match="limit is 1 to 20"):
        game(players, lambda _: 0.0)


@pytest.mark.parametrize("size", [0, 1, 3, 1 << 21])
def test_incomplete_payoffs_are_refused(size: int) -> None:
    with pytest.raises(Unsupported, match="not those of all groups"):
        finite(np.zeros(size))


@pytest.mark.parametrize("gain", [[], [1.0], [0.0, math.nan], [0.0, math.inf]])
def test_a_server_needs_a_client_and_finite_gains(gain: list[float]) -> None:
    with pytest.raises(Unsupported, match="n at least 1"):
        server_and_clients(gain)


@pytest.mark.parametrize(("worths", "members"), [([1.0], [1, 2]), ([1.0, 2.0], [1, 0])])
def test_every_group_needs_a_worth_and_a_member(worths: list[float], members: list[int]) -> None:
    with pytest.raises(Unsupported, match="at least one member"):
        server_and_groups(worths, members)


def test_oversized_payoffs_are_refused_with_advice() -> None:
    with pytest.raises(Unsupported) as raised:
        least_core(np.array([0.0, 1e25, 1e25, 3e25]))
    assert raised.value.do == "Scale the payoffs down."


@pytest.mark.parametrize("times", [0.25, 8.0])
def test_alias_odds_follow_unnormalized_weights(times: float) -> None:
    shares = np.array([0.5, 0.25, 0.125, 0.125])
    for ours, theirs in zip(alias_table(shares * times), alias_table(shares), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_default_stopping_rules_match_rpart() -> None:
    """rpart.control: minsplit = 20, minbucket = round(minsplit / 3), maxdepth = 30 (Therneau & Atkinson)."""
    for grown in (leaves_greedy, pmse_greedy, null_greedy):
        defaults = {name: parameter.default for name, parameter in signature(grown).parameters.items()}
        assert (defaults["minsplit"], defaults["minbucket"], defaults["max_depth"]) == (20, round(20 / 3), 30)
        assert (defaults["method"], defaults["cp"]) == ("class", 0.001)


def test_entropy_assumes_one_piece_by_default() -> None:
    privacy = entropy.uniform_in_uniform(3, half_width=2)
    assert privacy == entropy.uniform_in_uniform(3, half_width=2, pieces=1)
    assert privacy.privacy_before == pytest.approx(3)
    assert entropy.uniform_in_uniform(3, half_width=2, pieces=2).privacy_before == pytest.approx(6)
