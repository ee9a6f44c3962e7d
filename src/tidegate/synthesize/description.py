"""What is public about synthetic tables, as values and as text: the request, the promise, and what the model counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, budget_of, epsilon_at_delta
from tidegate.accounting.average import DELTA
from tidegate.exact import say
from tidegate.synthesize.diary import Loss
from tidegate.synthesize.model import Stage, Summary
from tidegate.synthesize.plan import Plan


@dataclass(frozen=True)
class Description:
    """What is public about a request for synthetic tables before a row is read. `limit` is the loss of each table."""

    tables: int
    limit: Loss
    model: str
    why: str
    columns: tuple[str, ...]
    learnt: tuple[str, ...]
    notes: tuple[str, ...]
    promise: str
    delta: Fraction | None = None

    @classmethod
    def of(cls, plan: Plan) -> Description:
        """Describe a plan."""
        return cls(
            plan.request.tables,
            plan.request.limit,
            plan.model.name,
            plan.why,
            tuple(plan.columns.names),
            tuple(column.name for column in plan.columns.learnt),
            tuple(plan.columns.says()),
            promise(plan),
            plan.request.delta,
        )

    @property
    def epsilon(self) -> Fraction | None:
        """The pure loss of each table; None if it is limited by z."""
        return self.limit.pure

    def to_dict(self, stages: Sequence[Stage]) -> dict[str, Any]:
        """Return everything as JSON values, with how the loss is split."""
        limit = self.limit
        return {
            "tables": self.tables,
            "epsilon": None if limit.pure is None else str(limit.pure),
            "z": str(limit.z),
            "zcdp": str(limit.zcdp),
            "delta": None if self.delta is None else str(self.delta),
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
        pure = None if data["epsilon"] is None else Fraction(data["epsilon"])
        return cls(
            tables=data["tables"],
            limit=Loss(pure, Fraction(data["z"]), Fraction(data["zcdp"])),
            model=data["model"],
            why=data["why"],
            columns=tuple(data["columns"]),
            learnt=tuple(data["learnt"]),
            notes=tuple(data["notes"]),
            promise=data["promise"],
            delta=None if data["delta"] is None else Fraction(data["delta"]),
        )


def promise(plan: Plan) -> str:
    """Return the promise of a plan, in a sentence."""
    request, count = plan.request, plan.request.tables
    unit = "one row" if plan.size_is_public else f"one person with at most {plan.reach:,} rows"
    if request.epsilon is not None:
        together = (
            f", and all {count:,} tables together at most epsilon {say(request.epsilon * count)}" if count > 1 else ""
        )
        loss = f"epsilon {say(request.epsilon)}"
        return f"each table, and anything ever drawn from it, loses at most {loss} about {unit}{together}"
    limit, delta = request.limit, request.delta or DELTA
    together = f", and all {count:,} tables together at most {_average(limit, count, delta)}" if count > 1 else ""
    return (
        f"each table, and anything ever drawn from it, loses at most {_average(limit, 1, delta)} about {unit}{together}"
        f"{_identification(plan)}"
    )


def _average(limit: Loss, count: int, delta: Fraction) -> str:
    """Return ``Z 0.0153 (epsilon 1 at delta = 1e-05)``: the epsilon of differential privacy is shown beside it."""
    epsilon = epsilon_at_delta(Amount.up(limit.zcdp * count), delta)
    return f"Z {say(limit.z * count)} (epsilon {say(epsilon)} at delta = {float(delta):g})"


def _identification(plan: Plan) -> str:
    """Return what all tables of a request reveal on average about the targets of the policy."""
    price = plan.request.event.price
    targets = [target for target in budget_of(plan.policy).targets if target.guarantee == "average"]
    if not targets:
        return ""
    bounds = [
        f"{target.name} at most {say(float(target.identification(price)))} (the policy allows {say(target.rho)})"
        for target in targets
    ]
    return (
        "; on average over the possible values and the noise, the probability that the best guess after these tables alone "
        f"is right is for {', for '.join(bounds)}"
    )


def summary_lines(summary: Summary) -> list[str]:
    """Return what a model counted, one line for each kind: public, because it follows from the diary."""
    spent = summary.spent
    pairs = [
        f"{pair.left} and {pair.right} ({pair.groups[0]:,} x {pair.groups[1]:,} groups, sd {say(pair.deviation)})"
        for pair in summary.pairs
    ]
    maps = [
        f"{rule.column} by {rule.by}{f' (except in {say(100 * rule.error)}% of the rows)' if rule.error else ''}"
        for rule in summary.maps
    ]
    cells = [
        f"{name} {len(starts):,}{f' (sd {say(summary.deviations[name])})' if name in summary.deviations else ''}"
        for name, starts in summary.cells.items()
    ]
    loss = f"Z {say(spent.z)}" if spent.pure is None else f"epsilon {say(spent.pure)} (Z {say(spent.z)})"
    return [
        f"cells of each column, with the standard deviation of the noise in rows: {', '.join(cells)}",
        f"pairs of columns that were counted, with groups and standard deviation: {'; '.join(pairs) or 'none'}",
        f"columns that another column determines: {', '.join(maps) or 'none'}",
        f"columns that are independent of all others: {', '.join(summary.independent) or 'none'}",
        f"largest difference from a counted pair: {say(summary.misfit)} standard deviations",
        f"spent: {loss}",
    ]
