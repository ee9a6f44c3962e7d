"""Linked tables: the person table with numbers of events is learned, then each table of events with copies of its columns.

Persons are drawn first, then as many events as each of them has, so that the events fit the copied columns of their person.
Not covered: dependence between two events of one person beyond what the copied columns explain, and their order in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.accounting import Amount, epsilon_at_delta
from tidegate.accounting.average import DELTA
from tidegate.arrays import Ints
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.frames import Frames
from tidegate.ledger import Charge, Ledger, Receipt
from tidegate.noise import Bits
from tidegate.policy import Integer, Policy, RowSource
from tidegate.policy.tables import person_table, private_tables
from tidegate.synthesize.checkpoint import Diaries, delete_diaries, open_diaries
from tidegate.synthesize.columns import Columns, columns_of
from tidegate.synthesize.diary import Loss
from tidegate.synthesize.files import FORMATS, refuse_new_folder, write_complete
from tidegate.synthesize.learn import LearnedTable, Learning, restore
from tidegate.synthesize.mechanisms import model_for
from tidegate.synthesize.mechanisms.forest.weights import Fitted
from tidegate.synthesize.model import Progress, Summary
from tidegate.synthesize.plan import Plan
from tidegate.synthesize.private_rows import EngineRows
from tidegate.synthesize.progress import silent
from tidegate.synthesize.request import DEFAULT, MOST_ROWS, SynthesisRequest, check_whole
from tidegate.synthesize.run import learn_and_record
from tidegate.tables import Table, open_linked
from tidegate.tables.links import open_with_counts


@dataclass(frozen=True)
class LinkedColumns:
    """What is learned of one private table of a policy.

    Attributes:
        table: The name of the table.
        columns: Its columns, with dotted names; `columns.policy` describes the rows of `open` as one table.
        reach: The largest number of its rows that one person can change: 1 for the person table, k for events.
        numbers: Of the person table: the learned columns that are a person's number of events, with the table of events.
        copies: Of a table of events: the learned columns that are copies of the person table's. Pairs among them are known
            from the person table, and they are not columns of the result.
    """

    table: str
    columns: Columns
    reach: int
    numbers: Mapping[str, str]
    copies: tuple[str, ...]
    rows: RowSource

    def open(
        self,
        policy: Policy,
        sources: Mapping[str, Any] | None = None,
        *,
        folder: Path | None = None,
        snapshots: Path | None = None,
    ) -> Table:
        """Open the rows to count, at most `reach` of each person. `policy` is the whole policy; the rest is that of `open_linked`."""
        options: Any = {"folder": folder, "snapshots": snapshots}
        if self.rows.joined:
            return open_linked(policy, self.rows, sources, **options)
        return open_with_counts(policy, self.table, self.numbers, sources, **options)


def linked_columns(policy: Policy) -> tuple[LinkedColumns, ...]:
    """Return what is learned of the person table, then of every table of events, by public facts alone.

    The person table has one more learned column for each table of events, "number of visits rows" from 0 to k. A table of
    events has its own columns and copies of declared columns of the person table (`linked.visits` in [synthesis]). Only
    events of persons in the person table count, at most k of each; the others are dropped by the order of `bound_rows`.

    Raises:
        Unsupported: There is no person table, or a private table is not related to it.
    """
    parent, key = person_table(policy), str(getattr(policy.dataset.unit, "key", ""))
    children = [name for name in private_tables(policy) if name != parent]
    unrelated = [name for name in children if policy.relations.get(f"{name}.{key}") != f"{parent}.{key}"]
    if unrelated or not parent:
        raise Unsupported(
            f'The policy "{policy.dataset.name}" has private tables without a relation to one person table: {", ".join(unrelated)}.',
            "Relate every private table to one table with rows_per_person = 1, or use a policy of its own for the others.",
        )
    numbers = {f"number of {child} rows": child for child in children}
    flat = policy.flat(RowSource(parent))
    bounds = {column: Integer(0, _most(policy, child)) for column, child in numbers.items()}
    persons = columns_of(replace(flat, attributes={**flat.attributes, **bounds}))
    linked = [LinkedColumns(parent, persons, 1, numbers, (), RowSource(parent))]
    for child in children:
        link = policy.synthesis.linked.get(child)
        copies = tuple(f"{parent}.{column}" for column in link.copies) if link else ()
        rows = RowSource(child, parent)
        own = [name for name in policy.tables[child].columns if name not in policy.synthesis.leave_out]
        columns = columns_of(policy.flat(rows), [*own, *copies])
        linked.append(LinkedColumns(child, columns, _most(policy, child), {}, copies, rows))
    return tuple(linked)


def _most(policy: Policy, table: str) -> int:
    return policy.flat(RowSource(table)).dataset.unit.rows_per_person


@dataclass(frozen=True)
class SyntheticPart(Frames):
    """One table of linked synthetic tables."""

    _table: pa.Table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __len__(self) -> int:
        return int(self._table.num_rows)


@dataclass(frozen=True)
class LinkedTables(Mapping[str, SyntheticPart]):
    """Artificial linked tables by name, under one charge: ``tables["visits"].to_pandas()``.

    Every person has a fresh number in the key column; an event has the number of its person. Events of persons who are not in
    the person table were not learned.
    """

    policy: Policy
    request: SynthesisRequest
    charge: Charge
    parts: tuple[LinkedColumns, ...]
    models: tuple[Fitted, ...]
    persons: int
    seed: int

    def draw(self, persons: int | None = None, *, seed: int | None = None) -> LinkedTables:
        """Return the same tables with other persons: another number of them or another public seed. Free."""
        return replace(
            self,
            persons=self.persons if persons is None else check_whole(persons, "persons", most=MOST_ROWS),
            seed=self.seed if seed is None else check_whole(seed, "seed", least=0, most=2**63 - 1),
        )

    @cached_property
    def _drawn(self) -> dict[str, SyntheticPart]:
        key = str(getattr(self.policy.dataset.unit, "key", ""))
        parent, codes = self.parts[0], self.models[0].draw(self.persons, seed=self.seed)
        places = {column.name: index for index, column in enumerate(parent.columns.learnt)}
        numbers = np.arange(1, self.persons + 1)
        tables = {parent.table: _with_key(parent, codes, self.seed, key, numbers)}
        for part, model in zip(self.parts[1:], self.models[1:], strict=True):
            (column,) = (name for name, table in parent.numbers.items() if table == part.table)
            events = codes[:, places[column]]
            fixed = {
                index: np.repeat(codes[:, places[copy.name]], events)
                for index, copy in enumerate(part.columns.learnt)
                if copy.name in part.copies
            }
            rows = int(events.sum())
            drawn = model.draw_given(fixed, seed=self.seed) if fixed else model.draw(rows, seed=self.seed)
            tables[part.table] = _with_key(part, drawn, self.seed, key, np.repeat(numbers, events))
        return {name: SyntheticPart(table) for name, table in tables.items()}

    def __getitem__(self, name: str) -> SyntheticPart:
        return self._drawn[name]

    def __iter__(self) -> Iterator[str]:
        return iter(part.table for part in self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def summary(self) -> dict[str, Summary]:
        """What is public about the model of each table."""
        return {part.table: model.summary for part, model in zip(self.parts, self.models, strict=True)}

    @property
    def promise(self) -> str:
        """The promise to everybody in the original tables, in a sentence."""
        limit = self.request.limit
        if limit.pure is not None:
            loss = f"epsilon {say(limit.pure)}"
        else:
            delta = self.request.delta or DELTA
            epsilon = epsilon_at_delta(Amount.up(limit.zcdp), delta)
            loss = f"Z {say(limit.z)} (epsilon {say(epsilon)} at delta = {float(delta):g})"
        return f"all tables together, and anything ever drawn from them, lose at most {loss} about one person"

    def to_pandas(self) -> dict[str, Any]:
        """Return pandas data frames by the names of the tables."""
        return {name: table.to_pandas() for name, table in self.items()}

    def to_polars(self) -> dict[str, Any]:
        """Return polars data frames by the names of the tables."""
        return {name: table.to_polars() for name, table in self.items()}

    def write(self, folder: Path | str, *, kind: str = "parquet") -> list[Path]:
        """Write one file for each table into a new or empty folder, and return the paths."""
        target = Path(folder)
        refuse_new_folder(target, kind)
        target.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, part in self.items():
            paths.append(target / f"{name}.{kind}")
            write_complete(paths[-1], partial(_write, part.to_arrow(), kind))
        return paths

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the rows, as JSON values."""
        summaries = {name: summary.to_dict() for name, summary in self.summary.items()}
        return {"promise": self.promise, "persons": self.persons, "summary": summaries, **self.charge.to_dict()}

    def __str__(self) -> str:
        shape = ", ".join(f"{name} ({len(table):,} rows)" for name, table in self.items())
        banners = [f"{name}: {summary.banner}" for name, summary in self.summary.items() if summary.banner]
        return "\n".join([*banners, f"linked synthetic tables: {shape}", self.promise, self.charge.says()])


