"""The public plan of a sequential model: kinds of columns, parents, and the loss of every round.

Epsilon is divided into a million parts, so that sums are exact and short. Shares were tuned on the paper's simulation with
seeds that the tests do not use. Later rounds get more, because only they determine the final error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tidegate.errors import Unsupported
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.learn import PARTS, apply_split
from tidegate.synthesize.model import Stage

MOST_PARENTS, MOST_FEATURES, MOST_LEVELS = 3, 5, 5
SHARES = {"margins": 200_000, "parents": 100_000, "starts": 100_000, "blocks": 700_000}
EARLY, LATE = Fraction(2, 9), Fraction(7, 9)  # of a block's two rounds
FIRST, SECOND = Fraction(2, 5), Fraction(3, 5)  # of a margin's two rounds
SAYS = {
    "margins": "choose the center and scale of every number, count every category",
    "parents": "choose the columns that each column depends on",
    "starts": "choose each dependence separately",
    "blocks": "choose each column's regression, in two rounds",
}


def is_number(column: Column) -> bool:
    """Return whether a column gets a linear regression; the others get a logistic or multinomial one."""
    return column.ordered and column.size > 2


def levels_of(column: Column) -> int:
    """Return the number of levels of a category; missing is a level if it is a value."""
    return column.size + column.missing


def features_of(column: Column) -> int:
    """Return the largest number of features of a column as a parent."""
    if is_number(column) or levels_of(column) == 2:
        return 1
    return min(levels_of(column) - 1, 3)


@dataclass(frozen=True)
class Plan:
    """Parts of epsilon per stage, and every column's parents if they are public."""

    facts: Facts
    epsilon: Fraction
    parts: Mapping[str, int]
    parents: tuple[tuple[int, ...] | None, ...]  # None: chosen privately

    def loss(self, stage: str, share: Fraction = Fraction(1)) -> Fraction:
        """Return a share of a stage's loss."""
        return self.epsilon * Fraction(self.parts.get(stage, 0), PARTS) * share

    def stages(self) -> tuple[Stage, ...]:
        return tuple(Stage(name, Fraction(parts, PARTS), SAYS[name]) for name, parts in self.parts.items())

    def weight(self, index: int) -> int:
        """Return the largest number of parameters of a column's block: blocks split the loss in this proportion."""
        column, parents = self.facts.columns[index], self.parents[index]
        known = parents if parents is not None else tuple(range(index))
        most = sum(sorted((features_of(self.facts.columns[p]) for p in known), reverse=True)[:MOST_PARENTS])
        features = min(most, MOST_FEATURES)
        if is_number(column):
            return 2 + features
        levels = min(levels_of(column) - 1, MOST_LEVELS)
        return levels * (1 + features) if features else 0

    def block(self, index: int) -> Fraction:
        """Return a block's share of its stage."""
        return Fraction(self.weight(index), max(sum(map(self.weight, range(len(self.facts.columns)))), 1))

    @property
    def unknown(self) -> int:
        """The number of columns whose parents are chosen privately."""
        return sum(parents is None for parents in self.parents)

    @property
    def dependent(self) -> int:
        """The number of columns that can have parents."""
        return sum(parents is None or bool(parents) for parents in self.parents)


def make_plan(
    facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction], parents: Mapping[str, Sequence[str]] | None
) -> Plan:
    """Return what will be measured and at which loss: a function of public facts."""
    if not facts.columns:
        raise Unsupported("There is no column to learn.")
    known = tuple(_parents(facts, index, parents) for index in range(len(facts.columns)))
    draft = Plan(facts, epsilon, {}, known)
    used = {
        "margins": True,
        "parents": draft.unknown > 0,
        "starts": draft.dependent > 0,
        "blocks": any(draft.weight(index) for index in range(len(facts.columns))),
    }
    parts = {name: share for name, share in SHARES.items() if used[name]}
    return Plan(facts, epsilon, apply_split(scale_parts(parts), split), known)


def _parents(facts: Facts, index: int, parents: Mapping[str, Sequence[str]] | None) -> tuple[int, ...] | None:
    """Return the columns before if they are few, or the named ones, or None if the parents must be chosen."""
    name = facts.columns[index].name
    if parents is None:
        return tuple(range(index)) if index <= MOST_PARENTS else None
    known = [column.name for column in facts.columns[:index]]
    unknown = [parent for parent in parents.get(name, ()) if parent not in known]
    if unknown or len(parents.get(name, ())) > MOST_PARENTS:
        raise Unsupported(
            f'"{name}" cannot depend on {", ".join(unknown) or "that many columns"}.',
            f"Name at most {MOST_PARENTS} columns that come before it.",
        )
    return tuple(known.index(parent) for parent in parents.get(name, ()))


def scale_parts(parts: Mapping[str, int]) -> dict[str, int]:
    """Return parts in the same proportion that add up to PARTS."""
    total = sum(parts.values())
    scaled_parts = {name: PARTS * share // total for name, share in parts.items()}
    last = next(reversed(scaled_parts))
    return {**scaled_parts, last: scaled_parts[last] + PARTS - sum(scaled_parts.values())}
