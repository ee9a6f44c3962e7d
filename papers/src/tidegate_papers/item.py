"""A published number beside ours. Whether they are the same is decided at run time, by how the paper prints.

reproduced     ours prints as the paper prints: its distance is within half of the last printed digit (a whole one where
               the paper cuts), or, for a sentence of the paper, our numbers bear it out
within noise   a sampled number that does not print the same, but is not further away than chance explains; z and the
               sample size are given
better         ours beats the printed value: a statement about us, not about the paper
erratum        the paper's value is wrong, and ours equals the corrected value that is recorded with it
differs        anything else
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

Status = Literal["reproduced", "within noise", "better", "erratum", "differs"]
WORDS: dict[Status, tuple[str, str]] = {
    "reproduced": ("reproduced", "reproduced"),
    "within noise": ("within noise", "within noise"),
    "better": ("better", "better"),
    "erratum": ("erratum", "errata"),
    "differs": ("differs", "differ"),
}
LIMIT = 2.0  # standard errors that chance explains
LEAST_DRAWS = 4  # fewer say nothing about noise


@dataclass(frozen=True)
class Published:
    """What a paper prints: a value, where, and how it was printed.

    printing    "round" or "trunc" to `decimals`; "exact"; a "statement" in words, which our numbers bear out or not;
                "sampled": printed to `decimals`, but drawn at random; "baseline": the same for another method, which ours
                should beat by a lower value; "boxes": quartiles of a figure, drawn at random
    limit       standard errors up to which a sampled number is within noise
    erratum     why the paper's value is wrong; `corrected` is the right one, to the digits that are written
    differs     why ours is not the same, where nobody is at fault
    """

    id: str
    where: str
    published: Any
    printing: Literal["round", "trunc", "exact", "statement", "sampled", "baseline", "boxes"]
    decimals: int = 0
    limit: float = LIMIT
    note: str = ""
    erratum: str = ""
    corrected: Any = None
    differs: str = ""

    @property
    def tolerance(self) -> float:
        """How far ours can be off and still print the same: it follows from the printed digits alone."""
        unit = 10.0**-self.decimals
        return {"round": unit / 2, "sampled": unit / 2, "baseline": unit / 2, "trunc": unit}.get(self.printing, 0.0)


@dataclass(frozen=True)
class Found:
    """What we computed.

    published   a number that is itself computed from what the paper prints
    holds       whether our numbers bear a statement out; only statements have it
    better      whether they go beyond the statement, in our favor
    z, size     of a sampled number: its distance from the published one in standard errors of the difference (ours less
                published), and how many draws ours comes from
    """

    value: Any
    note: str = ""
    published: Any = None
    holds: bool | None = None
    better: bool = False
    z: float | None = None
    size: int | None = None


@dataclass(frozen=True)
class Item:
    """One line of a reproduction."""

    id: str
    where: str
    published: Any
    ours: Any
    tolerance: float
    status: Status
    note: str
    z: float | None = None
    size: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON: infinity and fractions as text."""
        return {name: shown(value) for name, value in self.__dict__.items()}


def compare(published: Published, found: Found) -> Item:
    """The published value beside ours."""
    if (found.holds is not None) != (published.printing == "statement"):
        raise ValueError(f"{published.id}: statements are borne out, numbers are compared")
    expected = published.published if found.published is None else found.published
    status = _status(published, expected, found)
    reasons = {"erratum": published.erratum, "differs": published.differs or "not what the paper prints"}
    sampled = f"z {found.z:+.1f} over {found.size:,} draws" if found.z is not None and found.size else ""
    note = "; ".join(part for part in (reasons.get(status, published.note), sampled, found.note) if part)
    z = None if found.z is None or math.isnan(found.z) else found.z
    return Item(published.id, published.where, expected, found.value, published.tolerance, status, note, z, found.size)


def _status(published: Published, expected: Any, found: Found) -> Status:
    if found.better:
        return "better"
    if found.holds or (found.holds is None and AGREE[published.printing](published, expected, found.value)):
        return "reproduced"
    z = math.nan if found.z is None or (found.size or 0) < LEAST_DRAWS else found.z
    if abs(z) <= published.limit:
        return "within noise"
    if published.printing == "baseline" and z < 0:
        return "better"
    return "erratum" if published.corrected is not None and _corrected(published, found.value) else "differs"


def summary(items: Sequence[Item]) -> str:
    """How many are what: ``98 reproduced, 9 errata, 2 differ``."""
    counts = {status: sum(item.status == status for item in items) for status in WORDS}
    told = [f"{count} {WORDS[status][count != 1]}" for status, count in counts.items() if count]
    return ", ".join(told) or "nothing"


def read_published(path: Path) -> tuple[dict[str, Any], list[Published]]:
    """A paper's data file: its facts, and its items in the paper's order."""
    content = json.loads(path.read_text("utf-8"))
    return content, [Published(**item) for item in content["items"]]


def score(ours: float, published: float, error: float) -> float:
    """How many standard errors of the difference ours is above the published value; NaN where no error is known."""
    return (ours - published) / error if error > 0 else math.nan


def shown(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if isinstance(value, Fraction) else value


def _corrected(published: Published, ours: Any) -> bool:
    """Whether ours is the corrected value: equal, or as near as its written digits say."""
    right = published.corrected
    if not isinstance(right, float):
        return bool(shown(ours) == right)
    unit = Decimal(1).scaleb(int(Decimal(repr(right)).as_tuple().exponent))
    return isinstance(ours, int | float) and abs(Decimal(repr(float(ours))) - Decimal(repr(right))) <= unit / 2


def _printed(rounding: str) -> Callable[[Published, Any, Any], bool]:
    def agrees(published: Published, expected: Any, ours: Any) -> bool:
        unit = Decimal(1).scaleb(-published.decimals)
        return bool(Decimal(repr(float(ours))).quantize(unit, rounding) == Decimal(repr(float(expected))))

    return agrees


def _exact(published: Published, expected: Any, ours: Any) -> bool:
    return bool(shown(ours) == expected)


def _never(published: Published, expected: Any, ours: Any) -> bool:
    return False


AGREE: dict[str, Callable[[Published, Any, Any], bool]] = {
    "round": _printed(ROUND_HALF_EVEN),
    "trunc": _printed(ROUND_FLOOR),
    "exact": _exact,
    "sampled": _printed(ROUND_HALF_EVEN),
    "baseline": _never,
    "boxes": _never,
    "statement": _never,
}
