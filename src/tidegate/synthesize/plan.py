"""What a request means before a row is read: the columns, the model and why, the shares of the loss. All of it is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.policy import EachPerson, Policy
from tidegate.synthesize.columns import Columns, columns_of, too_wide
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.mechanisms import model_for
from tidegate.synthesize.model import Model, Stage
from tidegate.synthesize.request import SynthesisRequest

SIZE = "size"
SIZE_SHARE, MOST_SIZE_SHARE = Fraction(1, 200), Fraction(1, 20)  # of epsilon, for the number of rows if it is private
LEAST = Fraction(1, 10**6)  # smallest epsilon: below it no model's noise fits into 64 bits
SIZE_ERROR = Fraction(1, 100)  # intended error of the number of rows, as a share of the public number of persons
ASSUMED_ROWS = 10_000  # for a preview if the policy does not declare the number


@dataclass(frozen=True)
class Plan:
    """Everything that public facts decide."""

    request: SynthesisRequest
    columns: Columns
    model: Model
    why: str

    @property
    def policy(self) -> Policy:
        return self.columns.policy

    @property
    def reach(self) -> int:
        """The number of rows that one protected unit can change."""
        return self.policy.dataset.unit.rows_per_person

    @property
    def size_is_public(self) -> bool:
        return not isinstance(self.policy.dataset.unit, EachPerson)

    @property
    def size_loss(self) -> Fraction:
        """The loss of the number of rows, for each table."""
        return (
            Fraction(0)
            if self.size_is_public
            else self.request.epsilon * self.request.split.get(SIZE, self._size_share)
        )

    @property
    def _size_share(self) -> Fraction:
        """A small share, larger if the public number of persons is small, so that the noise stays within 1% of it."""
        persons = self.policy.dataset.rows
        needed = self.reach / (self.request.epsilon * persons * SIZE_ERROR) if persons else SIZE_SHARE
        return min(max(needed, SIZE_SHARE), MOST_SIZE_SHARE)

    @property
    def model_loss(self) -> Fraction:
        """The loss that remains for the model, for each table."""
        return self.request.epsilon - self.size_loss

    @property
    def split(self) -> Mapping[str, Fraction]:
        """The requested shares of the model's own stages."""
        return {name: share for name, share in self.request.split.items() if name != SIZE or self.size_is_public}

    def facts(self, rows: int) -> Facts:
        """Return what the model is allowed to know, for a number of rows."""
        return Facts(self.columns.learnt, rows, self.reach, self.request.target)

    def stages(self, rows: int) -> tuple[Stage, ...]:
        """Return how the loss of each table is split, or refuse a split that is not possible."""
        part = self.model_loss / self.request.epsilon
        inner = self.model.stages(self.facts(rows), epsilon=self.model_loss, split=self.split)
        own = tuple(replace(stage, share=stage.share * part) for stage in inner)
        if self.size_is_public:
            return own
        return (Stage(SIZE, 1 - part, f"count the rows, of which one person has at most {self.reach:,}"), *own)

    def says(self) -> str:
        """Return the request as text that follows the word "asked"."""
        return self.request.says(model=self.model.name, columns=len(self.columns.learnt) + len(self.columns.follows))

    def question(self) -> dict[str, Any]:
        return {**self.request.question(self.policy, model=self.model.name), **_options(self.model)}


def plan_for(request: SynthesisRequest, policy: Policy) -> Plan:
    """Return the plan of a request, or refuse it before anything is charged."""
    if policy.identification is None and policy.loss is None:
        raise Unsupported(
            f'Policy "{policy.dataset.name}" has no promise for synthetic tables, so none can be made.',
            "Add [promise.identification] or [promise.loss] to the policy.",
        )
    least = LEAST * policy.dataset.unit.rows_per_person
    if request.epsilon < least:
        raise Unsupported(
            f"An epsilon of {say(request.epsilon)} is too small to learn a table.",
            f"Use {say(least)} or more.",
        )
    columns = columns_of(policy, request.columns)
    known = [column.name for column in columns.learnt]
    if request.target and request.target not in known:
        raise Unsupported(
            f'The target "{request.target}" is not learned.', f"Name one of the learned columns: {', '.join(known)}."
        )
    model, why = _choose_model(request.model, columns)
    if not getattr(model, "exact", True):
        raise Unsupported(
            f'"{model.name}" has no exact loss, but this policy promises one.',
            "Use an exact model (auto chooses one). This one is for comparisons outside a session.",
        )
    if request.split.get(SIZE) in (Fraction(0), Fraction(1)) and isinstance(policy.dataset.unit, EachPerson):
        raise Unsupported(
            f'The share of "{SIZE}" must be above 0 and below 1: without it the number of rows is unknown.'
        )
    return Plan(request, columns, model, why)


def _choose_model(model: Any, columns: Columns) -> tuple[Model, str]:
    """Return the requested model, or the one that public facts suggest, and why."""
    if not isinstance(model, str):
        missing = [name for name in ("name", "stages", "learn") if not hasattr(model, name)]
        if missing:
            raise Unsupported(
                f"A model needs `name`, `stages` and `learn`; this one lacks {', '.join(missing)}.",
                "See tidegate.synthesize.model.",
            )
        return model, "passed by the caller"
    if model != "auto":
        return model_for(model), "requested"
    if too_wide(columns):
        return model_for("sequential"), "all columns are numbers on grids that are too fine for cells"
    return model_for("forest"), "the default for tables of numbers and categories"


def _options(model: Any) -> dict[str, Any]:
    """Return a model's settings that differ from its defaults: other settings are another question."""
    if not is_dataclass(model):
        return {}
    differ = {f.name: getattr(model, f.name) for f in fields(model) if getattr(model, f.name) != f.default}
    return {"options": {name: repr(value) for name, value in differ.items()}} if differ else {}


def expected_rows(policy: Policy) -> tuple[int, str]:
    """Return a number of rows to preview the shares with, and how it is known."""
    rows = policy.dataset.rows
    if rows is None:
        return ASSUMED_ROWS, f"for {ASSUMED_ROWS:,} rows, because the policy does not declare the number"
    if isinstance(policy.dataset.unit, EachPerson):
        return rows, f"for {say(Fraction(rows))} rows, one per person; the synthesis uses the noisy number"
    return rows, f"for {say(Fraction(rows))} rows"
