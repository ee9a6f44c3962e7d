"""The part of quality that analysts can see: mean total variations with noise, charged on the ledger like an answer.

Guarantee:
    For a public synthetic table of ns rows, public cells and T tables of counts (columns, or pairs of columns), let g
    be the greatest common divisor of ns and the public number n of rows, and

        A = (1/2) sum over tables and cells |(ns/g) c - (n/g) s|     c original rows, s synthetic rows in a cell.

    A is a whole number: every row is in one cell of every table (missing is a cell), so the terms without their
    absolute values add up to 0, and a sum of absolute values has the parity of the sum. A / (n T ns/g) is the mean
    total variation. Replacing one row moves at most one row out of a cell and one into another in every table;
    each changes one term by at most ns/g, so A changes by at most T ns/g. Discrete Laplace noise of scale
    (T ns/g) / epsilon makes A epsilon-private: an error of about 1/(n epsilon) in the mean, however many
    columns there are.
    If a person can have no row, c can add up to less than n: A is then rounded down, and a change of at most
    2 T ns/g in the sum changes it by no more than before; the true number of rows is not used.

Needs:
    At most one row per person and the public number of rows. Cells that come from the policy alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tidegate.accounting import Amount, DiscreteLaplace, Event, Together, event_from_dict
from tidegate.arrays import Ints
from tidegate.errors import Unsupported
from tidegate.exact import Number, exact
from tidegate.frames import Frames, arrow_table
from tidegate.html.render import percent
from tidegate.ledger import Account, Ledger
from tidegate.ledger.charge import account_from_dict
from tidegate.noise import Bits, discrete_laplace, noise_quantile, scale_for
from tidegate.policy import Attribute, EachPerson, Integer, Moment, Numeric, Policy
from tidegate.synthesize.quality.codes import CodedTable, columns_of, comparable, encode
from tidegate.synthesize.quality.columns import Cells, public_starts
from tidegate.tables import Axis, Table

CELLS = {1: 64, 2: 16}  # cells of a number without bins, in a table of one column or of two
MOST_CELLS = 2**20  # of a pair; larger ones are left out, by the policy alone


@dataclass(frozen=True)
class Grouping:
    """One table of counts: an axis for each of its columns. Public."""

    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        return math.prod(axis.length for axis in self.axes)

    def synthetic(self, rows: CodedTable) -> Ints:
        """Return counts of synthetic rows, in the order of `original`."""
        flat = np.zeros(rows.rows, np.int64)
        for axis in self.axes:
            cells = Cells(axis.name, axis.attribute, tuple(_starts(axis)))
            flat = flat * axis.length + cells.cell_of(rows.column(axis.name))
        return np.bincount(flat, minlength=self.size)

    def original(self, table: Table) -> Ints:
        """Return counts of private rows, computed by the engine."""
        return np.asarray(table.count(self.axes), np.int64).ravel()


@dataclass(frozen=True)
class PaidQuality(Frames):
    """Mean total variations with noise, of single columns and of pairs. They can be published."""

    scores: tuple[int, ...]
    events: tuple[DiscreteLaplace, ...]
    ways: tuple[int, ...]
    rows: int
    cost: Amount
    account: Account
    entry: str

    def distance(self, ways: int = 1) -> float:
        """Return the mean total variation of single columns (1) or pairs (2): the share of rows that would have to change."""
        index = self.ways.index(ways)
        return min(1.0, max(0, self.scores[index]) / self._unit(index))

    def interval(self, ways: int = 1, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the true mean, given the noise."""
        index = self.ways.index(ways)
        half = noise_quantile(self.events[index].scale, confidence)
        ends = (self.scores[index] - half, self.scores[index] + half)
        low, high = (min(1.0, max(0.0, end / self._unit(index))) for end in ends)
        return low, high

    def _unit(self, index: int) -> float:
        return float(self.events[index].sensitivity * self.rows)  # T ns/g times n

    def to_arrow(self) -> pa.Table:
        """Return one row for single columns and one for pairs: the mean total variation and its interval."""
        return arrow_table(self.to_dict()["distances"])

    def says(self) -> str:
        what = {1: "Single columns", 2: "Pairs of columns"}
        lines = []
        for ways in self.ways:
            low, high = self.interval(ways)
            between = f"noise: {percent(low)} to {percent(high)}, 95%"
            lines.append(f"{what[ways]} differ by {percent(self.distance(ways))} of the rows on average ({between}).")
        spent = f"cost {self.cost.say()}, {self.account.left.say()} remaining     entry {self.entry[:8]}"
        return "\n".join([*lines, spent])

    def __str__(self) -> str:
        return self.says()

    def to_dict(self) -> dict[str, Any]:
        distances = []
        for ways in self.ways:
            low, high = self.interval(ways)
            distances.append({"columns": ways, "mean_total_variation": self.distance(ways), "low": low, "high": high})
        spent: dict[str, Any] = {"cost": str(self.cost), "left": str(self.account.left), "entry": self.entry}
        spent |= {"spent": str(self.account.spent), "ceiling": str(self.account.ceiling), "policy": self.account.policy}
        spent |= {"unit": self.account.unit, "spent_by_unit": self.account.totals.to_dict()}
        events = [event.to_dict() for event in self.events]
        return {"paid": True, "distances": distances, "events": events, "scores": list(self.scores), **spent}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> PaidQuality:
        """Return the distances that `to_dict` wrote."""
        events = tuple(event_from_dict(event) for event in data["events"])
        if policy.dataset.rows is None or not all(isinstance(event, DiscreteLaplace) for event in events):
            raise ValueError("Distances must have discrete Laplace noise, and the policy a public number of rows")
        return cls(
            tuple(data["scores"]),
            cast("tuple[DiscreteLaplace, ...]", events),
            tuple(distance["columns"] for distance in data["distances"]),
            policy.dataset.rows,
            Amount.parse(data["cost"]),
            account_from_dict(data, policy),
            data["entry"],
        )