def _write(table: pa.Table, kind: str, path: Path) -> None:
    FORMATS[kind](table, str(path))


def _with_key(part: LinkedColumns, codes: Ints, seed: int, key: str, persons: Ints) -> pa.Table:
    """Return the rows of a table with its own names of columns and the persons' numbers; copies and numbers are left out."""
    table = part.columns.to_arrow(codes, seed=seed)
    own = [name for name in table.column_names if name.startswith(f"{part.table}.") and name not in part.copies]
    values = {name.removeprefix(f"{part.table}."): table[name] for name in own}
    return pa.table({key: pa.array(persons), **{name: value for name, value in values.items() if name != key}})


def synthesize_linked(
    request: SynthesisRequest,
    policy: Policy,
    open_part: Callable[[LinkedColumns], Table],
    ledger: Ledger,
    *,
    folder: Path,
    bits: Bits,
    key: str = "",
    user: str = "",
    progress: Progress | None = None,
) -> LinkedTables:
    """Return linked synthetic tables: one charge for all of them, of which every table gets an equal part.

    Guarantee:
        The loss about one person is at most the request's limit: the limits of the tables' diaries add up to it. A person
        changes one row of the person table (with the numbers of events), and at most k rows of a table of events, whose copies
        are functions of the person's rows.
    """
    if request.tables != 1 or request.columns or request.target:
        raise Unsupported(
            "Linked tables are learned once and with all columns.",
            "Omit `tables`, `columns` and `target`; use `leave_out` in [synthesis].",
        )
    parts, model = linked_columns(policy), model_for(DEFAULT)
    own = replace(request, limit=_part_of(request.limit, len(parts)))
    plans = [Plan(own, part.columns, model, part.copies) for part in parts]
    if [plan.reach for plan in plans] != [part.reach for part in parts]:
        raise AssertionError("the reach of a linked table differs from that of its rows")
    question = {**request.question(policy, model=model.name), "linked": [part.table for part in parts]}
    ledger.open_account(policy)
    receipt = ledger.asked_before(policy, question=question, request=key)
    if receipt is None or receipt.stored is None:
        tables = [open_part(part) for part in parts]
        for plan, table in zip(plans, tables, strict=True):
            plan.stages(policy.dataset.rows or 10_000)
            EngineRows(table.without_rows()).rehearse(plan.columns.learnt)
        says = f"for {len(parts)} linked synthetic tables by {model.name}"

        def charge_all() -> Receipt:
            return ledger.charge(policy, request.event, question=question, says=says, request=key, who=user)

        receipt = charge_all()
        learning = [
            Learning(
                plan, EngineRows(table, plan.columns.learnt), partial(_size, table), None, bits, _named(progress, part)
            )
            for plan, table, part in zip(plans, tables, parts, strict=True)
        ]
        with open_diaries(ledger, receipt.entry, folder=folder) as checkpoint:
            stored = charge_all().stored  # another process may have finished first
            if stored is None:
                stored = learn_and_record(receipt, model.name, None, lambda: _learn(learning, checkpoint))
            delete_diaries(ledger, receipt.entry, folder=folder)
    else:
        stored = receipt.stored
    charge = Charge.of(receipt, policy)
    models = tuple(restore(model.name, fitted["model"], model) for fitted in stored["fitted"])
    persons = request.rows if request.rows is not None else stored["fitted"][0]["rows"]
    seed = request.seed if request.seed is not None else int(charge.entry[:12], 16)
    return LinkedTables(policy, request, charge, parts, models, persons, seed)  # type: ignore[arg-type]


def _part_of(limit: Loss, count: int) -> Loss:
    """Return an equal part of a limit, so that the parts add up to at most the whole."""
    if limit.pure is not None:
        return Loss.of_pure(Amount.down(limit.pure / count).value)
    return Loss(None, limit.z / count, limit.zcdp / count)


def _named(progress: Progress | None, part: LinkedColumns) -> Progress:
    if progress is None:
        return silent
    return lambda stage, done, of: progress(f"{part.table}, {stage}", done, of)


def _learn(learning: list[Learning], checkpoint: Diaries) -> list[LearnedTable]:
    """Learn every table, each from the steps that its diary already contains."""
    return [run.learn(checkpoint.steps(number), keep=checkpoint.writer(number)) for number, run in enumerate(learning)]


def _size(table: Table) -> int:
    return table.size
