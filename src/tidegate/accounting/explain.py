"""Explanations of a policy's promises, and the problems that prevent them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting.amount import Amount
from tidegate.accounting.average import epsilon_at_delta
from tidegate.accounting.budget import SHORT, Budget, Target, budget_of, yes_no_at
from tidegate.accounting.respondent import respondent_loss
from tidegate.errors import Infeasible, PolicyUnreadable
from tidegate.exact import say
from tidegate.policy import Date, EachPerson, Numeric, Policy, Time, Timestamp
from tidegate.policy.collection import MOST_ERROR, Collection
from tidegate.policy.hiding import Hiding
from tidegate.policy.joins import find_untested_join
from tidegate.policy.row_source import describe_links
from tidegate.policy.tables import public_columns

CERTAIN = 0.9  # a yes/no certainty above this value causes a warning (epsilon 2.2)


@dataclass(frozen=True)
class Finding:
    """One line of a policy check: its subject, its text, and what to do if it is a problem."""

    about: str
    says: str
    do: str = ""
    problem: bool = False
    warning: bool = False

    def to_dict(self) -> dict[str, Any]:
        marks = {"problem": self.problem, "warning": self.warning}
        return {"about": self.about, "says": self.says, "do": self.do, **marks}


@dataclass(frozen=True)
class OpenSelection:
    """What is public about the open selection of a policy's hiding promises."""

    share: Fraction
    hidden: int
    groups: int


def explain(policy: Policy, selection: OpenSelection | None = None) -> list[Finding]:
    """Return an explanation of every promise; problems are marked. `selection` is that of hiding promises, if it is open."""
    budget = budget_of(policy)
    findings = [] if policy.is_for_polls else [Finding(policy.dataset.name, _describe_unit(policy))]
    findings += [Finding(name, sentence) for name, sentence in describe_links(policy).items()]
    findings += _columns(policy)
    findings += [_target(target, _window(policy, target)) for target in budget.targets]
    findings += _guarantee(policy, budget)
    findings += [
        Finding(name, f'"{name}" {attribute.too_large}', "Declare a coarser step or narrower bounds.", problem=True)
        for name, attribute in policy.attributes.items()
        if isinstance(attribute, Numeric) and attribute.too_large
    ]
    findings += _unprotected(policy, {target.name for target in budget.targets})
    if policy.loss:
        factor = math.exp(min(700.0, float(policy.loss.epsilon)))
        findings.append(
            Finding(
                "loss",
                f"All answers and synthetic tables together lose at most {policy.loss}: they change the odds of any belief about a person by a factor of at most {say(factor)}.",
            )
        )
    findings += [_desk(name, promise) for name, promise in policy.concealments.items()]
    for name, hiding in policy.hidings.items():
        findings += explain_hiding(name, hiding, groups=policy.cells(hiding.about), selection=selection)
    findings += _joined(policy)
    for name, collection in policy.collections.items():
        findings += [Finding(name, _collected(collection)), *_cut(name, collection), *_poll(name, collection)]
    if policy.is_for_polls:
        return findings
    if policy.identification is None and policy.loss is None:
        findings.append(
            Finding(
                "answers",
                "No statistic can be answered, because the policy makes no promise for answers.",
                "Add [promise.identification] or [promise.loss].",
                problem=not (policy.release_promises or policy.collections),
            )
        )
    elif not any(finding.problem for finding in findings):
        findings.append(Finding("together", _together(budget)))
        findings.append(_yes_no(budget))
    return findings


def _together(budget: Budget) -> str:
    limits = budget.ceilings
    text = f"All answers and synthetic tables can lose {SHORT[budget.unit]} {budget.ceiling.say()} in total."
    if limits.pure is not None and limits.z is not None:
        return (
            f"{text} Their Z can be {limits.z.say()}; answers get noise with a pure loss, because epsilon is limited."
        )
    if limits.z is None:
        return text
    worst = epsilon_at_delta(Amount(4 * limits.z.grains))
    return (
        f"{text} That is at most epsilon {say(worst)} with delta = 1e-6 of differential privacy, and no pure epsilon."
    )


