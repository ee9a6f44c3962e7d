"""What the informed adversary knows, and among which worlds he guesses.

He knows the policy, the method and every unit but one. Worlds are the values of the missing unit's protected column; where
persons are protected, one stands out from all the others of the population, which is the worst case (equation 15 is met
there); where only a loss is promised, the missing unit is at one end of a column or at the other.
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
from tidegate.audit.bounds import identified
from tidegate.audit.fake_data import Codes, Imagined, asked_value, categories_of, copy_of, numbers_of
from tidegate.audit.finding import Unit
from tidegate.exact import say
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import col

UNITS = (
    6  # of a made-up data set: three at one end and two at the other are known, so that the sixth decides the median
)
MOST_CELLS = 2_000  # of a histogram or of a column whose ranks are asked for


@dataclass(frozen=True)
class Situation:
    """One thing to guess.

    codes, prior   the possible values of the missing unit in `column`, and how likely each is to him beforehand
    special        which of them he tries to be sure of
    promised       how sure he may become (or the loss, where that is what is promised)
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
        """The units that he knows."""
        last = self.attribute.size - 1
        return tuple({self.column: code} for code in (0, 0, 0, last, last))

    def world(self, place: int) -> Imagined:
        """The data set in which the missing unit has the value at a place of `codes`."""
        return Imagined(self.policy, (*self.known, {self.column: int(self.codes[place])}))

    @property
    def others(self) -> Floats:
        """How likely the other worlds are, given that it is not the special one."""
        left = self.prior.copy()
        left[self.special] = 0.0
        return np.asarray(left / left.sum())

    def proven(self, epsilon: float) -> float:
        """A loss that was proven, in the unit of the promise."""
        return epsilon if self.unit == "epsilon" else identified(epsilon, prior=float(self.prior[self.special]))

    def amount(self, value: float) -> str:
        """A value in the unit of the promise."""
        return f"epsilon {value:.3g}" if self.unit == "epsilon" else f"{value:.3g}"

    @property
    def blind(self) -> float:
        """How often a guess without any answer is right."""
        return float(self.prior[self.special])

    def questions(self) -> list[Query]:
        """What he asks: every statistic that the column has."""
        value = asked_value(self.attribute, int(self.codes[self.special]))
        asked = [ask.count().where(col(self.column) == value)]
        if self.attribute.cells <= MOST_CELLS:
            asked.append(ask.histogram(self.column))
        if isinstance(self.attribute, Numeric):
            asked += [ask.sum(self.column), ask.mean(self.column), ask.variance(self.column)]
            asked += [ask.median(self.column)] if self.attribute.size <= MOST_CELLS else []
        return asked


def situations(policy: Policy) -> list[Situation]:
    """Everything that a policy's identification and loss promises protect, as far as it can be asked about."""
    if not numbers_of(policy) + categories_of(policy):
        return []
    copied, budget = copy_of(policy, units=UNITS), budget_of(policy)
    promise = policy.identification
    found: list[Situation | None] = []
    if promise and promise.worlds == "values":
        found = [_value_situation(copied, policy, name) for name in promise.protect if _guessable(policy, name)]
    if promise and promise.worlds == "persons":
        target = budget.targets[0]
        says = f"the missing person is identified with probability at most {say(promise.rho)}"
        found = [_two_ends(copied, "person", float(target.random_guess), float(promise.rho), "probability", says)]
    if policy.loss and not promise:
        says = f"all answers together lose at most epsilon {say(policy.loss.epsilon)}"
        found = [_two_ends(copied, "loss", 0.5, float(budget.ceiling), "epsilon", says)]
    return [one for one in found if one is not None]


def unasked(policy: Policy) -> list[str]:
    """Protected columns that no question is about."""
    promise = policy.identification
    return [name for name in promise.protect if not _guessable(policy, name)] if promise else []


def _guessable(policy: Policy, name: str) -> bool:
    return policy.attribute(name).countable and policy.attribute(name).size > 1


def _value_situation(copied: Policy, policy: Policy, name: str) -> Situation:
    size, rho = policy.attribute(name).size, policy.identification.rho if policy.identification else 0
    prior = _prior(policy, name, size)
    special = size - 1 - int(np.argmax(prior[::-1]))  # the likeliest; of several, the last
    says = f"the missing {name} is identified with probability at most {say(rho)}"
    return Situation(copied, name, name, np.arange(size), prior, special, float(rho), "probability", says)


def _prior(policy: Policy, name: str, size: int) -> Floats:
    """The policy's prior; where it gives the largest alone, one value has it and the others share the rest."""
    given = policy.identification.prior.get(name) if policy.identification else None
    if not given or (len(given) == 1 and float(given[0]) <= 1 / size):
        return np.full(size, 1 / size)
    if len(given) > 1:
        return np.array([float(p) for p in given])
    rest = np.full(size, (1 - float(given[0])) / (size - 1))
    rest[-1] = float(given[0])
    return rest


def _two_ends(copied: Policy, target: str, share: float, promised: float, unit: Unit, says: str) -> Situation | None:
    """He stands out at the upper end of a column; all the others are at the lower one."""
    columns = numbers_of(copied) or categories_of(copied)
    if not columns:
        return None
    codes = np.array([0, copied.attribute(columns[0]).size - 1])
    return Situation(copied, target, columns[0], codes, np.array([1 - share, share]), 1, promised, unit, says)
