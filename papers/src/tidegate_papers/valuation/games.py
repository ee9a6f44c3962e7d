"""The value of private information: a fair share for every participant.

A coalition game is an array of payoffs, one for every group: `worth[mask]` is the payoff of the group whose members are the
bits of `mask` (player i is bit i), `worth[0]` that of the empty group. `game` builds one from any function of the
participants: a table, a formula, or the measured quality of what a server learns from their reports.

Shapley's value pays every player the average of what they add when they arrive, over all orders of arrival. It is the only
division that hands out everything, treats equals alike, pays nothing for nothing, and adds up over games.

The core contains the divisions of the whole payoff under which no group would earn more by itself. `least_core` finds the
smallest amount by which the best division falls short for some group; the core is empty exactly if it is above zero.
`worst_group` names the group that would leave. Rows of the linear program are added as they are needed, so twenty players (a
million groups) take a few dozen small programs.

Reference:
    Shapley 1953; Kleinberg, Papadimitriou, Raghavan 2001 (private information as property); Gillies 1959; Maschler,
    Peleg, Shapley 1979 (least core); Shapley 1971 (convex games).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.errors import Unsupported

Payoff = Callable[[frozenset[int]], float]
MOST_PLAYERS = 20


@dataclass(frozen=True)
class Sampled:
    """Shares from sampled orders: all are within their `error` of Shapley's value with probability `confidence`."""

    shares: Floats
    error: Floats
    orders: int
    confidence: float
    evaluations: int


@dataclass(frozen=True)
class Shares:
    """The shares of the server and of each client, and the most that the core allows equal clients."""

    server: float
    client: float
    client_in_core: float

    @property
    def in_core(self) -> bool:
        """Whether no group with the server would do better by itself."""
        slack = 1e-12 * max(1.0, abs(self.server))
        return -slack <= self.client <= self.client_in_core + slack


def game(players: int, payoff: Payoff) -> Floats:
    """Return the payoff of every group of players, measured once for each of the 2**players groups."""
    if not 1 <= players <= MOST_PLAYERS:
        raise Unsupported(
            f"The payoff of every group of {players} players cannot be measured: the limit is 1 to {MOST_PLAYERS} players.",
            "Sample orders of arrival with `sampled_shapley`.",
        )
    groups = (frozenset(i for i in range(players) if mask >> i & 1) for mask in range(1 << players))
    return finite(np.array([float(payoff(group)) for group in groups]))


def finite(worth: Floats) -> Floats:
    """Return the same payoffs after checking that all are finite, one for every group."""
    if worth.size < 2 or worth.size & (worth.size - 1) or worth.size > 1 << MOST_PLAYERS:
        raise Unsupported(
            f"{worth.size:,} payoffs are not those of all groups of 1 to {MOST_PLAYERS} players.",
            "Pass 2**players payoffs, that of the empty group first.",
        )
    if not np.isfinite(worth).all():
        raise Unsupported(f"{int((~np.isfinite(worth)).sum()):,} groups have no finite payoff.", "Measure them again.")
    return worth


def sizes(players: int) -> NDArray[np.int64]:
    """Return the number of members of every group."""
    counts = np.zeros(1, np.int64)
    for _ in range(players):
        counts = np.concatenate([counts, counts + 1])
    return counts


def totals(division: Floats) -> Floats:
    """Return what every group gets together under a division."""
    summed = np.zeros(1)
    for share in division:
        summed = np.concatenate([summed, summed + share])
    return summed


def shapley(worth: Floats) -> Floats:
    """Return Shapley's value of every player, exactly: over all groups, by one pass for each player.

    Guarantee:
        The shares add up to the worth of all minus the worth of the empty group.

    Needs:
        At most 20 players.
    """
    players = finite(worth).size.bit_length() - 1
    weights = np.array([1 / (players * math.comb(players - 1, size)) for size in range(players)])
    weight = weights[sizes(players - 1)]
    shares = np.empty(players)
    for i in range(players):
        halves = worth.reshape(-1, 2, 1 << i)  # groups without i, groups with i
        shares[i] = weight @ (halves[:, 1] - halves[:, 0]).ravel()
    return shares


