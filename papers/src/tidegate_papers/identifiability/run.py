"""The whole paper, item by item, in its order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate_papers.identifiability import boxes, examples, tables
from tidegate_papers.identifiability.adult import Adult
from tidegate_papers.identifiability.paper import PUBLISHED
from tidegate_papers.item import Found, Item, compare


@dataclass(frozen=True)
class Reproduction:
    """The items that could be computed, how many could not for want of data, and what the figures show."""

    items: tuple[Item, ...]
    left_out: int
    panels: tuple[boxes.Panel, ...]


def reproduce(adult: Path | None = None) -> Reproduction:
    """Every worked number, table and figure; those that need adult.csv only where it is given."""
    drawn = boxes.panels()
    found: dict[str, Found] = {
        **examples.section_3_5(),
        **examples.section_4_1(),
        **examples.table_2(),
        **examples.figure_1(),
        **tables.section_5(),
        **tables.table_4(),
        **boxes.figures_2_to_4(drawn),
    }
    if adult is not None:
        found |= tables.with_data(Adult(adult))
    items = tuple(compare(item, found[item.id]) for item in PUBLISHED if item.id in found)
    return Reproduction(items, len(PUBLISHED) - len(items), tuple(drawn))
