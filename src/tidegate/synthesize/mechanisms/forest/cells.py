"""Cells that are found from the rows: a wide column starts with few cells, and heavy ones are cut until single codes stand alone.

Each level is one vector of noisy counts of disjoint cells. Which cells are cut is decided by noisy counts and public facts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tidegate.arrays import Bools, Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest.meter import Meter

EVEN_CELLS, WIDE = 16, 640  # even start cells; columns with more codes than WIDE also get growing ones
MOST_LEVELS = 6
ABOVE_NOISE = 4.0  # deviations above which a cell is cut
STEEP = 4  # a cell whose end is this many times its start is cut into growing cells
END = 2.0  # deviations above which the ends of a column begin


def start_cells(size: int) -> tuple[int, ...]:
    """Return the first codes of the cells that a column of `size` codes starts with: even, growing, and both ends alone."""
    starts = {0, 1, size - 1, *(size * j // EVEN_CELLS for j in range(EVEN_CELLS))}
    if size > WIDE:
        starts |= {nearest_root(size**j, EVEN_CELLS) for j in range(1, EVEN_CELLS)}
    return tuple(sorted(start for start in starts if 0 <= start < size))


def cut_cell(low: int, high: int, pieces: int) -> list[int]:
    """Return the first codes of the pieces of a cell [low, high): one code each, growing, or even ones."""
    if high - low <= pieces:
        return list(range(low, high))
    if low > 0 and high > STEEP * low:
        cuts = [nearest_root(low ** (pieces - j) * high**j, pieces) for j in range(1, pieces)]
    else:
        cuts = [low + round(Fraction((high - low) * j, pieces)) for j in range(1, pieces)]
    return sorted({low, *(cut for cut in cuts if low < cut < high)})


def nearest_root(power: int, degree: int) -> int:
    """Return the whole number nearest to the root of a positive whole number, computed in whole numbers."""
    doubled = power << degree
    low, high = 0, 1 << (-(-doubled.bit_length() // degree))
    while high - low > 1:  # the largest root with root**degree <= power * 2**degree
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= doubled else (low, middle)
    return (low + 1) // 2


def level_count(size: int, pieces: int, first: int = EVEN_CELLS) -> int:
    """Return how many levels a column can need."""
    width, levels = Fraction(size, first), 1
    while width > 1 and levels < MOST_LEVELS:
        width, levels = width / pieces, levels + 1
    return levels


@dataclass(frozen=True, eq=False)
class Level:
    """One vector of counts: the cells [starts, ends), their noisy counts, and the deviation of the noise."""

    starts: Ints
    ends: Ints
    noisy: Floats
    deviation: float


@dataclass(frozen=True, eq=False)
class FoundCells:
    """The final cells of a column: estimated counts, their variances, and which cells may contain rows."""

    column: Column
    estimate: Floats
    variance: Floats
    allowed: Bools


def find_cells(
    column: Column,
    rows: int,
    meter: Meter,
    count: Callable[[Column], Ints],
    *,
    parts: int,
    pieces: int,
    least: float,
    trim: bool,
) -> FoundCells:
    """Cut heavy cells level by level, count the final cells, and combine all counts.

    Half of the parts goes to the levels in equal shares, the rest and what the levels leave to the final cells. A cell is cut
    if its noisy count is above 4 deviations and above `least` rows.
    """
    levels: list[Level] = []
    most = level_count(column.size, pieces, min(EVEN_CELLS, len(column.starts)))
    share, left = parts // 2 // most, parts
    cells = list(column.starts)
    fresh = set(cells)
    while fresh and len(levels) < most and share:
        at_level = replace(column, starts=tuple(cells))
        positions = np.array([index for index, start in enumerate(cells) if start in fresh])
        noisy = meter.counts(
            f"level {len(levels)} of {column.name}",
            share,
            lambda at=at_level, where=positions: count(at)[where],  # type: ignore[misc]
        )
        left -= share
        starts, ends = np.array(cells)[positions], np.array([*cells[1:], column.size])[positions]
        levels.append(Level(starts, ends, noisy, meter.deviation(share)))
        heavy = (noisy > max(ABOVE_NOISE * levels[-1].deviation, least)) & (ends - starts > 1)
        fresh = set()
        for low, high in zip(starts[heavy].tolist(), ends[heavy].tolist(), strict=True):
            fresh.update(cut_cell(low, high, pieces))
        cells = sorted({*cells, *fresh})
        if len(levels) == most:
            break
    leaves = replace(column, starts=tuple(cells))
    noisy = meter.counts(f"margin of {column.name}", left, lambda: count(leaves))
    variance = np.full(noisy.size, meter.deviation(left) ** 2)
    before = variance.copy()
    estimate, variance = combine_levels(leaves, noisy, variance, levels)
    allowed = np.ones(noisy.size, np.bool_)
    if trim and levels:
        allowed = trimmed(leaves, estimate, before, levels[0])
    return FoundCells(leaves, estimate, variance, allowed)


def combine_levels(column: Column, noisy: Floats, variance: Floats, levels: Sequence[Level]) -> tuple[Floats, Floats]:
    """Return the counts of the final cells and their variances after every count of a coarser cell (least squares)."""
    estimate, variance, firsts = noisy.copy(), variance.copy(), np.array(column.starts)
    for level in reversed(levels):
        for start, end, count in zip(level.starts, level.ends, level.noisy, strict=True):
            inside = slice(*np.searchsorted(firsts, [start, end]))
            total = variance[inside].sum()
            gain = total / (total + level.deviation**2)
            estimate[inside] += variance[inside] * (gain * (count - estimate[inside].sum()) / total)
            variance[inside] *= 1 - variance[inside] * (gain / total)
    return estimate, variance


def trimmed(column: Column, estimate: Floats, variance: Floats, first: Level) -> Bools:
    """Return which cells stay: from both ends, start cells are dropped until their sum is clearly above its noise.

    Without this, noise puts a few rows far out in an empty declared range, and every mean is wrong.
    """
    places = np.searchsorted(np.array(column.starts), first.starts)
    inner = len(column.starts)
    sums = np.add.reduceat(estimate[:inner], places)
    variances = 1 / (1 / first.deviation**2 + 1 / np.add.reduceat(variance[:inner], places))
    ends = np.append(places[1:], inner)
    clear = [
        np.cumsum(sums[order]) > END * np.sqrt(np.cumsum(variances[order]))
        for order in (slice(None), slice(None, None, -1))
    ]
    allowed = np.ones(estimate.size, np.bool_)
    if not clear[0].any() or not clear[1].any():
        return allowed
    left, right = int(np.argmax(clear[0])), len(first.starts) - 1 - int(np.argmax(clear[1]))
    if left > right:
        return allowed
    allowed[: places[left]] = False
    allowed[ends[right] : inner] = False
    return allowed


MOST_SPIKES, FALSE_SPIKES = 200, 0.1


def cut_at_spikes(column: Column, count: Callable[[Column], Ints], meter: Meter, parts: int) -> Column:
    """Return the column with a separate cell for each frequent single code (pure losses only).

    Every code without its own cell is counted. The expected number of false spikes is FALSE_SPIKES.
    """
    inside = codes_without_a_cell(column)
    above = meter.scale(parts) * math.log(inside.size / (2 * FALSE_SPIKES))
    spikes = meter.frequent(
        f"spikes of {column.name}", parts, lambda: count(column)[inside], above=above, most=MOST_SPIKES
    )
    return column.cut_at(inside[spikes].tolist())


def codes_without_a_cell(column: Column) -> Ints:
    """Return the codes that share their cell with others."""
    widths = np.diff([*column.starts, column.size])
    return np.flatnonzero(np.repeat(widths > 1, widths))
