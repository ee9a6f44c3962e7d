"""Per-item flip: every item of the vocabulary by a coin of its own (MASK where the coins are symmetric)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.collect._bits import WHOLE, Bytes, coin
from tidegate.collect.mechanisms.operator import Report
from tidegate.collect.mechanisms.select_a_size import BasketOperator
from tidegate.exact import Number
from tidegate.policy.setplans import item_flip


class ItemFlip(BasketOperator):
    """A true item stays with probability `keep`, another comes in with probability `insert` (1 - keep if not given).

    Sends no size. Draws a coin for every item of the vocabulary, in order.
    Reference  Rizvi, Haritsa 2002 (MASK).
    """

    name = "mask"

    def __init__(self, items: int, *, keep: Number, insert: Number | None = None, largest: int | None = None) -> None:
        made = item_flip(keep, insert, vocabulary_size=items, largest=largest)
        super().__init__(made)
        self.stay, self.come = (int(chance * WHOLE) for chance in made.flip or ())

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        true = set(self.checked(basket))
        return [item for item in range(self.items) if coin(self.stay if item in true else self.come, source)]

    def recipe(self) -> dict[str, Any]:
        draws = {"stay": self.stay, "come": self.come, "largest": self.operator.largest}
        return {"draw": "mask", "items": self.items, **draws}
