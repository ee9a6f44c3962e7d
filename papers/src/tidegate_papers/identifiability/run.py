"""All items of the paper, in its order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate_papers.identifiability import boxes, examples, tables
from tidegate_papers.identifiability.adult import Adult
from tidegate_papers.identifiability.paper import PUBLISHED
from tidegate_papers.item import Item, Result, compare


@dataclass(frozen=True)
class Reproduction:
    """The computed items, the number of items left out for lack of data, and the panels of the figures."""

    items: tuple[Item, ...]
    left_out: int
    panels: tuple[boxes.Panel, ...]


def reproduce(adult: Path | None = None) -> Reproduction:
    """Compute every number, table and figure; items that need adult.csv only if it is given."""
    drawn = boxes.panels()
    results: dict[str, Result] = {
        **examples.section_3_5(),
        **examples.section_4_1(),
        **examples.table_2(),
        **examples.figure_1(),
        **tables.section_5(),
        **tables.table_4(),
        **boxes.figures_2_to_4(drawn),
    }
    if adult is not None:
        results |= tables.with_data(Adult(adult))
    items = tuple(compare(item, results[item.id]) for item in PUBLISHED if item.id in results)
    return Reproduction(items, len(PUBLISHED) - len(items), tuple(drawn))
