"""ANSWER: the informed adversary, who knows every unit but one and computes the likeliest world from the answers.

Two figures: how often their guess is right, and how often they are right when they claim a value only if they are sure.
The promise bounds both. The second comes close to it (a count of one value reaches equation 15), so a fault cannot hide.
Under the average guarantee only guesses are bounded (`average.py`).
The last attack goes through the front door: sessions, charges and the ledger, until a query is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.accounting import FREE, budget_of
from tidegate.answer import Answer, Query
from tidegate.answer.mechanisms.sums import rows_are_public
from tidegate.answer.spending import resolve_loss
from tidegate.audit.answers.ask import CachedTable, Door, FrontDoor, Run, ask_session, numbers, run_mechanism
from tidegate.audit.answers.average import guess_on_average
from tidegate.audit.answers.sampling import Resources, WorldSampler, likelihood_of, posterior_odds
from tidegate.audit.answers.situations import Situation, situations, unqueried_columns
from tidegate.audit.bounds import distinction_bound, epsilon_lower_bound
from tidegate.audit.fake_data import build_table, has_sum, whole_budget
from tidegate.audit.finding import Clock, Finding, Verdict, judge
from tidegate.errors import TidegateError
from tidegate.ledger.totals import Totals
from tidegate.noise import SeededBits
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import Opposite
from tidegate.session import Session

KNOWS = "the policy, the method, every unit except one, and the probability of each value"
FEW, MOST = 4, 50_000  # pairs of data sets: minimum and maximum
PARTS, ASKED = 2, 4  # four queries, each for half of the budget
PARTNERS = "two accounts with the same persons, until refused"


@dataclass
class AdversaryOdds:
    """The adversary's odds of the special world when it is true and when it is not; the number of data sets over budget."""

    true: list[float] = field(default_factory=list)
    false: list[float] = field(default_factory=list)
    over: int = 0
    problems: list[str] = field(default_factory=list)


def query_until_refused(
    situation: Situation,
    *,
    alpha: float,
    clock: Clock,
    random: np.random.Generator,
    door: Door = Session,
    most: int = MOST,
) -> Finding:
    """Query until refused, and weigh all answers.

    That a query is refused in time, and that the ledger is consistent, is checked exactly. How sure the adversary becomes is
    sampled, as far as time allows.
    """
    shown = _query_pairs(situation, clock, random, door, most)
    pairs = len(shown.true)
    # The adversary claims what is likelier.
    hits, missed = (sum(odds > 0 for odds in side) for side in (shown.true, shown.false))
    promise, promised = situation.promise, situation.promised
    if situation.guarantee == "average":
        bound = distinction_bound(hits, pairs, missed, pairs, alpha=alpha)
        strongest = distinction_bound(pairs, pairs, 0, pairs, alpha=alpha)
        promised = budget_of(situation.policy).yes_no_limit
        promise = f"a yes/no question about one unit is answered correctly with probability at most {promised:.4g}"
    else:
        bound = situation.in_promised_unit(epsilon_lower_bound(hits, pairs, missed, pairs, alpha=alpha))
        strongest = situation.in_promised_unit(epsilon_lower_bound(pairs, pairs, 0, pairs, alpha=alpha))
    enough = strongest > promised
    verdict: Verdict = "broken" if shown.over or shown.problems else judge(bound, promised)
    figures: dict[str, Any] = {"bound": bound, "promised": promised, "alpha": alpha} if enough else {}
    says = _says(shown, situation.amount(bound), situation.amount(promised), enough)
    attack = "through the front door until refused"
    figures |= {"tries": 2 * pairs, "seconds": clock.spent}
    return Finding("answer", promise, attack, KNOWS, says, verdict, situation.unit, **figures)


def _query_pairs(
    situation: Situation, clock: Clock, random: np.random.Generator, door: Door, most: int
) -> AdversaryOdds:
    shown, tables = AdversaryOdds(), dict[int, Any]()
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            while len(shown.true) < most and (not clock.over or len(shown.true) < FEW):
                other = int(random.choice(situation.prior.size, p=situation.others))
                for odds, index in ((shown.true, situation.special), (shown.false, other)):
                    if index not in tables:
                        tables[index] = _engine(situation, index)
                    odds.append(_weigh_answers(situation, front, tables[index], shown))
            shown.problems = front.problems()
        finally:
            front.close()
    return shown


