"""The protocol of a model. Your own model is one class with these methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from tidegate.arrays import Ints
from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts


@dataclass(frozen=True)
class Stage:
    """One part of the work: its name, its share of the loss, and a description."""

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

    def pair(self, left: Column, right: Column) -> Ints:
        """Return the number of rows in each pair of cells of two columns: (cells of left, cells of right)."""

    def explained(self, columns: Sequence[Column], pairs: Sequence[tuple[int, int]]) -> Ints:
        """Return, for every ordered pair (i, j), how many rows a function of i's cell could explain in j.

        This is the sum over i's cells of the largest count of one of j's cells.
        """

    def codes(self, columns: Sequence[Column]) -> Ints:
        """Return every row's codes (-1: not listed), rows by columns, in memory: for models that cannot work with counts."""


@dataclass(frozen=True)
class CountedPair:
    """Two columns that were counted together: on how many groups each, and the standard deviation of a count's noise."""

    left: str
    right: str
    groups: tuple[int, int]
    deviation: float
    phase: Literal["tree", "residual"]


@dataclass(frozen=True)
class FoundMap:
    """A column that another one determines; `error` is the share of rows in which it is drawn from its margin instead."""

    column: str
    by: str
    error: float


@dataclass(frozen=True)
class Summary:
    """What is public about a learned model, from its diary.

    cells       the first code of every cell, by column      deviations  of the noise of a cell's count, by column
    independent columns in no pair and no map                 misfit      largest difference from a counted pair, in deviations
    banner      a warning about the budget, or ""
    """

    cells: Mapping[str, tuple[int, ...]]
    deviations: Mapping[str, float]
    pairs: tuple[CountedPair, ...]
    maps: tuple[FoundMap, ...]
    independent: tuple[str, ...]
    misfit: float
    banner: str
    spent: Loss

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            **{name: getattr(self, name) for name in ("misfit", "banner")},
            "cells": {name: list(starts) for name, starts in self.cells.items()},
            "deviations": dict(self.deviations),
            "pairs": [{**vars(pair), "groups": list(pair.groups)} for pair in self.pairs],
            "maps": [vars(rule) for rule in self.maps],
            "independent": list(self.independent),
            "spent": self.spent.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Summary:
        """Return the summary that `to_dict` wrote."""
        return cls(
            {name: tuple(starts) for name, starts in content["cells"].items()},
            content["deviations"],
            tuple(CountedPair(**{**pair, "groups": tuple(pair["groups"])}) for pair in content["pairs"]),
            tuple(FoundMap(**rule) for rule in content["maps"]),
            tuple(content["independent"]),
            content["misfit"],
            content["banner"],
            Loss.from_dict(content["spent"]),
        )


Condition = Mapping[int, Ints]
"""The codes that a draw may have, by the index of the column; a column without an entry may have any."""


class Learnt(Protocol):
    """A learned model. It is a function of its diary and contains nothing else about the rows."""

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Return artificial rows: codes of each column (`size` for missing), rows by columns. This is post-processing."""


@runtime_checkable
class Fitted(Learnt, Protocol):
    """A learned model that is stored as it is. It never computes again what was learned, so later versions draw the same."""

    @property
    def summary(self) -> Summary:
        """What is public about the model."""

    def chunks(self, rows: int, *, seed: int, where: Condition = ...) -> Iterator[Ints]:
        """Return `draw` in chunks of at most 100,000 rows, in constant memory; each fits `where`."""

    def share(self, where: Condition) -> float:
        """Return the model's share of rows that fit."""

    def to_dict(self) -> dict[str, Any]:
        """Return the whole model as JSON values without floats."""


class Progress(Protocol):
    """Progress callback. It receives public information only."""

    def __call__(self, stage: str, done: int, of: int) -> None: ...


class Model(Protocol):
    """A family of distributions and a private way to choose one.

    Guarantee:
        Everything that `learn` uses of the rows passes through `diary.step`. The loss of each step is at most its
        stated loss under replacement of one unit (facts.reach rows).

    A model whose `learn` returns a `Fitted` has a method `restore` that returns it again from its content. Other models are
    rebuilt from their diaries, so they need a new name when they change.
    """

    name: ClassVar[str]  # with a version; stored in ledgers, so it never changes: "forest/1"

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        """Return how the limit is split: a public function of its arguments."""

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Learnt:
        """Spend the diary's limit on the rows, or rebuild the model from the written steps."""