def sampled_shapley(
    players: int,
    payoff: Payoff,
    *,
    orders: int,
    reach: float,
    random: np.random.Generator,
    confidence: float = 0.95,
) -> Sampled:
    """Estimate Shapley's value of any number of players from random orders of arrival, with a proven error.

    Guarantee:
        With probability `confidence` every share is within its error. The smaller of Hoeffding's bound and of Maurer
        and Pontil's empirical Bernstein bound, each with half of the failure probability, over all players at once.

    Needs:
        `reach`: no player ever adds amounts that are further apart than this (1 if arrivals never reduce a payoff between 0
        and 1).

    Reference:
        Hoeffding 1963; Maurer, Pontil 2009, arXiv:0907.3740, Theorem 4.
    """
    if players < 1 or orders < 2 or not 0 < confidence < 1 or not 0 < reach < math.inf:
        raise Unsupported("Sampling needs a player, two orders, a `confidence` between 0 and 1 and a `reach` above 0.")
    empty_worth = float(payoff(frozenset()))
    mean, squares = np.zeros(players), np.zeros(players)
    least, most = np.full(players, math.inf), np.full(players, -math.inf)
    for turn in range(orders):
        added = _arrivals(random.permutation(players), payoff, empty_worth)
        least, most = np.minimum(least, added), np.maximum(most, added)
        off = added - mean
        mean += off / (turn + 1)
        squares += off * (added - mean)
    if (most - least).max() > reach * (1 + 1e-9):
        raise Unsupported(
            f"A player added amounts that are {float((most - least).max()):.4g} apart, more than the reach of {reach:.4g}.",
            "Pass a `reach` that holds for every group: the error depends on it.",
        )
    error = sampling_error(squares / (orders - 1), orders, reach=reach, failing=(1 - confidence) / players)
    return Sampled(mean, error, orders, confidence, orders * players + 1)


def _arrivals(order: NDArray[np.int64], payoff: Payoff, empty_worth: float) -> Floats:
    added, before = np.empty(order.size), empty_worth
    present: set[int] = set()
    for player in order.tolist():
        present.add(player)
        after = float(payoff(frozenset(present)))
        added[player] = after - before
        before = after
    return added


def sampling_error(variance: Floats, orders: int, *, reach: float, failing: float) -> Floats:
    """Return how far a mean of `orders` draws can be from its expectation, except with probability `failing`."""
    hoeffding = reach * math.sqrt(math.log(4 / failing) / (2 * orders))
    bernstein = np.sqrt(2 * variance * math.log(8 / failing) / orders)
    return np.minimum(hoeffding, bernstein + 7 * reach * math.log(8 / failing) / (3 * (orders - 1)))


def server_and_clients(gain: Sequence[float] | Floats) -> Shares:
    """Return Shapley's shares of a server that earns gain[m] with m clients, in closed form; without it nothing is earned.

    The server is equally likely to arrive after 0, 1, ..., n clients: it gets the mean of gain[0..n]; equal clients split the
    rest. In the core no client can have more than the least of (gain[n] - gain[m]) / (n - m) over m < n: for a gain that
    flattens out, what the last client adds.
    """
    earned = np.asarray(gain, float)
    clients = earned.size - 1
    if clients < 1 or not np.isfinite(earned).all():
        raise Unsupported("`gain` must list the gain with 0, 1, ..., n clients, n at least 1.")
    server = float(earned.mean())
    most = float(((earned[-1] - earned[:-1]) / np.arange(clients, 0, -1)).min())
    return Shares(server, float((earned[-1] - server) / clients), most)


def server_and_groups(worths: Sequence[float], members: Sequence[int]) -> tuple[float, Floats]:
    """Return the server's share and that of one member of each group, if the clients of a group all know the same.

    The server earns a group's worth once, when one of its members takes part: k of them leave it k / (k + 1) of the worth and
    get 1 / (k (k + 1)) each. What many know is worth little to each of them.
    """
    worth, counts = np.asarray(worths, float), np.asarray(members, np.int64)
    if worth.size != counts.size or (counts < 1).any():
        raise Unsupported("Every group needs a worth and at least one member.")
    return float((worth * counts / (counts + 1)).sum()), worth / (counts * (counts + 1))


ROUNDS = 1_000


