"""The total budget of a policy, for several protected targets with different numbers of worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Literal

from tidegate.accounting.amount import ZERO, Amount, Price
from tidegate.accounting.average import average_identification_after, average_loss_for, average_yes_no
from tidegate.accounting.identification import UPWARD, feasible, identification_after, loss_for, yes_no_certainty
from tidegate.errors import Infeasible, Unsupported
from tidegate.exact import plain, say
from tidegate.policy import Policy
from tidegate.policy.promises import Guarantee

Unit = Literal["epsilon", "z"]  # of an account's amounts: epsilon if a promise limits the pure loss, otherwise z
SHORT = {"epsilon": "epsilon", "z": "Z"}
PREFIX = {"epsilon": "", "z": "Z "}  # of an amount whose unit is stated only if it is not epsilon


def identification_at(loss: Amount, worlds: Fraction, guarantee: Guarantee, guesses: int = 1) -> Decimal:
    """Return the probability of identification that a loss (epsilon, or z on average) allows, rounded up."""
    if guarantee == "average":
        return average_identification_after(loss, 1 / worlds, guesses)
    return identification_after(loss, worlds)


def yes_no_at(loss: Amount, guarantee: Guarantee) -> Decimal:
    """Return how often a yes/no question about one person can be answered correctly after a loss, rounded up.

    Worst case: for every response. Average: over the noise.
    """
    return average_yes_no(loss) if guarantee == "average" else yes_no_certainty(loss)


@dataclass(frozen=True)
class Target:
    """Something an adversary could guess: a value of an attribute, or a person, among `worlds` candidates.

    `guesses`: under the average guarantee, the number of unknown rows of which the adversary must identify one.
    `window`: the number of neighboring values that count as right, beside the guessed one on each side.
    """

    name: str
    worlds: Fraction
    rho: Fraction
    guarantee: Guarantee = "worst-case"
    guesses: int = 1
    window: int = 0

    @property
    def random_guess(self) -> Fraction:
        return min(Fraction(1), self.guesses / self.worlds)

    @property
    def feasible(self) -> bool:
        return feasible(self.rho, self.worlds / self.guesses)

    @property
    def limit(self) -> Amount:
        """The total loss (epsilon, or z on average) at which identification reaches rho; zero if rho cannot be promised."""
        if not self.feasible:
            return ZERO
        if self.guarantee == "average":
            return average_loss_for(self.rho, 1 / self.worlds, self.guesses)
        return loss_for(self.rho, self.worlds)

    def loss_of(self, total: Price) -> Amount | None:
        """Return the part of a price that counts for this target; None if it is unbounded."""
        return total.z if self.guarantee == "average" else total.pure

    def identification(self, spent: Price | Amount) -> Decimal:
        """Return the probability of identification that a total loss allows, rounded up."""
        loss = spent if isinstance(spent, Amount) else self.loss_of(spent)
        if loss is None:
            return Decimal(1)
        bound = identification_at(loss, self.worlds, self.guarantee, self.guesses)
        if self.guarantee == "worst-case":
            return bound
        within = self.feasible and loss <= self.limit  # the limit was rounded down, and the bound is rounded up
        return (
            min(bound, UPWARD.divide(Decimal(self.rho.numerator), Decimal(self.rho.denominator))) if within else bound
        )

    def refuse(self) -> None:
        """Raise Infeasible if no amount of noise could keep the promise."""
        if self.feasible:
            return
        near = f", to within {self.window:,} steps," if self.window else ""
        among = (
            f"a random guess of one of {self.guesses:,} persons among {say(self.worlds)}"
            if self.guesses > 1
            else f"a random guess{near} among its {say(self.worlds)} possibilities"
        )
        raise Infeasible(
            f'rho = {say(self.rho)} cannot be promised for "{self.name}": '
            f"{among} is right with probability {say(self.random_guess, 4)}.",
            self._advice(),
            target=self.name,
            rho=float(self.rho),
            worlds=float(self.worlds),
            smallest_rho=float(self.random_guess),
            worlds_needed=math.floor(self.guesses / self.rho) + 1,
        )

    def _advice(self) -> str:
        """Return the smallest rho of four digits that can be promised (just above a random guess), and alternatives.

        A wider universe is never advised: it hides nothing, and only makes the promise look cheaper.
        """
        guess = self.random_guess
        places = 4 - math.ceil(math.log10(guess)) if guess < 1 else 0
        least = Fraction(math.floor(guess * 10**places) + 1, 10**places)
        promise = f"Promise at least {plain(least):f}" if least < 1 else ""
        if self.name == "person":
            more = "let the adversary know more rows (`known`)" if self.guesses > 1 else ""
            options = [option for option in (promise, more) if option]
            return f"{', or '.join(options)}." if options else "Protect values instead of persons."
        rest = 'remove it from `protect`, or protect the person instead of the value (worlds = "persons").'
        if self.window:
            rest = f"set a smaller `within`, {rest}"
        return f"{promise}, {rest}" if promise else f"{rest[0].upper()}{rest[1:]}"


@dataclass(frozen=True)
class Ceilings:
    """The largest total losses of a policy, by unit; None: no promise limits that unit."""

    pure: Amount | None = None
    z: Amount | None = None

    @property
    def unit(self) -> Unit:
        """The unit of the account: epsilon, unless only the average loss is limited."""
        return "z" if self.pure is None and self.z is not None else "epsilon"

    @property
    def main(self) -> Amount:
        """The limit in the account's unit. Zero if nothing is promised."""
        limit = self.z if self.unit == "z" else self.pure
        return ZERO if limit is None else limit

    def lowest(self, other: Ceilings) -> Ceilings:
        """Return the lower limit of each unit."""
        return Ceilings(_lower(self.pure, other.pure), _lower(self.z, other.z))


