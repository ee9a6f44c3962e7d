"""A published number beside ours. Whether they are the same is decided at run time, by how the paper prints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

Status = Literal["reproduced", "erratum", "differs"]
WORDS: dict[Status, tuple[str, str]] = {
    "reproduced": ("reproduced", "reproduced"),
    "erratum": ("erratum", "errata"),
    "differs": ("differs", "differ"),
}


@dataclass(frozen=True)
class Published:
    """What a paper prints: a value, where, and how it was printed.

    printing    "round" or "trunc" to `decimals`; "exact"; "within" `tolerance`; "boxes" of a figure, in standard errors
    erratum     why the paper's value is wrong, for where ours is not the same; `differs` likewise, without a fault
    """

    id: str
    where: str
    published: Any
    printing: Literal["round", "trunc", "exact", "within", "boxes"]
    decimals: int = 0
    tolerance: float = 0.0
    note: str = ""
    erratum: str = ""
    differs: str = ""

    @property
    def allowed(self) -> float:
        """How far ours may be off and still print the same."""
        unit = 10.0**-self.decimals
        return {"round": unit / 2, "trunc": unit}.get(self.printing, self.tolerance)


@dataclass(frozen=True)
class Found:
    """What we computed. `published` stands for a number that is itself computed from what the paper prints; `agrees`
    for a comparison that needs more than the two numbers."""

    value: Any
    note: str = ""
    published: Any = None
    agrees: bool | None = None


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

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON: infinity and fractions as text."""
        return {**self.__dict__, "published": shown(self.published), "ours": shown(self.ours)}


def compare(published: Published, found: Found) -> Item:
    """The published value beside ours."""
    expected = published.published if found.published is None else found.published
    same = _same(published, expected, found.value) if found.agrees is None else found.agrees
    status: Status = "reproduced" if same else "erratum" if published.erratum else "differs"
    reason = published.note if same else published.erratum or published.differs or "not what the paper prints"
    note = "; ".join(part for part in (reason, found.note) if part)
    return Item(published.id, published.where, expected, found.value, published.allowed, status, note)


def summary(items: Sequence[Item]) -> str:
    """How many are what: ``98 reproduced, 9 errata, 2 differ``."""
    counts = {status: sum(item.status == status for item in items) for status in WORDS}
    return ", ".join(f"{count} {WORDS[status][count != 1]}" for status, count in counts.items())


def read_published(path: Path) -> tuple[dict[str, Any], list[Published]]:
    """A paper's data file: its facts, and its items in the paper's order."""
    content = json.loads(path.read_text("utf-8"))
    return content, [Published(**item) for item in content["items"]]


def shown(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if isinstance(value, Fraction) else value


def _same(published: Published, expected: Any, ours: Any) -> bool:
    return AGREE[published.printing](published, expected, ours)


def _printed(rounding: str) -> Callable[[Published, Any, Any], bool]:
    def agrees(published: Published, expected: Any, ours: Any) -> bool:
        unit = Decimal(1).scaleb(-published.decimals)
        return bool(Decimal(repr(float(ours))).quantize(unit, rounding) == Decimal(repr(float(expected))))

    return agrees


def _exact(published: Published, expected: Any, ours: Any) -> bool:
    return bool(shown(ours) == expected)


def _within(published: Published, expected: Any, ours: Any) -> bool:
    if isinstance(expected, Mapping):
        return expected.keys() == ours.keys() and all(_within(published, expected[key], ours[key]) for key in expected)
    return abs(float(ours) - float(expected)) <= published.tolerance


AGREE: dict[str, Callable[[Published, Any, Any], bool]] = {
    "round": _printed(ROUND_HALF_EVEN),
    "trunc": _printed(ROUND_FLOOR),
    "exact": _exact,
    "within": _within,
}
