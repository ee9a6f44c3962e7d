"""What the employees of an office would answer in two polls. None of it is ever stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.demo.deterministic import pick, spread

PEOPLE = {"commute": 1_500, "canteen": 250}
WAYS = {"foot": 1.0, "bicycle": 3.0, "bus": 4.0, "car": 2.5}
MINUTES = {"foot": 15, "bicycle": 20, "bus": 38, "car": 30}  # on average
DISHES = ("Curry", "Pasta", "Sushi", "Tofu")


def answers(poll: str) -> Iterator[dict[str, Any]]:
    """Yield the true answers of one employee after the other."""
    for number in range(PEOPLE[poll]):
        yield _commute(number) if poll == "commute" else _canteen(number)


def _commute(number: int) -> dict[str, Any]:
    way = pick(spread(number, 0), WAYS)
    return {"way": way, "minutes": min(90, round(2 * MINUTES[way] * spread(number, 1)))}


def _canteen(number: int) -> dict[str, Any]:
    often = pick(spread(number, 2), {"never": 2.0, "weekly": 3.0, "daily": 5.0})
    first = pick(spread(number, 3), dict(zip(DISHES, (3.0, 4.0, 1.0, 1.0), strict=True)))
    second = pick(spread(number, 4), {dish: 1.0 for dish in DISHES if dish != first})
    return {"often": often, "dishes": [first, second]}