def _weigh_answers(situation: Situation, front: FrontDoor, table: Any, shown: AdversaryOdds) -> float:
    """Return the odds after all answers about one data set; record whether they cost more than is allowed."""
    answers = front.ask(table, _variants(situation.questions()[0]), loss=whole_budget(situation.policy).part(PARTS))
    shown.over += _exceed(answers, situation)
    likelihoods = [likelihood_of(situation, answer.query, answer.event)(numbers(answer.stored)) for answer in answers]
    return float(posterior_odds(situation, np.add.reduce(likelihoods))[0])


def _exceed(answers: Sequence[Answer], situation: Situation) -> bool:
    """Return whether answers for half of the budget each cost more than is allowed."""
    spent = sum((answer.charge.price for answer in answers), FREE)
    return not Totals(FREE, budget_of(situation.policy).ceilings).fits(spent) or len(answers) > PARTS


def query_partners(situation: Situation, *, door: Door = Session) -> Finding:
    """Query two accounts that share persons, until both refuse.

    The second policy declares it. Either account is queried first, and both in turns. Exact: all answers together must fit
    into the limit, which each account has for itself.
    """
    clock, over, count = Clock(0), 0, 0
    queries, loss = _variants(situation.questions()[0]), whole_budget(situation.policy).part(PARTS)
    table = _engine(situation, situation.special)
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            for turns in ((0, 1), (1, 0), (0, 1, 0, 1)):
                first = front.open(table)
                accounts, answers = (first, front.open(table, partners=[first.policy.dataset.name])), list[Answer]()
                for turn, account in enumerate(turns):
                    batch = queries if len(turns) == 2 else queries[turn : turn + 1]
                    answers += ask_session(accounts[account], batch, loss=loss)
                over, count = over + _exceed(answers, situation), count + len(answers)
            problems = front.problems()
        finally:
            front.close()
    says = (
        f"Three pairs of accounts with the same persons were queried for half of the budget each, {count} answers in all: "
        + (
            f"{over} of them released more than one limit allows."
            if over
            else "each pair released no more than one limit allows."
        )
    )
    says += f" Their ledger is not consistent: {problems[0]}" if problems else " Their ledger is consistent."
    promise = "accounts that share persons stay within every limit of each of them together"
    verdict: Verdict = "broken" if over or problems else "held"
    return Finding("answer", promise, PARTNERS, KNOWS, says, verdict, tries=count, seconds=clock.spent)


def _variants(query: Query) -> list[Query]:
    """Return the same query in other forms: each is new to the ledger and charged."""
    queries = [query]
    while len(queries) < ASKED:
        last: Any = queries[-1].condition
        queries.append(Query(query.statistic, query.column, Opposite(Opposite(last))))
    return queries


def _engine(situation: Situation, index: int) -> Any:
    """Return a world on the engine.

    Attacks without the ledger rely on integers computed in memory: they must equal the engine's.
    """
    world, condition = situation.world(index), situation.questions()[0].condition
    table = CachedTable(build_table(situation.policy, world.units))
    if int(table.count((), where=condition)) != int(world.count((), where=condition)):
        raise TidegateError(
            "The counts of a simulated data set differ from those computed in memory.",
            "This is a defect; please report it.",
        )
    return table


def _says(shown: AdversaryOdds, bound: str, promised: str, enough: bool) -> str:
    releases = (
        f"{shown.over} of them released more than the policy allows"
        if shown.over
        else "two answers each, then refusals"
    )
    consistency = (
        f"Their ledger is not consistent: {shown.problems[0]}" if shown.problems else "Their ledger is consistent."
    )
    proves = (
        f"The adversary proves {bound} of {promised}."
        if enough
        else "Too few fit in the available time to prove more than that."
    )
    queries = f"{2 * len(shown.true):,} simulated data sets were queried four times for half of the budget"
    return f"{queries}: {releases}. {consistency} {proves}"


SLOW = ("quantile",)  # drawn one at a time: left out of joint attacks
FINDINGS = 5  # per situation


