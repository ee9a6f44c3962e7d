"""The outcome of a request for a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.frames import Row, Rows, rename_labels
from tidegate.policy import Policy

FIELDS = {"key": str, "outcome": str, "number": int, "ahead": int, "reason": str}


class _OneRow(Rows):
    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def rows(self) -> list[Row]:
        """Return the outcome as one dictionary; a released record's values are beside it."""
        return [_row(self.to_dict())]

    def _kinds(self) -> dict[str, type]:
        return {name: kind for name, kind in FIELDS.items() if name != "key"}


@dataclass(frozen=True)
class Released(_OneRow):
    """The record was released, now or earlier. Requesting it again returns it again."""

    number: int
    record: dict[str, Any]

    def __str__(self) -> str:
        return f"Request {self.number:,}: released."

    def to_dict(self) -> dict[str, Any]:
        return {"outcome": "released", "number": self.number, "record": self.record}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Released:
        """Return the outcome that `to_dict` wrote."""
        return cls(data["number"], data["record"])


@dataclass(frozen=True)
class Deferred(_OneRow):
    """The request waits. `ahead` is the number of requests that have waited longer (None if not counted)."""

    number: int
    ahead: int | None = None
    later: bool = False  # the record was added after the selection of a hiding promise; the request has no number

    def __str__(self) -> str:
        if self.later:
            return (
                "Deferred: the record was added after the records for release were chosen. Request it again once the data "
                "holder has opened the next selection."
            )
        position = "" if self.ahead is None else f" It is number {self.ahead + 1:,} in the queue."
        return (
            f"Request {self.number:,}: deferred.{position} It will be released once doing so reveals no more about a group "
            "than the policy allows. It can be withdrawn."
        )

    def to_dict(self) -> dict[str, Any]:
        later = {"later": True} if self.later else {}
        return {"outcome": "deferred", "number": self.number, "ahead": self.ahead, **later}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Deferred:
        """Return the outcome that `to_dict` wrote."""
        return cls(data["number"], data["ahead"], data.get("later", False))


@dataclass(frozen=True)
class Withheld(_OneRow):
    """The record is not among those that were chosen for release. This is final."""

    number: int
    day: str

    def __str__(self) -> str:
        return (
            f"Request {self.number:,}: withheld. The record is not among the records that were chosen for release on "
            f"{self.day}; asking again changes nothing."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"outcome": "withheld", "number": self.number, "day": self.day}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Withheld:
        """Return the outcome that `to_dict` wrote."""
        return cls(data["number"], data["day"])


@dataclass(frozen=True)
class Refused(_OneRow):
    """There is no record that could be released, now or later."""

    reason: str

    def __str__(self) -> str:
        return f"Refused: {self.reason}."

    def to_dict(self) -> dict[str, Any]:
        return {"outcome": "refused", "reason": self.reason}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Refused:
        """Return the outcome that `to_dict` wrote."""
        return cls(data["reason"])


Outcome = Released | Deferred | Withheld | Refused
OUTCOMES: dict[str, type[Outcome]] = {
    "released": Released,
    "deferred": Deferred,
    "withheld": Withheld,
    "refused": Refused,
}


def outcome_from_dict(data: Mapping[str, Any], policy: Policy | None = None) -> Outcome:
    """Return the outcome that `to_dict` wrote: its key `outcome` selects the class."""
    return OUTCOMES[data["outcome"]].from_dict(data, policy)


class Outcomes(dict[str, Outcome], Rows):
    """The outcome of each requested key."""

    def rows(self) -> list[Row]:
        """Return one dictionary per key: its outcome, and the values of a released record."""
        return [{"key": key, **_row(outcome.to_dict())} for key, outcome in self.items()]

    def _kinds(self) -> dict[str, type]:
        return FIELDS


class Records(list[dict[str, Any]], Rows):
    """Released records, in order of release."""

    def rows(self) -> list[Row]:
        """Return the records."""
        return list(self)


def _row(outcome: Mapping[str, Any]) -> Row:
    """Return an outcome and its record as one row with a fixed order of columns."""
    record = outcome.get("record") or {}
    columns = rename_labels(record, FIELDS)
    fixed = {name: outcome.get(name) for name in FIELDS if name != "key"}
    return {**fixed, **{columns[name]: value for name, value in record.items()}}


LATER = Deferred(0, later=True)
NOBODY = Refused("no record has this key")
SEVERAL = Refused("several records have this key")
OUTSIDE = Refused("the record has a value that the policy does not declare, so no test covers it")
