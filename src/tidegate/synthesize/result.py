"""Results: synthetic tables with their cost, how the loss was split, and the promise; and previews."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from tidegate.accounting import Amount, Budget, Price, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.frames import Frames, Row, Rows, rename_labels
from tidegate.ledger import Account, Charge
from tidegate.ledger.charge import account_from_dict
from tidegate.policy import Policy
from tidegate.synthesize.condition import Where
from tidegate.synthesize.description import Description
from tidegate.synthesize.diary import Step
from tidegate.synthesize.model import Progress, Stage, Summary
from tidegate.synthesize.plan import Plan
from tidegate.synthesize.progress import progress_display
from tidegate.synthesize.source import Downloaded, TableSource
from tidegate.tables import Table

if TYPE_CHECKING:
    from tidegate.synthesize.quality import Quality
    from tidegate.synthesize.quality.combine import Rule
    from tidegate.synthesize.quality.public import PublicReport

SHOWN = 5  # rows in a notebook


@dataclass(frozen=True)
class SyntheticTable(Frames):
    """One artificial table. Every row is drawn from a model learned at an exact loss; no row belongs to a person."""

    source: TableSource
    number: int = 0

    @property
    def rows(self) -> int:
        """The number of rows: the requested number, else that of the original (or its noisy number)."""
        return self.source.rows

    @property
    def steps(self) -> tuple[Step, ...]:
        """The diary: every number learned from the rows. Empty for a downloaded table and for a saved model."""
        return self.source.steps

    @property
    def summary(self) -> Summary | None:
        """What is public about the model: cells, counted pairs, maps. None for a model of an earlier version."""
        return self.source.summary

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: numbers on their grids, categories as listed, dates as dates, missing as null."""
        if "_arrow" not in self.__dict__:  # no cached_property: in Python 3.11 its lock makes all tables wait for one
            self.__dict__["_arrow"] = pa.Table.from_batches(self.source.batches())
        return self.__dict__["_arrow"]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of `to_arrow` in batches of at most 100,000, in constant memory."""
        return iter(self.to_arrow().to_batches()) if "_arrow" in self.__dict__ else self.source.batches()

    def draw(self, rows: int | None = None, *, seed: int | None = None, where: Where | None = None) -> SyntheticTable:
        """Return other rows of the same table, at no cost: nothing more is learned.

        Args:
            rows: The number of rows; as before if None.
            seed: Another public seed draws other rows; the same rows and seed give the same table.
            where: Only rows that fit: ``{"sex": "f", "age": (30, 39), "town": ["Aby", "Berg"]}``, with a value, a range
                including both ends, or a list of values for each column. None is a missing value.
        """
        return SyntheticTable(self.source.draw(rows, seed, where), self.number)

    def save(self, path: str | Path) -> Path:
        """Write the model to one file; `tidegate.load_model` draws from it without policy, ledger or rows."""
        from tidegate.synthesize.files import save_model

        return save_model([self], Path(path))

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True)
class SyntheticTables(Sequence[SyntheticTable], Frames):
    """Synthetic tables under one charge, learned independently of each other. `job` is the job of a service."""

    tables: tuple[SyntheticTable, ...]
    description: Description
    charge: Charge
    _stages: Callable[[], tuple[Stage, ...]]
    _plan: Plan | None = None
    _original: Callable[[], Table] | None = None
    job: str = ""

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], policy: Policy, *, fetch: Callable[[int], pa.Table], job: str = ""
    ) -> SyntheticTables:
        """Return the tables that `to_dict` wrote; `fetch` returns the rows of the table with an index."""
        summaries = [Summary.from_dict(summary) for summary in data.get("summary", ())]
        sources = [
            Downloaded(rows, partial(fetch, index), summary=summaries[index] if summaries else None)
            for index, rows in enumerate(data["rows"])
        ]
        stages = tuple(Stage.from_dict(stage) for stage in data["stages"])
        tables = tuple(SyntheticTable(source, number) for number, source in enumerate(sources))
        return cls(tables, Description.from_dict(data), Charge.from_dict(data, policy), lambda: stages, job=job)

    @property
    def plan(self) -> Plan:
        """Everything that public facts decided, if the tables were made by this session."""
        if self._plan is None:
            raise Unsupported(
                "These tables come from a service or from a file. Their plan and their original are with the data holder.",
                "Use `public_report()` or `session.paid_quality(tables, epsilon=...)`, or ask the data holder for the quality report.",
            )
        return self._plan

    def __len__(self) -> int:
        return len(self.tables)

    @overload
    def __getitem__(self, number: int) -> SyntheticTable: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[SyntheticTable]: ...
    def __getitem__(self, number: int | slice) -> SyntheticTable | Sequence[SyntheticTable]:
        return self.tables[number]

    def __iter__(self) -> Iterator[SyntheticTable]:
        return iter(self.tables)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.description.model

    @property
    def why(self) -> str:
        """Why this model was chosen."""
        return self.description.why

    @property
    def cost(self) -> Amount:
        return self.charge.cost

    @property
    def entry(self) -> str:
        return self.charge.entry

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """How the loss of each table was split."""
        return self._stages()

    @property
    def promise(self) -> str:
        """The promise to everybody in the original table, in a sentence."""
        return self.description.promise

    @property
    def summary(self) -> tuple[Summary, ...]:
        """What is public about the model of each table. Empty for a model of an earlier version."""
        return tuple(summary for table in self if (summary := table.summary) is not None)

    @property
    def banner(self) -> str:
        """A warning if the budget supports too little of the table, else an empty text."""
        return next((summary.banner for summary in self.summary if summary.banner), "")

    def draw(self, rows: int | None = None, *, seed: int | None = None, where: Where | None = None) -> SyntheticTables:
        """Return other rows of every table, at no cost. See `SyntheticTable.draw`."""
        return replace(self, tables=tuple(table.draw(rows, seed=seed, where=where) for table in self))

    def save(self, path: str | Path) -> Path:
        """Write the models of all tables to one file; `tidegate.load_model` reads it without policy, ledger or rows."""
        from tidegate.synthesize.files import save_model

        return save_model(self.tables, Path(path))

    def to_arrow(self) -> pa.Table:
        """Return the rows of all tables, one table below the other; several are numbered in a first column, `table`."""
        tables = [table.to_arrow() for table in self]
        if len(tables) == 1:
            return tables[0]
        name = rename_labels(["table"], tables[0].column_names)["table"]
        numbers = pa.array([number for number, table in enumerate(tables) for _ in range(len(table))], pa.int64())
        return pa.concat_tables(tables).add_column(0, name, numbers)

    def says(self) -> str:
        """Return a summary in a few lines."""
        first, count = self.tables[0], len(self)
        tables = "1 synthetic table" if count == 1 else f"{count:,} synthetic tables"
        shape = f"{first.rows:,} rows and {len(self.description.columns)} columns"
        shares = "; ".join(f"{stage.name} {say(100 * stage.share)}%" for stage in self.stages)
        lines = [self.banner] if self.banner else []
        lines += [f"{tables} of {shape} by {self.model} ({self.why})", f"budget split: {shares}"]
        lines += _counted(self.summary)
        lines += ["; ".join(self.description.notes)] if self.description.notes else []
        return "\n".join([*lines, self.promise, self.charge.says()])

    def quality(
        self,
        *,
        formula: str = "",
        target: str = "",
        rule: Rule = "auto",
        at_most: int | None = None,
        progress: Progress | bool | None = None,
    ) -> Quality:
        """Compare the tables with the original. FOR THE DATA HOLDER ONLY: computed from true rows and not paid for.

        An empty `target` means that of the request. See `tidegate.synthesize.quality.quality_of` for the parameters.
        A terminal or notebook shows the progress in one line; `progress` replaces it, and False shows nothing.
        """
        from tidegate.synthesize.quality import quality_of  # here: its libraries take long to load
        from tidegate.synthesize.quality.separation import AT_MOST

        plan = self.plan
        if self._original is None:
            raise Unsupported("The original table is not on this machine.", "Open the data set with `tidegate.open`.")
        policy, names = plan.policy, plan.columns.names
        with progress_display(progress, work="quality") as show_progress:
            return quality_of(
                self._original(),
                [table.to_arrow() for table in self],
                attributes={name: of for name, of in policy.attributes.items() if name in names},
                name=policy.dataset.name,
                formula=formula,
                target=target or plan.request.target,
                rule=rule,
                summary=self.summary[0] if self.summary else None,
                cells={column.name: column.starts for column in plan.columns.learnt},
                at_most=AT_MOST if at_most is None else at_most,
                progress=show_progress,
            )

    def public_report(self, number: int = 0) -> PublicReport:
        """Return what is public about a table's model, for everybody who gets the table: no true row is read."""
        from tidegate.accounting.average import DELTA
        from tidegate.synthesize.quality.public import public_report

        summary = self.tables[number].summary
        if summary is None:
            raise Unsupported("A table of an earlier version has no public report.", "Synthesize again with forest/2.")
        name = self._plan.policy.dataset.name if self._plan is not None else self.charge.account.policy
        return public_report(summary, self.promise, name=name, delta=self.description.delta or DELTA)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the rows, as JSON values."""
        described = self.description.to_dict(self.stages)
        summaries = [summary.to_dict() for summary in self.summary]
        rows = [table.rows for table in self]
        return {**described, "rows": rows, "summary": summaries, "banner": self.banner, **self.charge.to_dict()}

    def __str__(self) -> str:
        return self.says()

    def _repr_html_(self) -> str:
        from tidegate.html import render

        first = self.tables[0].to_arrow().slice(0, SHOWN)
        rows = [[_cell(value) for value in row.values()] for row in first.to_pylist()]
        return render(
            "report/synthesis.html", {"columns": first.column_names, "rows": rows, "lines": self.says().splitlines()}
        )


@dataclass(frozen=True)
class SynthesisPreview(Rows):
    """The cost of synthetic tables, their model, and how the loss would be split. Nothing was charged."""

    description: Description
    stages: tuple[Stage, ...]
    known: str
    price: Price
    account: Account
    budget: Budget

    @property
    def cost(self) -> Amount:
        """The cost in the account's unit."""
        return self.account.cost_of(self.price)

    @property
    def fits(self) -> bool:
        return self.account.fits(self.price)

    @property
    def model(self) -> str:
        return self.description.model

    @property
    def why(self) -> str:
        return self.description.why

    def rows(self) -> list[Row]:
        """Return one dictionary per stage of the work: its share of the loss."""
        return [{"stage": stage.name, "share": float(stage.share), "says": stage.says} for stage in self.stages]

    def identification(self) -> dict[str, dict[str, float]]:
        """Return, for each protected target: now, after these tables, and the limit."""
        return {
            target.name: {
                "now": float(target.identification(self.account.totals)),
                "after": float(target.identification(self.account.totals + self.price)),
                "ceiling": float(target.rho),
            }
            for target in self.budget.targets
        }

    def yes_no(self) -> dict[str, float]:
        """Return the worst certainty of a yes/no question about one person: now, after these tables, and at the limit."""
        spent = self.account.totals
        certainty = {"now": self.budget.yes_no(spent), "after": self.budget.yes_no(spent + self.price)}
        return {**certainty, "ceiling": self.account.yes_no_limit(self.budget)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            **self.description.to_dict(self.stages),
            "shares": self.known,
            "cost": str(self.cost),
            "spent": str(self.account.spent),
            "ceiling": str(self.account.ceiling),
            "policy": self.account.policy,
            "left": str(self.account.left),
            "left_after": str(self.account.left.minus(self.cost)),
            "fits": self.fits,
            **self.account.in_all_units(self.price, after=self.account.totals + self.price),
            "guarantee": self.budget.guarantee,
            "identification": self.identification(),
            "yes_no": self.yes_no(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> SynthesisPreview:
        """Return the preview that `to_dict` wrote."""
        stages, account = tuple(Stage.from_dict(stage) for stage in data["stages"]), account_from_dict(data, policy)
        described, price = Description.from_dict(data), Price.from_dict(data["cost_by_unit"])
        return cls(described, stages, data["shares"], price, account, budget_of(policy))

    def __str__(self) -> str:
        risks = "".join(
            f"; identification of {name} at most {p['after']:.3g} afterwards (limit {p['ceiling']:.3g})"
            for name, p in self.identification().items()
        )
        certainty = self.yes_no()
        if risks:
            risks += (
                f"; yes/no certainty at most {certainty['after']:.3g} afterwards (limit {certainty['ceiling']:.3g})"
            )
        left = f"{self.account.left.say()} remaining{'' if self.fits else ': exceeds the budget'}"
        names = ", ".join(self.description.learnt)
        lines = [
            f"would cost   {SHORT[self.account.unit]} {self.cost.say()} ({left}){risks}",
            f"would learn  {names}, by {self.model} ({self.why})",
            *(f"             {note}" for note in self.description.notes),
            f"would split  {self.known}:",
            *(f"             {say(100 * stage.share):>5}%  {stage.name}: {stage.says}" for stage in self.stages),
            f"would keep   {self.description.promise}",
        ]
        return "\n".join([*lines, "Preview only: nothing was charged."])


def _counted(summaries: Sequence[Summary]) -> list[str]:
    """Return one line on what the models of all tables counted."""
    if not summaries:
        return []
    first = summaries[0]
    maps = f", {len(first.maps):,} map{'s' if len(first.maps) > 1 else ''} found" if first.maps else ""
    alone = f"; independent of all others: {', '.join(first.independent)}" if first.independent else ""
    which = "the first table: " if len(summaries) > 1 else ""
    return [f"{which}{len(first.pairs):,} pairs of columns were counted{maps}{alone}"]


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
