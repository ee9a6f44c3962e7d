"""Results: synthetic tables with their cost, how the loss was split, and the promise; and previews."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, overload

import pyarrow as pa

from tidegate.accounting import Amount, Budget, Price, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.ledger import Account, Charge
from tidegate.ledger.charge import account_from_dict
from tidegate.policy import Policy
from tidegate.synthesize.diary import Step
from tidegate.synthesize.learn import LearnedTable
from tidegate.synthesize.model import Stage
from tidegate.synthesize.plan import Plan
from tidegate.synthesize.request import MOST_ROWS, check_whole
from tidegate.tables import Table

if TYPE_CHECKING:
    from tidegate.synthesize.quality import Quality
    from tidegate.synthesize.quality.combine import Rule

SHOWN = 5  # rows in a notebook


class TableSource(Protocol):
    """Where the rows of a synthetic table come from: a diary on this machine, or a download."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """The diary, where it is on this machine."""
        ...

    def fetch(self) -> pa.Table:
        """Return the rows."""
        ...

    def draw(self, rows: int | None, seed: int | None) -> TableSource:
        """Return a source of other rows of the same table."""
        ...


@dataclass(frozen=True)
class Drawn:
    """Rows drawn from the model that a table's diary gives."""

    plan: Plan
    steps: tuple[Step, ...]
    _learn: Callable[[], LearnedTable]
    number: int = 0
    _rows: int | None = None
    seed: int = 0

    @cached_property
    def learned(self) -> LearnedTable:
        """The model, rebuilt from the diary."""
        return self._learn()

    @property
    def rows(self) -> int:
        return self.learned.rows if self._rows is None else self._rows

    def fetch(self) -> pa.Table:
        codes = self.learned.learnt.draw(self.rows, seed=_stream(self.seed, self.number))
        return self.plan.columns.to_arrow(codes)

    def draw(self, rows: int | None, seed: int | None) -> Drawn:
        learned = self.learned
        count = self._rows if rows is None else check_whole(rows, "rows", most=MOST_ROWS)
        return replace(self, _learn=lambda: learned, _rows=count, seed=self.seed if seed is None else seed)


@dataclass(frozen=True)
class Downloaded:
    """Rows that a service sends when they are first read."""

    rows: int
    _download: Callable[[], pa.Table]
    steps: tuple[Step, ...] = ()

    def fetch(self) -> pa.Table:
        return self._download()

    def draw(self, rows: int | None, seed: int | None) -> TableSource:
        raise Unsupported(
            "Only the service can draw other rows of a downloaded table.",
            "Synthesize again with the same epsilon and other `rows` or another `seed`, at no cost.",
        )


