"""The request: how many tables, at which loss, by which model. A frozen value, priced before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Filtered, budget_of
from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.exact import Number, exact, positive, root_below
from tidegate.policy import Policy
from tidegate.policy.fingerprint import texts

MOST_TABLES, MOST_ROWS = 1_000, 2**31


@dataclass(frozen=True)
class SynthesisRequest:
    """A checked request for synthetic tables.

    Attributes:
        epsilon: The loss of each table.
        rows, seed: How many rows to draw and from which public seed. Drawing is free, so they are not part of the
            question.
        split: Shares of epsilon by stage, instead of the model's own.
    """

    epsilon: Fraction
    tables: int = 1
    rows: int | None = None
    model: Any = "auto"
    target: str = ""
    split: Mapping[str, Fraction] = field(default_factory=dict)
    seed: int | None = None
    columns: tuple[str, ...] = ()

    @property
    def event(self) -> Filtered:
        """The charge, whatever the model does with it."""
        return Filtered(self.epsilon, self.tables)

    def question(self, policy: Policy, *, model: str) -> dict[str, Any]:
        """Return the identity of the question in the ledger: the request, and the values, cells and unit it concerns."""
        public = policy.public_dict()
        question = {"verb": "synthesize", "model": model, "event": self.event.to_dict(), "target": self.target}
        question["split"] = {name: str(share) for name, share in sorted(self.split.items())}
        question["columns"] = list(self.columns)
        return {
            **question,
            "of": public["attributes"],
            "shapes": texts(policy.synthesis.to_dict()),
            "unit": public["dataset"]["unit"],
            "rows": policy.dataset.rows,
            "edition": policy.dataset.edition,
        }

    def says(self, *, model: str, columns: int) -> str:
        """Return the request as text that follows the word "asked"."""
        tables = "a synthetic table" if self.tables == 1 else f"{self.tables:,} synthetic tables"
        return f"for {tables} of {columns} column{'s' if columns != 1 else ''} by {model}"


def resolve_request(
    policy: Policy,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
    tables: int = 1,
    rows: int | None = None,
    model: Any = "auto",
    target: str = "",
    split: Mapping[str, Number] | None = None,
    seed: int | None = None,
    columns: Iterable[str] = (),
) -> SynthesisRequest:
    """Return the checked request.

    Exactly one of `epsilon` (the loss of each table), `rho` (identification by all tables of this request together) and
    `share` (their part of the total budget) sets the loss.
    """
    if sum(value is not None for value in (epsilon, rho, share)) != 1:
        raise Unsupported(
            "Specify exactly one of `epsilon`, `rho`, or `share`.",
            "`epsilon` is the loss of each table; `rho` limits the probability of identification by all tables together; "
            "`share` is their part of the total budget.",
        )
    table_count = check_whole(tables, "tables", most=MOST_TABLES)
    if epsilon is not None:
        loss = positive(epsilon, "epsilon")
    elif rho is not None:
        budget = budget_of(policy)
        loss = _each(budget.loss_alone(positive(rho, "rho")).value, table_count, budget.guarantee == "average")
    else:
        budget = budget_of(policy)
        loss = _each(budget.part(positive(share or 0, "share")), table_count, budget.unit == "z")
    loss = Amount.down(loss).value  # whole grains: the charge never exceeds the request
    if not loss:
        raise Unsupported("The loss is too small to be charged.", "Use a larger `epsilon`, `rho` or `share`.")
    if target and target not in policy.attributes:
        raise UnknownColumn(
            f'There is no column "{target}" in policy "{policy.dataset.name}".',
            did_you_mean(target, policy.attributes),
            column=target,
        )
    return SynthesisRequest(
        loss,
        table_count,
        None if rows is None else check_whole(rows, "rows", most=MOST_ROWS),
        model,
        target,
        {name: _share(name, share) for name, share in (split or {}).items()},
        None if seed is None else check_whole(seed, "seed", least=0, most=2**63 - 1),
        tuple(dict.fromkeys([columns] if isinstance(columns, str) else columns)),
    )


def _each(loss: Fraction, tables: int, average: bool) -> Fraction:
    """Return the epsilon of each table for a loss of all: a part of it, or by z = tables * epsilon**2 / 8 if it is a z."""
    return root_below(8 * loss / tables) if average else loss / tables


def _share(name: str, value: Number) -> Fraction:
    try:
        share = exact(value)
    except (TypeError, ValueError):
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise Unsupported(f'The share of "{name}" must be between 0 and 1.', "For example: split margins=0.5.")
    return share


def check_whole(value: Any, name: str, *, least: int = 1, most: int) -> int:
    """Return a whole number within bounds, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Unsupported(f"`{name}` must be a whole number from {least:,} to {most:,}.")
    return value