def _guarantee(policy: Policy, budget: Budget) -> list[Finding]:
    """Return what the average guarantee says, and its four limits."""
    if budget.guarantee != "average" or not all(target.feasible for target in budget.targets):
        return []
    target = min(budget.targets, key=lambda target: target.limit)
    rho = say(target.rho)
    tail = (target.rho - target.random_guess) / (Fraction(1, 2) - target.random_guess)
    exceeds = (
        f" It is above 1/2 with probability at most {say(Fraction(math.ceil(tail * 10_000), 10_000))}."
        if target.rho < Fraction(1, 2)
        else ""
    )
    return [
        Finding(
            "guarantee",
            f"On average: the probability, over the values that are possible and the noise, that the best guess about a person after "
            f"all answers is right is at most {rho}. A single response can make a guess more certain than that.{exceeds} The person "
            "must be chosen before the answers: an adversary who picks the person about whom the answers are clearest is not covered. "
            "It allows more noise-free detail for many answers, and a larger epsilon, than the worst-case guarantee does.",
        )
    ]


def _unprotected(policy: Policy, protected: set[str]) -> list[Finding]:
    """Return the rho that could be promised for each of the other columns."""
    sizes = {
        name: attribute.size
        for name, attribute in policy.attributes.items()
        if attribute.size and name not in (*protected, *public_columns(policy))
    }
    columns = [
        f"{name} (rho above {say(Fraction(1, size), 4)})" if size > 1 else f"{name} (never: one value)"
        for name, size in sizes.items()
    ]
    if policy.identification is None or policy.identification.worlds == "persons" or not columns:
        return []
    return [Finding("not protected", f"{', '.join(columns)}. Their answers still count toward the protected columns.")]


def _describe_unit(policy: Policy) -> str:
    noun = "persons" if isinstance(policy.dataset.unit, EachPerson) else "rows"
    rows = f"{policy.dataset.rows:,} {noun}, " if policy.dataset.rows is not None else ""
    rows += f"about {policy.dataset.records:,} rows, " if policy.dataset.records is not None else ""
    text = f"{rows}{policy.dataset.unit.describe()}"
    return f"{text[0].upper()}{text[1:]}."


def _columns(policy: Policy) -> list[Finding]:
    """Return the kinds of all columns as text."""
    columns = [f"{name}: {attribute.kind}, {attribute.describe()}" for name, attribute in policy.attributes.items()]
    return [Finding("columns", f"{'; '.join(columns)}.")] if columns else []


def _window(policy: Policy, target: Target) -> str:
    """Return the window of a target in its own unit: the value on either side, and whether it is a default."""
    attribute = policy.attributes.get(target.name)
    if not target.window or not isinstance(attribute, Numeric) or policy.identification is None:
        return ""
    default = "" if target.name in policy.identification.within else " (default)"
    unit = f" cells of the grid ({attribute.grid})" if isinstance(attribute, Date | Time | Timestamp) else ""
    return f"{say(target.window * attribute.width)}{unit}{default}"


def _target(target: Target, window: str = "") -> Finding:
    title = "identification of a person" if target.name == "person" else f"identification by {target.name}"
    near = f", which counts as right to within {window}," if window else ""
    among = f"Among {say(target.worlds)} possibilities, a random guess{near} is right with probability {say(target.random_guess, 4)}"
    try:
        target.refuse()
    except Infeasible as error:
        return Finding(title, error.what, error.do, problem=True)
    average = target.guarantee == "average"
    loss = f"{'Z' if average else 'epsilon'} {target.limit.say()}"
    return Finding(
        title,
        f"At most {say(target.rho)}{' on average' if average else ''}. {among}, so any larger rho can be promised. "
        f"This one allows a total loss of {loss}, and a yes/no question about one person can be answered with certainty up to "
        f"{_certainty(_certainty_of(target))}.",
    )