@dataclass(frozen=True)
class SyntheticTable:
    """One artificial table. Every row is drawn from a model learned at an exact loss; no row belongs to a person."""

    source: TableSource
    number: int = 0

    @property
    def rows(self) -> int:
        """The number of rows: the requested number, else that of the original (or its noisy number)."""
        return self.source.rows

    @property
    def steps(self) -> tuple[Step, ...]:
        """The diary: every number learned from the rows. Empty for a downloaded table."""
        return self.source.steps

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: numbers on their grids, categories as listed, missing as null."""
        if "_arrow" not in self.__dict__:  # no cached_property: in Python 3.11 its lock makes all tables wait for one
            self.__dict__["_arrow"] = self.source.fetch()
        return self.__dict__["_arrow"]

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def draw(self, rows: int | None = None, *, seed: int | None = None) -> SyntheticTable:
        """Return the same table with other rows: another number of rows or another public seed. Free: nothing more is learned."""
        return SyntheticTable(self.source.draw(rows, seed), self.number)

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True)
class Description:
    """What is public about a request for synthetic tables before a row is read."""

    tables: int
    epsilon: Fraction
    model: str
    why: str
    columns: tuple[str, ...]
    learnt: tuple[str, ...]
    notes: tuple[str, ...]
    promise: str

    @classmethod
    def of(cls, plan: Plan) -> Description:
        """Describe a plan."""
        return cls(
            plan.request.tables,
            plan.request.epsilon,
            plan.model.name,
            plan.why,
            tuple(plan.columns.names),
            tuple(column.name for column in plan.columns.learnt),
            tuple(plan.columns.says()),
            promise(plan),
        )

    def to_dict(self, stages: Sequence[Stage]) -> dict[str, Any]:
        """Return everything as JSON values, with how the loss is split."""
        return {
            "tables": self.tables,
            "epsilon": str(self.epsilon),
            "model": self.model,
            "why": self.why,
            "columns": list(self.columns),
            "learnt": list(self.learnt),
            "notes": list(self.notes),
            "stages": [stage.to_dict() for stage in stages],
            "promise": self.promise,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Description:
        """Return the description that `to_dict` wrote."""
        return cls(
            tables=data["tables"],
            epsilon=Fraction(data["epsilon"]),
            model=data["model"],
            why=data["why"],
            columns=tuple(data["columns"]),
            learnt=tuple(data["learnt"]),
            notes=tuple(data["notes"]),
            promise=data["promise"],
        )


@dataclass(frozen=True)
class SyntheticTables(Sequence[SyntheticTable]):
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
        sources = (Downloaded(rows, partial(fetch, index)) for index, rows in enumerate(data["rows"]))
        stages = tuple(Stage.from_dict(stage) for stage in data["stages"])
        tables = tuple(SyntheticTable(source, number) for number, source in enumerate(sources))
        return cls(tables, Description.from_dict(data), Charge.from_dict(data, policy), lambda: stages, job=job)

    @property
    def plan(self) -> Plan:
        """Everything that public facts decided, if the tables were made on this machine."""
        if self._plan is None:
            raise Unsupported(
                "These tables were made by a service, which has their plan.",
                "Read the rows with `to_arrow()` or `to_pandas()`; `to_dict()` returns the public part of the request.",
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

    def says(self) -> str:
        """Return a summary in a few lines."""
        first, count = self.tables[0], len(self)
        tables = "1 synthetic table" if count == 1 else f"{count:,} synthetic tables"
        shape = f"{first.rows:,} rows and {len(self.description.columns)} columns"
        shares = "; ".join(f"{stage.name} {say(100 * stage.share)}%" for stage in self.stages)
        lines = [f"{tables} of {shape} by {self.model} ({self.why})", f"budget split: {shares}"]
        lines += ["; ".join(self.description.notes)] if self.description.notes else []
        return "\n".join([*lines, self.promise, self.charge.says()])

    def quality(
        self,
        *,
        formula: str = "",
        target: str = "",
        rule: Rule = "auto",
        pairwise: bool = True,
        shuffles: int | None = None,
        at_most: int | None = None,
    ) -> Quality:
        """Compare the tables with the original. FOR THE DATA HOLDER ONLY: computed from true rows and not paid for.

        An empty `target` means that of the request. See `tidegate.synthesize.quality.quality_of` for the parameters.
        """
        from tidegate.synthesize.quality import quality_of  # here: its libraries take long to load
        from tidegate.synthesize.quality.separation import AT_MOST, SHUFFLES

        plan = self.plan
        if self._original is None:
            raise Unsupported("The original table is not on this machine.", "Open the data set with `tidegate.open`.")
        policy, names = plan.policy, plan.columns.names
        return quality_of(
            self._original(),
            [table.to_arrow() for table in self],
            attributes={name: of for name, of in policy.attributes.items() if name in names},
            name=policy.dataset.name,
            formula=formula,
            target=target or plan.request.target,
            rule=rule,
            cells={column.name: column.starts for column in plan.columns.learnt},
            pairwise=pairwise,
            shuffles=SHUFFLES if shuffles is None else shuffles,
            at_most=AT_MOST if at_most is None else at_most,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the rows, as JSON values."""
        described = self.description.to_dict(self.stages)
        return {**described, "rows": [table.rows for table in self], **self.charge.to_dict()}

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
class SynthesisPreview:
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
        ]
        return "\n".join([*lines, "Preview only: nothing was charged."])


def promise(plan: Plan) -> str:
    """Return the promise of a plan, in a sentence."""
    epsilon, count = plan.request.epsilon, plan.request.tables
    together = f", and all {count:,} tables together at most epsilon {say(epsilon * count)}" if count > 1 else ""
    unit = "one row" if plan.size_is_public else f"one person with at most {plan.reach:,} rows"
    return f"each table, and anything ever drawn from it, loses at most epsilon {say(epsilon)} about {unit}{together}"


def _stream(seed: int, number: int) -> int:
    """Return a seed for each table, so that two tables do not draw the same rows."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:6])


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
