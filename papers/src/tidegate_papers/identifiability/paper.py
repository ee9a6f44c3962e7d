"""The printed numbers of the paper, read from identifiability.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate_papers.item import read_published

FACTS, PUBLISHED = read_published(Path(__file__).parent.parent / "identifiability.json")
ROWS: int = FACTS["rows"]
RHOS = ("0.1", "0.001")  # of Table 4


@dataclass(frozen=True)
class Attribute:
    """A column with the bounds of Table 3. Every whole number between them is a possible missing value (Section 5)."""

    code: str
    name: str
    lowest: int
    highest: int

    @property
    def span(self) -> int:
        return self.highest - self.lowest

    @property
    def worlds(self) -> int:
        return self.span + 1


ATTRIBUTES = {code: Attribute(code, **facts) for code, facts in FACTS["attributes"].items()}


def printed(name: str) -> float:
    """Return a number as the paper prints it."""
    return float(next(item.published for item in PUBLISHED if item.id == name))
