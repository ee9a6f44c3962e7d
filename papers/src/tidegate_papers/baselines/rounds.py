"""The rounds of a sequential model: its public plan, finite sets of candidates, and one choice among them.

The plan has the kinds of columns, their parents, and the loss of every round. Epsilon is divided into a million parts, so that
sums are exact and short. Shares were tuned on the paper's simulation with seeds that the tests do not use. Later rounds get
more, because only they determine the final error.

Each set of candidates is a function of the public seed, of public sizes, and of the results of earlier rounds. Parameters are
whole multiples of 1 / UNIT, so that the diary stores a chosen one exactly. A round chooses one candidate by the exact
exponential mechanism and writes its parameters into the diary.

The score is the total variation on cells: linear in the misfit, while pMSE is quadratic, and pMSE <= pMAE / 2 = TV / 4 at equal
sizes. The exponential mechanism therefore ends at a misfit of the order d / (n epsilon) instead of its square root.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits, below, exponential_choice
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Stage

PARTS = 1_000_000


def pure_loss(limit: Loss) -> Fraction:
    """Return the pure limit, or refuse a limit on z: these models measure pure losses only."""
    if limit.pure is None:
        raise Unsupported("This model requires a pure loss, but the limit is on z.", "Set an epsilon without a delta.")
    return limit.pure


# Public plan

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


def make_plan(facts: Facts, *, epsilon: Fraction, parents: Mapping[str, Sequence[str]] | None) -> Plan:
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
    return Plan(facts, epsilon, scale_parts(parts), known)


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


# Candidates, and one round

UNIT = 2**20
MANY, SOME = 20_000, 2_000  # candidates of a margin's round, and of a block's round
WIDEST, FIRST_FLOOR = 1.0, 0.4  # radii in standard deviations
NEARER = 0.1  # distance of the nearest candidates, as a share of the radius
Made = Callable[[], Ints]


def whole(parameters: Floats) -> Ints:
    """Return parameters as integers on their lattice."""
    return np.rint(np.asarray(parameters) * UNIT).astype(np.int64)


def real(written: Ints) -> Floats:
    """Return the parameters that integers of the diary represent."""
    return np.asarray(written, np.float64) / UNIT


def anywhere(size: int, *, count: int = MANY, random: np.random.Generator) -> Ints:
    """Return centers uniform over `size` codes and scales log-uniform from 1/4 to `size` codes."""
    centers = random.uniform(-0.5, size - 0.5, count)
    scales = random.uniform(math.log(0.25), math.log(size), count)
    return whole(np.column_stack([centers, scales]))


def around(current: Ints, spread: Floats, radius: float, *, count: int, random: np.random.Generator) -> Ints:
    """Return the current parameters and others at normal distances, near ones and far ones up to the radius."""
    reach = radius * np.exp(random.uniform(math.log(NEARER), 0.0, count))
    steps = reach[:, None] * random.standard_normal((count, current.size)) * spread
    return np.vstack([current, current + whole(steps)])


def first_radius(*, rows: int, reach: int, epsilon: Fraction, floor: float = FIRST_FLOOR) -> float:
    """Return how far the truth can be from a first choice, in standard deviations; `floor` is the spacing of candidates."""
    return min(WIDEST, max(25.0 * reach / _strength(rows, epsilon), floor))


def next_radius(radius: float, *, rows: int, reach: int, epsilon: Fraction, count: int, dimensions: int) -> float:
    """Return how far the truth can be after one more round, given what its loss and its number of candidates resolve."""
    spacing = 3.0 * math.exp(-math.log(count) / dimensions)
    return min(radius, max(40.0 * reach / _strength(rows, epsilon), radius * spacing))


def _strength(rows: int, epsilon: Fraction) -> float:
    return max(rows * float(epsilon), 1e-9)


SHORT = 2**20  # of a rate's numerator, so that scores times it stay within 64 bits


@dataclass(frozen=True)
class Chooser:
    """Private choices among public candidates, recorded in a diary.

    Guarantee:
        A round spends at most its epsilon under replacement of one unit: no misfit changes by more than `reach` times
        the stated sensitivity, and the choice is exact in whole numbers.

    Needs:
        Candidates that are a function of public facts and of the diary.

    Reference:
        McSherry, Talwar 2007.
    """

    diary: Diary
    reach: int
    bits: Bits

    def choose(
        self,
        name: str,
        epsilon: Fraction,
        candidates: Callable[[], Ints],
        misfits: Callable[[Ints], Ints],
        *,
        sensitivity: int,
    ) -> Ints:
        """Return the chosen parameters; small misfits are likely. Without epsilon, return the first candidate."""

        def measure() -> Ints:
            parameters = candidates()
            index = (
                self._choose_index(misfits(parameters), rate_for(sensitivity * self.reach, epsilon)) if epsilon else 0
            )
            return np.asarray(parameters[index], np.int64)

        return self.diary.step(name, epsilon, measure)

    def _choose_index(self, misfits: Ints, rate: Fraction) -> int:
        if not rate:  # the loss is too small to favor a candidate: choose uniformly
            return int(below(misfits.size, size=1, bits=self.bits)[0])
        return exponential_choice(-misfits, rate, bits=self.bits)


def rate_for(sensitivity: int, epsilon: Fraction) -> Fraction:
    """Return epsilon / (2 sensitivity), or a short fraction just below it. It is never above, so it can be 0."""
    rate = epsilon / (2 * sensitivity)
    if rate.numerator <= SHORT and rate.denominator <= 2**60:
        return rate
    grid = 1
    while rate * grid < SHORT // 2 and grid < 2**60:
        grid *= 2
    return Fraction(math.floor(rate * grid), grid)


# The meaning of a misfit's integers, and their sensitivity to one row

CODES = 16  # cells of a column on its own
PAIRED = 8  # cells of each of two columns
MOST = 256


@dataclass(frozen=True)
class Scale:
    """score / denominator - constant is the measure; replacing one row changes the score by at most `sensitivity`.

    A public function of sizes and settings: it depends on no row.
    """

    measure: str
    denominator: int
    sensitivity: int
    constant: Fraction = Fraction(0)

    def value(self, score: int) -> Fraction:
        """Return the measure itself. It is a function of the private rows, so it is for the data holder only."""
        return Fraction(int(score), self.denominator) - self.constant

    def rate(self, epsilon: Fraction, *, reach: int = 1) -> Fraction:
        """Return the rate at which exp(rate * -score) spends epsilon if a person has up to `reach` rows."""
        return epsilon / (2 * self.sensitivity * reach)


def variation_scale(*, cells: int, tables: int = 1, shares: int = 1) -> Scale:
    """Return the scale on which score / denominator is rows x the mean total variation; one row changes it by at most 1.

    Reference:
        Snoke & Slavkovic 2018 bound pMSE; for the total variation see `tidegate.risk.pmse.variation_sensitivity`.
    """
    most = 2 * cells * shares * tables
    return Scale("rows x total variation", denominator=most, sensitivity=most)


def misfit_scale(*, parts: int, shares: int = 1) -> Scale:
    """Return the scale on which score / denominator is rows x total variation; `parts` is the sum of the expected table."""
    return Scale("rows x total variation", denominator=2 * parts * shares, sensitivity=2 * parts * shares)


def normal_cuts(cells: int) -> Floats:
    """Return the cuts of a standard normal into cells of equal probability."""
    if not 2 <= cells <= MOST:
        raise ValueError(f"An axis must have 2 to {MOST} cells, not {cells}")
    return np.asarray(ndtri(np.arange(1, cells) / cells), np.float64)
