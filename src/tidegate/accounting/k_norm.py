"""The price of integers with joint noise measured by a box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tidegate.accounting.amount import Amount


@dataclass(frozen=True)
class KNorm:
    """The release of integers with box noise; one unit changes the i-th integer by at most bounds[i].

    The noise z has P(z) ~ exp(-k(z) / scale), where k(z) is the smallest whole k with steps |z_i| <= k bounds[i] for all i.

    Price:
        steps / scale: k changes by at most `steps` if z changes by at most the bounds (`noise.box`).

    Reference:
        Hardt, Talwar 2010; Awan & Slavkovic 2018, arXiv:1801.09236.
    """

    bounds: tuple[int, ...]
    steps: int
    scale: Fraction
    kind: ClassVar[str] = "k-norm/1"

    def __post_init__(self) -> None:
        if not self.bounds or min(self.bounds) < 1 or self.steps < 1 or self.scale <= 0:
            raise ValueError("Bounds and steps must be at least 1, and the scale must be above 0.")

    @property
    def price(self) -> Amount:
        return Amount.up(self.steps / self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        return {"kind": self.kind, "bounds": list(self.bounds), "steps": self.steps, "scale": str(self.scale)}


def k_norm_from_dict(content: Mapping[str, Any]) -> KNorm:
    """Return the event that `to_dict` wrote."""
    return KNorm(tuple(map(int, content["bounds"])), int(content["steps"]), Fraction(content["scale"]))
