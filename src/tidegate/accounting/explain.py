"""What a policy's promises mean for its data, in words, and what is in their way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting.amount import Amount
from tidegate.accounting.budget import Target, budget_of
from tidegate.accounting.identification import yes_no_certainty
from tidegate.accounting.respondent import given_by_one
from tidegate.errors import Infeasible, PolicyUnreadable
from tidegate.exact import say
from tidegate.policy import Numeric, Policy
from tidegate.policy.joins import find_untested_join

CERTAIN = 0.9  # a yes/no certainty above it is worth a warning: epsilon 2.2


@dataclass(frozen=True)
class Finding:
    """One line of a check: what it is about, what it says, and what to do where it is a problem."""

    about: str
    says: str
    do: str = ""
    problem: bool = False
    warning: bool = False

    def to_dict(self) -> dict[str, Any]:
        marks = {"problem": self.problem, "warning": self.warning}
        return {"about": self.about, "says": self.says, "do": self.do, **marks}


def explain(policy: Policy) -> list[Finding]:
    """Every promise in words; problems are marked."""
    budget = budget_of(policy)
    found = [Finding(policy.dataset.name, _who(policy))]
    found += [_target(target) for target in budget.targets]
    found += [
        Finding(name, f'"{name}" {attribute.too_large}', "Declare a coarser step or narrower bounds.", problem=True)
        for name, attribute in policy.attributes.items()
        if isinstance(attribute, Numeric) and attribute.too_large
    ]
    found += _unprotected(policy, {target.name for target in budget.targets})
    if policy.loss:
        factor = math.exp(min(700.0, float(policy.loss.epsilon)))
        found.append(
            Finding(
                "loss",
                f"all answers and synthetic tables together lose at most {policy.loss}: they change the odds of any belief about a person by a factor of {say(factor)} at most",
            )
        )
    found += [Finding(name, _concealed(promise)) for name, promise in policy.concealments.items()]
    found += _joined(policy)
    for name, collection in policy.collections.items():
        found += [Finding(name, _collected(collection)), *_cut(name, collection)]
    if policy.identification is None and policy.loss is None:
        found.append(
            Finding(
                "answers",
                "no statistic can be answered: nothing is promised for answers",
                "Add [promise.identification] or [promise.loss].",
                problem=not (policy.concealments or policy.collections),
            )
        )
    elif not any(finding.problem for finding in found):
        found.append(
            Finding(
                "together",
                f"all answers and synthetic tables may lose epsilon {budget.ceiling.say()} in total",
            )
        )
        found.append(_yes_no(budget.ceiling))
    return found


def _unprotected(policy: Policy, protected: set[str]) -> list[Finding]:
    """For the other columns, which rho could be promised."""
    sizes = {
        name: attribute.size
        for name, attribute in policy.attributes.items()
        if attribute.size and name not in protected
    }
    told = [
        f"{name} (rho above {say(Fraction(1, size), 4)})" if size > 1 else f"{name} (never: one value)"
        for name, size in sizes.items()
    ]
    if policy.identification is None or policy.identification.worlds == "persons" or not told:
        return []
    return [Finding("not protected", f"{', '.join(told)}; their answers still count for the protected ones")]


def _who(policy: Policy) -> str:
    rows = f"{policy.dataset.rows:,} rows, " if policy.dataset.rows is not None else ""
    return f"{rows}{policy.dataset.unit.describe()}"


def _target(target: Target) -> Finding:
    title = "identification of a person" if target.name == "person" else f"identification by {target.name}"
    among = (
        f"among {say(target.worlds)} possibilities a blind guess is right with probability {say(target.blind_guess, 4)}"
    )
    try:
        target.refuse()
    except Infeasible as error:
        return Finding(title, error.what, error.do, problem=True)
    return Finding(
        title,
        f"at most {say(target.rho)}; {among}, so any rho above that can be promised; "
        f"this one allows a total loss of epsilon {target.limit.say()}",
    )


def _yes_no(ceiling: Amount) -> Finding:
    """What the whole budget allows against a question with two answers, whatever rho says about many values."""
    certainty = float(yes_no_certainty(ceiling))
    says = (
        f"with all of that an adversary who knows every other row answers a yes/no question about one person, such as "
        f"whether a value is above a threshold, with certainty up to {_certainty(certainty)}"
    )
    if certainty <= CERTAIN:
        return Finding("yes/no certainty", says)
    return Finding(
        "yes/no certainty",
        f"{says}; rho limits the probability of naming one of many values, not this",
        "Promise a smaller rho, or add [promise.loss] with epsilon = 2.19 or less, which keeps it below 0.9.",
        warning=True,
    )


def _certainty(value: float) -> str:
    """Three digits, or as many nines as there are."""
    return (
        f"{value:.3g}" if value < 0.999 else f"{value:.{min(15, 2 - math.floor(math.log10(max(1 - value, 1e-15))))}f}"
    )


def _concealed(promise: Any) -> str:
    return (
        f"released records: {promise}; {', '.join(promise.releases)} may leave. "
        "Sees any group whose released values drift from the baseline; does not see the order and timing of releases"
    )


def _joined(policy: Policy) -> list[Finding]:
    join = find_untested_join(policy)
    return (
        [Finding("desks together", f"{join.what} Only the desk that is opened first opens", join.do, problem=True)]
        if join
        else []
    )


def _cut(name: str, collection: Any) -> list[Finding]:
    """What is wrong with a collection that cuts baskets: no new one is opened."""
    try:
        collection.refuse_cuts()
    except PolicyUnreadable as error:
        kept = "A version that is in the ledger stays readable and shows brackets."
        return [
            Finding(name, error.what, f"{error.do} {kept}", problem=not collection.closed, warning=collection.closed)
        ]
    return []


def _collected(collection: Any) -> str:
    asked = ", ".join(str(question) for question in collection.questions.values())
    closed = "; closed, no more reports are taken" if collection.closed else ""
    return f"randomized at home: {asked}; {given_by_one(collection)}{closed}"
