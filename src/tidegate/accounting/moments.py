"""The price of noisy counts, sums and sums of squares that are released together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tidegate.accounting.amount import Price


def pure_price(epsilon: Fraction) -> Price:
    """Return the price of any mechanism with that pure loss."""
    return Price.up(epsilon, epsilon**2 / 2, epsilon**2 / 8)


@dataclass(frozen=True)
class Moments:
    """The release of sums over rows of 1, d and d**2 (those with a scale), with discrete Laplace noise of those scales.

    d is a whole number from `lowest` to `highest` in each row, and a unit has at most `rows` rows. `grouped`: the sums were
    released for each of several disjoint cells, and a unit's rows can move from one cell to another. `always`: every row is
    counted regardless of its unit, so that replacing a unit replaces rows one for one.

    Price:
        One row that is added or removed changes the sums by 1, |d| and d**2: in units of the scales
        c = 1/s0 + max|d|/s1 + max d**2/s2. One that changes from d to e changes them by
        p = |d - e|/s1 + |d**2 - e**2|/s2 (the count stays). With k rows per unit, pair its rows one by one
        with the rows that replace them, some with nothing: k max(c, max p); k max p if rows are always
        present; 2 k c if they can change cells (each of k leaves one cell and each of k enters one).

    Reference:
        Dwork, McSherry, Nissim, Smith 2006 (Laplace noise, L1); the joint bound is worked out above and
        enumerated in the tests.
    """

    lowest: int
    highest: int
    rows: int
    scales: tuple[Fraction | None, Fraction | None, Fraction | None]
    grouped: bool = False
    always: bool = False
    kind: ClassVar[str] = "moments/1"

    def __post_init__(self) -> None:
        scales = [scale for scale in self.scales if scale is not None]
        if not scales or min(scales) <= 0 or self.lowest > self.highest or self.rows < 1:
            raise ValueError(
                "Ordered bounds, at least 1 row, and at least one scale are required; scales must be above 0."
            )
        if self.always and (self.scales[0] is not None or self.grouped):
            raise ValueError("If every row is always counted, the number of rows is public and there is one cell.")

    @property
    def loss(self) -> Fraction:
        """The exact loss, as derived in the class docstring."""
        if self.grouped:
            return 2 * self.rows * self._presence_loss()
        return self.rows * (self._change_loss() if self.always else max(self._presence_loss(), self._change_loss()))

    @property
    def price(self) -> Price:
        return pure_price(self.loss)

    def _weights(self) -> tuple[Fraction, ...]:
        return tuple(1 / scale if scale is not None else Fraction(0) for scale in self.scales)

    def _presence_loss(self) -> Fraction:
        """Return c, the loss of one row that is added or removed."""
        reach = max(abs(self.lowest), abs(self.highest))
        number, first, second = self._weights()
        return number + first * reach + second * reach**2

    def _change_loss(self) -> Fraction:
        """Return the largest p, the loss of one row that changes its value.

        One of d and e is at an end (moving the one of larger size outward never lowers p). For the other, p is a concave
        parabola inside +-end, with its top at -+s2 / (2 s1), and convex outside.
        """
        _, first, second = self._weights()
        largest = Fraction(0)
        for end in (self.lowest, self.highest):
            for other in self._candidates(end, first, second):
                largest = max(largest, first * abs(end - other) + second * abs(end**2 - other**2))
        return largest

    def _candidates(self, end: int, first: Fraction, second: Fraction) -> set[int]:
        tops = {first / (2 * second)} if second else set()
        inner = {rounded(sign * top) for top in tops for sign in (-1, 1) for rounded in (math.floor, math.ceil)}
        return {d for d in {self.lowest, self.highest, 0, -end, *inner} if self.lowest <= d <= self.highest}

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        scales = [str(scale) if scale is not None else None for scale in self.scales]
        bounds = {"lowest": self.lowest, "highest": self.highest, "rows": self.rows}
        return {"kind": self.kind, **bounds, "scales": scales, "grouped": self.grouped, "always": self.always}


def moments_from_dict(content: Mapping[str, Any]) -> Moments:
    """Return the event that `to_dict` wrote."""
    number, first, second = (Fraction(scale) if scale is not None else None for scale in content["scales"])
    bounds = int(content["lowest"]), int(content["highest"]), int(content["rows"])
    return Moments(*bounds, (number, first, second), bool(content["grouped"]), bool(content["always"]))
