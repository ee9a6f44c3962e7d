"""What a model of a table is. A model of your own is one class with these methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from tidegate.arrays import Ints
from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts


@dataclass(frozen=True)
class Stage:
    """A part of the work and of the loss: its name, its share of epsilon, and what it does, for people."""

    name: str
    share: Fraction
    says: str

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "share": float(self.share), "says": self.says}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stage:
        """Return the stage that `to_dict` wrote."""
        return cls(data["name"], Fraction(data["share"]), data["says"])


class Rows(Protocol):
    """The private rows, as counts that the engine makes. Rows whose value is not listed are left out."""

    def places(self, column: Column) -> Ints:
        """How many rows hold each single code of a column: `size` numbers, one more where missing is a value."""

    def margin(self, column: Column) -> Ints:
        """How many rows lie in each cell of a column."""

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        """For every two columns i < j (their places in the list), the cells of one by the cells of the other."""

    def codes(self, columns: Sequence[Column]) -> Ints:
        """Every row's codes (-1: not listed), for models that cannot do with counts: rows by columns, in memory."""


class Learnt(Protocol):
    """A model that has seen its diary. Nothing private is left in it."""

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Artificial rows: codes of each column's universe (`size` for missing), rows by columns. Post-processing."""


class Progress(Protocol):
    """Told how far the work is. What it is told is public."""

    def __call__(self, stage: str, done: int, of: int) -> None: ...


class Model(Protocol):
    """A family of distributions and a private way to choose one.

    Guarantee:
        All that `learn` takes from the rows passes through `diary.step`, each step with a loss of at most what it
        says, under replacement of one unit (facts.reach rows).
    """

    name: ClassVar[str]  # with a version, for ever: "forest/1"

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        """How epsilon is shared out: a public function of its arguments. `split` overrules shares by stage name."""

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Learnt:
        """Spend the diary's epsilon on the rows (or read it again from what is written)."""
