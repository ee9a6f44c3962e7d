"""The printed numbers of the paper, read from randomization.json."""

from __future__ import annotations

from pathlib import Path

from tidegate_papers.item import Published, read_published

FACTS, PUBLISHED = read_published(Path(__file__).parent.parent / "randomization.json")
ITEMS: dict[str, Published] = {item.id: item for item in PUBLISHED}
NOISES = ("uniform", "gaussian")
