"""Columns of a draft: a kind from the name and the type of each, and its fields as an attribute of the policy.

Bounds and lists are typed by the owner. A few are proposed from the name of a column ("age": 0 to 120); none comes from a row.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tidegate.errors import PolicyIncomplete, TidegateError
from tidegate.policy.attributes import Attribute
from tidegate.policy.calendar import MONTHS, SECONDS
from tidegate.policy.draft import ColumnType, guess_kind, range_by_name, values_by_name
from tidegate.policy.kinds import read_attribute
from tidegate.policy.section import OPEN, Section
from tidegate.service.drafts.notation import point_notation

LEFT_OUT = "leave-out"
KINDS = {  # as the page names them
    "integer": "whole number",
    "number": "number",
    "date": "date",
    "timestamp": "date and time",
    "time": "time of day",
    "category": "category",
    "boolean": "yes or no",
    "text": "text (counts only whether it is there)",
    "key": "identifier",
    LEFT_OUT: "leave out",
}
PAGE_KINDS = {"grid": "number", "decimal": "number", "": LEFT_OUT}  # of a kind of the policy, if it differs
GRIDS = {"date": ("day", "week", *MONTHS), "timestamp": tuple(SECONDS), "time": tuple(SECONDS)}
MISSING = {"dropped": "leave row out", "value": 'count as "missing"'}
PARTS: dict[str, tuple[str, ...]] = {  # the fields of each kind; the first two must not be empty
    "integer": ("from", "to"),
    "number": ("from", "to", "step"),
    "date": ("from", "to", "grid"),
    "timestamp": ("from", "to", "grid", "zone"),
    "time": ("from", "to", "grid"),
    "category": ("values", "other"),
}
LABELS = {"from": "From", "to": "To", "step": "In steps of"}  # of fields of which a column has several
ALL_PARTS = ("from", "to", "step", "grid", "zone", "values", "other", "missing")
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # 2.000 is two thousand to many readers, and two to a program
WHOLE, NUMBER = re.compile(r"[+-]?\d{1,18}"), re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?")
COMMA = re.compile(r"[+-]?\d{1,18},\d{1,18}")
MOST_VALUES = 10_000  # of a list that is typed


def first_fields(types: Mapping[str, ColumnType]) -> dict[str, list[str]]:
    """Return the fields of the columns before anybody has typed anything."""
    fields: dict[str, list[str]] = {}
    for index, (name, column_type) in enumerate(types.items()):
        kind = page_kind(name, column_type)
        fields[f"kind-{index}"], fields[f"missing-{index}"] = [kind], ["dropped"]
        if kind in ("integer", "number") and (known := range_by_name(name)):
            low, high, step = known
            fields |= {f"from-{index}": [str(low)], f"to-{index}": [str(high)]}
            fields |= {f"step-{index}": [step]} if kind == "number" else {}
        if kind == "time":
            fields |= {f"from-{index}": ["00:00"], f"to-{index}": ["23:59"], f"grid-{index}": ["15-minutes"]}
        if kind in ("date", "timestamp"):
            fields[f"grid-{index}"] = [
                "month" if kind == "date" and re.search("birth|born|dob|geburt", name, re.I) else GRIDS[kind][0]
            ]
        if kind == "timestamp" and column_type == "instant":
            fields[f"zone-{index}"] = ["UTC"]
        if kind == "category":
            words = ("0", "1") if column_type == "whole" else values_by_name(name)
            fields |= {f"values-{index}": ["\n".join(words)]} if words else {}
            fields |= {f"other-{index}": ["yes"]} if column_type == "text" else {}
    return fields


def page_kind(name: str, column_type: ColumnType) -> str:
    """Return the kind of a column as the page names it, guessed from its name and type."""
    guess = guess_kind(name, column_type)
    return PAGE_KINDS.get(guess, guess)


def kind_title(kind: str) -> str:
    """Return how pages name a kind of the policy."""
    return KINDS.get(PAGE_KINDS.get(kind, kind), kind)


@dataclass
class ColumnFields:
    """The fields of one column, as its line of the policy, with a problem for each field that cannot be read."""

    name: str
    index: int
    column_type: ColumnType
    fields: Mapping[str, list[str]]
    lower: bool = False  # the values of the file were written in lower case
    problems: dict[str, str] = field(default_factory=dict)

    def text(self, part: str) -> str:
        return next(iter(self.fields.get(f"{part}-{self.index}", [])), "").strip()

    @property
    def kind(self) -> str:
        chosen = self.text("kind")
        return chosen if chosen in KINDS else LEFT_OUT

    @property
    def is_proposed(self) -> bool:
        """Whether the bounds or the list are those that were proposed from the name, so that the owner should check them."""
        proposed = first_fields({self.name: self.column_type})
        parts = [part for part in ("from", "to", "values") if f"{part}-0" in proposed]
        same = all(self.text(part) == proposed[f"{part}-0"][0] for part in parts)
        return self.kind == proposed["kind-0"][0] != "time" and bool(parts) and same

    def read(self) -> tuple[dict[str, Any], Attribute | None]:
        """Return the line of the policy, with "?" for what is open, and the attribute if the line is complete."""
        self.problems.clear()
        content = self._content()
        if not content or self.problems:
            return content, None
        undecided: list[str] = []
        try:
            attribute: Attribute = read_attribute(Section(dict(content), self.name, undecided))()
            return content, attribute
        except PolicyIncomplete:
            pass
        except TidegateError as error:
            self._refuse(PARTS.get(self.kind, ("kind",))[:2][-1] if self.kind != "category" else "values", error.what)
        return content, None

    def _content(self) -> dict[str, Any]:
        kind = self.kind
        if kind == LEFT_OUT:
            return {}
        if kind == "key":
            return {"kind": "key"}
        missing = self.text("missing") if self.text("missing") in MISSING else "dropped"
        content: dict[str, Any] = {"kind": self._policy_kind(), "missing": missing}
        if kind == "category":
            return {"kind": "category", **self._category(), "missing": missing}
        if kind in ("boolean", "text"):
            return content
        ends = {part: self._end(part) for part in ("from", "to")}
        if kind == "number":
            ends["step"] = self._end("step")
        if kind in GRIDS:
            chosen = self.text("grid")
            ends["grid"] = chosen if chosen in GRIDS[kind] else GRIDS[kind][0]
        if kind == "timestamp" and self.text("zone"):
            ends["zone"] = self.text("zone")
        return {"kind": content["kind"], **ends, "missing": missing}

    def _policy_kind(self) -> str:
        if self.kind == "number":
            return "decimal" if guess_kind(self.name, self.column_type) == "decimal" else "grid"
        return self.kind

    def _end(self, part: str) -> Any:
        """Return a bound or a step as a value of the policy; "?" if it is empty or cannot be read."""
        text = self.text(part)
        if not text:
            step = "Fill in the step between neighboring values, such as 1 or 0.1."
            self._refuse(part, step if part == "step" else "Fill in a public bound.")
            return OPEN
        try:
            value = READERS[self.kind](text)
            return end_of_day(value) if part == "to" and self.kind == "timestamp" and ":" not in text else value
        except ValueError:
            self._refuse(part, EXPECTED[self.kind])
            return OPEN

    def _category(self) -> dict[str, Any]:
        words = split_values(self.text("values"))
        words = list(dict.fromkeys(word.lower() for word in words)) if self.lower else words
        other: dict[str, Any] = {"outside": "other"} if self.text("other") and self.column_type == "text" else {}
        if not words:
            self._refuse("values", "List the public values, one per line.")
            return {"values": OPEN, **other}
        if len(words) > MOST_VALUES:
            self._refuse("values", f"List at most {MOST_VALUES:,} values.")
            return {"values": OPEN, **other}
        if self.column_type == "whole":
            if not all(WHOLE.fullmatch(word) for word in words):
                self._refuse("values", "The values of this column are whole numbers: list whole numbers.")
                return {"values": OPEN}
            return {"values": [int(word) for word in words]}
        return {"values": words, **other}

    def _refuse(self, part: str, text: str) -> None:
        self.problems.setdefault(f"{part}-{self.index}", text)


def split_values(text: str) -> list[str]:
    """Return the values of a list: one per line, or separated by semicolons or commas if there is one line."""
    separator = "\n" if "\n" in text.strip() else ";" if ";" in text else ","
    return [word for part in text.split(separator) if (word := part.strip())]


def _whole(text: str) -> int:
    if not WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def _number(text: str) -> Decimal | int:
    if COMMA.fullmatch(text) and not GROUPED.fullmatch(text):
        text = text.replace(",", ".")
    if not NUMBER.fullmatch(text) or GROUPED.fullmatch(text):
        raise ValueError
    return Decimal(text) if "." in text else int(text)


def end_of_day(day: dt.datetime) -> dt.datetime:
    """Return the last minute of a day: an upper bound without a time of day includes the whole day."""
    return day.replace(hour=23, minute=59)


READERS: dict[str, Any] = {
    "integer": _whole,
    "number": _number,
    "date": lambda text: dt.date.fromisoformat(point_notation(text)),
    "timestamp": lambda text: dt.datetime.fromisoformat(point_notation(text)),
    "time": dt.time.fromisoformat,
}
EXPECTED = {
    "integer": "Write a whole number, such as 120.",
    "number": "Write a number without separators of thousands, such as 2000 or 12.5.",
    "date": "Write a date as year-month-day, such as 2024-12-31, or as 31.12.2024.",
    "timestamp": "Write a date and time, such as 2024-12-31 23:00, or as 31.12.2024 23:00.",
    "time": "Write a time, such as 23:59.",
}
