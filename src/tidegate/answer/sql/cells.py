"""The tables of cells of cores: released numbers, or invented ones for a rehearsal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.answer.mechanisms import read_stored
from tidegate.answer.mechanisms.mechanism import Reading, axes_of, noise_of, noises_of
from tidegate.answer.mechanisms.regression import Sums, float_noise
from tidegate.answer.request import Query
from tidegate.answer.rows import moment_of
from tidegate.answer.sql.cores import Core, Slot
from tidegate.extras import late
from tidegate.noise import Laplace
from tidegate.policy import Date, Numeric, Policy
from tidegate.tables.mappings import Grouping
from tidegate.tables.tabulation import values_of
from tidegate.tables.universe import cells_where, grouping_of, measured_of

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = late("pyarrow")

COUNTS = ("count", "persons", "distinct", "histogram")
RANKS = ("quantile", "min", "max")
ROUND = 2**53
ROW, ROWS_OF_A_SET = "row_of_cells", 2**40  # a number for every cell
Array = NDArray[Any]


@dataclass(frozen=True)
class Numbers:
    """The answer to one query: its reading and what it was stored as; by this, its parts can be computed."""

    query: Query
    policy: Policy
    stored: Any
    reading: Reading
    event: Any = None

    def redrawn(self, random: np.random.Generator) -> Numbers:
        """Return the answer with its noise drawn again around it: in floating point, which is enough for an interval."""
        stored = {**self.stored}
        if "cells" in stored:
            stored["cells"] = _again(stored["cells"], noise_of(self.event), random)
        elif "moments" in stored:
            noises = noises_of(self.event)
            stored["moments"] = [
                None if cells is None or noise is None else _again(cells, noise, random)
                for cells, noise in zip(stored["moments"], noises, strict=True)
            ]
        elif "sums" in stored:
            stored["sums"] = (np.array(stored["sums"], np.float64) + float_noise(self.event, random, 1)[0]).tolist()
        else:
            raise ValueError("Only numbers with added noise can be drawn again.")
        reading = read_stored(self.query, self.policy, self.event, stored, confidence=0.95)
        return Numbers(self.query, self.policy, stored, reading, self.event)


def _again(cells: Any, noise: Any, random: np.random.Generator) -> Any:
    exact = np.array(cells, np.float64)
    if isinstance(noise, Laplace):
        drawn = random.laplace(0, float(noise.scale), exact.shape)
    else:
        drawn = random.normal(0, float(noise.sigma), exact.shape)
    return np.round(exact + drawn).astype(np.int64).tolist()


def is_plain_number(slot: Slot) -> bool:
    measure = slot.measure
    return (
        slot.public is None
        and measure.part == "value"
        and measure.factor == 1
        and measure.query.statistic not in (*RANKS, "regression")
    )


# ---- tables of cells


def core_table(core: Core, numbers: Callable[[Query], Numbers]) -> pa.Table:
    """Return the cells of a core: groups g0, ..., measures m0, ..., and the interval of those that have one."""
    return pa.concat_tables(
        [_set_table(core, index, numbers) for index in range(len(core.sets))], promote_options="permissive"
    )


def _set_table(core: Core, index: int, numbers: Callable[[Query], Numbers]) -> pa.Table:
    if index not in core.layouts:
        core.layouts[index] = _layout(core, index)
    shape, flat, groups = core.layouts[index]
    columns = dict(groups)
    for position, slot in enumerate(core.slots):
        columns |= _slot_columns(f"m{position}", slot, index, shape, flat, numbers)
    return pa.table({**columns, ROW: pa.array(flat + ROWS_OF_A_SET * index)})


def _layout(core: Core, index: int) -> tuple[tuple[int, ...], Any, dict[str, Any]]:
    """Return the shape of a set's cells, the cells that the condition allows, and their groups: the same for all numbers."""
    chosen = core.sets[index]
    axes = [_group_labels(core, position) for position in chosen]
    shape = tuple(len(labels) for labels, _ in axes)
    allowed = np.ones(shape, np.bool_)
    for axis, (_, mask) in enumerate(axes):
        allowed &= mask.reshape([-1 if axis == other else 1 for other in range(len(axes))])
    flat = np.flatnonzero(allowed.reshape(-1))
    columns: dict[str, Any] = {}
    for position, _ in enumerate(core.groups):
        if position in chosen:
            labels = axes[chosen.index(position)][0]
            places = np.unravel_index(flat, shape)[chosen.index(position)]
            columns[f"g{position}"] = labels.take(pa.array(places))
        else:
            columns[f"g{position}"] = pa.nulls(len(flat), _group_labels(core, position)[0].type)
    return shape, flat, columns


def leaves_out_cells(core: Core, position: int) -> bool:
    """Return whether the condition excludes cells of a grouping."""
    name = core.groups[position]
    attribute = grouping_of(core.policy, name)
    if isinstance(attribute, Grouping):
        count = len(attribute.values)
    else:
        count = attribute.size + (getattr(attribute, "missing", "dropped") == "value")
    return not cells_where(core.policy, name, core.texts, count).all()


