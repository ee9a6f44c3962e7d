"""What the informed adversary knows, and the worlds among which they guess.

The adversary knows the policy, the method and every unit but one. Worlds are the values of the missing unit's protected
column. If persons are protected, one differs from all others of the population, which is the worst case (it reaches
equation 15). If only a loss is promised, the missing unit is at one end of a column or at the other. On average, persons
who differ from each other are the worst case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate import answer as ask
from tidegate.accounting import budget_of
from tidegate.answer import Query
from tidegate.arrays import Bools, Floats
from tidegate.audit.bounds import identification_probability
from tidegate.audit.fake_data import (
    Codes,
    MemoryTable,
    category_columns,
    copy_policy,
    has_sum,
    numeric_columns,
    query_value,
)
from tidegate.audit.finding import Unit
from tidegate.exact import say
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import col
from tidegate.policy.promises import Guarantee

UNITS = 6  # of a simulated data set: three known at one end, two at the other; the sixth decides the median
MOST_CELLS = 2_000  # of a histogram or of a column with rank queries


@dataclass(frozen=True)
class Situation:
    """One target to guess.

    Args:
        codes: The possible values of the missing unit in `column`.
        prior: The adversary's prior probability of each.
        special: The index of the value that the adversary tries to be sure of.
        promised: The limit of the posterior probability, of that of a right guess on average, or of the loss.
        window: The distance in steps at which a guess counts as right.
        alike: The number of persons of each value, if a person must be named, or of windows in each cell; the adversary can
            only choose one of them.
    """

    policy: Policy
    target: str
    column: str
    codes: NDArray[np.int64]
    prior: Floats
    special: int
    promised: float
    unit: Unit
    promise: str
    guarantee: Guarantee = "worst-case"
    window: int = 0
    alike: float = 1

    @property
    def attribute(self) -> Any:
        return self.policy.attribute(self.column)

    @property
    def known(self) -> tuple[Codes, ...]:
        """The units that the adversary knows."""
        last = self.attribute.size - 1
        return tuple({self.column: code} for code in (0, 0, 0, last, last))

    def world(self, index: int) -> MemoryTable:
        """Return the data set in which the missing unit has the value at an index of `codes`."""
        return MemoryTable(self.policy, (*self.known, {self.column: int(self.codes[index])}))

    @property
    def others(self) -> Floats:
        """The probability of each other world, given that the special one is false."""
        weights = self.prior.copy()
        weights[self.special] = 0.0
        return np.asarray(weights / weights.sum())

    def in_promised_unit(self, epsilon: float) -> float:
        """Return a proven loss in the unit of the promise."""
        return (
            epsilon
            if self.unit == "epsilon"
            else identification_probability(epsilon, prior=float(self.prior[self.special]))
        )

    def amount(self, value: float) -> str:
        """Format a value in the unit of the promise."""
        return f"epsilon {value:.3g}" if self.unit == "epsilon" else f"{value:.3g}"

    @property
    def random_guess(self) -> float:
        """The probability that a guess without any answer is right."""
        upto = np.concatenate([[0.0], np.cumsum(self.prior)])
        width = min(2 * self.window + 1, self.prior.size)
        return float((upto[width:] - upto[:-width]).max()) / self.alike

    def is_right(self, guesses: Any, secrets: Any) -> Bools:
        """Return which guesses are right, both as indexes of `codes`."""
        return np.asarray(np.abs(np.asarray(guesses) - secrets) <= self.window)

    def questions(self) -> list[Query]:
        """Return the adversary's queries: every statistic of the column."""
        value = query_value(self.attribute, int(self.codes[self.special]))
        queries = [ask.count().where(col(self.column) == value)]
        if self.attribute.cells <= MOST_CELLS:
            queries.append(ask.histogram(self.column))
        if isinstance(self.attribute, Numeric):
            queries += [ask.sum(self.column)] if has_sum(self.policy, self.column) else []
            queries += [ask.mean(self.column), ask.variance(self.column)]
            queries += [ask.median(self.column)] if self.attribute.size <= MOST_CELLS else []
        return queries


