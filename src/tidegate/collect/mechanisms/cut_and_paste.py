"""Cut-and-paste: a select-a-size whose plans come from a cutoff and a probability."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.collect.mechanisms.select_a_size import SelectASize
from tidegate.exact import Number
from tidegate.policy.setplans import cut_and_paste


class CutAndPaste(SelectASize):
    """Keep a uniform number of items up to `cutoff`, then put in every other one, true or not, with probability `rho`.

    Drawn as select-a-size, with the same probabilities on the grid of 2**-48.
    Reference  Evfimievski, Srikant, Agrawal, Gehrke 2002.
    """

    name = "cut-and-paste"

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
