"""MASK: an independent coin for every item of the vocabulary (the published operator if the coins are symmetric)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any, Self

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact
from tidegate.operators.basket import INSERT, LARGEST, BasketOperator
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.exact_draws import WHOLE, Bytes, coin
from tidegate.operators.operator import Parameter, Report

KEEP = Parameter("keep", "the probability that an item stays.", "probability", example="0.9")


class Mask(BasketOperator):
    """A true item stays with probability `keep`, another is inserted with probability `insert` (default: 1 - keep).

    The size is not sent. The client draws a coin for every item of the vocabulary, in order.

    Reference:
        Rizvi, Haritsa 2002 (MASK).
    """

    name = "mask"
    parameters = (KEEP, replace(INSERT, optional=True), replace(LARGEST, optional=True))
    sends_size = False
    plan_parameters = (KEEP, replace(INSERT, optional=True))

    def __init__(self, items: int, *, keep: Number, insert: Number | None = None, largest: int | None = None) -> None:
        operator = mask(keep, insert, vocabulary_size=items, largest=largest)
        super().__init__(operator)
        self.stay, self.come = (int(chance * WHOLE) for chance in operator.flip or ())

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        largest = int(chosen["largest"]) if "largest" in chosen else None
        return cls(values, keep=chosen["keep"], insert=chosen.get("insert"), largest=largest)

    @classmethod
    def size_plan(cls, size: int, chosen: Mapping[str, Any]) -> SizePlan:
        return mask(chosen["keep"], chosen.get("insert"), vocabulary_size=size).plan(size)

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        true = set(self.checked(basket))
        return [item for item in range(self.items) if coin(self.stay if item in true else self.come, source)]

    def recipe(self) -> dict[str, Any]:
        draws = {"stay": self.stay, "come": self.come, "largest": self.operator.largest}
        return {"draw": "mask", "items": self.items, **draws}


def mask(
    keep: Number, insert: Number | None = None, *, vocabulary_size: int, largest: int | None = None
) -> SetOperator:
    """Return a per-item flip: a true item stays with probability `keep`, another is inserted with probability `insert`.

    MASK is the symmetric case, insert = 1 - keep (the default). `largest` limits the baskets, by default to the vocabulary.
    """
    stay = Fraction(round(exact(keep) * WHOLE), WHOLE)
    come = 1 - stay if insert is None else Fraction(round(exact(insert) * WHOLE), WHOLE)
    if not 0 <= stay <= 1 or not 0 <= come <= 1:
        raise Unsupported("`keep` and `insert` must be probabilities from 0 to 1.")
    most = vocabulary_size if largest is None else largest
    return SetOperator(vocabulary_size, FlipPlans(stay, come, most), flip=(stay, come))


@dataclass(frozen=True)
class FlipPlans(Mapping[int, SizePlan]):
    """The plans of a per-item flip, computed on access: keep[j] is binomial."""

    stay: Fraction
    come: Fraction
    largest: int

    def __getitem__(self, size: int) -> SizePlan:
        if not 0 <= size <= self.largest:
            raise KeyError(size)
        return _flip_plan(self.stay, self.come, size)

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and 0 <= size <= self.largest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.largest + 1))

    def __len__(self) -> int:
        return self.largest + 1


@cache
def _flip_plan(stay: Fraction, come: Fraction, size: int) -> SizePlan:
    keep = (comb(size, j) * stay**j * (1 - stay) ** (size - j) for j in range(size + 1))
    return SizePlan(size, tuple(keep), come)