def situations(policy: Policy) -> list[Situation]:
    """Return everything that a policy's identification and loss promises protect, as far as it can be queried."""
    if not numeric_columns(policy) + category_columns(policy):
        return []
    copied, budget = copy_policy(policy, units=UNITS), budget_of(policy)
    promise = policy.identification
    candidates: list[Situation | None] = []
    if promise and promise.worlds == "values":
        candidates = [_value_situation(copied, policy, name) for name in promise.protect if _guessable(policy, name)]
    if promise and promise.worlds == "persons" and promise.guarantee == "average":
        candidates = [_person_on_average(copied, policy)]
    elif promise and promise.worlds == "persons":
        target = budget.targets[0]
        says = f"the missing person is identified with probability at most {say(promise.rho)}"
        candidates = [_two_ends(copied, "person", float(target.random_guess), float(promise.rho), "probability", says)]
    if policy.loss and (promise is None or promise.guarantee == "average"):
        says = f"all answers together lose at most epsilon {say(policy.loss.epsilon)}"
        candidates.append(_two_ends(copied, "loss", 0.5, float(budget.ceiling), "epsilon", says))
    return [situation for situation in candidates if situation is not None]


def unqueried_columns(policy: Policy) -> list[str]:
    """Return the protected columns that no query covers."""
    promise = policy.identification
    return [name for name in promise.protect if not _guessable(policy, name)] if promise else []


def _guessable(policy: Policy, name: str) -> bool:
    return policy.attribute(name).countable and policy.attribute(name).size > 1


def _value_situation(copied: Policy, policy: Policy, name: str) -> Situation:
    size, promise, window = policy.attribute(name).size, policy.identification, policy.window(name)
    rho, guarantee = (promise.rho, promise.guarantee) if promise else (Fraction(0), "worst-case")
    prior = _prior(policy, name, size, even=guarantee == "average")
    special = size - 1 - int(np.argmax(prior[::-1]))  # the likeliest; the last of several
    near = f", to within {window:,} steps," if window else ""
    average = "on average " if guarantee == "average" else ""
    says = f"the missing {name}{near} is {average}identified with probability at most {say(rho)}"
    codes = np.arange(size)
    return Situation(
        copied, name, name, codes, prior, special, float(rho), "probability", says, guarantee=guarantee, window=window
    )


def _prior(policy: Policy, name: str, size: int, *, even: bool) -> Floats:
    """Return the policy's prior.

    If it states only the largest probability, one value has it and the others split the rest; or, `even`, as few
    neighboring values as possible have at most that each: the best case of a guess on average.
    """
    chances = policy.identification.prior.get(name) if policy.identification else None
    if not chances or (len(chances) == 1 and float(chances[0]) <= 1 / size):
        return np.full(size, 1 / size)
    if len(chances) > 1:
        return np.array([float(p) for p in chances])
    count = min(size, math.ceil(1 / chances[0]))
    if even:
        return np.where(np.arange(size) < count, 1 / count, 0.0)
    rest = np.full(size, (1 - float(chances[0])) / (size - 1))
    rest[-1] = float(chances[0])
    return rest


def _person_on_average(copied: Policy, policy: Policy) -> Situation | None:
    """Return a situation in which the persons who could be missing have different values of one column, as far as it has them.

    If several persons are unknown, all but one are revealed, and the missing one has an equal part of rho.
    """
    (target,), columns = budget_of(policy).targets, numeric_columns(copied) + category_columns(copied)
    columns = [name for name in columns if 1 < copied.attribute(name).cells <= MOST_CELLS]
    if not columns or copied.identification is None:
        return None
    column = max(columns, key=lambda name: copied.attribute(name).cells)
    attribute, persons = copied.attribute(column), int(target.worlds)
    firsts = attribute.bin_starts() if isinstance(attribute, Numeric) else range(attribute.size)
    alike = -(-persons // len(firsts))
    cells = -(-persons // alike)
    prior = np.full(cells, alike / persons)
    prior[-1] = (persons - alike * (cells - 1)) / persons
    rho = target.rho / target.guesses
    says = f"the missing person is on average identified with probability at most {say(rho, 4)}"
    codes = np.array(firsts[:cells])
    return Situation(
        copied, "person", column, codes, prior, 0, float(rho), "probability", says, guarantee="average", alike=alike
    )


def _two_ends(copied: Policy, target: str, share: float, promised: float, unit: Unit, says: str) -> Situation | None:
    """Return a situation in which the person is at the upper end of a column and all others at the lower end."""
    columns = numeric_columns(copied) or category_columns(copied)
    if not columns:
        return None
    codes = np.array([0, copied.attribute(columns[0]).size - 1])
    return Situation(copied, target, columns[0], codes, np.array([1 - share, share]), 1, promised, unit, says)
