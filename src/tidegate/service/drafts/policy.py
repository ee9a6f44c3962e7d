"""The policy of a draft: its text at any time, the policy itself once it is complete, and the problems of each step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context, Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from tidegate.accounting import budget_of
from tidegate.errors import Infeasible, TidegateError
from tidegate.policy import Dataset, EachPerson, EachRow, Key, Numeric, Policy, Text
from tidegate.policy.attributes import Attribute
from tidegate.policy.policy import NAME
from tidegate.policy.promises import GUARANTEES, Identification, Loss
from tidegate.policy.section import OPEN
from tidegate.policy.toml import parse_policy, write_draft
from tidegate.service.drafts.columns import LEFT_OUT, ColumnFields, first_fields
from tidegate.service.drafts.sources import shown_source, source_of
from tidegate.service.drafts.store import Draft, Fields, Step

DIGITS = Context(prec=4, rounding=ROUND_DOWN)  # a promise of "1 in 30" is rounded to the stricter side
ONE_IN, MOST_ONE_IN, MOST_ROWS_OF_PERSON = 20, 1_000, 5
AMOUNT = re.compile(r"\d{1,6}(\.\d{1,12})?")
FEWEST_VALUES = 3  # of a column that can be protected: with two, a promise must exceed 1 in 2
EXAMPLE_NAME = "Start with a letter, then use letters, digits, dots, dashes or underscores (at most 63)."


def default_fields(draft: Draft, step: Step) -> Fields:
    """Return the fields of a step that nobody has filled in yet."""
    if step == "columns":
        return first_fields(draft.types)
    if step == "people":
        keys = [
            name
            for name, kind in draft.types.items()
            if ColumnFields(name, 0, kind, first_fields({name: kind})).kind == "key"
        ]
        return {
            "name": [propose_name(str(draft.source.get("label", "")))],
            "unit": ["row"],
            "key": keys[:1],
            "at_most": [str(MOST_ROWS_OF_PERSON)],
        }
    return {}


def propose_name(label: str) -> str:
    """Return a name for a data set from the name of its file or table."""
    stem = Path(label).stem if Path(label).suffix else label.rpartition(".")[2]
    clean = re.sub(r"[^A-Za-z0-9_-]+", "_", re.sub(r"-\d+$", "", stem)).strip("_-").lower()[:40]
    return clean if clean[:1].isalpha() else f"data_{clean}".rstrip("_")


@dataclass
class DraftPolicy:
    """A draft read as a policy. `databases` are the allowed addresses; `folder` has public lists of values."""

    draft: Draft
    databases: Sequence[str] = ()
    is_untouched: bool = False  # the promise was proposed, and nobody has confirmed it
    problems: dict[str, dict[str, str]] = field(default_factory=dict)  # by step, by field

    def __post_init__(self) -> None:
        draft = self.draft
        steps: tuple[Step, ...] = ("people", "columns")
        for step in steps:
            if step not in draft.fields and draft.types:
                draft = draft.with_fields(step, default_fields(draft, step))
        self.draft = draft
        self._content = self._read()

    def refuse(self, step: Step, name: str, text: str) -> None:
        """Record the problem of a field; the first one is shown."""
        self.problems.setdefault(step, {}).setdefault(name, text)

    @cached_property
    def columns(self) -> list[ColumnFields]:
        fields = self.draft.fields.get("columns", {})
        lower = bool(self.draft.source.get("lower"))
        types = self.draft.types.items()
        return [ColumnFields(name, index, kind, fields, lower) for index, (name, kind) in enumerate(types)]

    @property
    def text(self) -> str:
        """The policy as a file for readers: without a password, with "?" for open decisions."""
        return write_draft(self._content)

    @property
    def own_text(self) -> str:
        """The policy as the file that is served: its source can contain a password."""
        dataset = {**self._content["dataset"], "source": source_of(self.draft.source, self.databases)}
        return write_draft({**self._content, "dataset": dataset})

    @property
    def is_complete(self) -> bool:
        return not any(self.problems.get(step) for step in ("source", "people", "columns", "promise"))

    def policy(self, folder: Path | None = None) -> Policy | None:
        """Return the policy, or None while it is not complete."""
        return parse_policy(self.own_text, folder=folder or Path()) if self.is_complete else None

    def table_policy(self) -> Policy | None:
        """Return the columns that are complete as a policy without a promise, to compare them with the data."""
        unit = self._unit_value
        attributes = dict(self.attributes)
        if isinstance(unit, EachPerson) and unit.key not in attributes:
            attributes[unit.key] = Key()
        if not attributes:
            return None
        rows = self._rows("rows")
        return Policy(
            Dataset("draft", source_of(self.draft.source, self.databases), unit or EachRow(), rows),
            attributes,
            version=2,
        )

    def _read(self) -> dict[str, Any]:
        draft = self.draft
        if not draft.source:
            self.refuse("source", "source", "Choose a file or a table.")
        dataset: dict[str, Any] = {
            "name": self._name(),
            "source": shown_source(draft.source) or OPEN,
            "unit": self._unit(),
        }
        rows, records = self._rows("rows"), None
        if draft.value("people", "unit") == "person":
            records = self._rows("records")
        dataset |= {"rows": rows} if rows is not None else {}
        dataset |= {"records": records} if records is not None else {}
        self.attributes: dict[str, Attribute] = {}
        lines: dict[str, Any] = {}
        key = draft.value("people", "key") if draft.value("people", "unit") == "person" else ""
        for column in self.columns:
            line, attribute = column.read()
            if column.name == key:  # the key of a person is an identifier, whatever else it was taken for
                line, attribute = {"kind": "key"}, Key()
                column.problems.clear()
            if line:
                lines[column.name] = line
            if attribute is not None:
                self.attributes[column.name] = attribute
            for name, text in column.problems.items():
                self.refuse("columns", name, text)
        if draft.types and not [column for column in self.columns if column.kind not in (LEFT_OUT, "key")]:
            self.refuse("columns", "kind-0", "Choose a kind for at least one column.")
        return {"version": 2, "dataset": dataset, "attributes": lines, "promise": self._promise()}

    def _name(self) -> str:
        name = self.draft.value("people", "name").strip()
        if not NAME.fullmatch(name):
            self.refuse("people", "name", EXAMPLE_NAME)
            return OPEN
        return name

    def _unit(self) -> Any:
        self._unit_value: EachRow | EachPerson | None = None
        kind = self.draft.value("people", "unit")
        if kind == "row":
            self._unit_value = EachRow()
            return "row"
        if kind != "person":
            self.refuse("people", "unit", "Choose who is protected.")
            return OPEN
        key, most = self.draft.value("people", "key"), self.draft.value("people", "at_most").strip()
        if key not in self.draft.types:
            self.refuse("people", "key", "Choose the column that identifies a person.")
        if not (most.isdecimal() and 1 <= int(most) <= 10**6):
            self.refuse("people", "at_most", "Write a whole number of at least 1.")
        if self.problems.get("people", {}).keys() & {"key", "at_most"}:
            return {"person": key or OPEN, "at_most": OPEN}
        self._unit_value = EachPerson(key, int(most))
        return self._unit_value.to_value()

    def _rows(self, name: str) -> int | None:
        """Return the number in a field; None if it is empty."""
        text = re.sub(r"[ ,_']", "", self.draft.value("people", name))
        if not text:
            return None
        if not (text.isdecimal() and 1 <= int(text) <= 10**12):
            self.refuse("people", name, "Write a whole number of at least 1, or leave the field empty.")
            return None
        return int(text)

    @property
    def protectable(self) -> dict[str, Attribute]:
        """The columns that an adversary could try to guess."""
        return {
            name: attribute
            for name, attribute in self.attributes.items()
            if not isinstance(attribute, Key | Text) and attribute.size >= FEWEST_VALUES
        }

    @property
    def promise_kind(self) -> str:
        """ "guess" (a probability of guessing a value) or "loss" (a total epsilon)."""
        chosen = self.draft.value("promise", "promise")
        return chosen if chosen in ("guess", "loss") else "guess" if self.protectable else "loss"

    def _promise(self) -> dict[str, Any]:
        if "promise" not in self.draft.fields:
            self.refuse("promise", "one_in", "Choose a promise.")
            return {}
        return self._loss() if self.promise_kind == "loss" else self._identification()

    def _loss(self) -> dict[str, Any]:
        text = self.draft.value("promise", "epsilon").strip()
        if not AMOUNT.fullmatch(text) or not Decimal(text):
            self.refuse("promise", "epsilon", "Write a number above 0, such as 1.")
            return {"loss": {"epsilon": OPEN}}
        return {"loss": Loss(Decimal(text)).to_dict()}

    def _identification(self) -> dict[str, Any]:
        text, protect = self.draft.value("promise", "one_in").strip(), self.draft.values("promise", "protect")
        protect = [name for name in protect if name in self.protectable]
        if not protect:
            self.refuse("promise", "protect", "Choose at least one column to protect.")
        if not AMOUNT.fullmatch(text) or not 1 < Decimal(text) <= MOST_ONE_IN:
            self.refuse("promise", "one_in", f"Write a number above 1 and at most {MOST_ONE_IN:,}, such as {ONE_IN}.")
        within = {name: width for name in protect if (width := self._window(name)) is not None}
        chosen = self.draft.value("promise", "guarantee", "worst-case")
        guarantee: Any = chosen if chosen in GUARANTEES else "worst-case"
        if self.problems.get("promise"):
            return {
                "identification": {"rho": OPEN, "worlds": "values", "protect": protect or OPEN, "guarantee": guarantee}
            }
        promise = Identification(
            rho_of(text), worlds="values", protect=tuple(protect), guarantee=guarantee, within=within
        )
        self._refuse_infeasible(promise)
        return {"identification": promise.to_dict()}

    def _window(self, name: str) -> Decimal | None:
        """Return the distance at which a guess of a column counts as right, if one was typed."""
        index = list(self.draft.types).index(name)
        text, attribute = self.draft.value("promise", f"within-{index}").strip(), self.attributes[name]
        if not text or not isinstance(attribute, Numeric):
            return None
        if not AMOUNT.fullmatch(text):
            self.refuse("promise", f"within-{index}", "Write a number of at least 0, or leave the field empty.")
            return None
        return Decimal(text)

    def _has_window(self, name: str) -> bool:
        return bool(self.draft.value("promise", f"within-{list(self.draft.types).index(name)}").strip())

    def _refuse_infeasible(self, promise: Identification) -> None:
        """Refuse a promise that no noise could keep, at the field that decides it."""
        try:
            policy = Policy(Dataset("draft"), self.attributes, promise, version=2)
            budget_of(policy).refuse_infeasible()
        except Infeasible as error:
            name, guess = error.facts["target"], float(error.facts["smallest_rho"])
            possible = (
                f"Choose at most {most_one_in(guess):g}" if most_one_in(guess) >= 2 else "Do not protect this column"
            )
            text = f'A random guess of "{name}" is already right 1 time in {1 / guess:.3g}. {possible}, or a smaller distance.'
            self.refuse(
                "promise", "one_in", text if self._has_window(name) else text.replace(", or a smaller distance", "")
            )
        except TidegateError as error:
            index = next((list(self.draft.types).index(name) for name in promise.within), None)
            self.refuse(
                "promise", "protect" if index is None else f"within-{index}", f"{error.what} {error.do}".strip()
            )


def rho_of(one_in: str) -> Decimal:
    """Return 1 / `one_in` in four digits, rounded down: the promise is never weaker than its text."""
    return DIGITS.divide(Decimal(1), Decimal(one_in)).normalize()


def most_one_in(random_guess: float) -> float:
    """Return the largest whole `one_in` that can be promised if a random guess is right with this probability."""
    most = int(1 / random_guess) if random_guess > 0 else MOST_ONE_IN
    while most > 1 and float(rho_of(str(most))) <= random_guess:
        most -= 1
    return min(most, MOST_ONE_IN)
