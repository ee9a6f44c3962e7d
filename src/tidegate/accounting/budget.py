"""The total budget of a policy, for several protected targets with different numbers of worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from tidegate.accounting.amount import ZERO, Amount
from tidegate.accounting.identification import feasible, identification_after, loss_for
from tidegate.errors import Infeasible, Unsupported
from tidegate.exact import plain, say
from tidegate.policy import Policy


@dataclass(frozen=True)
class Target:
    """Something an adversary could guess: a value of an attribute, or a person, among `worlds` candidates."""

    name: str
    worlds: Fraction
    rho: Fraction

    @property
    def random_guess(self) -> Fraction:
        return 1 / self.worlds

    @property
    def feasible(self) -> bool:
        return feasible(self.rho, self.worlds)

    @property
    def limit(self) -> Amount:
        """The total loss at which identification reaches rho; zero if rho cannot be promised."""
        return loss_for(self.rho, self.worlds) if self.feasible else ZERO

    def identification(self, spent: Amount) -> Decimal:
        """Return the probability of identification that a total loss of `spent` allows, rounded up."""
        return identification_after(spent, self.worlds)

    def refuse(self) -> None:
        """Raise Infeasible if no amount of noise could keep the promise."""
        if self.feasible:
            return
        needed = math.floor(1 / self.rho) + 1
        raise Infeasible(
            f'rho = {say(self.rho)} cannot be promised for "{self.name}": '
            f"a random guess among its {say(self.worlds)} possibilities is right with probability {say(self.random_guess, 4)}.",
            self._advice(),
            target=self.name,
            rho=float(self.rho),
            worlds=float(self.worlds),
            smallest_rho=float(self.random_guess),
            worlds_needed=needed,
        )

    def _advice(self) -> str:
        """Return the smallest rho of four digits that can be promised (just above a random guess), and alternatives."""
        guess = self.random_guess
        places = 4 - math.ceil(math.log10(guess)) if guess < 1 else 0
        least = Fraction(math.floor(guess * 10**places) + 1, 10**places)
        promise = f"Promise at least {plain(least):f}" if least < 1 else ""
        if self.name == "person":
            return f"{promise}." if promise else "Set a larger population."
        rest = 'remove it from `protect`, or protect the person instead of the value (worlds = "persons").'
        return f"{promise}, {rest}" if promise else f"{rest[0].upper()}{rest[1:]}"


@dataclass(frozen=True)
class Budget:
    """The targets of a policy and its total limit: the lowest limit of all targets."""

    targets: tuple[Target, ...]
    epsilon: Fraction | None = None

    @property
    def ceiling(self) -> Amount:
        """The largest loss of all answers and synthetic tables together. Zero if nothing is promised."""
        limits = [target.limit for target in self.targets]
        if self.epsilon is not None:
            limits.append(Amount.down(self.epsilon))
        return min(limits, default=ZERO)

    def refuse_infeasible(self) -> None:
        """Raise Infeasible for the first target whose rho cannot be kept."""
        for target in self.targets:
            target.refuse()

    def loss_alone(self, rho: Fraction) -> Amount:
        """Return the largest loss that, on its own, identifies no target with probability above rho (equation 15)."""
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

    def identification(self, spent: Amount) -> dict[str, Decimal]:
        """Return the probability of identification that a total loss allows, for each target."""
        return {target.name: target.identification(spent) for target in self.targets}


def budget_of(policy: Policy) -> Budget:
    """Return the targets that a policy protects, with their numbers of worlds."""
    epsilon = policy.loss.epsilon if policy.loss else None
    promise = policy.identification
    if promise is None:
        return Budget((), epsilon)
    if promise.worlds == "persons":
        return Budget((Target("person", _persons(policy), promise.rho),), epsilon)
    targets = tuple(Target(name, _values(policy, name), promise.rho) for name in promise.protect)
    return Budget(targets, epsilon)


def _values(policy: Policy, name: str) -> Fraction:
    """Return the number of values, or 1 / the largest prior: sound and tight in equation (15)."""
    prior = policy.identification.prior.get(name) if policy.identification else None
    size = Fraction(policy.attribute(name).size)
    return min(size, 1 / max(prior)) if prior else size


def _persons(policy: Policy) -> Fraction:
    """Return (population - known) / (rows - known): 1 / the prior that a certain person is one of the unknown rows.

    The informed adversary knows all rows but one, which leaves population - rows + 1 worlds.
    """
    promise, rows = policy.identification, policy.dataset.rows
    if promise is None or promise.population is None or rows is None:  # the policy has checked this
        raise ValueError('worlds = "persons" requires a population and a number of rows.')
    known = rows - 1 if promise.known is None else promise.known
    return Fraction(promise.population - known, rows - known)