def attack_answers(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = run_mechanism, door: Door = Session
) -> list[Finding]:
    """Run the informed adversary against everything that a policy protects."""
    targets, clock, random = situations(policy), Clock(seconds), np.random.default_rng([seed, 3])
    findings = [_not_queried(name) for name in unqueried_columns(policy)]
    for index, situation in enumerate(targets):
        share = clock.part(0.6 / (len(targets) - 0.6 * index))
        bits = SeededBits(f"{seed}/informed/{index}")
        resources = Resources(alpha / len(targets) / FINDINGS, share, random, bits, run)
        if situation.guarantee == "average":
            findings += guess_on_average(situation, resources)
            continue
        findings += query_one_by_one(situation, replace(resources, clock=share.part(0.6)))
        findings += (
            attack_tight_calibration(situation, replace(resources, clock=share.part(0.3)))
            if policy.dataset.rows
            else []
        )
        findings.append(query_together(situation, resources))
    for index, situation in enumerate(targets):
        share = clock.part(1 / (len(targets) - index))
        each = alpha / len(targets) / FINDINGS
        findings.append(query_until_refused(situation, alpha=each, clock=share, random=random, door=door))
    if policy.dataset.shares_persons_with:
        findings += [query_partners(situation, door=door) for situation in targets[:1]]
    return findings


def query_one_by_one(situation: Situation, resources: Resources) -> list[Finding]:
    """Query every statistic for the whole budget: the best bounds for a guess and for a claim."""
    queries = situation.questions()
    right: list[tuple[float, str]] = []
    sure: list[tuple[float, str]] = []
    tries, each = 0, resources.alpha / len(queries)
    for index, query in enumerate(queries):
        few = resources.most // 40 if query.statistic in SLOW else resources.most
        outcome = WorldSampler(situation, [query], resources).sample(
            resources.clock.part(1 / (len(queries) - index)), most=few
        )
        right.append((outcome.guess_bound(each), query.says()))
        sure.append((situation.in_promised_unit(outcome.loss_bound(each)), query.says()))
        tries += 3 * outcome.times
    figures = {"tries": tries, "alpha": resources.alpha, "seconds": resources.clock.spent}
    findings = [_finding(situation, "informed adversary, when sure", sure, **figures)]
    if situation.unit == "probability" and situation.codes.size > 2:
        findings.insert(0, _finding(situation, "informed adversary, best guess", right, **figures))
    return findings


def query_together(situation: Situation, resources: Resources) -> Finding:
    """Query all statistics, each for its part of the budget."""
    queries = [query for query in situation.questions() if query.statistic not in SLOW]
    outcome = WorldSampler(situation, queries, resources).sample(resources.clock, most=resources.most)
    bound = situation.in_promised_unit(outcome.loss_bound(resources.alpha))
    figures = {"tries": 3 * outcome.times, "alpha": resources.alpha, "seconds": resources.clock.spent}
    best = [(bound, f"{len(queries)} statistics together")]
    return _finding(situation, "informed adversary, many queries", best, **figures)


def attack_tight_calibration(situation: Situation, resources: Resources) -> list[Finding]:
    """Query one sum (a mean, if the column has no sum) with the least noise that keeps the same rho, if that can be requested.

    It costs more than equation 15 allows for that rho; the attack is on rho.
    """
    if situation.unit != "probability" or not isinstance(situation.attribute, Numeric):
        return []
    query = ask.sum(situation.column) if has_sum(situation.attribute) else ask.mean(situation.column)
    if not rows_are_public(query, situation.policy):
        return []
    if (
        float(situation.prior[situation.special]) > 1 / situation.codes.size
    ):  # tight calibration is for a value with a uniform prior
        return []
    loss = resolve_loss((query,), situation.policy, rho=situation.promised, calibration="tight")
    outcome = WorldSampler(situation, [query], resources, loss=loss).sample(resources.clock, most=resources.most)
    best = [(situation.in_promised_unit(outcome.loss_bound(resources.alpha)), query.says())]
    figures = {"tries": 3 * outcome.times, "alpha": resources.alpha, "seconds": resources.clock.spent}
    return [_finding(situation, "informed adversary, tight calibration", best, **figures)]


def _not_queried(name: str) -> Finding:
    says = "No statistic covers it: it contains sets, or a single value"
    return Finding("answer", f"{name} is protected", f"informed adversary of {name}", KNOWS, f"{says}.", "not tried")


def _finding(situation: Situation, attack: str, bounds: list[tuple[float, str]], **figures: Any) -> Finding:
    bound, best = max(bounds)
    promised, guess = situation.promised, situation.unit == "probability"
    says = (
        f"{figures['tries']:,} answers about {situation.target}: by {best} the adversary proves {situation.amount(bound)}"
        f" of {situation.amount(promised)} promised"
        + (f"; a random guess is right with probability {situation.random_guess:.3g}." if guess else ".")
    )
    verdict = judge(bound, promised)
    return Finding(
        "answer", situation.promise, attack, KNOWS, says, verdict, situation.unit, bound, promised, **figures
    )