def _certainty_of(target: Target) -> float:
    """Return the yes/no certainty at the limit of one target."""
    return float(yes_no_at(target.limit, target.guarantee))


def _yes_no(budget: Budget) -> Finding:
    """Return the certainty that the whole budget allows for a question with two answers. rho does not limit it."""
    certainty = budget.yes_no_limit
    average = ", on average over the noise" if budget.guarantee == "average" else ""
    says = (
        f"With the whole budget, an adversary who knows every other row can answer a yes/no question about one person, "
        f"such as whether a value is above a threshold, with certainty up to {_certainty(certainty)}{average}."
    )
    if certainty <= CERTAIN:
        return Finding("yes/no certainty", says)
    wide = [target for target in budget.targets if target.name != "person"]
    window = (
        f"Set a wider `within` for {min(wide, key=lambda target: target.limit).name}, so that a close guess counts as right; or "
        if wide
        else ""
    )
    if not budget.targets:
        lower = "Lower epsilon in [promise.loss] to 2.19 or less, which keeps it below 0.9."
        return Finding("yes/no certainty", says, lower, warning=True)
    rest = "promise a smaller rho, or add [promise.loss] with epsilon = 2.19 or less, which keeps it below 0.9."
    return Finding(
        "yes/no certainty",
        f"{says} rho limits the probability of naming one of many values, not this certainty.",
        f"{window}{rest}" if window else f"{rest[0].upper()}{rest[1:]}",
        warning=True,
    )


def _certainty(value: float) -> str:
    """Return three digits, or all leading nines."""
    return (
        f"{value:.3g}" if value < 0.999 else f"{value:.{min(15, 2 - math.floor(math.log10(max(1 - value, 1e-15))))}f}"
    )


def _desk(name: str, promise: Any) -> Finding:
    """Return the promise of a release desk, with a warning if it has no baseline, because then it releases nothing."""
    if promise.baseline or promise.baseline_from_table_on:
        return Finding(name, _concealed(promise))
    return Finding(
        name,
        f"{_concealed(promise)} Nothing can be released yet: there is no baseline for {', '.join(promise.reveals)}.",
        "Set weights (`baseline = [...]`) or the day on which to take it from the table (`baseline_from_table_on`).",
        warning=True,
    )


def _concealed(promise: Any) -> str:
    return (
        f"Released records: {promise}. The columns {', '.join(promise.releases)} can be released. The tests detect any "
        "group whose released values drift from the baseline; they do not cover the order and timing of releases."
    )


def explain_hiding(name: str, promise: Hiding, *, groups: int, selection: OpenSelection | None = None) -> list[Finding]:
    """Return what a hiding promise says, in the words of a policy maker."""
    about, values = " and ".join(promise.about), " and ".join(promise.reveals)
    findings = [Finding(name, _hidden(promise, about, values, groups, selection))]
    if promise.among == "all":
        findings.append(
            Finding(
                "observers",
                "An observer who knows the rule, all released records and all refusals cannot distinguish one group of "
                f"{about} from another.",
            )
        )
    else:
        findings.append(
            Finding(
                "observers",
                f"Of each hidden group of {about}, an observer believes with probability {say(100 * Fraction(1, promise.among))}% that it is "
                "a sensitive one, if all groups seemed equally likely before.",
            )
        )
    if promise.mix == "table":
        findings.append(
            Finding(
                "mix",
                f"That some group of {about} has unusual values of {values} can show, because the mix is taken from the table. "
                "Declare the mix to hide that too.",
            )
        )
    factor = (
        promise.refusal_factor if promise.among == "all" else promise.refusal_factor * Fraction(1, promise.among - 1)
    )
    odds = "" if promise.among == "all" else f", to at most {say(factor)} to 1 for a hidden group"
    findings.append(
        Finding(
            "refusals",
            f"A refused person who knows their own {values} multiplies their odds on the group by at most "
            f"{say(promise.refusal_factor)}{odds}.",
        )
    )
    findings.append(
        Finding(
            "not covered",
            f"Keys or names that indicate {values}, values finer than the bins, and what people know already. The number of "
            f"records of each group is published.{_answers(promise, about, values)}",
        )
    )
    return findings


