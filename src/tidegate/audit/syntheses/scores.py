"""Scores of a diary or a synthetic table: numbers by which an adversary decides about the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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


def is_full_evidence(run: Sequence[Step], at: World) -> bool:
    """Return whether every noisy count favors the far value of the target as strongly as a count can.

    With Laplace noise a count at or beyond its value in one world favors that world by its whole price: this is the event
    with the largest ratio, known before anything is drawn. Gaussian noise has no such event; the one that names the right
    world most often is that all counts together favor it.
    """
    if at.z is not None:
        return noise_score(run, at) > 0
    counts = list(_counts(run, at))
    near, far = at.others - at.far_others, at.far_others + at.reach
    return bool(counts) and all(low <= near and high >= far for low, high, _ in counts)


def noise_score(run: Sequence[Step], at: World) -> float:
    """Return the evidence of noisy counts for the far value, by the noise that the price of each step implies."""
    near, far = at.others - at.far_others, at.far_others
    total = 0.0
    for low, high, weight in _counts(run, at):
        if_near, if_far = np.array([low - near - at.reach, high - far]), np.array([low - near, high - far - at.reach])
        total += weight * float((_against(if_near, at) - _against(if_far, at)).sum())
    return total


def _against(noise: Any, at: World) -> Any:
    """Return the evidence against noise of this size, up to a factor: Laplace noise, or Gaussian noise with Z."""
    return np.abs(noise) if at.z is None else np.square(noise)


def _counts(run: Sequence[Step], at: World) -> Iterator[tuple[float, float, float]]:
    """Yield for every step about one column its counts of the lowest and highest cell, and the weight of their noise."""
    for step in run:
        columns = [column for column in at.columns if column.name in step.name]
        value = step.value.ravel()
        weight = step.epsilon / (2 * at.reach) if at.z is None else step.loss.z / at.reach**2
        if len(columns) == 1 and value.size >= 2 + columns[0].missing and step.name != SIZE and weight:
            yield float(value[0]), float(value[-1 - columns[0].missing]), float(weight)


def example_scores(runs: list[list[Step]], here: list[list[Step]], there: list[list[Step]]) -> Floats:
    """Return how much each run resembles those of one table rather than the other, for numbers of any kind.

    Centers and spreads of each side are learned from examples.
    """
    flat = [_flat(some) for some in (runs, here, there)]
    width = min((some.shape[1] for some in flat if len(some)), default=0)
    runs_flat, first, second = (some[:, :width] for some in flat)
    if not width or not len(first) or not len(second):
        return np.zeros(len(runs))
    centers = [np.median(some, axis=0) for some in (first, second)]
    spread = np.mean(
        [np.abs(some - center).mean(axis=0) for some, center in zip((first, second), centers, strict=True)], axis=0
    )
    apart = (
        np.abs(first.mean(axis=0) - second.mean(axis=0))
        > 4 * np.hypot(first.std(axis=0), second.std(axis=0)) / len(first) ** 0.5
    )
    sides = [np.abs(runs_flat - center) / np.maximum(spread, 1e-9) for center in centers]
    return np.asarray(((sides[0] - sides[1]) * apart).sum(axis=1))


def _flat(runs: list[list[Step]]) -> Floats:
    """Return the diaries as rows of numbers; for steps that list drawn cells, how often each was drawn."""
    rows = [np.concatenate([_numbers(step) for step in run]) if run else np.zeros(0) for run in runs]
    width = min((row.size for row in rows), default=0)
    return np.array([row[:width] for row in rows], np.float64).reshape(len(rows), width)


def _numbers(step: Step) -> Floats:
    value = step.value.ravel()
    if step.name == "rows" and value.size:  # cells in the order in which they were drawn
        return np.array([(value == 0).sum(), (value == value.max()).sum(), value.sum()], np.float64)
    return value.astype(np.float64)


def table_looks(table: SyntheticTable, at: World) -> list[float]:
    """Return three numbers of a synthetic table that depend on the target."""
    codes = codes_of(table, at)
    target = np.array(at.farthest)
    sizes = np.array([max(1, column.size - 1) for column in at.columns])
    cells = np.stack([column.cell_of(codes[:, index]) for index, column in enumerate(at.columns)], axis=1)
    target_cells = np.array(
        [int(column.cell_of(target[index : index + 1])[0]) for index, column in enumerate(at.columns)]
    )
    distances = (np.abs(codes - target) / sizes).sum(axis=1)
    like = np.log((cells == target_cells).mean(axis=0) + 1 / (1 + len(cells))).sum()
    return [float((cells == target_cells).all(axis=1).mean()), float(distances.min()), float(like)]


def guess(run: list[Step], worlds: Sequence[int], at: World) -> int:
    """Return the value under which the noise in the margin of the target's column would be smallest."""
    column = at.columns[0]
    for step in run:
        value = step.value.ravel()
        if column.name in step.name and value.size == column.cells:
            others = value - at.rows * (np.arange(value.size) == 0) + at.reach * (np.arange(value.size) == 0)
            costs = [
                _against(others - at.reach * (np.arange(value.size) == cell(column, code)), at).sum() for code in worlds
            ]
            return worlds[int(np.argmin(costs))]
    return worlds[0]


def cell(column: Column, code: int) -> int:
    return int(column.cell_of(np.array([code]))[0])