@dataclass(frozen=True)
class LeastCore:
    """A division under which no group falls short by more than `excess`, the least possible; negative: all gain."""

    excess: float
    division: Floats
    tolerance: float

    @property
    def core_is_empty(self) -> bool:
        """Whether under every division some group does better by leaving."""
        return self.excess > self.tolerance


def worst_group(division: Floats, worth: Floats) -> tuple[tuple[int, ...], float]:
    """Return the group that falls short most under a division, and the amount (below 0: it gains).

    The empty group and the group of all players are not considered.
    """
    short = (worth - totals(division))[1:-1]
    if short.size == 0:
        return (), 0.0
    mask = int(np.argmax(short)) + 1
    return tuple(i for i in range(division.size) if mask >> i & 1), float(short[mask - 1])


def in_core(division: Floats, worth: Floats, *, tolerance: float = 1e-9) -> bool:
    """Return whether a division hands out everything and no group would do better by itself."""
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    whole = abs(float(division.sum()) - float(worth[-1])) <= wide
    return whole and worst_group(division, worth)[1] <= wide


def is_convex(worth: Floats, *, tolerance: float = 1e-9) -> bool:
    """Return whether joining a larger group never adds less: then the core contains Shapley's value."""
    players = finite(worth).size.bit_length() - 1
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    for high in range(players):
        for low in range(high):
            cells = worth.reshape(-1, 2, 1 << (high - low - 1), 2, 1 << low)
            gain = cells[:, 1, :, 1] - cells[:, 1, :, 0] - cells[:, 0, :, 1] + cells[:, 0, :, 0]
            if gain.min() < -wide:
                return False
    return True


def least_core(worth: Floats, *, tolerance: float = 1e-9) -> LeastCore:
    """Return the division that minimizes the largest shortfall of any group.

    Guarantee:
        No group falls short by more than `excess` + tolerance (all groups are checked), and no division does better by more
        than that (linear programming over some of the groups bounds it from below).

    Needs:
        worth[0] = 0: the payoff of the empty group cannot be divided.
    """
    players = finite(worth).size.bit_length() - 1
    if worth[0] != 0:
        raise Unsupported(
            f"The empty group earns {worth[0]:.6g}, which cannot be divided.", "Subtract it from every payoff."
        )
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    if players == 1:
        return LeastCore(0.0, worth[1:].copy(), wide)
    whole = worth.size - 1
    known = sorted({1 << i for i in range(players)} | {whole ^ (1 << i) for i in range(players)})
    for _ in range(ROUNDS):
        division, excess = _solve(np.array(known), worth, players)
        short = worth - totals(division) - excess
        short[[0, whole]] = -np.inf
        if short.max() <= wide:
            return LeastCore(excess, division, wide)
        known += _most_violated(short, wide, known, players)
    raise Unsupported(f"The least core was not found in {ROUNDS:,} linear programs.", "Use fewer players.")


def _most_violated(short: Floats, wide: float, known: list[int], players: int) -> list[int]:
    """Return a few groups at once: fewer programs than with the worst alone."""
    count = min(short.size, 4 * players)
    worst = np.argpartition(-short, count - 1)[:count]
    old = set(known)
    return [int(mask) for mask in worst if short[mask] > wide and int(mask) not in old]


def _solve(masks: NDArray[np.int64], worth: Floats, players: int) -> tuple[Floats, float]:
    """Minimize e such that every known group gets its worth minus e, and all get everything."""
    from scipy.optimize import linprog  # type: ignore[import-untyped] # here: it is slow to load

    member = (masks[:, None] >> np.arange(players) & 1).astype(float)
    rows = np.hstack([-member, -np.ones((masks.size, 1))])
    aim = np.zeros(players + 1)
    aim[-1] = 1.0
    everything = np.append(np.ones(players), 0.0)[None]
    bounds = [(None, None)] * (players + 1)
    solution = linprog(aim, rows, -worth[masks], everything, worth[-1:], bounds, method="highs")
    if solution.x is None:
        raise Unsupported(
            f"The linear program of the core was not solved: {solution.message}", "Scale the payoffs down."
        )
    return np.asarray(solution.x[:-1]), float(solution.x[-1])