def private_quality(
    synthetic: Any,
    policy: Policy,
    open_table: Callable[[], Table],
    ledger: Ledger,
    *,
    epsilon: Number,
    bits: Bits,
    ways: Sequence[int] = (1, 2),
    key: str = "",
    user: str = "",
    budget_share: Amount | None = None,
) -> PaidQuality:
    """Return how far synthetic tables (one, or several as one) are from the original, charged and recorded first.

    `ways` is 1 for single columns and 2 for pairs; they split epsilon equally. The same question again costs nothing.
    `budget_share` is the largest loss that `user` can spend in all.
    """
    rows, codes, tables = _check(synthetic, policy, ways)
    events = plan(tables, rows=rows, synthetic=codes.rows, epsilon=_positive(epsilon))
    together: Event = Together(events) if len(events) > 1 else events[0]
    counts = [[grouping.synthetic(codes) for grouping in group] for group in tables]
    question = _question(policy, counts, codes, tuple(ways), together)
    ledger.open_account(policy)
    receipt = ledger.asked_before(policy, question=question, request=key)
    if receipt is None:
        table = open_table()  # fails here, before anything is charged, if the source cannot be read
        if not isinstance(policy.dataset.unit, EachPerson):  # the number of persons with a row is private
            table.check_rows()  # distances are divided by the number of rows
        empty = table.without_rows()  # an error without rows is public, and it comes before the charge
        for axis in {axis.name: axis for group in tables for grouping in group for axis in grouping.axes}.values():
            empty.count([axis])
        says = f"how far a synthetic table of {codes.rows:,} rows is from the original"
        receipt = ledger.charge(
            policy, together, question=question, says=says, request=key, who=user, share=budget_share
        )
    stored = receipt.stored
    if stored is None:
        stored = receipt.record({"scores": _noisy(tables, counts, table, events, (rows, codes.rows), bits)})
    return PaidQuality(
        tuple(stored["scores"]), events, tuple(ways), rows, receipt.cost, receipt.account, receipt.entry.hash
    )


