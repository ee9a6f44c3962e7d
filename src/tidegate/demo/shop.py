"""What the shoppers of a shop would answer: age, way of paying, basket. None of it is ever stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.demo.deterministic import pick, spread

SHOPPERS = 6_000
ITEMS = (
    "bread", "butter", "milk", "coffee", "tea", "pasta", "tomatoes", "cheese", "apples", "nappies", "beer", "crisps",
)  # fmt: skip
TOGETHER = {("bread", "butter"): 4.0, ("pasta", "tomatoes"): 3.5, ("beer", "crisps"): 3.0}
ALONE = dict.fromkeys(ITEMS, 1.0)
YOUNG, OLD = 30, 60
PAIRED = 0.32  # share of shoppers who buy a pair of items


def shoppers() -> Iterator[dict[str, Any]]:
    """Yield the true answers of one shopper after the other."""
    for number in range(SHOPPERS):
        age = _age(spread(number, 0), spread(number, 1) + spread(number, 6) - 1)
        yield {"age": age, "pays": pick(spread(number, 2), _ways(age)), "basket": _basket(number, age)}


def _age(group: float, aside: float) -> int:
    """Return an age of a student or of a person with time in the morning; `aside` is from -1 to 1."""
    middle, reach = (25, 9) if group < 0.45 else (60, 25)
    return middle + round(reach * aside)


def _ways(age: int) -> dict[str, float]:
    """Return weights of the ways of paying at an age."""
    return {"cash": 1 + 5 * (age >= OLD), "card": 4.0, "phone": 1 + 7 * (age < YOUNG)}


def _basket(number: int, age: int) -> list[str]:
    """Return one to three items; some are mostly bought together."""
    first, second, kind = (spread(number, column) for column in (3, 4, 5))
    liked = {**ALONE, "nappies": 3.0 if 24 <= age < 40 else 0.1, "tea": 2.0 if age >= OLD else 0.7}
    pair = pick(first, {",".join(items): weight for items, weight in TOGETHER.items()}).split(",")
    if kind < PAIRED:
        return _different([*pair, pick(second, liked)])
    return _different([pick(first, liked), pick(second, liked)])


def _different(items: list[str]) -> list[str]:
    return list(dict.fromkeys(items))
