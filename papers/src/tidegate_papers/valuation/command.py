"""The command `tidegate risk value`: the value of private information, and fair shares of what is earned with it."""

from __future__ import annotations

import json as text
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from tidegate.cli.output import JSON, emit, say, table
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported, did_you_mean

EXAMPLE = "tidegate risk value --clients 8 --gain sqrt"
GAINS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "linear": float,
    "log": math.log1p,
    "square": lambda count: count**2,
}


def value(
    clients: int | None = typer.Option(None, help="A server and this number of equal clients."),
    gain: str = typer.Option("sqrt", help="The server's gain with m clients: sqrt, linear, log, square, or numbers."),
    groups: str | None = typer.Option(
        None, help="A server and groups of clients that know the same: their sizes, such as 3,2,1."
    ),
    worths: str | None = typer.Option(None, help="The worth of each group, in the same order (default: 1 each)."),
    game: Path | None = typer.Option(None, help='A file {"players": [...], "worth": {"server,ann": 3, ...}}.'),
    json: bool = JSON,
) -> None:
    """Compute fair shares of what is earned with private information: Shapley's value and the core."""
    options = [clients, groups, game]
    if sum(option is not None for option in options) != 1:
        raise Unsupported("Specify exactly one of --clients, --groups, or --game.", EXAMPLE)
    if clients is not None:
        result = _alike(clients, gain)
    elif game is not None:
        result = _any_game(game)
    else:
        result = _groups(_numbers(groups or "", "groups"), None if worths is None else _numbers(worths, "worths"))
    return emit(result) if json else _show(result)


def _alike(clients: int, gain: str) -> dict[str, Any]:
    from tidegate_papers.valuation.games import server_and_clients

    if not 1 <= clients <= 1_000_000:
        raise Unsupported("--clients must be from 1 to 1,000,000.", EXAMPLE)
    earned = [GAINS[gain](count) for count in range(clients + 1)] if gain in GAINS else _gains(gain, clients)
    shares = server_and_clients(earned)
    core = max(0.0, shares.client_in_core) if shares.client_in_core >= 0 else None
    rows = [_row("server", shares.server, 1), _row("each client", shares.client, clients)]
    return {
        "players": rows,
        "total": earned[-1],
        "core_is_empty": core is None,
        "client_in_core": core,
        "shapley_in_core": shares.in_core,
    }


def _gains(gain: str, clients: int) -> list[float]:
    if not set(gain) <= set("0123456789.,+-eE "):
        raise Unsupported(f'Unknown gain: "{gain}".', did_you_mean(gain, GAINS) + " Or use numbers: 0,3,5,6")
    gains = _numbers(gain, "gain")
    if len(gains) != clients + 1:
        raise Unsupported(f"There are {len(gains)} gains for 0 to {clients} clients.", f"Pass {clients + 1} gains.")
    return gains


def _groups(members: list[float], worths: list[float] | None) -> dict[str, Any]:
    from tidegate_papers.valuation.games import server_and_groups

    if any(size != int(size) for size in members):
        raise Unsupported("--groups must list integers.", "Use, for example, --groups 3,2,1.")
    sizes, worth = [int(size) for size in members], worths or [1.0] * len(members)
    server, each = server_and_groups(worth, sizes)
    rows = [_row("server", server, 1)]
    rows += [_row(f"each of group {index + 1}", float(share), sizes[index]) for index, share in enumerate(each)]
    return {"players": rows, "total": sum(worth)}


def _any_game(path: Path) -> dict[str, Any]:
    from tidegate_papers.valuation.games import in_core, is_convex, least_core, shapley, worst_group

    players, worth = _read(path)
    shares, least = shapley(worth), least_core(worth)
    leaving, short = worst_group(shares, worth)
    return {
        "players": [_row(name, float(share), 1) for name, share in zip(players, shares, strict=True)],
        "total": float(worth[-1]),
        "core_is_empty": least.core_is_empty,
        "least_core": {"excess": least.excess, "division": dict(zip(players, least.division.tolist(), strict=True))},
        "convex": is_convex(worth),
        "shapley_in_core": in_core(shares, worth),
        "would_leave": {"group": [players[i] for i in leaving], "short": short} if short > least.tolerance else None,
    }


def _read(path: Path) -> tuple[list[str], Any]:
    """Return the players, and the payoff of every group: an unlisted group earns what the best listed one inside it does."""
    import numpy as np

    from tidegate_papers.valuation.games import MOST_PLAYERS, finite

    if not path.is_file():
        raise SourceMissing(f'The file "{path}" does not exist.', EXAMPLE)
    try:
        content = text.loads(path.read_text("utf-8"))
        players, listed = [str(name) for name in content["players"]], dict(content["worth"])
        amounts = {tuple(name.strip() for name in group.split(",")): float(earned) for group, earned in listed.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        players, amounts = [], {}
    if not amounts or not 1 <= len(players) <= MOST_PLAYERS or len(set(players)) != len(players):
        raise SourceUnreadable(
            f'The file "{path}" contains no game of 1 to {MOST_PLAYERS} different players.',
            'Write {"players": ["server", "ann"], "worth": {"server,ann": 3}}.',
        )
    worth = np.zeros(1 << len(players))
    for group, earned in amounts.items():
        if unknown := [name for name in group if name not in players]:
            raise SourceUnreadable(
                f'A group contains "{unknown[0]}", which is not a player.', did_you_mean(unknown[0], players)
            )
        worth[sum(1 << players.index(name) for name in set(group))] = earned
    for index in range(len(players)):
        halves = worth.reshape(-1, 2, 1 << index)
        halves[:, 1] = np.maximum(halves[:, 1], halves[:, 0])
    return players, finite(worth)


def _row(name: str, share: float, count: int) -> dict[str, Any]:
    return {"player": name, "share": share, "many": count}


def _numbers(value_text: str, name: str) -> list[float]:
    numbers: list[float] = []
    for part in value_text.split(","):
        try:
            numbers.append(float(part))
        except ValueError:
            numbers.append(math.nan)
    if not all(math.isfinite(number) for number in numbers):
        raise Unsupported(f"--{name} must list numbers separated by commas.", EXAMPLE)
    return numbers


def _show(result: dict[str, Any]) -> None:
    total = result["total"]
    rows = [
        [row["player"], f"{row['share']:.6g}", f"{100 * row['share'] * row['many'] / total:.1f}%" if total else "-"]
        for row in result["players"]
    ]
    table(["", "Shapley's value", "of all, together"], rows, right={1, 2})
    say(f"All together earn {total:.6g}.")
    if "core_is_empty" not in result:
        return
    if result["core_is_empty"]:
        say("The core is empty: whatever the division, some group would do better by itself.")
    elif result.get("client_in_core") is not None:
        say(f"In the core no client can have more than {result['client_in_core']:.6g} where all get the same.")
    if result.get("would_leave"):
        leaving = result["would_leave"]
        say(f"With these shares {', '.join(leaving['group'])} would earn {leaving['short']:.6g} more by themselves.")
    elif result["shapley_in_core"]:
        say("With these shares no group would do better by itself.")