def _hidden(promise: Hiding, about: str, values: str, groups: int, selection: OpenSelection | None) -> str:
    if selection is not None:
        share = f"{say(100 * selection.share, 3)}% of the records leave"
    elif isinstance(promise.mix, str):
        share = "the percentage of records that leave is known once the selection is open"
    else:
        share = f"{say(100 * sum(promise.mix, Fraction(0)), 3)}% of each group leave"
    if promise.among == "all":
        return f"All {groups:,} groups of {about} release the same share of each value of {values}: {share}, the others never."
    if selection is None:
        return (
            f"Sensitive groups of {about} hide among {promise.among} times as many, which release the same share of each value of "
            f"{values}; the other groups leave in full: {share}."
        )
    rest = selection.groups - selection.hidden
    return f"{selection.hidden:,} of {selection.groups:,} groups of {about} are held to one mix of {values}, {rest:,} leave in full: {share}."


def _answers(promise: Hiding, about: str, values: str) -> str:
    if promise.answers == "allowed":
        return (
            " Answers and synthetic tables that combine these columns are allowed, so the promise covers release alone."
        )
    return f" Answers and synthetic tables that combine {values} with {about} are refused."


def _joined(policy: Policy) -> list[Finding]:
    join = find_untested_join(policy)
    return (
        [Finding("desks together", f"{join.what} Only the first desk can be opened.", join.do, problem=True)]
        if join
        else []
    )


def _cut(name: str, collection: Any) -> list[Finding]:
    """Return the problem of a collection that truncates baskets: no new version of it can be opened."""
    try:
        collection.refuse_cuts()
    except PolicyUnreadable as error:
        stored = "A version that is in the ledger stays readable and shows brackets."
        return [
            Finding(name, error.what, f"{error.do} {stored}", problem=not collection.closed, warning=collection.closed)
        ]
    return []


def _poll(name: str, collection: Collection) -> list[Finding]:
    """Return who can answer a poll, until when, and how large its error will be."""
    poll = collection.poll
    if poll is None:
        return []
    access = "Invited people can answer, once each" if poll.invited else "Anyone can answer, any number of times"
    closes = f"{poll.closes:%Y-%m-%d %H:%M} UTC"
    findings = [Finding(name, f"{access}, until {closes}. {str(collection.batches).capitalize()}.")]
    if poll.invited and not poll.invitation_key:
        findings.append(
            Finding(
                name,
                "It is not open: it has no key for invitations.",
                "Open it with `tidegate poll open`.",
                warning=True,
            )
        )
    errors = collection.expected_errors()
    if errors:
        listed = ", ".join(f"{question} {say(100 * error, 2)}" for question, error in errors.items())
        answers = f"If {collection.clients:,} people answer, the standard errors in percentage points are: {listed}."
        is_large = max(errors.values()) > MOST_ERROR and not poll.accept_error
        remedy = "Raise epsilon, ask fewer questions or more people, or write accept_error = true." if is_large else ""
        findings.append(Finding(name, answers, remedy, problem=is_large))
    return findings


def _collected(collection: Collection) -> str:
    questions = ", ".join(str(question) for question in collection.questions.values())
    closed = " The collection is closed and accepts no more reports." if collection.closed else ""
    loss = str(respondent_loss(collection))
    return f"Randomized on the device: {questions}. {loss[0].upper()}{loss[1:]}.{closed}"
