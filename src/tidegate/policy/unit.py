"""The protected unit: one row, or a person with at most k rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.errors import PolicyUnreadable


@dataclass(frozen=True)
class EachRow:
    """Every row is one person."""

    @property
    def rows_per_person(self) -> int:
        return 1

    def describe(self) -> str:
        return "one row per person"

    def to_value(self) -> Any:
        return "row"


@dataclass(frozen=True)
class EachPerson:
    """A person is identified by a key column and counts with at most `at_most` rows.

    If a person has more rows, they are chosen by a keyed hash of their own content (`choice` is the key): the same rows on
    every engine, every time, regardless of other persons' rows. The key does not have to be secret.
    """

    key: str
    at_most: int
    choice: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 1:
            raise PolicyUnreadable(
                "`at_most`, a person's number of rows, must be a whole number of at least 1.",
                'Write unit = { person = "KEY COLUMN", at_most = 5 }.',
            )

    @property
    def rows_per_person(self) -> int:
        return self.at_most

    def describe(self) -> str:
        rows = "row" if self.at_most == 1 else "rows"
        return f'one person per "{self.key}", counted with at most {self.at_most:,} {rows}'

    def to_value(self) -> Any:
        choice = {"choice": self.choice} if self.choice else {}
        return {"person": self.key, "at_most": self.at_most, **choice}


Unit = EachRow | EachPerson
