"""What a request means before a row is read: the columns, the model, the shares of the loss. All of it is public.

The number of rows is public if every row is a person. If the unit is a person with several rows, the number of rows depends on
each person's number, so it is learned with noise, from a small share of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from tidegate.errors import Unsupported, did_you_mean
from tidegate.exact import say
from tidegate.policy import EachPerson, Policy
from tidegate.policy.hiding import refuse_combination
from tidegate.synthesize.columns import Columns, columns_of
from tidegate.synthesize.diary import NOTHING, Loss
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.mechanisms import model_for
from tidegate.synthesize.model import Model, Stage
from tidegate.synthesize.request import DEFAULT, OLD, SynthesisRequest

SIZE = "size"
SIZE_SHARE, MOST_SIZE_SHARE = Fraction(1, 200), Fraction(1, 20)  # of the loss, for the number of rows if it is private
LEAST = Fraction(1, 10**6)  # smallest epsilon: below it no model's noise fits into 64 bits
SIZE_ERROR = Fraction(1, 100)  # intended error of the number of rows, as a share of the public number of persons
ASSUMED_ROWS = 10_000  # for a preview if the policy does not declare the number
WHY = {DEFAULT: "the model of this version", OLD: "stored in the ledger by an earlier version"}


@dataclass(frozen=True)
class Plan:
    """Everything that public facts decide."""

    request: SynthesisRequest
    columns: Columns
    model: Model
    copies: tuple[str, ...] = ()  # learned columns of another table, whose relations to each other are known from there

    @property
    def policy(self) -> Policy:
        return self.columns.policy

    @property
    def why(self) -> str:
        """Why this model is used."""
        return WHY.get(self.model.name, "passed by the caller")

    @property
    def reach(self) -> int:
        """The number of rows that one protected unit can change."""
        return self.policy.dataset.unit.rows_per_person

    @property
    def size_is_public(self) -> bool:
        return not isinstance(self.policy.dataset.unit, EachPerson)

    @property
    def size_share(self) -> Fraction:
        """The share of the loss for the number of rows: a small one, so large that the noise stays within 1% of the persons."""
        if self.size_is_public:
            return Fraction(0)
        persons, limit = self.policy.dataset.rows, self.request.limit
        if not persons:
            return SIZE_SHARE
        error = self.reach / (persons * SIZE_ERROR)
        needed = error / limit.pure if limit.pure else error**2 / (2 * limit.zcdp)
        return min(max(needed, SIZE_SHARE), MOST_SIZE_SHARE)

    @property
    def size_loss(self) -> Loss:
        """The loss of the number of rows, for each table.

        It moves by at most `reach`. With Gaussian noise zcdp = reach**2 / (2 sigma**2), and z is a quarter of it, because the
        reference lies in the middle of the possible numbers.
        """
        if self.size_is_public:
            return NOTHING
        limit, share = self.request.limit, self.size_share
        if limit.pure is not None:
            return Loss.of_pure(share * limit.pure)
        return Loss(None, share * limit.zcdp / 4, share * limit.zcdp)

    @property
    def model_loss(self) -> Loss:
        """The loss that remains for the model, for each table. A limit on z keeps its ratio to zcdp."""
        limit, part = self.request.limit, 1 - self.size_share
        if limit.pure is not None:
            return Loss.of_pure(part * limit.pure)
        return Loss(None, part * limit.z, part * limit.zcdp)

    def facts(self, rows: int) -> Facts:
        """Return what the model is allowed to know, for a number of rows."""
        search = self.policy.synthesis.maps == "search"
        return Facts(self.columns.learnt, rows, self.reach, self.request.target, search_maps=search, copies=self.copies)

    def stages(self, rows: int) -> tuple[Stage, ...]:
        """Return how the loss of each table is split, or refuse a loss that the model cannot use."""
        own = self.model.stages(self.facts(rows), limit=self.model_loss)
        if self.size_is_public:
            return own
        part = 1 - self.size_share
        size = Stage(SIZE, 1 - part, f"count the rows, of which one person has at most {self.reach:,}")
        return (size, *(replace(stage, share=stage.share * part) for stage in own))

    def says(self) -> str:
        """Return the request as text that follows the word "asked"."""
        return self.request.says(model=self.model.name, columns=len(self.columns.names) - len(self.columns.numbered))

    def question(self) -> dict[str, Any]:
        return {**self.request.question(self.policy, model=self.model.name), **_options(self.model)}


def plan_for(request: SynthesisRequest, policy: Policy) -> Plan:
    """Return the plan of a request, or refuse it before anything is charged."""
    if policy.identification is None and policy.loss is None:
        raise Unsupported(
            f'Policy "{policy.dataset.name}" has no promise for synthetic tables, so none can be made.',
            "Add [promise.identification] or [promise.loss] to the policy.",
        )
    _refuse_too_small(request.limit, LEAST * policy.dataset.unit.rows_per_person)
    columns = columns_of(policy, request.columns, adaptive=request.model != OLD)
    refuse_combination(policy.hidings, columns.names, "The synthetic table")
    known = [column.name for column in columns.learnt]
    if request.target and request.target not in known:
        raise Unsupported(
            f'The target "{request.target}" is not learned.', f"Name one of the learned columns: {', '.join(known)}."
        )
    model = _model(request.model)
    if not getattr(model, "exact", True):
        raise Unsupported(
            f'"{model.name}" has no exact loss, but this policy promises one.',
            f'Use "{DEFAULT}". This model is for comparisons outside a session.',
        )
    return Plan(request, columns, model)


def _refuse_too_small(limit: Loss, least: Fraction) -> None:
    if limit.z >= Loss.of_pure(least).z:
        return
    pure = limit.pure is not None
    stated, enough = (limit.pure, least) if pure else (limit.z, Loss.of_pure(least).z)
    raise Unsupported(
        f"{'An epsilon' if pure else 'A z'} of {say(stated or 0)} is too small to learn a table.",
        f"Use {say(enough)} or more.",
    )


def _model(model: Any) -> Model:
    """Return the model of a name, or the object that the caller passed."""
    if isinstance(model, str):
        if model not in (DEFAULT, OLD):
            raise Unsupported(
                f'Unknown model: "{model}".',
                did_you_mean(model, dict.fromkeys((DEFAULT, OLD))) or f'Use "{DEFAULT}", or leave out `model`.',
            )
        return model_for(model)  # type: ignore[no-any-return]
    missing = [name for name in ("name", "stages", "learn") if not hasattr(model, name)]
    if missing:
        raise Unsupported(
            f"A model needs `name`, `stages` and `learn`; this one lacks {', '.join(missing)}.",
            "See tidegate.synthesize.model.",
        )
    return model  # type: ignore[no-any-return]


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
