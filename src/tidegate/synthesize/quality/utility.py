"""What an analyst would get from synthetic rows: predictions of original rows, and answers to random range queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.policy import Numeric
from tidegate.synthesize.quality.codes import CodedTable
from tidegate.synthesize.quality.ensemble import area_under_curve, boosted_scores
from tidegate.synthesize.quality.pairs import rank_correlation

LEAST_ROWS = 50  # with a value in the target, in each table
TEST = 0.2  # share of the original rows that no learner sees
MOST_VALUES = 5  # of a category that are predicted, each against the others
QUERIES, MOST_COLUMNS, SEED = 500, 3, 20_261_117


@dataclass(frozen=True)
class Prediction:
    """Boosted trees that predict the target in held-out original rows, learned from other original or from synthetic rows.

    AUC for a category (the mean over its most frequent values, by their shares), rank correlation for numbers and dates.
    """

    target: str
    measure: Literal["AUC", "rank correlation"]
    original: float
    synthetic: float
    rows: tuple[int, int, int]

    def to_dict(self) -> dict[str, Any]:
        rows = dict(zip(("original", "synthetic", "test"), self.rows, strict=True))
        return {
            "target": self.target,
            "measure": self.measure,
            "trained_on_original": self.original,
            "trained_on_synthetic": self.synthetic,
            "rows": rows,
        }


@dataclass(frozen=True)
class Queries:
    """The mean absolute error of the share of rows in random ranges of one to three columns.

    `sampling` is the mean error that a fresh sample of the original's size would have: what an analyst of the original
    accepts anyway.
    """

    count: int
    error: float
    sampling: float

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "mean_error": self.error, "sampling_error": self.sampling}


def predict(
    original: CodedTable,
    synthetic: Sequence[CodedTable],
    target: str,
    *,
    at_most: int,
    progress: Callable[[int, int], None],
) -> Prediction | None:
    """Train on synthetic rows and on original rows, test both on other original rows. None if the rows do not allow it."""
    tables = [_with_target(table, target) for table in (original, *synthetic)]
    names = tuple(name for name in original.names if name != target)
    if not names or min(table.rows for table in tables) < LEAST_ROWS:
        return None
    order = np.random.default_rng(SEED).permutation(tables[0].rows)
    held_out = round(TEST * len(order))
    test = tables[0].only(tables[0].names, order[:held_out][:at_most])
    train = tables[0].only(tables[0].names, order[held_out:][:at_most])
    learners = [train, *(table.only(table.names, slice(0, at_most)) for table in tables[1:])]
    is_number = isinstance(original.attributes[target], Numeric)
    score = _rank_score if is_number else _curve_score
    scores = []
    for number, table in enumerate(learners):
        progress(number, len(learners))
        scores.append(score(train, table, test, names, target))
    known = [value for value in scores if value is not None]
    if len(known) < len(scores):
        return None
    sizes = (train.rows, learners[1].rows, test.rows)
    measure: Literal["AUC", "rank correlation"] = "rank correlation" if is_number else "AUC"
    return Prediction(target, measure, known[0], float(np.mean(known[1:])), sizes)


def _with_target(table: CodedTable, target: str) -> CodedTable:
    codes = table.column(target)
    return table.only(table.names, (codes >= 0) & (codes < table.attributes[target].size))


def _curve_score(
    reference: CodedTable, train: CodedTable, test: CodedTable, names: tuple[str, ...], target: str
) -> float | None:
    values, amounts = np.unique(reference.column(target), return_counts=True)
    frequent = values[np.argsort(-amounts, kind="stable")][:MOST_VALUES]
    frequent = frequent[:1] if len(values) == 2 else frequent
    total, weight = 0.0, 0
    for value in frequent:
        chances = _fit(train, (train.column(target) == value).astype(np.float64), test, names, is_binary=True)
        area = area_under_curve(test.column(target) == value, chances)
        rows = int((test.column(target) == value).sum())
        total, weight = total + (area or 0.0) * rows, weight + (rows if area is not None else 0)
    return total / weight if weight else None


def _rank_score(
    reference: CodedTable, train: CodedTable, test: CodedTable, names: tuple[str, ...], target: str
) -> float | None:
    """Return the rank correlation of prediction and target. Trees learn ranks in the original, so that no tail decides."""
    ordered = np.sort(reference.column(target))
    codes = train.column(target)
    ranks = (np.searchsorted(ordered, codes, side="left") + np.searchsorted(ordered, codes, side="right")) / 2
    scores = _fit(train, ranks / len(ordered), test, names, is_binary=False)
    if (test.column(target) == test.column(target)[0]).all():
        return None
    return rank_correlation(_dense(np.round(scores, 9)), _dense(test.column(target)))


def _fit(train: CodedTable, outcome: Floats, test: CodedTable, names: tuple[str, ...], *, is_binary: bool) -> Floats:
    return boosted_scores(train.only(names).codes, outcome, test.only(names).codes, is_binary=is_binary)


def _dense(values: NDArray[Any]) -> Ints:
    return np.asarray(np.unique(values, return_inverse=True)[1].reshape(-1), np.int64)


def compare_queries(original: CodedTable, synthetic: Sequence[CodedTable]) -> Queries | None:
    """Ask both for the share of rows in random ranges, under a fixed public seed.

    Each query has one to three columns. The range of a number runs between the values of two random original rows; of a
    category it is a random half of the values. Rows without a value in one of the columns are not counted.
    """
    draw = np.random.default_rng(SEED)
    columns = [name for name in original.names if original.present(name).size]
    if not columns or not all(table.present(name).size for name in columns for table in synthetic):
        return None
    errors, samplings = [], []
    for _ in range(QUERIES):
        width = min(int(draw.integers(1, MOST_COLUMNS + 1)), len(columns))
        ranges = [(columns[n], *_range(original, columns[n], draw)) for n in draw.choice(len(columns), width, False)]
        share, *others = (_share(table, ranges) for table in (original, *synthetic))
        errors.append(float(np.mean([abs(other - share) for other in others])))
        samplings.append(math.sqrt(2 / math.pi * share * (1 - share) / original.rows))
    return Queries(QUERIES, float(np.mean(errors)), float(np.mean(samplings)))


def _range(table: CodedTable, name: str, draw: np.random.Generator) -> tuple[bool, Ints]:
    """Return whether the codes are the ends of a range, and the codes: ends, or a list."""
    codes = table.present(name)
    if isinstance(table.attributes[name], Numeric):
        return True, np.sort(codes[draw.integers(0, len(codes), 2)])
    size = table.attributes[name].size
    chosen = np.flatnonzero(draw.random(size) < 0.5)
    return False, chosen if chosen.size else draw.integers(0, size, 1)


def _share(table: CodedTable, ranges: Sequence[tuple[str, bool, Ints]]) -> float:
    inside, present = np.ones(table.rows, bool), np.ones(table.rows, bool)
    for name, is_range, codes in ranges:
        column, size = table.column(name), table.attributes[name].size
        present &= column >= 0
        if is_range:
            inside &= (column >= codes[0]) & (column <= codes[1])
        else:
            is_listed = np.zeros(size + 2, bool)  # the last is read for a row without a value
            is_listed[codes] = True
            inside &= is_listed[column]
    return float((inside & present).sum() / max(int(present.sum()), 1))
