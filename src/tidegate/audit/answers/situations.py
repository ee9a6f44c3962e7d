"""What the informed adversary knows, and the worlds among which they guess.

The adversary knows the policy, the method and every unit but one. Worlds are the values of the missing unit's protected
column. If persons are protected, one differs from all others of the population, which is the worst case (it reaches
equation 15). If only a loss is promised, the missing unit is at one end of a column or at the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate import answer as ask
from tidegate.accounting import budget_of
from tidegate.answer import Query
from tidegate.arrays import Floats
from tidegate.audit.bounds import identification_probability
from tidegate.audit.fake_data import Codes, MemoryTable, category_columns, copy_policy, numeric_columns, query_value
from tidegate.audit.finding import Unit
from tidegate.exact import say
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import col

UNITS = 6  # of a simulated data set: three known at one end, two at the other; the sixth decides the median
MOST_CELLS = 2_000  # of a histogram or of a column with rank queries


@dataclass(frozen=True)
class Situation:
    """One target to guess.

    Args:
        codes: The possible values of the missing unit in `column`.
        prior: The adversary's prior probability of each.
        special: The index of the value that the adversary tries to be sure of.
        promised: The limit of the posterior probability, or of the loss if that is promised.
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
        return float(self.prior[self.special])

    def questions(self) -> list[Query]:
        """Return the adversary's queries: every statistic of the column."""
        value = query_value(self.attribute, int(self.codes[self.special]))
        queries = [ask.count().where(col(self.column) == value)]
        if self.attribute.cells <= MOST_CELLS:
            queries.append(ask.histogram(self.column))
        if isinstance(self.attribute, Numeric):
            queries += [ask.sum(self.column), ask.mean(self.column), ask.variance(self.column)]
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
    if promise and promise.worlds == "persons":
        target = budget.targets[0]
        says = f"the missing person is identified with probability at most {say(promise.rho)}"
        candidates = [_two_ends(copied, "person", float(target.random_guess), float(promise.rho), "probability", says)]
    if policy.loss and not promise:
        says = f"all answers together lose at most epsilon {say(policy.loss.epsilon)}"
        candidates = [_two_ends(copied, "loss", 0.5, float(budget.ceiling), "epsilon", says)]
    return [situation for situation in candidates if situation is not None]


def unqueried_columns(policy: Policy) -> list[str]:
    """Return the protected columns that no query covers."""
    promise = policy.identification
    return [name for name in promise.protect if not _guessable(policy, name)] if promise else []


def _guessable(policy: Policy, name: str) -> bool:
    return policy.attribute(name).countable and policy.attribute(name).size > 1


def _value_situation(copied: Policy, policy: Policy, name: str) -> Situation:
    size, rho = policy.attribute(name).size, policy.identification.rho if policy.identification else 0
    prior = _prior(policy, name, size)
    special = size - 1 - int(np.argmax(prior[::-1]))  # the likeliest; the last of several
    says = f"the missing {name} is identified with probability at most {say(rho)}"
    return Situation(copied, name, name, np.arange(size), prior, special, float(rho), "probability", says)


def _prior(policy: Policy, name: str, size: int) -> Floats:
    """Return the policy's prior.

    If it states only the largest probability, one value has it and the others split the rest.
    """
    chances = policy.identification.prior.get(name) if policy.identification else None
    if not chances or (len(chances) == 1 and float(chances[0]) <= 1 / size):
        return np.full(size, 1 / size)
    if len(chances) > 1:
        return np.array([float(p) for p in chances])
    rest = np.full(size, (1 - float(chances[0])) / (size - 1))
    rest[-1] = float(chances[0])
    return rest


def _two_ends(copied: Policy, target: str, share: float, promised: float, unit: Unit, says: str) -> Situation | None:
    """Return a situation in which the person is at the upper end of a column and all others at the lower end."""
    columns = numeric_columns(copied) or category_columns(copied)
    if not columns:
        return None
    codes = np.array([0, copied.attribute(columns[0]).size - 1])
    return Situation(copied, target, columns[0], codes, np.array([1 - share, share]), 1, promised, unit, says)
