"""The outcome of a request for a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.policy import Policy


@dataclass(frozen=True)
class Released:
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
class Deferred:
    """The request waits. `ahead` is the number of requests that have waited longer (None if not counted)."""

    number: int
    ahead: int | None = None

    def __str__(self) -> str:
        position = "" if self.ahead is None else f" It is number {self.ahead + 1:,} in the queue."
        return (
            f"Request {self.number:,}: deferred.{position} It will be released once doing so reveals no more about a group "
            "than the policy allows. It can be withdrawn."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"outcome": "deferred", "number": self.number, "ahead": self.ahead}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Deferred:
        """Return the outcome that `to_dict` wrote."""
        return cls(data["number"], data["ahead"])


@dataclass(frozen=True)
class Refused:
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


Outcome = Released | Deferred | Refused
OUTCOMES: dict[str, type[Outcome]] = {"released": Released, "deferred": Deferred, "refused": Refused}


def outcome_from_dict(data: Mapping[str, Any], policy: Policy | None = None) -> Outcome:
    """Return the outcome that `to_dict` wrote: its key `outcome` selects the class."""
    return OUTCOMES[data["outcome"]].from_dict(data, policy)


NOBODY = Refused("no record has this key")
SEVERAL = Refused("several records have this key")
OUTSIDE = Refused("the record has a value that the policy does not declare, so no test covers it")
