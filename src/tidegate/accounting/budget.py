"""What a policy allows in total, for several protected targets with different numbers of worlds at once."""

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
    """Something that could be guessed: a value of an attribute, or a person, among so many worlds."""

    name: str
    worlds: Fraction
    rho: Fraction

    @property
    def blind_guess(self) -> Fraction:
        return 1 / self.worlds

    @property
    def feasible(self) -> bool:
        return feasible(self.rho, self.worlds)

    @property
    def limit(self) -> Amount:
        """The total loss at which identification reaches rho; nothing where rho cannot be promised."""
        return loss_for(self.rho, self.worlds) if self.feasible else ZERO

    def identification(self, spent: Amount) -> Decimal:
        """The probability of identification that all answers so far allow, rounded up."""
        return identification_after(spent, self.worlds)

    def refuse(self) -> None:
        """Raise Infeasible where no noise could keep the promise."""
        if self.feasible:
            return
        needed = math.floor(1 / self.rho) + 1
        raise Infeasible(
            f'rho = {say(self.rho)} cannot be promised for "{self.name}": '
            f"a guess among its {say(self.worlds)} possibilities is right with probability {say(self.blind_guess, 4)}.",
            self._advice(),
            target=self.name,
            rho=float(self.rho),
            worlds=float(self.worlds),
            smallest_rho=float(self.blind_guess),
            worlds_needed=needed,
        )

    def _advice(self) -> str:
        """The smallest rho of four digits that can be promised (the next above a random guess), and what else helps."""
        guess = self.blind_guess
        places = 4 - math.ceil(math.log10(guess)) if guess < 1 else 0
        least = Fraction(math.floor(guess * 10**places) + 1, 10**places)
        promise = f"Promise at least {plain(least):f}" if least < 1 else ""
        if self.name == "person":
            return f"{promise}." if promise else "Name a larger population."
        rest = 'leave it out of protect, or protect the person instead of the value (worlds = "persons").'
        return f"{promise}, {rest}" if promise else f"{rest[0].upper()}{rest[1:]}"


@dataclass(frozen=True)
class Budget:
    """The targets of a policy and its ceiling: the lowest limit of them all."""

    targets: tuple[Target, ...]
    epsilon: Fraction | None = None

    @property
    def ceiling(self) -> Amount:
        """The most that all answers and synthetic tables together may lose. Zero where nothing is promised."""
        limits = [target.limit for target in self.targets]
        if self.epsilon is not None:
            limits.append(Amount.down(self.epsilon))
        return min(limits, default=ZERO)

    def refuse_infeasible(self) -> None:
        """Raise Infeasible for the first target whose rho nobody could keep."""
        for target in self.targets:
            target.refuse()

    def loss_alone(self, rho: Fraction) -> Amount:
        """The largest loss after which, by it alone, no target is identified above rho (equation 15)."""
        targets = [replace(target, rho=rho) for target in self.targets]
        if rho >= 1:
            raise Unsupported("rho is a probability below 1.", "Write 0.05 for 5%.")
        if not targets:
            raise Unsupported(
                "rho is a probability below 1, and needs a policy that promises identification.",
                "Ask by epsilon, or add [promise.identification].",
            )
        for target in targets:
            target.refuse()
        return min(target.limit for target in targets)

    def identification(self, spent: Amount) -> dict[str, Decimal]:
        """For each target the probability of identification that a total loss allows."""
        return {target.name: target.identification(spent) for target in self.targets}


def budget_of(policy: Policy) -> Budget:
    """The targets that a policy protects, with their number of worlds."""
    epsilon = policy.loss.epsilon if policy.loss else None
    promise = policy.identification
    if promise is None:
        return Budget((), epsilon)
    if promise.worlds == "persons":
        return Budget((Target("person", _persons(policy), promise.rho),), epsilon)
    targets = tuple(Target(name, _values(policy, name), promise.rho) for name in promise.protect)
    return Budget(targets, epsilon)


def _values(policy: Policy, name: str) -> Fraction:
    """The number of values, or 1 / the largest prior: sound and tight in equation (15)."""
    prior = policy.identification.prior.get(name) if policy.identification else None
    size = Fraction(policy.attribute(name).size)
    return min(size, 1 / max(prior)) if prior else size


def _persons(policy: Policy) -> Fraction:
    """(population - known) / (rows - known): one over the prior that a given person fills an unknown place.

    The informed adversary knows all rows but one, which leaves population - rows + 1 worlds.
    """
    promise, rows = policy.identification, policy.dataset.rows
    if promise is None or promise.population is None or rows is None:  # the policy has seen to it
        raise ValueError("persons need a population and a number of rows")
    known = rows - 1 if promise.known is None else promise.known
    return Fraction(promise.population - known, rows - known)
