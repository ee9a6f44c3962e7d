"""The printed numbers of the paper, read from pmse.json."""

from __future__ import annotations

from pathlib import Path

from tidegate_papers.item import Published, read_published

FACTS, PUBLISHED = read_published(Path(__file__).parent.parent / "pmse.json")
ITEMS: dict[str, Published] = {item.id: item for item in PUBLISHED}
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
DEPTHS = {"1": 1, "2": 2, "5": 5, "unlimited": 30}
CPS = (0.01, 0.001)