def plan(
    tables: Sequence[Sequence[Grouping]], *, rows: int, synthetic: int, epsilon: Fraction
) -> tuple[DiscreteLaplace, ...]:
    """Return the event of each way, for equal parts of epsilon: a function of public sizes alone."""
    part = Amount.down(epsilon / len(tables)).value
    mosts = [Fraction(len(group) * (synthetic // math.gcd(rows, synthetic))) for group in tables]
    with suppress(ValueError):
        return tuple(DiscreteLaplace(most, scale_for(most, part)) for most in mosts)
    raise Unsupported("`epsilon` is too small: its noise would exceed 64-bit integers.", "Use a larger `epsilon`.")


def score(original: Sequence[Ints], synthetic: Sequence[Ints], *, rows: int, synthetic_rows: int) -> int:
    """Return A of this file's Guarantee, exactly. Every row must be in one cell of every table."""
    common = math.gcd(rows, synthetic_rows)
    whole = 0
    for original_counts, synthetic_counts in zip(original, synthetic, strict=True):
        off = [
            synthetic_rows // common * int(c) - rows // common * int(s)
            for c, s in zip(original_counts, synthetic_counts, strict=True)
            if c or s
        ]
        whole += sum(map(abs, off))
    return whole // 2


def groupings(attributes: Mapping[str, Attribute], ways: int) -> tuple[Grouping, ...]:
    """Return every column by itself, or every two, on cells of the policy alone."""
    axes = [_axis(name, attribute, CELLS[ways]) for name, attribute in attributes.items()]
    candidates = (Grouping(tuple(axes_of_table)) for axes_of_table in combinations(axes, ways))
    return tuple(grouping for grouping in candidates if grouping.size <= MOST_CELLS)


def _axis(name: str, attribute: Attribute, most: int) -> Axis:
    """Return the column in public cells, with a cell for rows without a value (unless they count as the lowest)."""
    missing = {"missing": "value"} if getattr(attribute, "missing", "") == "dropped" else {}
    if not isinstance(attribute, Numeric):
        return Axis(name, replace(attribute, **missing))
    if isinstance(attribute, Moment):
        return Axis(name, replace(attribute, **missing), starts=public_starts(attribute, most))
    cuts = [attribute.value(start) for start in public_starts(attribute, most)[1:]]
    bins = tuple(int(cut) for cut in cuts) if isinstance(attribute, Integer) else tuple(cuts)
    content = {**{field.name: getattr(attribute, field.name) for field in fields(attribute)}, "bins": bins, **missing}
    return Axis(name, type(attribute)(**content), binned=True)


def _starts(axis: Axis) -> Sequence[int]:
    return axis.firsts or range(axis.attribute.size)


def _check(
    synthetic: Any, policy: Policy, ways: Sequence[int]
) -> tuple[int, CodedTable, tuple[tuple[Grouping, ...], ...]]:
    """Return the public number of rows, the synthetic rows as codes, and what will be counted; read nothing private."""
    rows = policy.dataset.rows
    if rows is None or policy.dataset.unit.rows_per_person != 1:
        raise Unsupported(
            "Charged quality needs the public number of rows, and at most one row per person.",
            "Add rows = ... to [dataset]. If a person can have several rows, query counts instead.",
        )
    if not ways or not set(ways) <= set(CELLS) or len(set(ways)) != len(ways):
        raise Unsupported("`ways` must contain 1 (single columns), 2 (pairs), or both.", "Write ways=(1, 2).")
    tables = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    columns = [set(columns_of(table)) for table in tables]
    shared = {name: a for name, a in comparable(policy.attributes).items() if all(name in names for names in columns)}
    groupings_by_way = tuple(groupings(shared, way) for way in ways)
    if not tables or not shared or not all(groupings_by_way):
        raise Unsupported(
            "The synthetic tables lack columns of the policy that are compared.", "Pass tables with its columns."
        )
    known = {name: _axis(name, attribute, CELLS[1]).attribute for name, attribute in shared.items()}
    codes = np.vstack([encode(table, known).codes for table in tables])
    if not len(codes):
        raise Unsupported("A table without rows cannot be compared.", "Check the source of the tables.")
    return rows, CodedTable(known, codes), groupings_by_way


def _noisy(
    tables: Sequence[Sequence[Grouping]],
    counts: Sequence[Sequence[Ints]],
    table: Table,
    events: Sequence[DiscreteLaplace],
    sizes: tuple[int, int],
    bits: Bits,
) -> list[int]:
    """Return noisy scores. `sizes` are the public numbers of rows, of the policy and of the synthetic tables."""
    scores, (rows, synthetic_rows) = [], sizes
    for group, public, event in zip(tables, counts, events, strict=True):
        exact_score = score(
            [grouping.original(table) for grouping in group], public, rows=rows, synthetic_rows=synthetic_rows
        )
        scores.append(exact_score + int(discrete_laplace(event.scale, size=1, bits=bits)[0]))
    return scores


def _question(
    policy: Policy, counts: Sequence[Sequence[Ints]], codes: CodedTable, ways: tuple[int, ...], event: Event
) -> dict[str, Any]:
    """Return the question, by public values: the same table, cells and price are the same question."""
    digest = hashlib.sha256()
    for group in counts:
        for table_counts in group:
            digest.update(np.ascontiguousarray(table_counts, "<i8").tobytes())
    public = policy.public_dict()
    whole = isinstance(policy.dataset.unit, EachPerson)  # all columns decide which of a person's rows counts
    columns = {name: of for name, of in public["attributes"].items() if whole or name in codes.attributes}
    return {
        "verb": "quality",
        "unit": public["dataset"]["unit"],
        "rows": policy.dataset.rows,
        "edition": policy.dataset.edition,
        "synthetic": {"rows": codes.rows, "sha256": digest.hexdigest()},
        "compared": list(codes.attributes),
        "of": columns,
        "ways": list(ways),
        "event": event.to_dict(),
    }


def _positive(epsilon: Number) -> Fraction:
    try:
        value = exact(epsilon)
    except (TypeError, ValueError):
        value = Fraction(0)
    if not Fraction(1, 10**9) <= value <= 10**4:
        raise Unsupported("`epsilon` must be above 0 and at most 10,000.", 'Write epsilon="0.1".')
    return value
