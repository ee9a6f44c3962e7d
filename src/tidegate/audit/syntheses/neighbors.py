"""Two tables that differ in one protected unit, simulated from a policy's public lists, and what is released about each.

All rows but the target's have the lowest value of every column (or, if columns are to be related, one half of them the
lowest and the other half the highest of all); the target's have the lowest (here), or the highest (there). No private data
is read and no budget is spent: every session has its own ledger in a temporary folder.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.audit.fake_data import simulated_dataset
from tidegate.ledger import Ledger
from tidegate.noise import SecureBits
from tidegate.policy import Attribute, Date, EachPerson, Identification, Key, Loss, Policy, Shapes
from tidegate.session import Session
from tidegate.synthesize.columns import columns_of, values_of
from tidegate.synthesize.diary import Step
from tidegate.synthesize.facts import Column
from tidegate.synthesize.learn import Learning
from tidegate.synthesize.plan import plan_for
from tidegate.synthesize.private_rows import ArrayRows, EngineRows
from tidegate.synthesize.progress import silent
from tidegate.synthesize.quality.codes import encode
from tidegate.synthesize.request import DEFAULT, resolve_request
from tidegate.synthesize.result import SyntheticTable
from tidegate.tables import Table, open_table

ROWS, RELATED = 20, 400  # besides the target's; and if columns are related, enough for a model to detect it
AT_ONCE = 10  # tables in one request
DRAWN = 2_000  # rows of a synthetic table: more rows are free and reveal the model
PLENTY = 1_000_000  # a budget limit that no attack reaches: these tables are simulated
MANY = 10**30  # candidates of an average promise: it limits Z to 69, which no attack reaches either


@dataclass(frozen=True)
class World:
    """A small policy of some columns, the loss of each table (with `z` it has no pure bound), and the target's rows."""

    policy: Policy
    columns: tuple[Column, ...]
    epsilon: Fraction
    model: Any = DEFAULT
    related: bool = False
    z: Fraction | None = None

    @property
    def loss(self) -> dict[str, Any]:
        """The loss as a request names it."""
        return {"epsilon": self.epsilon} if self.z is None else {"z": self.z}

    @property
    def others(self) -> int:
        """The number of rows that are not the target's."""
        return RELATED if self.related else ROWS

    @property
    def far_others(self) -> int:
        """The number of those with the highest values."""
        return RELATED // 2 if self.related else 0

    @property
    def reach(self) -> int:
        return self.policy.dataset.unit.rows_per_person

    @property
    def rows(self) -> int:
        return self.others + self.reach

    def codes(self, target: Sequence[int]) -> Ints:
        """Return all rows as codes: the others, and the target's in the last `reach` rows."""
        codes = np.zeros((self.rows, len(self.columns)), np.int64)
        codes[: self.far_others] = self.farthest
        codes[self.others :] = np.asarray(target, np.int64)
        return codes

    @property
    def farthest(self) -> list[int]:
        return [column.size - 1 for column in self.columns]

    def table(self, target: Sequence[int]) -> pa.Table:
        """Return the rows as a data holder has them, with a key if persons have one."""
        codes = self.codes(target)
        columns: dict[str, Any] = {
            column.name: values_of(self.policy.attributes[column.name], codes[:, index])
            for index, column in enumerate(self.columns)
        }
        if isinstance(unit := self.policy.dataset.unit, EachPerson):
            columns[unit.key] = pa.array([f"p{n}" for n in range(self.others)] + ["target"] * self.reach)
        return pa.table(columns)


def world(
    policy: Policy,
    names: Sequence[str],
    *,
    epsilon: Fraction = Fraction(1),
    z: Fraction | None = None,
    model: Any = DEFAULT,
    related: bool = False,
) -> World:
    """Return the attacked columns of a policy, with its own cells and unit, and an unreachable budget limit."""
    unit = policy.dataset.unit
    attributes: dict[str, Attribute] = {name: policy.attributes[name] for name in names}
    if isinstance(unit, EachPerson):
        attributes[unit.key] = Key()
    shapes = Shapes({name: shape for name, shape in policy.synthesis.columns.items() if name in names})
    dataset = simulated_dataset(policy, rows=None)
    small = Policy(dataset, attributes, loss=Loss(PLENTY), synthesis=shapes)
    at = World(small, columns_of(small).learnt, epsilon, model, related, z)
    return at if z is None else replace(at, policy=limit_average(small, units=at.others + 1))


def limit_average(policy: Policy, *, units: int) -> Policy:
    """Return the policy of a simulated table with a limit on the average loss alone, as requests for Z need it."""
    promise = Identification("0.999", worlds="persons", population=MANY, guarantee="average")
    return replace(policy, dataset=replace(policy.dataset, rows=units), identification=promise, loss=None)


def attackable(policy: Policy) -> list[str]:
    """Return the columns that a synthetic table would learn: protected ones first, those with few cells first."""
    protected = policy.identification.protect if policy.identification else ()
    learned = [column for column in columns_of(policy).learnt if column.size > 1]
    return [column.name for column in sorted(learned, key=lambda c: (c.name not in protected, c.cells))]


class CachedCounts(Table):
    """A table that requests each count from the engine once."""

    def __init__(self, expression: Any, policy: Policy) -> None:
        super().__init__(expression, policy, "duckdb")
        self.engine = "remembered"  # its own name, so that pairs are counted one by one
        self._known: dict[Any, Any] = {}

    def count(self, by: Sequence[Any] = (), *, where: Any = None) -> Any:
        key = (tuple(by), where)
        if key not in self._known:
            self._known[key] = super().count(by, where=where)
        return self._known[key]


