"""The numbers of answers as rows: of one answer, of a derived one, and of several answers in one table."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.answer.mechanisms.mechanism import axes_of
from tidegate.answer.request import Query
from tidegate.extras import late
from tidegate.frames import TEMPORAL, Row, arrow_column, rename_labels
from tidegate.policy import Moment, Policy
from tidegate.tables.axes import Axis
from tidegate.tables.mappings import Grouping

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.answer.result import Answer
else:
    pa = late("pyarrow")

ALL = slice(None)
LONG = ("question", "value", "low", "high")
POINTS = ("mean", "median", "quantile", "min", "max")  # statistics that are values of the column


def labels_of(query: Query, policy: Policy) -> dict[str, list[Any]]:
    """Return the labels of the cells along each axis."""
    return {axis.name: [label_of(label) for label in _shown_labels(axis)] for axis in axes_of(query, policy)}


def _shown_labels(axis: Axis) -> list[Any]:
    """Return the labels of an axis. An expression whose values are all at midnight, such as months, has dates."""
    labels = axis.labels()
    present = (label for label in labels if label is not None)
    is_calendar = isinstance(axis.attribute, Grouping) and all(map(_is_midnight, present))
    return [label and label.date() for label in labels] if is_calendar else labels


def _is_midnight(label: Any) -> bool:
    return isinstance(label, dt.datetime) and label.time() == dt.time()


def label_of(label: Any) -> Any:
    """Return the label of a cell as a JSON value; dates and times in ISO 8601."""
    if isinstance(label, dt.date | dt.time):
        return label.isoformat()
    return label if label is None or isinstance(label, str | int) else float(label)


def moment_of(query: Query, policy: Policy) -> Moment | None:
    """Return the column of dates or times whose positions the numbers of an answer are."""
    attribute = policy.attributes.get(query.column)
    return attribute if isinstance(attribute, Moment) and query.statistic in POINTS else None


def number_of(value: float, moment: Moment | None) -> Any:
    """Return a number of an answer as a JSON value: a position as a date or time in ISO 8601."""
    return value if moment is None else label_of(moment.shown(value))


def kinds_of(query: Query, policy: Policy) -> dict[str, type]:
    """Return the types of label columns that are texts in JSON: dates and times."""
    kinds = {}
    for axis in axes_of(query, policy):
        if axis.attribute.kind in TEMPORAL:
            kinds[axis.name] = TEMPORAL[axis.attribute.kind]
        elif isinstance(axis.attribute, Grouping):
            kind = next((type(label) for label in _shown_labels(axis) if label is not None), None)
            kinds |= {axis.name: kind} if kind in (dt.date, dt.datetime, dt.time) else {}
    return kinds


def cell_rows(
    labels: Mapping[str, Sequence[Any]], numbers: Mapping[str, NDArray[Any]], cells: slice = ALL
) -> list[Row]:
    """Return one row per cell: its labels, and its numbers by name. `cells` is a part of them, without a step."""
    columns = rename_labels(labels, numbers)
    keys = [*(columns[name] for name in labels), *numbers]
    groups = islice(product(*labels.values()), cells.start, cells.stop)
    values = zip(*(array.reshape(-1)[cells].tolist() for array in numbers.values()), strict=True)
    return [dict(zip(keys, group + row, strict=True)) for group, row in zip(groups, values, strict=True)]


def cell_table(
    labels: Mapping[str, Sequence[Any]], numbers: Mapping[str, NDArray[Any]], kinds: Mapping[str, type]
) -> pa.Table | None:
    """Return the table of `cell_rows` without a Python object per cell; None if a column needs one."""
    columns = rename_labels(labels, numbers)
    if kinds.keys() - set(columns.values()) or any(array.dtype.kind not in "if" for array in numbers.values()):
        return None
    sizes = [len(values) for values in labels.values()]
    arrays = {}
    for axis, (name, values) in enumerate(labels.items()):
        repeated = np.repeat(np.arange(sizes[axis]), math.prod(sizes[axis + 1 :]))
        indices = np.tile(repeated, math.prod(sizes[:axis]))
        arrays[columns[name]] = arrow_column(list(values), kinds.get(columns[name])).take(pa.array(indices))
    return pa.table(arrays | {name: pa.array(array.reshape(-1)) for name, array in numbers.items()})


def joint_rows(answers: Sequence[Answer]) -> list[Row]:
    """Return several answers as one table: side by side if they have the same groups, otherwise one below the other."""
    if not _has_equal_groups(answers):
        return _long(answers)
    columns = _columns(answers)
    rows = cell_rows(answers[0].labels, {name: numbers for name, (numbers, _) in columns.items()})
    return [row | {name: number_of(row[name], moment) for name, (_, moment) in columns.items()} for row in rows]


def joint_kinds(answers: Sequence[Answer]) -> dict[str, type]:
    """Return the types of the columns of that table that are texts in JSON: dates and times."""
    kinds = {name: kind for answer in answers for name, kind in kinds_of(answer.query, answer.policy).items()}
    columns = _columns(answers) if _has_equal_groups(answers) else {}
    return kinds | {name: TEMPORAL[moment.kind] for name, (_, moment) in columns.items() if moment is not None}


def _has_equal_groups(answers: Sequence[Answer]) -> bool:
    return all(answer.labels == answers[0].labels for answer in answers)


def _columns(answers: Sequence[Answer]) -> dict[str, tuple[NDArray[Any], Moment | None]]:
    """Return the numbers of answers side by side, each with the column of dates or times whose positions they are."""
    columns: dict[str, tuple[NDArray[Any], Moment | None]] = {}
    for answer in answers:
        read, name, moment = answer.read(), _name(answer.query, columns), moment_of(answer.query, answer.policy)
        columns[name] = read.values, moment
        if read.low is not None and read.high is not None:
            columns |= {f"{name}_low": (read.low, moment), f"{name}_high": (read.high, moment)}
    return columns


def _name(query: Query, used: Mapping[str, Any]) -> str:
    """Return the column of an answer: `count`, `mean_age`; a second one is `mean_age_2`."""
    name = f"{query.statistic}_{query.column}" if query.column else query.statistic
    names = [name, *(f"{name}_{number}" for number in range(2, len(used) + 2))]
    return next(name for name in names if name not in used)


def _long(answers: Sequence[Answer]) -> list[Row]:
    columns = rename_labels(dict.fromkeys(name for answer in answers for name in answer.labels), LONG)
    rows = []
    for answer in answers:
        labels, read, moment = answer.labels, answer.read(), moment_of(answer.query, answer.policy)
        for index in np.ndindex(read.values.shape):
            cell = {name: labels[name][i] for name, i in zip(labels, index, strict=True)}
            groups = {column: cell.get(name) for name, column in columns.items()}
            value, low, high = (
                None if numbers is None else number_of(numbers[index].item(), moment)
                for numbers in (read.values, read.low, read.high)
            )
            rows.append({"question": answer.query.says(), **groups, "value": value, "low": low, "high": high})
    return rows
