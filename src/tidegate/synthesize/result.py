"""What is given back: tables to draw from, what they cost, how the loss was shared, and what is promised."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import pyarrow as pa

from tidegate.accounting import Amount, Budget, yes_no_certainty
from tidegate.exact import say
from tidegate.ledger import Account, Charge
from tidegate.synthesize.diary import Step
from tidegate.synthesize.learn import LearnedTable
from tidegate.synthesize.model import Stage
from tidegate.synthesize.plan import Plan
from tidegate.synthesize.request import MOST_ROWS, whole
from tidegate.tables import Table

SHOWN = 5  # rows in a notebook


@dataclass(frozen=True)
class SyntheticTable:
    """One artificial table. Every row is drawn from what the diary says; none belongs to anybody."""

    plan: Plan
    steps: tuple[Step, ...]
    _learn: Callable[[], LearnedTable]
    number: int = 0
    _rows: int | None = None
    seed: int = 0

    @cached_property
    def _learned(self) -> LearnedTable:
        return self._learn()

    @property
    def rows(self) -> int:
        """How many rows it has: as many as the original (or as its noisy number says), unless others were asked for."""
        return self._learned.rows if self._rows is None else self._rows

    @cached_property
    def _arrow(self) -> pa.Table:
        codes = self._learned.learnt.draw(self.rows, seed=_stream(self.seed, self.number))
        return self.plan.columns.to_arrow(codes)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table: numbers on their grids, categories of their list, missing as null."""
        return self._arrow

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        return self._arrow.to_pandas()

    def draw(self, rows: int | None = None, *, seed: int | None = None) -> SyntheticTable:
        """The same table with other rows: as many as are wanted, from another public seed. Free: nothing more is learnt."""
        many = self._rows if rows is None else whole(rows, "rows", most=MOST_ROWS)
        learned = self._learned
        return replace(self, _learn=lambda: learned, _rows=many, seed=self.seed if seed is None else seed)

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True)
class SyntheticTables(Sequence[SyntheticTable]):
    """Synthetic tables under one charge, learnt independently of each other."""

    tables: tuple[SyntheticTable, ...]
    plan: Plan
    charge: Charge
    _original: Callable[[], Table]

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
        return self.plan.model.name

    @property
    def why(self) -> str:
        """Why it is this model."""
        return self.plan.why

    @property
    def cost(self) -> Amount:
        return self.charge.cost

    @property
    def entry(self) -> str:
        return self.charge.entry

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """How the loss of each table was shared out."""
        return self.plan.stages(self.tables[0]._learned.rows)

    @cached_property
    def promise(self) -> str:
        """What is promised to everybody in the original table, in a sentence."""
        return promise(self.plan)

    def says(self) -> str:
        """All of it in a few lines."""
        first, many = self.tables[0], len(self)
        tables = "1 synthetic table" if many == 1 else f"{many:,} synthetic tables"
        shape = f"{first.rows:,} rows and {len(self.plan.columns.names)} columns"
        shares = "; ".join(f"{stage.name} {say(100 * stage.share)}%" for stage in self.stages)
        lines = [f"{tables} of {shape} by {self.model} ({self.why})", f"loss shared: {shares}"]
        lines += ["; ".join(told)] if (told := self.plan.columns.says()) else []
        return "\n".join([*lines, self.promise, self.charge.says()])

    def quality(self, **wanted: Any) -> Any:
        """How good the tables are beside the original. FOR THE DATA HOLDER'S EYES: it is computed from true rows and not
        paid for. See `tidegate.synthesize.quality.quality_of` for what can be asked."""
        from tidegate.synthesize.quality import quality_of  # here: it draws pictures

        policy, names = self.plan.policy, self.plan.columns.names
        given: dict[str, Any] = {
            "attributes": {name: of for name, of in policy.attributes.items() if name in names},
            "cells": {column.name: column.starts for column in self.plan.columns.learnt},
            "name": policy.dataset.name,
            "target": self.plan.request.target,
        }
        return quality_of(self._original(), [table.to_arrow() for table in self], **{**given, **wanted})

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows, as JSON values."""
        return {**describe(self.plan, self.stages), "rows": [table.rows for table in self], **self.charge.to_dict()}

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
    """What synthetic tables would cost, by which model, and how the loss would be shared. Nothing was spent."""

    plan: Plan
    stages: tuple[Stage, ...]
    known: str
    account: Account
    budget: Budget

    @property
    def cost(self) -> Amount:
        return self.plan.request.event.price

    @property
    def fits(self) -> bool:
        return self.cost <= self.account.left

    @property
    def model(self) -> str:
        return self.plan.model.name

    @property
    def why(self) -> str:
        return self.plan.why

    def identification(self) -> dict[str, dict[str, float]]:
        """For each protected target: now, after these tables, and the ceiling."""
        return {
            target.name: {
                "now": float(target.identification(self.account.spent)),
                "after": float(target.identification(self.account.spent + self.cost)),
                "ceiling": float(target.rho),
            }
            for target in self.budget.targets
        }

    def yes_no(self) -> dict[str, float]:
        """The worst certainty of a yes/no question about one person: now, after these tables, and with all."""
        spent = self.account.spent
        losses = {"now": spent, "after": spent + self.cost, "ceiling": self.account.ceiling}
        return {name: float(yes_no_certainty(loss)) for name, loss in losses.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        left = {"left": str(self.account.left), "left_after": str(self.account.left.minus(self.cost))}
        told = {"cost": str(self.cost), **left, "fits": self.fits, "identification": self.identification()}
        told["yes_no"] = self.yes_no()
        return {**describe(self.plan, self.stages), "shares": self.known, **told}

    def __str__(self) -> str:
        risks = "".join(
            f"; identification of {name} at most {p['after']:.3g} afterwards (ceiling {p['ceiling']:.3g})"
            for name, p in self.identification().items()
        )
        certainty = self.yes_no()
        if risks:
            risks += (
                f"; yes/no certainty at most {certainty['after']:.3g} afterwards (ceiling {certainty['ceiling']:.3g})"
            )
        left = f"left {self.account.left.say()}{'' if self.fits else ': too much'}"
        names = ", ".join(column.name for column in self.plan.columns.learnt)
        lines = [
            f"would cost   epsilon {self.cost.say()} ({left}){risks}",
            f"would learn  {names}, by {self.model} ({self.why})",
            *(f"             {told}" for told in self.plan.columns.says()),
            f"would share  {self.known}:",
            *(f"             {say(100 * stage.share):>5}%  {stage.name}: {stage.says}" for stage in self.stages),
        ]
        return "\n".join([*lines, "nothing was asked, nothing was spent."])


def promise(plan: Plan) -> str:
    """What a plan promises, in a sentence."""
    epsilon, many = plan.request.epsilon, plan.request.tables
    together = f", and all {many:,} tables together at most epsilon {say(epsilon * many)}" if many > 1 else ""
    who = "one row" if plan.size_is_public else f"one person with at most {plan.reach:,} rows"
    return f"each table, and anything ever drawn from it, loses at most epsilon {say(epsilon)} about {who}{together}"


def describe(plan: Plan, stages: Sequence[Stage]) -> dict[str, Any]:
    """What is public of a request, as JSON values."""
    return {
        "tables": plan.request.tables,
        "epsilon": str(plan.request.epsilon),
        "model": plan.model.name,
        "why": plan.why,
        "columns": list(plan.columns.names),
        "notes": plan.columns.says(),
        "stages": [{"name": s.name, "share": float(s.share), "says": s.says} for s in stages],
        "promise": promise(plan),
    }


def _stream(seed: int, number: int) -> int:
    """A seed for each table, so that two of them do not draw alike."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:6])


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
