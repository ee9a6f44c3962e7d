"""risk value: what private information is worth, and who should get which share of what is earned with it."""

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
    "square": lambda many: many**2,
}


def value(
    clients: int | None = typer.Option(None, help="A server and so many clients, all alike."),
    gain: str = typer.Option(
        "sqrt", help="What the server earns with m clients: sqrt, linear, log, square, or numbers."
    ),
    groups: str | None = typer.Option(
        None, help="A server and groups of clients that know the same: members, as 3,2,1."
    ),
    worths: str | None = typer.Option(None, help="What each group is worth, in the same order (default: 1 each)."),
    game: Path | None = typer.Option(None, help='A file {"players": [...], "worth": {"server,ann": 3, ...}}.'),
    json: bool = JSON,
) -> None:
    """Shapley's value and the core: fair shares of what is earned with private information."""
    given = [name for name, one in (("--clients", clients), ("--groups", groups), ("--game", game)) if one is not None]
    if len(given) != 1:
        raise Unsupported("one of --clients, --groups and --game is needed.", EXAMPLE)
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
        raise Unsupported("from 1 to 1,000,000 clients are needed.", EXAMPLE)
    earned = [GAINS[gain](many) for many in range(clients + 1)] if gain in GAINS else _gains(gain, clients)
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
        raise Unsupported(f'there is no gain "{gain}".', did_you_mean(gain, GAINS) + " Or give numbers: 0,3,5,6")
    found = _numbers(gain, "gain")
    if len(found) != clients + 1:
        raise Unsupported(f"{len(found)} gains were given for 0 to {clients} clients.", f"Give {clients + 1} of them.")
    return found


def _groups(members: list[float], worths: list[float] | None) -> dict[str, Any]:
    from tidegate_papers.valuation.games import server_and_groups

    if any(many != int(many) for many in members):
        raise Unsupported("--groups takes whole numbers of members.", "Write --groups 3,2,1.")
    many, worth = [int(one) for one in members], worths or [1.0] * len(members)
    server, each = server_and_groups(worth, many)
    rows = [_row("server", server, 1)]
    rows += [_row(f"each of group {place + 1}", float(share), many[place]) for place, share in enumerate(each)]
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
    """The players, and the payoff of every group: one that is not listed earns what the best listed one inside it does."""
    import numpy as np

    from tidegate_papers.valuation.games import MOST_PLAYERS, finite

    if not path.is_file():
        raise SourceMissing(f"there is no file {path}.", EXAMPLE)
    try:
        told = text.loads(path.read_text("utf-8"))
        players, listed = [str(name) for name in told["players"]], dict(told["worth"])
        amounts = {tuple(name.strip() for name in group.split(",")): float(earned) for group, earned in listed.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        players, amounts = [], {}
    if not amounts or not 1 <= len(players) <= MOST_PLAYERS or len(set(players)) != len(players):
        raise SourceUnreadable(
            f"{path} holds no game of 1 to {MOST_PLAYERS} different players.",
            'Write {"players": ["server", "ann"], "worth": {"server,ann": 3}}.',
        )
    worth = np.zeros(1 << len(players))
    for group, earned in amounts.items():
        if strange := [name for name in group if name not in players]:
            raise SourceUnreadable(f'a group names "{strange[0]}".', did_you_mean(strange[0], players))
        worth[sum(1 << players.index(name) for name in set(group))] = earned
    for place in range(len(players)):
        halves = worth.reshape(-1, 2, 1 << place)
        halves[:, 1] = np.maximum(halves[:, 1], halves[:, 0])
    return players, finite(worth)


def _row(name: str, share: float, many: int) -> dict[str, Any]:
    return {"player": name, "share": share, "many": many}


def _numbers(given: str, name: str) -> list[float]:
    found: list[float] = []
    for part in given.split(","):
        try:
            found.append(float(part))
        except ValueError:
            found.append(math.nan)
    if not all(math.isfinite(one) for one in found):
        raise Unsupported(f"--{name} takes numbers between commas.", EXAMPLE)
    return found


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