UNLIMITED = Ceilings()


def _lower(first: Amount | None, second: Amount | None) -> Amount | None:
    limits = [limit for limit in (first, second) if limit is not None]
    return min(limits, default=None)


@dataclass(frozen=True)
class Budget:
    """The targets of a policy and its total limits: the lowest limit of all targets, in each unit."""

    targets: tuple[Target, ...]
    epsilon: Fraction | None = None

    @cached_property
    def ceilings(self) -> Ceilings:
        pure = [target.limit for target in self.targets if target.guarantee == "worst-case"]
        if self.epsilon is not None:
            pure.append(Amount.down(self.epsilon))
        average = [target.limit for target in self.targets if target.guarantee == "average"]
        return Ceilings(min(pure, default=None), min(average, default=None))

    @property
    def unit(self) -> Unit:
        return self.ceilings.unit

    @property
    def ceiling(self) -> Amount:
        """The largest loss of all answers and synthetic tables together, in the account's unit. Zero if nothing is promised."""
        return self.ceilings.main

    @property
    def guarantee(self) -> Guarantee:
        return "average" if any(target.guarantee == "average" for target in self.targets) else "worst-case"

    def refuse_infeasible(self) -> None:
        """Raise Infeasible for the first target whose rho cannot be kept."""
        for target in self.targets:
            target.refuse()

    def loss_alone(self, rho: Fraction) -> Amount:
        """Return the largest loss that, on its own, identifies no target with probability above rho.

        It is an epsilon (equation 15) under the worst-case guarantee, and a z under the average one.
        """
        targets = [replace(target, rho=rho) for target in self.targets]
        if rho >= 1:
            raise Unsupported("`rho` must be a probability below 1.", "Write 0.05 for 5%.")
        if not targets:
            raise Unsupported(
                "`rho` requires a policy with an identification promise, and this policy has none.",
                "Specify `epsilon`, or add [promise.identification] to the policy.",
            )
        for target in targets:
            target.refuse()
        return min(target.limit for target in targets)

    def identification(self, spent: Price) -> dict[str, Decimal]:
        """Return the probability of identification that a total loss allows, for each target."""
        return {target.name: target.identification(spent) for target in self.targets}

    def yes_no(self, spent: Price) -> float:
        """Return how often a yes/no question about one person can be answered correctly after a total loss."""
        loss = spent.z if self.guarantee == "average" else spent.pure
        return 1.0 if loss is None else float(yes_no_at(loss, self.guarantee))

    @property
    def yes_no_limit(self) -> float:
        """The yes/no certainty at the limit."""
        ceilings = self.ceilings
        limit = ceilings.z if self.guarantee == "average" else ceilings.main
        return float(yes_no_at(limit or ZERO, self.guarantee))

    def part(self, share: Fraction) -> Fraction:
        """Return a part of the total budget, in the account's unit."""
        if share > 1:
            raise Unsupported(
                f"`share` is a part of the total budget, at most 1, not {say(share)}.", "Write 0.1 for 10%."
            )
        return self.ceiling.value * share


def budget_of(policy: Policy) -> Budget:
    """Return the targets that a policy protects, with their numbers of worlds."""
    epsilon = policy.loss.epsilon if policy.loss else None
    promise = policy.identification
    if promise is None:
        return Budget((), epsilon)
    if promise.worlds == "persons":
        return Budget((_person(policy),), epsilon)
    targets = tuple(
        Target(name, _values(policy, name), promise.rho, promise.guarantee, window=policy.window(name))
        for name in promise.protect
    )
    return Budget(targets, epsilon)


def _values(policy: Policy, name: str) -> Fraction:
    """Return 1 / q, where q is the largest prior probability of the values that a guess covers: sound and tight."""
    prior = policy.identification.prior.get(name) if policy.identification else None
    size, covered = Fraction(policy.attribute(name).size), 2 * policy.window(name) + 1
    if prior and len(prior) > 1:
        sums = [sum(prior[start : start + covered]) for start in range(max(1, len(prior) - covered + 1))]
        return 1 / Fraction(max(sums))
    largest = max(1 / size, prior[0]) if prior else 1 / size
    return 1 / min(Fraction(1), covered * largest)


def _person(policy: Policy) -> Target:
    """Return the target of a policy that protects persons of a population.

    Worst case: (population - known) / (rows - known), which is 1 / the prior that a certain person is one of the unknown rows.
    The informed adversary knows all rows but one, which leaves population - rows + 1 worlds. Average: with several unknown rows,
    all but a random one of them are revealed, and the adversary has as many guesses.
    """
    promise, rows = policy.identification, policy.dataset.rows
    if promise is None or promise.population is None or rows is None:  # the policy has checked this
        raise ValueError('worlds = "persons" requires a population and a number of rows.')
    known = rows - 1 if promise.known is None else promise.known
    if promise.guarantee == "average":
        return Target("person", Fraction(promise.population - rows + 1), promise.rho, "average", rows - known)
    return Target("person", Fraction(promise.population - known, rows - known), promise.rho)
