"""Figures 2, 6, 8, 9 and 11: whether printed totals and percentages follow from the printed counts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidegate.demo.soldiers import AGES, LOCATIONS
from tidegate_papers.item import Found, Published, compare
from tidegate_papers.release.paper import FACTS, TABLES

Cell = tuple[str, float, float]  # where it stands, as printed, as it follows


def figures() -> dict[str, Found]:
    """Totals of part (a), percentages of parts (b) and (c)."""
    return {name: found for number in TABLES for name, found in _figure(number).items()}


def follow(cells: Iterable[Cell], *, decimals: int) -> Found:
    """How many cells print as they follow; the others are named."""
    given = list(cells)
    wrong = [cell for cell in given if not _prints(cell, decimals)]
    told = ", ".join(f"{where} {told:.{decimals}f} for {ours:.{decimals}f}" for where, told, ours in wrong)
    return Found(len(given) - len(wrong), told, published=len(given))


def _figure(number: str) -> dict[str, Found]:
    counts, told = TABLES[number], FACTS["figures"][number]
    rows, columns, total = counts.sum(axis=1), counts.sum(axis=0), int(counts.sum())
    sums = [
        *zip(AGES, told["row_totals"], rows, strict=True),
        *zip(LOCATIONS, told["totals"], columns, strict=True),
        ("all", told["total"], total),
    ]
    shares = 100 * counts / columns
    inside = [
        (f"{place} {age}", told["percent"][x][y], float(shares[x, y]))
        for x, age in enumerate(AGES)
        for y, place in enumerate(LOCATIONS)
    ]
    edges = [
        *zip(AGES, told["baseline_percent"], 100 * rows / total, strict=True),
        *zip(LOCATIONS, told["share_percent"], 100 * columns / total, strict=True),
    ]
    return {
        f"fig{number}_totals": follow(sums, decimals=0),
        f"fig{number}_percentages": follow([*inside, *edges], decimals=2),
    }


def _prints(cell: Cell, decimals: int) -> bool:
    where, told, ours = cell
    item = Published(where, "", float(told), "round", decimals=decimals)
    return compare(item, Found(float(np.float64(ours)))).status == "reproduced"
