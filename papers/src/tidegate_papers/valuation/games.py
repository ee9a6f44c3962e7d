"""What private information is worth: a fair share for everybody who takes part.

A coalition game is an array of payoffs, one for every group: `worth[mask]` is what the group earns whose members are the
bits of `mask` (player i is bit i), `worth[0]` what nobody earns. `game` makes one from any function of who takes part: a
table, a formula, or the measured quality of what a server learns from their reports.

Shapley's value pays everybody the average of what they add when they arrive, over all orders of arrival. It is the only
division that hands out everything, treats equals alike, pays nothing for nothing, and adds up over games.

Reference:
    Shapley 1953; Kleinberg, Papadimitriou, Raghavan 2001 (private information as property).

The core: divisions of the whole payoff under which no group would earn more by itself.

`least_core` finds the smallest amount by which the best division falls short for some group; the core is empty exactly
where it is above zero. `worst_group` names who would leave. Rows of the linear program are added as they are needed, so
twenty players (a million groups) take a few dozen small programs.

Reference:
    Gillies 1959; Maschler, Peleg, Shapley 1979 (least core); Shapley 1971 (convex games).
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
    """Shares from sampled orders: each is within its `error` of Shapley's value, all together but for 1 - `confidence`."""

    shares: Floats
    error: Floats
    orders: int
    confidence: float
    evaluations: int


@dataclass(frozen=True)
class Shares:
    """What the server and each client get, and the most that the core lets a client have when all clients get the same."""

    server: float
    client: float
    client_in_core: float

    @property
    def in_core(self) -> bool:
        """Whether no group with the server would do better by itself."""
        slack = 1e-12 * max(1.0, abs(self.server))
        return -slack <= self.client <= self.client_in_core + slack


def game(players: int, payoff: Payoff) -> Floats:
    """The payoff of every group of so many players, measured once for each of the 2**players groups."""
    if not 1 <= players <= MOST_PLAYERS:
        raise Unsupported(
            f"every group of {players} players cannot be asked for its payoff: 1 to {MOST_PLAYERS} can.",
            "Sample orders of arrival instead: sampled_shapley.",
        )
    groups = (frozenset(i for i in range(players) if mask >> i & 1) for mask in range(1 << players))
    return finite(np.array([float(payoff(group)) for group in groups]))


def finite(worth: Floats) -> Floats:
    """The same payoffs, all of them numbers, one for every group."""
    if worth.size < 2 or worth.size & (worth.size - 1) or worth.size > 1 << MOST_PLAYERS:
        raise Unsupported(
            f"{worth.size:,} payoffs are not those of all groups of 1 to {MOST_PLAYERS} players.",
            "Give 2**players of them, that of nobody first.",
        )
    if not np.isfinite(worth).all():
        raise Unsupported(f"{int((~np.isfinite(worth)).sum()):,} groups have no finite payoff.", "Measure them again.")
    return worth


def sizes(players: int) -> NDArray[np.int64]:
    """How many members every group has."""
    counted = np.zeros(1, np.int64)
    for _ in range(players):
        counted = np.concatenate([counted, counted + 1])
    return counted


def totals(division: Floats) -> Floats:
    """What every group gets together under a division."""
    summed = np.zeros(1)
    for share in division:
        summed = np.concatenate([summed, summed + share])
    return summed