def cached_counts(policy: Policy, table: pa.Table) -> CachedCounts:
    return CachedCounts(open_table(policy, table).source, policy)


class Rehearsal(Session):
    """The real session, with cached counts of the engine."""

    remembered: CachedCounts

    @property
    def table(self) -> Table:
        return self.remembered


def temporary_ledger(folder: Path) -> Ledger:
    """Open a ledger of simulated tables. No witness, of the policy or of the environment, receives its checkpoints."""
    return Ledger(str(folder / "audit.ledger"), is_witnessed=False)


@contextmanager
def rehearsal(at: World, remembered: CachedCounts) -> Iterator[Rehearsal]:
    """Open a session on a simulated table, with a temporary ledger."""
    with tempfile.TemporaryDirectory() as folder:
        session = Rehearsal(at.policy, folder=Path(folder))
        session.share_ledger(temporary_ledger(Path(folder)))
        session.remembered = remembered
        with session:
            yield session


def in_memory(at: World, target: Sequence[int], table: Table) -> ArrayRows:
    """Return the rows as codes in memory, after comparing their counts with the engine's.

    Thousands of runs need nothing else.
    """
    rows, engine = ArrayRows(at.codes(target), at.columns), EngineRows(table)
    same = all(np.array_equal(rows.margin(column), engine.margin(column)) for column in at.columns)
    pairs, others = rows.pairs(at.columns), engine.pairs(at.columns)
    if not same or any(not np.array_equal(pairs[both], others[both]) for both in pairs):
        raise AssertionError("The engine's counts of the simulated rows differ from the expected counts")
    return rows


# Draws


@dataclass
class Draws:
    """The results of every run on one table: a row of numbers for each, computed by a `Look`."""

    rows: list[list[float]] = field(default_factory=list)

    def array(self) -> NDArray[np.float64]:
        return np.array(self.rows, np.float64).reshape(len(self.rows), -1)


Look = Callable[[SyntheticTable], list[float]]


def synthesize_tables(
    at: World, targets: Sequence[Sequence[int]], look: Look, *, seconds: float, most: int
) -> list[Draws]:
    """Synthesize tables through the real session, ledger included, for each target in turn until the time is over."""
    tables = [cached_counts(at.policy, at.table(target)) for target in targets]
    draws_of_targets = [Draws() for _ in targets]
    _warm(at, tables[0])
    until = time.monotonic() + seconds
    while len(draws_of_targets[0].rows) < most and time.monotonic() < until:
        for draws, remembered in zip(draws_of_targets, tables, strict=True):
            with rehearsal(at, remembered) as session:
                tables_of_run = session.synthesize(
                    **at.loss, model=at.model, tables=AT_ONCE, rows=DRAWN, progress=False
                )
                draws.rows += [look(table) for table in tables_of_run]
    return draws_of_targets


def _warm(at: World, remembered: CachedCounts) -> None:
    """Run once before the clock starts, so that kernels are compiled."""
    with rehearsal(at, remembered) as session:
        session.synthesize(**at.loss, model=at.model, rows=DRAWN, progress=False)[0].to_arrow()


class CutShort(BaseException):
    """Ends a run after its last number is written."""


def diaries(at: World, targets: Sequence[Sequence[int]], *, seconds: float, most: int) -> list[list[list[Step]]]:
    """Return diaries of runs that are interrupted after their last number is written: post-processing reveals nothing more.

    As many steps are read as the longest of the first runs had; runs with fewer go on to their end.
    """
    plan = plan_for(resolve_request(at.policy, **at.loss, model=at.model), at.policy)
    tables = [cached_counts(at.policy, at.table(target)) for target in targets]
    sources = [_learning(at, plan, target, table) for target, table in zip(targets, tables, strict=True)]
    lengths = {len(source.learn().steps) for source in sources for _ in range(3)}
    last = max(lengths)
    diaries_of_targets: list[list[list[Step]]] = [[] for _ in targets]
    until = time.monotonic() + seconds
    while len(diaries_of_targets[0]) < most and time.monotonic() < until:
        for runs, source in zip(diaries_of_targets, sources, strict=True):
            runs.append(_cut_short(source, last))
    return diaries_of_targets


def _learning(at: World, plan: Any, target: Sequence[int], table: Table) -> Learning:
    rows = None if isinstance(at.policy.dataset.unit, EachPerson) else at.rows
    return Learning(plan, in_memory(at, target, table), lambda: table.size, rows, SecureBits(), silent)


def _cut_short(source: Learning, last: int) -> list[Step]:
    steps: list[Step] = []

    def keep(step: Step) -> None:
        steps.append(step)
        if len(steps) == last:
            raise CutShort

    with suppress(CutShort):
        source.learn(keep=keep)
    return steps


def codes_of(table: SyntheticTable, at: World) -> Ints:
    """Return a synthetic table as codes (rows, columns); a missing or unknown value is -1."""
    arrow = table.to_arrow()
    return np.stack([_value_codes(at.policy.attributes[c.name], c, arrow.column(c.name)) for c in at.columns], axis=1)


def _value_codes(attribute: Attribute, column: Column, values: Any) -> Ints:
    if isinstance(attribute, Date):  # any day of a cell
        codes = encode(pa.table({column.name: values}), {column.name: attribute}).column(column.name)
        return np.where(codes < column.size, codes, -1)
    listed = values_of(attribute, np.arange(column.size))
    indexes = pc.index_in(values.combine_chunks(), value_set=listed).fill_null(-1)
    return np.asarray(indexes.to_numpy(), np.int64)
