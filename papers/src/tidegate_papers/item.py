"""A published number beside ours. Its status is decided at run time, by how the paper prints.

Status:
    reproduced: Ours prints as the paper prints: its distance is within half of the last printed digit (a whole one if the
        paper truncates), or our numbers confirm a sentence of the paper.
    within noise: A sampled number that does not print the same, but is not further away than chance explains; z, the
        sample size and the distance that chance explains are stated. That distance must be smaller than the number
        itself: otherwise zero would be accepted as well.
    better: Ours beats the printed value: a statement about us, not about the paper.
    erratum: The paper's value is wrong, and ours equals the corrected value that is recorded with it.
    differs: Anything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
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
LEAST_DRAWS = 4  # fewer do not estimate noise


def limit_of_largest(count: int) -> float:
    """Return the limit of the largest of `count` distances: chance exceeds it as rarely as one distance exceeds `LIMIT`."""
    normal = NormalDist()
    within = 2 * normal.cdf(LIMIT) - 1
    return normal.inv_cdf((1 + within ** (1 / count)) / 2)


@dataclass(frozen=True)
class Published:
    """A value that a paper prints, where, and how it was printed.

    Args:
        printing: "round" or "trunc" to `decimals`; "exact"; a "statement" in words, which our numbers confirm or not;
            "sampled": printed to `decimals`, but drawn at random; "baseline": the same for another method, which ours
            should beat by a lower value; "boxes": quartiles of a figure, drawn at random.
        erratum: Why the paper's value is wrong; `corrected` is the right one, to the digits that are written.
        differs: Why ours is not the same although nothing is wrong.
    """

    id: str
    where: str
    published: Any
    printing: Literal["round", "trunc", "exact", "statement", "sampled", "baseline", "boxes"]
    decimals: int = 0
    note: str = ""
    erratum: str = ""
    corrected: Any = None
    differs: str = ""

    @property
    def tolerance(self) -> float:
        """How far ours can be off and still print the same; it follows from the printed digits alone."""
        unit = 10.0**-self.decimals
        return {"round": unit / 2, "sampled": unit / 2, "baseline": unit / 2, "trunc": unit}.get(self.printing, 0.0)


@dataclass(frozen=True)
class Result:
    """A value that we computed.

    Args:
        published: A number that is itself computed from what the paper prints.
        holds: Whether our numbers confirm a statement; only for statements.
        better: Whether they exceed the statement, in our favor.
        error: Of a sampled number: the standard error of its difference from the published one, in its unit.
        z: Of several sampled numbers: the largest distance in standard errors.
        count: Of several sampled numbers: how many there are.
        size: Of a sampled number: the number of draws.
    """

    value: Any
    note: str = ""
    published: Any = None
    holds: bool | None = None
    better: bool = False
    error: float | None = None
    z: float | None = None
    count: int = 1
    size: int | None = None


@dataclass(frozen=True)
class Item:
    """One line of a reproduction.

    Args:
        noise: Of a sampled number: the distance from the published one up to which it is within noise.
    """

    id: str
    where: str
    published: Any
    ours: Any
    tolerance: float
    status: Status
    note: str
    z: float | None = None
    size: int | None = None
    noise: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON values: infinity and fractions as text."""
        return {name: shown(value) for name, value in self.__dict__.items()}


def compare(published: Published, result: Result) -> Item:
    """Return the published value beside ours."""
    if (result.holds is not None) != (published.printing == "statement"):
        raise ValueError(f"{published.id}: a statement needs `holds`, and a number must not have it")
    expected = published.published if result.published is None else result.published
    z = _distance(expected, result)
    noise = None if result.error is None or math.isnan(result.error) else LIMIT * result.error
    status = _status(published, expected, result, z, noise)
    reason = {"erratum": published.erratum, "differs": published.differs or "not what the paper prints"}
    if noise is not None and abs(z or 0.0) <= LIMIT and not _decides(published, expected, noise):
        reason["differs"] = (
            f"too few draws to tell: two standard errors are {noise:.3g}, so that 0 would be accepted too"
        )
    parts = (reason.get(status, published.note), _evidence(status, expected, result, z, noise), result.note)
    note = "; ".join(part for part in parts if part)
    return Item(
        published.id, published.where, expected, result.value, published.tolerance, status, note, z, result.size, noise
    )


def _distance(expected: Any, result: Result) -> float | None:
    """Return the distance of a sampled number, or the largest one of several, in standard errors; None if it is not known."""
    if result.error is None:
        return result.z
    distance = score(float(result.value), float(expected), result.error)
    return None if math.isnan(distance) else distance


def _evidence(status: Status, expected: Any, result: Result, z: float | None, noise: float | None) -> str:
    if z is None or not result.size:
        return ""
    text = f"z {z:+.1f} over {result.size:,} draws"
    if result.count > 1:
        return f"{text}, the largest of {result.count}, at most {limit_of_largest(result.count):.1f}"
    if status != "within noise" or noise is None:
        return text
    return f"{text}; up to {noise:.3g} ({noise / abs(expected):.0%}) is within noise"


def _decides(published: Published, expected: Any, noise: float) -> bool:
    """Return whether the noise is smaller than the number: otherwise zero would be accepted as well."""
    return noise < max(abs(float(expected)), published.tolerance)


def _status(published: Published, expected: Any, result: Result, z: float | None, noise: float | None) -> Status:
    if result.better:
        return "better"
    if result.holds or (result.holds is None and AGREE[published.printing](published, expected, result.value)):
        return "reproduced"
    far = math.nan if z is None or (result.size or 0) < LEAST_DRAWS else z
    if abs(far) <= limit_of_largest(result.count) and (noise is None or _decides(published, expected, noise)):
        return "within noise"
    if published.printing == "baseline" and far < -LIMIT:
        return "better"
    return "erratum" if published.corrected is not None and _corrected(published, result.value) else "differs"


def summary(items: Sequence[Item]) -> str:
    """Count the items by status: ``98 reproduced, 9 errata, 2 differ``."""
    counts = {status: sum(item.status == status for item in items) for status in WORDS}
    parts = [f"{count} {WORDS[status][count != 1]}" for status, count in counts.items() if count]
    return ", ".join(parts) or "nothing"


def read_published(path: Path) -> tuple[dict[str, Any], list[Published]]:
    """Read a paper's data file: its facts, and its items in the paper's order."""
    content = json.loads(path.read_text("utf-8"))
    return content, [Published(**item) for item in content["items"]]


def score(ours: float, published: float, error: float) -> float:
    """Return how many standard errors of the difference ours is above the published value; NaN if no error is known."""
    if error > 0:
        return (ours - published) / error
    return 0.0 if error == 0 and ours == published else math.nan


def shown(value: Any) -> Any:
    """Return a value as JSON can represent it."""
    if isinstance(value, Mapping):
        return {str(key): shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if isinstance(value, Fraction) else value


def _corrected(published: Published, ours: Any) -> bool:
    """Return whether ours is the corrected value: equal, or within its written digits."""
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
