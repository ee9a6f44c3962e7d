"""Validation of a batch: which reports are accepted, and those as columns. Chunks are checked at once, or one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from tidegate.arrays import Array
from tidegate.collect.request import KEYS, keys_of, refusal
from tidegate.operators import Operator, Pure
from tidegate.policy.collection import Collection
from tidegate.tables.segments import Column

REPLAYED = "replayed: a report with this id was taken already"  # stored in ledgers: never changes
CHUNK = 1_000  # reports checked at once; a chunk with a bad report is checked one by one
_KEYS, _HEXADECIMAL = frozenset(KEYS), re.compile(r"[0-9a-f]*")


@dataclass(eq=False)
class Checked:
    """A batch after the check: the reason of each report (None: accepted), and the accepted ones in the same order."""

    reasons: list[str | None] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    parts: dict[str, list[Array]] = field(default_factory=dict)

    def columns(self, layout: Mapping[str, Column]) -> dict[str, Array]:
        """Return the accepted reports: for each question an array of codes, or rows of packed bits."""
        return {name: np.concatenate(self.parts[name]) if self.ids else _empty(c) for name, c in layout.items()}

    def refused(self) -> list[tuple[int, str]]:
        """Return index and reason of each refused report."""
        return [(index, reason) for index, reason in enumerate(self.reasons) if reason is not None]

    def without(self, known: Set[bytes]) -> Checked:
        """Refuse reports that were accepted before or that repeat in this batch; the first one counts."""
        if not known and len(set(self.ids)) == len(self.ids):
            return self
        seen, fresh = set(known), np.zeros(len(self.ids), bool)
        for index, identity in enumerate(self.ids):
            fresh[index] = identity not in seen
            seen.add(identity)
        accepted = (index for index, reason in enumerate(self.reasons) if reason is None)
        reasons = list(self.reasons)
        for index, is_fresh in zip(accepted, fresh, strict=True):
            reasons[index] = None if is_fresh else REPLAYED
        ids = [identity for identity, is_fresh in zip(self.ids, fresh, strict=True) if is_fresh]
        parts = {name: [np.concatenate(arrays)[fresh]] for name, arrays in self.parts.items()}
        return Checked(reasons, ids, parts)


def layout_of(operators: Mapping[str, Operator], *, optional: bool = False) -> dict[str, Column]:
    """Return how the reports of each question are stored; `optional`: people are asked some of the questions."""
    return {name: Column(operator.form, operator.report_size, optional) for name, operator in operators.items()}


def has_distribution(operator: Operator) -> bool:
    """Return whether an answer is one value whose distribution is estimated: not a set of items, and not for a mean only."""
    return (operator.ordered and not operator.only_mean) or isinstance(operator, Pure)


def check(reports: Sequence[Any], collection: Collection, operators: Mapping[str, Operator]) -> Checked:
    """Check every report.

    Guarantee:
        A report is accepted if and only if `request.refusal` returns None for it.
    """
    checked = Checked(parts={name: [] for name in operators})
    layout = layout_of(operators, optional=collection.ask is not None)
    for start in range(0, len(reports), CHUNK):
        part: Sequence[Any] = reports[start : start + CHUNK]
        reasons: list[str | None] = [None] * len(part)
        if not _clearly_valid(part, collection, operators):
            reasons = [refusal(report, collection, operators) for report in part]
            part = [report for report, reason in zip(part, reasons, strict=True) if reason is None]
        checked.reasons += reasons
        checked.ids += _ids(part)
        for name in operators:
            checked.parts[name].append(_column([report["answers"].get(name) for report in part], layout[name]))
    return checked


def _clearly_valid(part: Sequence[Any], collection: Collection, operators: Mapping[str, Operator]) -> bool:
    """Return whether `refusal` accepts a whole chunk. False is not a verdict: each report is then checked on its own."""
    if collection.closed or any(type(report) is not dict or report.keys() != _KEYS for report in part):
        return False
    if keys_of(collection) != KEYS:  # invitations are checked one by one
        return False
    name, print_, version = collection.name, collection.fingerprint, collection.version
    if not all(
        report["version"] == version
        and type(report["version"]) is int
        and report["fingerprint"] == print_
        and report["collection"] == name
        for report in part
    ):
        return False
    answers = [report["answers"] for report in part]
    if any(type(answer) is not dict for answer in answers):
        return False
    if not all(map(collection.answers_units, {frozenset(answer) for answer in answers})):
        return False
    named = [report["id"] for report in part]
    if set(map(type, named)) != {str} or set(map(len, named)) != {32} or not _HEXADECIMAL.fullmatch("".join(named)):
        return False
    return all(
        _fits([answer[word] for answer in answers if word in answer], operator) for word, operator in operators.items()
    )


def _fits(answers: Sequence[Any], operator: Operator) -> bool:
    """Return whether all answers to a question could have come from its operator."""
    if not answers:
        return True
    if operator.form == "code":
        return set(map(type, answers)) == {int} and min(answers) >= 0 and max(answers) < operator.report_size
    if set(map(type, answers)) != {list}:
        return False
    if not isinstance(operator, Pure):
        return False  # other kinds of sets are checked one by one
    possible, lengths = operator.member_counts(), set(map(len, answers))
    sized = min(lengths) in possible and max(lengths) in possible
    members = list(chain.from_iterable(answers))
    if not sized or not members:
        return sized
    if set(map(type, members)) != {int} or min(members) < 0 or max(members) >= operator.report_size:
        return False
    rows, values = _rows(answers), np.array(members, np.int64)
    return bool(((values[1:] > values[:-1]) | (rows[1:] != rows[:-1])).all())


def _ids(part: Iterable[Any]) -> list[bytes]:
    joined = bytes.fromhex("".join(report["id"] for report in part))
    return [joined[start : start + 16] for start in range(0, len(joined), 16)]


def _column(answers: Sequence[Any], column: Column) -> Array:
    """Return answers as they are stored; None is a question that was not asked."""
    if column.optional:
        mark = column.size
        if column.form == "code":
            answers = [mark if answer is None else answer for answer in answers]
        else:
            answers = [[] if answer is None else [*answer, mark] for answer in answers]
    if column.form == "code":
        return np.array(answers, np.int32)
    width = column.width
    members = np.fromiter(chain.from_iterable(answers), np.int64)
    positions = _rows(answers) * width + members // 8
    packed = np.bincount(positions, weights=np.left_shift(1, members % 8), minlength=len(answers) * width)
    return packed.astype(np.uint8).reshape(len(answers), width)


def _rows(answers: Sequence[Any]) -> Array:
    lengths = np.fromiter(map(len, answers), np.int64, len(answers))
    return np.repeat(np.arange(len(answers)), lengths)


def _empty(column: Column) -> Array:
    return np.zeros(0, np.int32) if column.form == "code" else np.zeros((0, column.width), np.uint8)