def _group_labels(core: Core, position: int) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return the labels of a grouping, and those that the condition on its own columns allows."""
    name = core.groups[position]
    attribute = grouping_of(core.policy, name)
    if isinstance(attribute, Grouping):
        labels = pa.array(attribute.values, attribute.arrow_type)
    else:
        labels = values_of(attribute)
        labels = labels if getattr(attribute, "missing", "dropped") == "value" else labels.slice(0, attribute.size)
    return labels, cells_where(core.policy, name, core.texts, len(labels))


def _slot_columns(
    name: str, slot: Slot, index: int, shape: tuple[int, ...], flat: Any, numbers: Callable[[Query], Numbers]
) -> dict[str, Any]:
    if slot.public is not None:
        value = slot.public
        kind = pa.int64() if value.denominator == 1 else pa.float64()
        return {name: pa.array([int(value) if value.denominator == 1 else float(value)] * len(flat), kind)}
    parts = [numbers(query) for query in slot.queries[index]]
    noisy = np.broadcast_to(part_of(slot, parts), shape).reshape(-1)[flat]
    columns = {name: _typed(noisy, slot, parts[0])}
    if is_plain_number(slot):
        reading = parts[0].reading
        ends: dict[str, Any] = {"value": reading.values, "low": reading.low, "high": reading.high}
        for end, cells in ends.items():
            columns[f"{name}_{end}"] = _typed(np.broadcast_to(cells, shape).reshape(-1)[flat], slot, parts[0])
    return columns


def _typed(values: Array, slot: Slot, of: Numbers) -> pa.Array:
    query = of.query
    if query.statistic in COUNTS and slot.measure.factor.denominator == 1:
        return pa.array(values.astype(np.int64))
    moment = moment_of(query, of.policy)
    if moment is not None and slot.measure.part == "value":
        return _moments(values, moment, is_mean=query.statistic == "mean")
    if query.statistic in RANKS and slot.measure.part == "value":
        return _ranked(values, of)
    if query.statistic == "sum":
        attribute = measured_of(of.policy, query.column)
        whole = isinstance(attribute, Numeric) and attribute.low.denominator == attribute.width.denominator == 1
        if whole and np.abs(values.astype(np.float64)).max(initial=0) < ROUND:
            return pa.array(np.round(values.astype(np.float64)).astype(np.int64))
    return pa.array(values.astype(np.float64))


def _moments(values: Array, moment: Any, *, is_mean: bool) -> pa.Array:
    """Return means and ranked values of dates or times as such, within the bounds of the column. A mean of dates has a time."""
    positions = np.clip(np.nan_to_num(values.astype(np.float64)), 0, moment.size - 1)
    if is_mean and isinstance(moment, Date):
        return pa.array([moment.point(position) for position in positions.tolist()], pa.timestamp("us"))
    return pa.array([moment.shown(position) for position in positions.tolist()], values_of(moment).type)


def _ranked(values: Array, of: Numbers) -> pa.Array:
    """Return ranked numbers, whole ones of a whole column."""
    attribute: Any = measured_of(of.policy, of.query.column)
    if attribute.low.denominator == attribute.width.denominator == 1 and of.query.statistic != "quantile":
        return pa.array(np.round(values.astype(np.float64)).astype(np.int64))
    return pa.array(values.astype(np.float64))


def part_of(slot: Slot, parts: list[Numbers]) -> Array:
    """Return the number that an aggregate stands for, from the noisy answers to its queries."""
    measure = slot.measure
    values = np.asarray(PARTS[measure.part](parts))
    return values if measure.factor == 1 else values * float(measure.factor)


def _value(parts: list[Numbers]) -> Array:
    return np.asarray(parts[0].reading.noisy)


def _population(parts: list[Numbers]) -> Array:
    """Return a sample variance or deviation as that of the population: times (n - 1) / n."""
    of = parts[0]
    stored = of.stored["moments"][0]
    rows = np.maximum(np.asarray(of.policy.dataset.rows if stored is None else stored, np.float64), 1.0)
    factor = np.maximum(rows - 1, 0) / rows
    return np.asarray(of.reading.noisy * (factor if of.query.statistic == "variance" else np.sqrt(factor)))


def _spreads(of: Numbers) -> tuple[float, float, float]:
    """Return the variance of the predictor, the covariance (both of the population), and the number of rows."""
    return Sums(of.query, of.policy).spreads(np.array(of.stored["sums"], np.float64))


def _covariance(parts: list[Numbers]) -> Array:
    _, covariance, rows = _spreads(parts[0])
    return np.asarray(covariance * rows / max(rows - 1, 1.0))


def _correlation(parts: list[Numbers]) -> Array:
    variance, covariance, rows = _spreads(parts[0])
    factor = rows / max(rows - 1, 1.0)
    spread = max(variance * factor, 0.0) * max(float(np.asarray(parts[1].reading.noisy)), 0.0)
    return np.asarray(float(np.clip(covariance * factor / math.sqrt(spread), -1, 1)) if spread > 0 else 0.0)


PARTS: dict[str, Callable[[list[Numbers]], Array]] = {
    "value": _value,
    "population": _population,
    "slope": lambda parts: np.asarray(parts[0].reading.values[1]),
    "intercept": lambda parts: np.asarray(parts[0].reading.values[0]),
    "covariance": _covariance,
    "covariance_pop": lambda parts: np.asarray(_spreads(parts[0])[1]),
    "correlation": _correlation,
    "determination": lambda parts: np.asarray(_correlation(parts) ** 2),
}


# ---- invented numbers


def inventor(policy: Policy, random: np.random.Generator) -> Callable[[Query], Numbers]:
    """Return answers that nobody computed: small positive numbers in every cell."""

    def invent(query: Query) -> Numbers:
        if query.statistic == "regression":
            sums = random.uniform(10, 100, len(Sums(query, policy).pairs))
            pair = random.uniform(1, 2, 2)
            return Numbers(query, policy, {"sums": sums.tolist()}, Reading(pair, pair, pair, pair))
        shape = tuple(axis.length for axis in axes_of(query, policy))
        values = random.integers(10, 100, shape)
        if query.statistic in RANKS:
            values = np.minimum(values, measured_of(policy, query.column).size - 1)
        return Numbers(
            query, policy, {"moments": [values.tolist(), None, None]}, Reading(values, values, values, values)
        )

    return invent
