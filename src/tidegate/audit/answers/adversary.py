"""ANSWER: the informed adversary, who knows every unit but one and works out the likeliest world from the answers.

Two figures of him: how often his guess is right, and how often he is right when he speaks only when he is sure. The promise
bounds both; the second comes near to it (a count of one value meets equation 15), so that a fault cannot hide.
The last attack goes through the front door: sessions, charges and the ledger, until he is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.answer import Query
from tidegate.answer.mechanisms.sums import rows_are_public
from tidegate.answer.spending import resolve_loss
from tidegate.audit.answers.ask import Door, FrontDoor, Remembered, Run, honest, numbers
from tidegate.audit.answers.sampling import Means, Sampled, law_of, posterior_odds
from tidegate.audit.answers.situations import Situation, situations, unasked
from tidegate.audit.bounds import epsilon_lower_bound
from tidegate.audit.fake_data import ceiling_of, table_of
from tidegate.audit.finding import Clock, Finding, Verdict, judged
from tidegate.errors import TidegateError
from tidegate.noise import SeededBits
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import Opposite
from tidegate.session import Session

KNOWS = "the policy, the method, every unit except one, and the probability of each value"
FEW, MOST = 4, 50_000  # pairs of data sets: at least, at most
PARTS, ASKED = 2, 4  # he asks four times for half of what may be spent


@dataclass
class Shown:
    """His odds of the special world where it is true and where it is not; how many data sets gave too much."""

    true: list[float] = field(default_factory=list)
    false: list[float] = field(default_factory=list)
    over: int = 0
    problems: list[str] = field(default_factory=list)


def until_refused(
    situation: Situation,
    *,
    alpha: float,
    clock: Clock,
    random: np.random.Generator,
    door: Door = Session,
    most: int = MOST,
) -> Finding:
    """He asks until he is refused and weighs all that he got. That he is refused in time, and that the ledger holds, is
    exact; how sure he becomes is sampled, as far as there is time."""
    shown = _asked(situation, clock, random, door, most)
    pairs = len(shown.true)
    hits, missed = (sum(odds > 0 for odds in side) for side in (shown.true, shown.false))  # he claims what is likelier
    bound = situation.proven(epsilon_lower_bound(hits, pairs, missed, pairs, alpha=alpha))
    enough = situation.proven(epsilon_lower_bound(pairs, pairs, 0, pairs, alpha=alpha)) > situation.promised
    verdict: Verdict = "broken" if shown.over or shown.problems else judged(bound, situation.promised)
    sampled: dict[str, Any] = {"bound": bound, "promised": situation.promised, "alpha": alpha} if enough else {}
    says = _says(shown, situation.amount(bound), situation.amount(situation.promised), enough)
    attack = "through the front door until refused"
    sampled |= {"tries": 2 * pairs, "seconds": clock.spent}
    return Finding("answer", situation.promise, attack, KNOWS, says, verdict, situation.unit, **sampled)


def _asked(situation: Situation, clock: Clock, random: np.random.Generator, door: Door, most: int) -> Shown:
    shown, tables = Shown(), dict[int, Any]()
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            while len(shown.true) < most and (not clock.over or len(shown.true) < FEW):
                other = int(random.choice(situation.prior.size, p=situation.others))
                for odds, place in ((shown.true, situation.special), (shown.false, other)):
                    if place not in tables:
                        tables[place] = _engine(situation, place)
                    odds.append(_weighed(situation, front, tables[place], shown))
            shown.problems = front.problems()
        finally:
            front.close()
    return shown


def _weighed(situation: Situation, front: FrontDoor, table: Any, shown: Shown) -> float:
    """His odds after all answers about one data set; notes where they cost more than is allowed."""
    ceiling = ceiling_of(situation.policy).value
    answers = front.ask(table, _variants(situation.questions()[0]), epsilon=ceiling / PARTS)
    spent = sum((answer.cost.value for answer in answers), Fraction(0))
    shown.over += spent > ceiling or len(answers) > PARTS
    told = [law_of(situation, one.query, one.event)(numbers(one.stored)) for one in answers]
    return float(posterior_odds(situation, np.add.reduce(told))[0])


def _variants(query: Query) -> list[Query]:
    """The same question in other words: each is a new one to the ledger, and charged."""
    found = [query]
    while len(found) < ASKED:
        last: Any = found[-1].condition
        found.append(Query(query.statistic, query.column, Opposite(Opposite(last))))
    return found


def _engine(situation: Situation, place: int) -> Any:
    """The world on the engine. Attacks without the ledger rely on integers worked out by hand: they must be the engine's."""
    world, condition = situation.world(place), situation.questions()[0].condition
    table = Remembered(table_of(situation.policy, world.units))
    if int(table.count((), where=condition)) != int(world.count((), where=condition)):
        raise TidegateError(
            "The counts of a simulated data set differ from those computed in memory.",
            "This is a defect; please report it.",
        )
    return table