def shapley(worth: Floats) -> Floats:
    """Shapley's value of every player, exactly: over all groups, by one pass for each player.

    Guarantee:
        The shares add up to worth of all less worth of nobody.

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
    """Shapley's value of any number of players from random orders of arrival, with an error that is proved.

    Guarantee:
        With probability `confidence` every share is within its error. The smaller of Hoeffding's bound and of Maurer
        and Pontil's empirical Bernstein bound, each given half of what may fail, over all players at once.

    Needs:
        `reach`: nobody ever adds amounts that lie further apart than this (1 where arrivals never harm a payoff that
        lies between 0 and 1).

    Reference:
        Hoeffding 1963; Maurer, Pontil 2009, arXiv:0907.3740, Theorem 4.
    """
    if players < 1 or orders < 2 or not 0 < confidence < 1 or not 0 < reach < math.inf:
        raise Unsupported("sampling needs a player, two orders, a confidence between 0 and 1 and a reach above 0.")
    nobody = float(payoff(frozenset()))
    mean, squares = np.zeros(players), np.zeros(players)
    least, most = np.full(players, math.inf), np.full(players, -math.inf)
    for turn in range(orders):
        added = _arrivals(random.permutation(players), payoff, nobody)
        least, most = np.minimum(least, added), np.maximum(most, added)
        off = added - mean
        mean += off / (turn + 1)
        squares += off * (added - mean)
    if (most - least).max() > reach * (1 + 1e-9):
        raise Unsupported(
            f"a player added amounts that lie {float((most - least).max()):.4g} apart, further than the reach of {reach:.4g}.",
            "Give a reach that holds for every group: the error cannot be stated without it.",
        )
    error = sampling_error(squares / (orders - 1), orders, reach=reach, failing=(1 - confidence) / players)
    return Sampled(mean, error, orders, confidence, orders * players + 1)


def _arrivals(order: NDArray[np.int64], payoff: Payoff, nobody: float) -> Floats:
    added, before = np.empty(order.size), nobody
    present: set[int] = set()
    for player in order.tolist():
        present.add(player)
        after = float(payoff(frozenset(present)))
        added[player] = after - before
        before = after
    return added


def sampling_error(variance: Floats, orders: int, *, reach: float, failing: float) -> Floats:
    """How far a mean of `orders` draws can be from what it estimates, but for a chance `failing`."""
    hoeffding = reach * math.sqrt(math.log(4 / failing) / (2 * orders))
    bernstein = np.sqrt(2 * variance * math.log(8 / failing) / orders)
    return np.minimum(hoeffding, bernstein + 7 * reach * math.log(8 / failing) / (3 * (orders - 1)))


def server_and_clients(gain: Sequence[float] | Floats) -> Shares:
    """A server that earns gain[m] with m clients and nothing is earned without it: Shapley's shares in closed form.

    The server is equally likely to come after 0, 1, ..., n clients: it gets the mean of gain[0..n]; equal clients share
    the rest. In the core no client may have more than the least of (gain[n] - gain[m]) / (n - m) over m < n: for a gain that
    flattens out, what the last client adds.
    """
    earned = np.asarray(gain, float)
    clients = earned.size - 1
    if clients < 1 or not np.isfinite(earned).all():
        raise Unsupported("the gain with 0, 1, ..., n clients is needed, n at least 1.")
    server = float(earned.mean())
    most = float(((earned[-1] - earned[:-1]) / np.arange(clients, 0, -1)).min())
    return Shares(server, float((earned[-1] - server) / clients), most)


def server_and_groups(worths: Sequence[float], members: Sequence[int]) -> tuple[float, Floats]:
    """The server's share and that of one member of each group, where the clients of a group all know the same.

    The server earns a group's worth once, as soon as one of its members takes part: k of them leave it k / (k + 1) of the
    worth and get 1 / (k (k + 1)) each. What many know is worth little to each of them.
    """
    worth, many = np.asarray(worths, float), np.asarray(members, np.int64)
    if worth.size != many.size or (many < 1).any():
        raise Unsupported("every group needs a worth and at least one member.")
    return float((worth * many / (many + 1)).sum()), worth / (many * (many + 1))


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
    """The group, neither nobody nor all, that falls short most under a division, and by how much (below 0: it gains)."""
    short = (worth - totals(division))[1:-1]
    if short.size == 0:
        return (), 0.0
    mask = int(np.argmax(short)) + 1
    return tuple(i for i in range(division.size) if mask >> i & 1), float(short[mask - 1])


def in_core(division: Floats, worth: Floats, *, tolerance: float = 1e-9) -> bool:
    """Whether a division hands out everything and no group would do better by itself."""
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    whole = abs(float(division.sum()) - float(worth[-1])) <= wide
    return whole and worst_group(division, worth)[1] <= wide


def is_convex(worth: Floats, *, tolerance: float = 1e-9) -> bool:
    """Whether joining a larger group never adds less: then the core holds Shapley's value."""
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
    """The division that minimises the largest shortfall of any group.

    Guarantee:
        No group falls short by more than `excess` + tolerance (all groups are looked at), and no division does better
        by more than that (linear programming over some of the groups bounds it from below).

    Needs:
        worth[0] = 0: what nobody earns cannot be divided.
    """
    players = finite(worth).size.bit_length() - 1
    if worth[0] != 0:
        raise Unsupported(f"nobody earns {worth[0]:.6g}: that cannot be divided.", "Take it off every payoff first.")
    wide = tolerance * max(1.0, float(np.abs(worth).max()))
    if players == 1:
        return LeastCore(0.0, worth[1:].copy(), wide)
    whole = worth.size - 1
    known = sorted({1 << i for i in range(players)} | {whole ^ (1 << i) for i in range(players)})
    for _ in range(ROUNDS):
        division, excess = _solved(np.array(known), worth, players)
        short = worth - totals(division) - excess
        short[[0, whole]] = -np.inf
        if short.max() <= wide:
            return LeastCore(excess, division, wide)
        known += _most_violated(short, wide, known, players)
    raise Unsupported(f"the least core was not found in {ROUNDS:,} programs.", "Ask with fewer players.")


def _most_violated(short: Floats, wide: float, known: list[int], players: int) -> list[int]:
    """A few groups at once: fewer programs than with the worst alone."""
    many = min(short.size, 4 * players)
    worst = np.argpartition(-short, many - 1)[:many]
    old = set(known)
    return [int(mask) for mask in worst if short[mask] > wide and int(mask) not in old]


def _solved(masks: NDArray[np.int64], worth: Floats, players: int) -> tuple[Floats, float]:
    """min e, where every known group gets its worth less e, and all get everything."""
    from scipy.optimize import linprog  # type: ignore[import-untyped] # here: it is slow to load

    member = (masks[:, None] >> np.arange(players) & 1).astype(float)
    rows = np.hstack([-member, -np.ones((masks.size, 1))])
    aim = np.zeros(players + 1)
    aim[-1] = 1.0
    everything = np.append(np.ones(players), 0.0)[None]
    bounds = [(None, None)] * (players + 1)
    found = linprog(aim, rows, -worth[masks], everything, worth[-1:], bounds, method="highs")
    if found.x is None:
        raise Unsupported(f"the linear program of the core was not solved: {found.message}", "Scale the payoffs down.")
    return np.asarray(found.x[:-1]), float(found.x[-1])
