"""The public plan of a sequential model: kinds of columns, parents, and the loss of every round.

Epsilon is cut into a million parts, so that sums are exact and short. Shares were set on the paper's simulation with
other seeds than those of the tests: later rounds get more, because only they decide how close the end is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tidegate.errors import Unsupported
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.learn import PARTS, overruled
from tidegate.synthesize.model import Stage

MOST_PARENTS, MOST_FEATURES, MOST_LEVELS = 3, 5, 5
SHARES = {"margins": 200_000, "parents": 100_000, "starts": 100_000, "blocks": 700_000}
EARLY, LATE = Fraction(2, 9), Fraction(7, 9)  # of a block's two rounds
FIRST, SECOND = Fraction(2, 5), Fraction(3, 5)  # of a margin's two rounds
SAYS = {
    "margins": "choose every number's centre and scale, count every category",
    "parents": "choose the columns that each column depends on",
    "starts": "choose each dependence on its own",
    "blocks": "choose each column's regression, in two rounds",
}


def is_number(column: Column) -> bool:
    """Whether a column gets a linear regression; the others get a logistic or multinomial one."""
    return column.ordered and column.size > 2


def levels_of(column: Column) -> int:
    """The levels of a category; missing is one where it is a value."""
    return column.size + column.missing


def features_of(column: Column) -> int:
    """How many numbers stand for a column where it is a parent, at most."""
    if is_number(column) or levels_of(column) == 2:
        return 1
    return min(levels_of(column) - 1, 3)


@dataclass(frozen=True)
class Plan:
    """Parts of epsilon per stage, and for every column its parents where they are public."""

    facts: Facts
    epsilon: Fraction
    parts: Mapping[str, int]
    parents: tuple[tuple[int, ...] | None, ...]  # None: chosen privately

    def loss(self, stage: str, share: Fraction = Fraction(1)) -> Fraction:
        """That share of a stage's loss."""
        return self.epsilon * Fraction(self.parts.get(stage, 0), PARTS) * share

    def stages(self) -> tuple[Stage, ...]:
        return tuple(Stage(name, Fraction(parts, PARTS), SAYS[name]) for name, parts in self.parts.items())

    def weight(self, place: int) -> int:
        """The parameters of a column's block, at most: blocks share the loss in this proportion."""
        column, given = self.facts.columns[place], self.parents[place]
        known = given if given is not None else tuple(range(place))
        most = sum(sorted((features_of(self.facts.columns[p]) for p in known), reverse=True)[:MOST_PARENTS])
        features = min(most, MOST_FEATURES)
        if is_number(column):
            return 2 + features
        levels = min(levels_of(column) - 1, MOST_LEVELS)
        return levels * (1 + features) if features else 0

    def block(self, place: int) -> Fraction:
        """A block's share of its stage."""
        return Fraction(self.weight(place), max(sum(map(self.weight, range(len(self.facts.columns)))), 1))

    @property
    def unknown(self) -> int:
        """Of how many columns the parents are chosen."""
        return sum(given is None for given in self.parents)

    @property
    def dependent(self) -> int:
        """How many columns may have parents."""
        return sum(given is None or bool(given) for given in self.parents)


def plan(
    facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction], parents: Mapping[str, Sequence[str]] | None
) -> Plan:
    """What will be asked at which price: a function of public facts."""
    if not facts.columns:
        raise Unsupported("There is no column to learn.")
    known = tuple(_parents(facts, place, parents) for place in range(len(facts.columns)))
    made = Plan(facts, epsilon, {}, known)
    used = {
        "margins": True,
        "parents": made.unknown > 0,
        "starts": made.dependent > 0,
        "blocks": any(made.weight(place) for place in range(len(facts.columns))),
    }
    parts = {name: share for name, share in SHARES.items() if used[name]}
    return Plan(facts, epsilon, overruled(scaled(parts), split), known)


def _parents(facts: Facts, place: int, given: Mapping[str, Sequence[str]] | None) -> tuple[int, ...] | None:
    """The columns before, where they are few; those named; or None where they must be chosen."""
    name = facts.columns[place].name
    if given is None:
        return tuple(range(place)) if place <= MOST_PARENTS else None
    known = [column.name for column in facts.columns[:place]]
    wrong = [one for one in given.get(name, ()) if one not in known]
    if wrong or len(given.get(name, ())) > MOST_PARENTS:
        raise Unsupported(
            f'"{name}" cannot depend on {", ".join(wrong) or "so many columns"}.',
            f"Name at most {MOST_PARENTS} columns that come before it.",
        )
    return tuple(known.index(one) for one in given.get(name, ()))


def scaled(parts: Mapping[str, int]) -> dict[str, int]:
    """Parts in the same proportion that add up to all."""
    total = sum(parts.values())
    found = {name: PARTS * share // total for name, share in parts.items()}
    last = next(reversed(found))
    return {**found, last: found[last] + PARTS - sum(found.values())}
