"""What a promise means: the two readings of it, what an adversary could still conclude, and where it is weak."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegate.accounting import Budget, budget_of
from tidegate.accounting.explain import explain
from tidegate.exact import say
from tidegate.policy import Dataset, Identification, Moment, Numeric, Policy
from tidegate.policy.promises import GUARANTEES
from tidegate.service.drafts.policy import ONE_IN, DraftPolicy, most_one_in

CERTAIN = 0.9  # a yes/no certainty above this value is marked as weak, as in the policy check


def default_promise(reading: DraftPolicy) -> dict[str, list[str]]:
    """Return the fields of a promise that can be kept: the columns with many values, at 1 in 20 or the largest possible."""
    guesses = {name: random_guess(reading, name) for name in reading.protectable}
    fields = {"epsilon": ["1"], "guarantee": ["worst-case"], "one_in": [str(ONE_IN)]}
    if not guesses:
        return {**fields, "promise": ["loss"]}
    wide = [name for name, guess in guesses.items() if most_one_in(guess) >= ONE_IN]
    if wide:
        return {**fields, "promise": ["guess"], "protect": wide}
    best = min(guesses, key=lambda name: guesses[name])
    most = most_one_in(guesses[best])
    if most < 2:
        return {**fields, "promise": ["loss"]}
    return {**fields, "promise": ["guess"], "protect": [best], "one_in": [str(max(2, int(most) - 1))]}


def random_guess(reading: DraftPolicy, name: str) -> float:
    """Return how often a random guess of a column is right, with the default window."""
    attribute = reading.attributes[name]
    if not isinstance(attribute, Numeric):
        return 1 / attribute.size
    policy = Policy(Dataset("draft"), {name: attribute}, Identification("0.5", protect=(name,)), version=2)
    return float(budget_of(policy).targets[0].random_guess)


def describe_promise(policy: Policy) -> dict[str, Any]:
    """Return a complete promise in words, under both readings, with its warnings."""
    budget = budget_of(policy)
    findings = [finding for finding in explain(policy) if finding.warning or finding.problem]
    return {
        "says": sentence(policy),
        "readings": _readings(policy),
        "targets": [_target(policy, target) for target in budget.targets],
        "warnings": [finding.to_dict() for finding in findings],
    }


def sentence(policy: Policy) -> str:
    """Return a promise as one sentence."""
    promise = policy.identification
    if promise is None:
        epsilon = say(policy.loss.epsilon) if policy.loss else "0"
        return f"All answers together lose at most epsilon {epsilon} about any person."
    names = " or ".join(filter(None, [", ".join(promise.protect[:-1]), promise.protect[-1]]))
    average = " on average" if promise.guarantee == "average" else ""
    return f"Nobody's {names} can be guessed with more than 1 chance in {one_in(promise.rho)}{average}."


def one_in(probability: Fraction | float) -> str:
    """Return a probability as "20" of "1 in 20"."""
    odds = float(1 / Fraction(probability)) if probability else float("inf")
    return f"{odds:,.0f}" if odds >= 10 or abs(odds - round(odds)) < 0.01 else f"{odds:.1f}"


def _readings(policy: Policy) -> dict[str, Any]:
    """Return the loss and the yes/no certainty that each reading of the promise allows; one if it is a loss."""
    if policy.identification is None:
        return {"worst-case": _reading(budget_of(policy))}
    promises = {guarantee: replace(policy.identification, guarantee=guarantee) for guarantee in GUARANTEES}
    return {
        guarantee: _reading(budget_of(replace(policy, identification=promise)))
        for guarantee, promise in promises.items()
    }


def _reading(budget: Budget) -> dict[str, Any]:
    return {
        "unit": budget.unit,
        "budget": str(budget.ceiling),
        "yes_no": budget.yes_no_limit,
        "is_weak": budget.yes_no_limit > CERTAIN,
    }


def _target(policy: Policy, target: Any) -> dict[str, Any]:
    """Return a protected column: its values, its window in its own unit, and a random guess."""
    attribute = policy.attribute(target.name)
    width = attribute.width if isinstance(attribute, Numeric) else Fraction(0)
    grid = str(getattr(attribute, "grid", "")) if isinstance(attribute, Moment) else ""
    return {
        "column": target.name,
        "values": attribute.size,
        "within": say(target.window * width) if target.window else "0",
        "grid": grid,
        "random_guess": float(target.random_guess),
        "one_in": one_in(target.random_guess),
    }
