"""Statements of the text and of tables about themselves: Section 7.2, Figures 2, 6, 8, 9, 11 and 18.

Sections and figures are checked against the printed tables: sentences, totals and percentages, and fitting the baseline
exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from tidegate.demo.soldiers import AGES, BASELINE, COUNTS, LOCATIONS, SHARES
from tidegate.risk.exposure import fit_baseline
from tidegate_papers.item import Published, Result, compare
from tidegate_papers.release.examples import WHOLE
from tidegate_papers.release.paper import EXPECTED, FACTS, LEVELS, TABLES, TESTS, printed

Measure = Callable[[str, str, str], float]  # of level, test, location


def released(level: str, test: str, name: str) -> float:
    """Return a mean of Figure 16, as printed."""
    return float(printed(f"fig16_{level}_{test}_{name}"))


def share(level: str, test: str, name: str) -> float:
    """Return the same as a share of the location's records."""
    return float(released(level, test, name) / SHARES[LOCATIONS.index(name)])


def fitting() -> list[float]:
    """Return the records of each location that fit the baseline, not rounded."""
    return list(fit_baseline(WHOLE, EXPECTED))


def figure_18() -> dict[str, Result]:
    """Return whole records that fit the baseline, their total, and printed percentages."""
    most = fitting()
    wholes = [*SHARES, sum(SHARES)]
    percentages = FACTS["figure_18_percent"]
    exact = [100 * value / whole for value, whole in zip([*most, math.fsum(most)], wholes, strict=True)]
    rows = list(zip((*LOCATIONS, "total"), percentages, exact, strict=True))
    agree = [follow(rows[:-1], decimals=1), follow(rows[-1:], decimals=2)]
    return {
        **{f"fig18_{name}": Result(value) for name, value in zip(LOCATIONS, most, strict=True)},
        "fig18_total": Result(sum(math.floor(value) for value in most)),
        "fig18_percentages": Result(sum(result.value for result in agree), "; ".join(f.note for f in agree if f.note)),
    }


def section_7_2() -> dict[str, Result]:
    """Return sentences that the printed tables confirm or not."""
    sums = {(level, test): math.fsum(_row(level, test, released)) for level in LEVELS for test in TESTS}
    return {
        "s72_lower_level": Result(all(sums["0.05", test] > sums["0.2", test] for test in TESTS)),
        "s72_dixon_20": Result(not _better_than_dixon("0.2")),
        "s72_dixon_5": Result(_better_than_dixon("0.05")),
        "s72_most_20": Result({test: _extreme(max, "0.2", test) for test in TESTS}),
        "s72_most_5": Result({test: _extreme(max, "0.05", test) for test in TESTS}),
        "s72_least_20": Result({test: _extreme(min, "0.2", test) for test in TESTS}),
        "s72_least_5": Result({test: _extreme(min, "0.05", test) for test in TESTS}),
        "s72_range": Result(COUNTS[AGES.index("25-29")][LOCATIONS.index("L2")]),
        "s72_oldest": Result(2 / (BASELINE[-1] / sum(BASELINE))),
        **_against_fitting(),
    }


def _against_fitting() -> dict[str, Result]:
    fits = dict(zip(LOCATIONS, fitting(), strict=True))
    cells = [(level, test, name) for level in LEVELS for test in TESTS for name in LOCATIONS]
    worse = [
        f"{test} {name} at {float(level):.0%}"
        for level, test, name in cells
        if released(level, test, name) < fits[name]
    ]
    twice = sum(released(*cell) > 2 * fits[cell[2]] for cell in cells)
    often = "in most cases" if 2 * twice > len(cells) else f"in {twice} of {len(cells)} cases"
    return {"s72_fitting_better": Result(worse), "s72_twice": Result(often)}


def _row(level: str, test: str, measure: Measure) -> list[float]:
    return [measure(level, test, name) for name in LOCATIONS]


def _extreme(which: Callable[[list[float]], float], level: str, test: str) -> str:
    row = _row(level, test, share)
    return LOCATIONS[row.index(which(row))]


def _better_than_dixon(level: str) -> list[str]:
    """Return the locations of which another test releases more than Dixon's."""
    others = [_row(level, test, released) for test in TESTS if test != "DQT"]
    best = [max(column) for column in zip(*others, strict=True)]
    dixon = _row(level, "DQT", released)
    return [name for name, other, own in zip(LOCATIONS, best, dixon, strict=True) if other > own]


Cell = tuple[str, float, float]  # position, printed value, value that follows


def figures() -> dict[str, Result]:
    """Return totals of part (a), percentages of parts (b) and (c)."""
    return {name: result for number in TABLES for name, result in _figure(number).items()}


def follow(cells: Iterable[Cell], *, decimals: int) -> Result:
    """Count the cells that print as they follow; the note names the others."""
    listed = list(cells)
    wrong = [cell for cell in listed if not _prints(cell, decimals)]
    note = ", ".join(f"{where} {value:.{decimals}f} for {ours:.{decimals}f}" for where, value, ours in wrong)
    return Result(len(listed) - len(wrong), note, published=len(listed))


def _figure(number: str) -> dict[str, Result]:
    counts, facts = TABLES[number], FACTS["figures"][number]
    rows, columns, total = counts.sum(axis=1), counts.sum(axis=0), int(counts.sum())
    sums = [
        *zip(AGES, facts["row_totals"], rows, strict=True),
        *zip(LOCATIONS, facts["totals"], columns, strict=True),
        ("all", facts["total"], total),
    ]
    shares = 100 * counts / columns
    inside = [
        (f"{location} {age}", facts["percent"][x][y], float(shares[x, y]))
        for x, age in enumerate(AGES)
        for y, location in enumerate(LOCATIONS)
    ]
    edges = [
        *zip(AGES, facts["baseline_percent"], 100 * rows / total, strict=True),
        *zip(LOCATIONS, facts["share_percent"], 100 * columns / total, strict=True),
    ]
    return {
        f"fig{number}_totals": follow(sums, decimals=0),
        f"fig{number}_percentages": follow([*inside, *edges], decimals=2),
    }


def _prints(cell: Cell, decimals: int) -> bool:
    where, value, ours = cell
    item = Published(where, "", float(value), "round", decimals=decimals)
    return compare(item, Result(float(np.float64(ours)))).status == "reproduced"
