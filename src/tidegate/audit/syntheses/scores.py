"""What a diary or a synthetic table says about the target: numbers by which an attacker decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tidegate.arrays import Floats
from tidegate.audit.syntheses.neighbors import World, codes_of
from tidegate.synthesize.diary import Step
from tidegate.synthesize.facts import Column
from tidegate.synthesize.plan import SIZE
from tidegate.synthesize.result import SyntheticTable

TABLE_LOOKS = (
    "share of rows at the target's value",
    "distance of the nearest row",
    "rows like the target's under the margins",
)


def speaks_fully(run: Sequence[Step], at: World) -> bool:
    """Whether every noisy count says that the target is at the far value, as clearly as counts can.

    With Laplace noise a count at or beyond what it would be in one world favours it by the whole of its price: this is the
    event with the largest ratio, known before anything is drawn.
    """
    counts = list(_counts(run, at))
    near, far = at.others - at.far_others, at.far_others + at.reach
    return bool(counts) and all(low <= near and high >= far for low, high, _ in counts)


def by_noise(run: Sequence[Step], at: World) -> float:
    """How much noisy counts speak for the target's being far away, by the noise that the price of each step means."""
    near, far = at.others - at.far_others, at.far_others
    return sum(
        (abs(low - near - at.reach) - abs(low - near) + abs(high - far) - abs(high - far - at.reach)) / scale
        for low, high, scale in _counts(run, at)
    )


def _counts(run: Sequence[Step], at: World) -> Iterator[tuple[float, float, float]]:
    """Of every step about one column: its counts of the lowest and of the highest cell, and the scale of their noise."""
    for step in run:
        columns = [column for column in at.columns if column.name in step.name]
        value = step.value.ravel()
        if len(columns) == 1 and value.size >= 2 + columns[0].missing and step.name != SIZE and step.epsilon:
            yield float(value[0]), float(value[-1 - columns[0].missing]), 2 * at.reach / float(step.epsilon)


def by_example(runs: list[list[Step]], here: list[list[Step]], there: list[list[Step]]) -> Floats:
    """How much each run looks like those of one table and not like those of the other, for numbers of any kind: centres and
    spreads of each side are learnt from examples."""
    flat = [_flat(some) for some in (runs, here, there)]
    width = min((some.shape[1] for some in flat if len(some)), default=0)
    given, one, other = (some[:, :width] for some in flat)
    if not width or not len(one) or not len(other):
        return np.zeros(len(runs))
    centres = [np.median(some, axis=0) for some in (one, other)]
    spread = np.mean(
        [np.abs(some - centre).mean(axis=0) for some, centre in zip((one, other), centres, strict=True)], axis=0
    )
    apart = (
        np.abs(one.mean(axis=0) - other.mean(axis=0))
        > 4 * np.hypot(one.std(axis=0), other.std(axis=0)) / len(one) ** 0.5
    )
    sides = [np.abs(given - centre) / np.maximum(spread, 1e-9) for centre in centres]
    return np.asarray(((sides[0] - sides[1]) * apart).sum(axis=1))


def _flat(runs: list[list[Step]]) -> Floats:
    """The diaries as rows of numbers; of steps that say which cells were drawn, how often each was."""
    rows = [np.concatenate([_numbers(step) for step in run]) if run else np.zeros(0) for run in runs]
    width = min((row.size for row in rows), default=0)
    return np.array([row[:width] for row in rows], np.float64).reshape(len(rows), width)


def _numbers(step: Step) -> Floats:
    value = step.value.ravel()
    if step.name == "rows" and value.size:  # cells in the order in which they were drawn
        return np.array([(value == 0).sum(), (value == value.max()).sum(), value.sum()], np.float64)
    return value.astype(np.float64)


def table_looks(table: SyntheticTable, at: World) -> list[float]:
    """What an attacker computes of a synthetic table: three numbers that tell of the target."""
    codes = codes_of(table, at)
    target = np.array(at.farthest)
    sizes = np.array([max(1, column.size - 1) for column in at.columns])
    cells = np.stack([column.cell_of(codes[:, place]) for place, column in enumerate(at.columns)], axis=1)
    wanted = np.array([int(column.cell_of(target[place : place + 1])[0]) for place, column in enumerate(at.columns)])
    distances = (np.abs(codes - target) / sizes).sum(axis=1)
    like = np.log((cells == wanted).mean(axis=0) + 1 / (1 + len(cells))).sum()
    return [float((cells == wanted).all(axis=1).mean()), float(distances.min()), float(like)]


def guess(run: list[Step], worlds: Sequence[int], at: World) -> int:
    """The value under which the noise in the margin of the target's column would be smallest."""
    column = at.columns[0]
    for step in run:
        value = step.value.ravel()
        if column.name in step.name and value.size == column.cells:
            others = value - at.rows * (np.arange(value.size) == 0) + at.reach * (np.arange(value.size) == 0)
            costs = [np.abs(others - at.reach * (np.arange(value.size) == cell(column, code))).sum() for code in worlds]
            return worlds[int(np.argmin(costs))]
    return worlds[0]


def cell(column: Column, code: int) -> int:
    return int(column.cell_of(np.array([code]))[0])
