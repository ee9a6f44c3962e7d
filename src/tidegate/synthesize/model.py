"""The protocol of a model. Your own model is one class with these methods."""

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
    """One part of the work: its name, its share of epsilon, and a description."""

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
    """The private rows, as counts that the engine computes. Rows whose value is not listed are left out."""

    def places(self, column: Column) -> Ints:
        """Return the number of rows with each single code of a column: `size` counts, one more if missing is a value."""

    def margin(self, column: Column) -> Ints:
        """Return the number of rows in each cell of a column."""

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        """Return, for every two columns i < j (indexes in the list), the counts of their pairs of cells."""

    def codes(self, columns: Sequence[Column]) -> Ints:
        """Return every row's codes (-1: not listed), rows by columns, in memory: for models that cannot work with counts."""


class Learnt(Protocol):
    """A learned model. It is a function of its diary and contains nothing else about the rows."""

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Return artificial rows: codes of each column (`size` for missing), rows by columns. This is post-processing."""


class Progress(Protocol):
    """Progress callback. It receives public information only."""

    def __call__(self, stage: str, done: int, of: int) -> None: ...


class Model(Protocol):
    """A family of distributions and a private way to choose one.

    Guarantee:
        Everything that `learn` uses of the rows passes through `diary.step`. The loss of each step is at most its
        stated epsilon under replacement of one unit (facts.reach rows).
    """

    name: ClassVar[str]  # with a version; stored in ledgers, so it never changes: "forest/1"

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        """Return how epsilon is split: a public function of its arguments. `split` sets shares by stage name."""

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Learnt:
        """Spend the diary's epsilon on the rows, or rebuild the model from the written steps."""
