"""Cut-and-paste: keep some items of a basket, then insert every other item by a coin; two numbers give all plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Any, Self

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact
from tidegate.operators.basket import FIXED, LARGEST, LARGEST_BASKET
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.exact_draws import WHOLE
from tidegate.operators.operator import Parameter
from tidegate.operators.select_a_size import SelectASize

CUTOFF = Parameter(
    "cutoff", "the largest number of items that are kept first.", "count", most=Fraction(LARGEST_BASKET), example="3"
)
RHO = Parameter("rho", "the probability that any other item is inserted.", "probability", example="0.1")


class CutAndPaste(SelectASize):
    """Keep a uniform number of items up to `cutoff`, then insert every other item, true or not, with probability `rho`.

    It is drawn with a plan for every size, with the same probabilities on the grid of 2**-48.

    Reference:
        Evfimievski, Srikant, Agrawal, Gehrke 2002.
    """

    name = "cut-and-paste"
    parameters = (RHO, CUTOFF, LARGEST, FIXED)
    takes_plans = False
    plan_parameters = (CUTOFF, RHO)

    def __init__(
        self,
        items: int,
        *,
        cutoff: int,
        rho: Number,
        sizes: Iterable[int],
        fixed: int | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__(cut_and_paste(cutoff, rho, sizes, vocabulary_size=items, fixed=fixed, most=most))

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        fixed = int(chosen["fixed"]) if "fixed" in chosen else None
        largest = int(chosen["largest"])
        sizes = range(largest + 1) if fixed is None else [fixed]
        most = None if fixed is None else largest
        return cls(values, cutoff=int(chosen["cutoff"]), rho=chosen["rho"], sizes=sizes, fixed=fixed, most=most)

    @classmethod
    def size_plan(cls, size: int, chosen: Mapping[str, Any]) -> SizePlan:
        return SizePlan.rounded(size, cut_and_paste_keep(size, int(chosen["cutoff"]), chosen["rho"]), chosen["rho"])


def cut_and_paste(
    cutoff: int,
    rho: Number,
    sizes: Iterable[int],
    *,
    vocabulary_size: int,
    fixed: int | None = None,
    most: int | None = None,
) -> SetOperator:
    """Return cut-and-paste: keep a uniform number of items up to `cutoff`, then insert every other item with `rho`.

    The plans are those of `cut_and_paste_keep`, on the grid of 2**-48.
    """
    insert = Fraction(round(exact(rho) * WHOLE), WHOLE)
    plans = {size: _plan(size, cutoff, insert) for size in sizes}
    return SetOperator(vocabulary_size, plans, fixed, most=most)


@lru_cache(maxsize=1024)
def _plan(size: int, cutoff: int, insert: Fraction) -> SizePlan:
    return SizePlan.rounded(size, cut_and_paste_keep(size, cutoff, insert), insert)


def cut_and_paste_keep(size: int, cutoff: int, rho: Fraction) -> tuple[Fraction, ...]:
    """Return p_m[j] = sum over i <= min(K, j) of w_i C(m - i, j - i) rho**(j - i) (1 - rho)**(m - j).

    w_i = 1 / (K + 1) for i < m, and the remainder 1 - m / (K + 1) for i = m <= K.
    """
    if cutoff < 0:
        raise Unsupported("The `cutoff` of cut-and-paste must be 0 or more.")
    first = [Fraction(1, cutoff + 1) for _ in range(min(cutoff, size) + 1)]
    first[-1] = 1 - sum(first[:-1], Fraction(0))
    return tuple(
        sum(
            (
                weight * comb(size - i, j - i) * rho ** (j - i) * (1 - rho) ** (size - j)
                for i, weight in enumerate(first[: j + 1])
            ),
            Fraction(0),
        )
        for j in range(size + 1)
    )