def _says(shown: Shown, bound: str, promised: str, enough: bool) -> str:
    gave = (
        f"{shown.over} of them released more than the policy allows"
        if shown.over
        else "two answers each, then refusals"
    )
    held = f"Their ledger is not consistent: {shown.problems[0]}" if shown.problems else "Their ledger is consistent."
    proves = (
        f"The adversary proves {bound} of {promised}."
        if enough
        else "Too few fit in the available time to prove more than that."
    )
    many = f"{2 * len(shown.true):,} simulated data sets were queried four times for half of the budget"
    return f"{many}: {gave}. {held} {proves}"


SLOW = ("quantile",)  # drawn one at a time: attacked one by one only
FINDINGS = 5  # about one situation


def attack_answers(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = honest, door: Door = Session
) -> list[Finding]:
    """The informed adversary against everything that a policy protects."""
    found, clock, random = situations(policy), Clock(seconds), np.random.default_rng([seed, 3])
    told = [_unasked(name) for name in unasked(policy)]
    for place, situation in enumerate(found):
        share = clock.part(0.6 / (len(found) - 0.6 * place))
        bits = SeededBits(f"{seed}/informed/{place}")
        means = Means(alpha / len(found) / FINDINGS, share, random, bits, run)
        told += one_by_one(situation, replace(means, clock=share.part(0.6)))
        told += calibrated(situation, replace(means, clock=share.part(0.3))) if policy.dataset.rows else []
        told.append(together(situation, means))
    for place, situation in enumerate(found):
        share = clock.part(1 / (len(found) - place))
        each = alpha / len(found) / FINDINGS
        told.append(until_refused(situation, alpha=each, clock=share, random=random, door=door))
    return told


def one_by_one(situation: Situation, means: Means) -> list[Finding]:
    """Every statistic for all that may be spent: the best of them, for a guess and for a claim."""
    asked = situation.questions()
    right: list[tuple[float, str]] = []
    sure: list[tuple[float, str]] = []
    tries, each = 0, means.alpha / len(asked)
    for place, query in enumerate(asked):
        few = means.most // 40 if query.statistic in SLOW else means.most
        seen = Sampled(situation, [query], means).collected(means.clock.part(1 / (len(asked) - place)), most=few)
        right.append((seen.guessed(each), query.says()))
        sure.append((situation.proven(seen.loss(each)), query.says()))
        tries += 3 * seen.times
    named = {"tries": tries, "alpha": means.alpha, "seconds": means.clock.spent}
    found = [_finding(situation, "informed adversary, when sure", sure, **named)]
    if situation.unit == "probability" and situation.codes.size > 2:
        found.insert(0, _finding(situation, "informed adversary, best guess", right, **named))
    return found


def together(situation: Situation, means: Means) -> Finding:
    """All statistics at once, each for its part of what may be spent."""
    asked = [query for query in situation.questions() if query.statistic not in SLOW]
    seen = Sampled(situation, asked, means).collected(means.clock, most=means.most)
    bound = situation.proven(seen.loss(means.alpha))
    named = {"tries": 3 * seen.times, "alpha": means.alpha, "seconds": means.clock.spent}
    best = [(bound, f"{len(asked)} statistics together")]
    return _finding(situation, "informed adversary, many queries", best, **named)


def calibrated(situation: Situation, means: Means) -> list[Finding]:
    """One sum with the least noise that keeps the same rho, where that can be asked for. It costs more than equation 15
    allows for that rho; what is attacked is the rho."""
    query = ask.sum(situation.column) if isinstance(situation.attribute, Numeric) else None
    if situation.unit != "probability" or query is None or not rows_are_public(query, situation.policy):
        return []
    if situation.blind > 1 / situation.codes.size:  # it is for a value about which nothing is known beforehand
        return []
    epsilon = resolve_loss((query,), situation.policy, rho=situation.promised, calibration="tight")
    seen = Sampled(situation, [query], means, epsilon=epsilon).collected(means.clock, most=means.most)
    best = [(situation.proven(seen.loss(means.alpha)), query.says())]
    named = {"tries": 3 * seen.times, "alpha": means.alpha, "seconds": means.clock.spent}
    return [_finding(situation, "informed adversary, tight calibration", best, **named)]


def _unasked(name: str) -> Finding:
    says = "No statistic covers it: it contains sets, or a single value"
    return Finding("answer", f"{name} is protected", f"informed adversary of {name}", KNOWS, f"{says}.", "not tried")


def _finding(situation: Situation, attack: str, bounds: list[tuple[float, str]], **named: Any) -> Finding:
    bound, best = max(bounds)
    promised, guess = situation.promised, situation.unit == "probability"
    says = (
        f"{named['tries']:,} answers about {situation.target}: by {best} the adversary proves {situation.amount(bound)}"
        f" of {situation.amount(promised)} promised"
        + (f"; a random guess is right with probability {situation.blind:.3g}." if guess else ".")
    )
    verdict = judged(bound, promised)
    return Finding("answer", situation.promise, attack, KNOWS, says, verdict, situation.unit, bound, promised, **named)
