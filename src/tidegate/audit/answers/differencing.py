"""ANSWER: a tracker who knows no one's value and sends overlapping queries: about all units, and about all but one.

Each pair of answers differs by one person and two noises; least squares over all pairs give the best estimate. Repeating
a query to average the noise away returns the same answer.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.answer import Query, count
from tidegate.arrays import Floats
from tidegate.audit.answers.ask import (
    CachedTable,
    Door,
    FrontDoor,
    Run,
    draw_answers_of,
    event_of,
    numbers,
    run_mechanism,
)
from tidegate.audit.answers.sampling import choice_of
from tidegate.audit.answers.situations import Situation, situations
from tidegate.audit.bounds import lower_bound
from tidegate.audit.fake_data import MemoryTable, build_table, query_value, whole_budget
from tidegate.audit.finding import Clock, Finding, judge
from tidegate.noise import Bits, SeededBits
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import Opposite, Predicate, col
from tidegate.session import Session

MOST_CUTS = 8  # cuts that divide the column in two
STEP, MOST = 500, 50_000  # persons per step, and in total
AGAIN, FEW = 30, 3  # repetitions of one query; minimum of persons through the front door
KNOWS = "the policy, and a group that contains only the person; no one's value"


def attack_differences(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = run_mechanism, door: Door = Session
) -> list[Finding]:
    """Attack every protected value that a tracker can single out, and repeat one query."""
    clock, findings = Clock(seconds), []
    targets = [
        situation
        for situation in situations(policy)
        if situation.target == situation.column and _separating_column(situation) and situation.codes.size > 2
    ]
    for index, situation in enumerate(targets):
        share = clock.part(0.8 / (len(targets) - 0.8 * index))
        options: dict[str, Any] = {"alpha": alpha / len(targets), "random": np.random.default_rng([seed, 5, index])}
        bits = SeededBits(f"{seed}/tracker/{index}")
        findings.append(track(situation, clock=share, bits=bits, run=run, door=door, **options))
    some = situations(policy)
    return [*findings, repeat_query(some[0], door=door)] if some else findings


def track(
    situation: Situation,
    *,
    alpha: float,
    clock: Clock,
    random: np.random.Generator,
    bits: Bits,
    run: Run = run_mechanism,
    door: Door = Session,
    most: int = MOST,
    doors_most: int = MOST,
) -> Finding:
    """Measure how often least squares name the true value: without the ledger, and through the front door."""
    tracker = Tracker(situation)
    right = times = 0
    while times < most and (clock.remaining > clock.spent or not times):  # the remaining time is for the front door
        secrets = choice_of(random.choice, situation.prior, min(STEP, most - times))
        right += int(situation.is_right(tracker.name_values(tracker.draw(secrets, bits, run)), secrets).sum())
        times += secrets.size
    doors = _through_the_door(tracker, clock, random, door, doors_most)
    each = [(right, times), (sum(doors), len(doors))]
    bound = max(lower_bound(hits, tries, alpha=alpha / 2) for hits, tries in each)
    says = (
        f"{times:,} persons without the ledger and {len(doors)} through the front door, {len(tracker.questions)} overlapping "
        f"queries about each: least squares name the value of {right:,} ({right / times:.3g}) and of {sum(doors)}; "
        f"{situation.promised:.3g} is promised, and a random guess is right with probability {situation.random_guess:.3g}."
    )
    figures: dict[str, Any] = {"bound": bound, "promised": situation.promised, "alpha": alpha, "unit": situation.unit}
    figures |= {"tries": times + len(doors), "seconds": clock.spent}
    verdict = judge(bound, situation.promised)
    return Finding("answer", situation.promise, "differencing", KNOWS, says, verdict, **figures)


def _through_the_door(tracker: Tracker, clock: Clock, random: np.random.Generator, door: Door, most: int) -> list[bool]:
    """Return for each of some persons whether the named value was right."""
    situation, hits = tracker.situation, list[bool]()
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            while len(hits) < most and (not clock.over or len(hits) < FEW):
                secret = int(random.choice(situation.prior.size, p=situation.prior))
                hits.append(bool(situation.is_right(tracker.name_values(tracker.ask(front, secret)), secret)[0]))
        finally:
            front.close()
    return hits


class Tracker:
    """Queries the number of units above each of some cuts, with and without the person, and solves for the person."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.group = _separating_column(situation)
        cuts = np.unique(np.linspace(0, situation.attribute.size, MOST_CUTS + 2).astype(int)[1:-1])
        self.cuts = cuts[(cuts > 0) & (cuts < situation.attribute.size)]
        self.questions = [query for cut in self.cuts for query in self._pair(int(cut))]
        self.loss = whole_budget(situation.policy).part(len(self.questions))
        self.events = [event_of(query, situation.policy, loss=self.loss) for query in self.questions]
        self.solution = np.linalg.pinv(self._design())
        self.indicators, self.firsts = self._distinct_indicators()

    def _pair(self, cut: int) -> tuple[Query, Query]:
        attribute, column = self.situation.attribute, self.situation.column
        others = Opposite(col(self.group) == query_value(self.situation.policy.attribute(self.group), 1))
        beyond: Predicate = (
            col(column) >= query_value(attribute, cut)
            if isinstance(attribute, Numeric)
            else col(column) == query_value(attribute, cut)
        )
        return count().where(beyond), count().where(beyond & others)

    def _design(self) -> Floats:
        """Return the sums behind each query: others above a cut (also unknown), and the person unless excluded."""
        rows = np.zeros((len(self.questions), 2 * self.cuts.size))
        for index in range(self.cuts.size):
            rows[2 * index, [index, self.cuts.size + index]] = 1.0
            rows[2 * index + 1, index] = 1.0
        return rows

    def world(self, secret: int) -> MemoryTable:
        known = self.situation.known
        person = {self.situation.column: int(self.situation.codes[secret]), self.group: 1}
        return MemoryTable(self.situation.policy, (*known, person))

    def draw(self, secrets: NDArray[np.int64], bits: Bits, run: Run) -> Floats:
        """Draw the answers about some persons: (persons, queries)."""
        some, order = np.unique(secrets, return_inverse=True)
        worlds = [self.world(int(secret)) for secret in some]
        pairs = zip(self.questions, self.events, strict=True)
        answers = [draw_answers_of(query, worlds, event, order=order, bits=bits, run=run) for query, event in pairs]
        return np.hstack(answers)

    def ask(self, front: FrontDoor, secret: int) -> Floats:
        table = CachedTable(build_table(self.situation.policy, self.world(secret).units))
        answers = front.ask(table, self.questions, loss=self.loss)
        return np.array([[float(numbers(answer.stored)[0, 0]) for answer in answers]])

    def name_values(self, answers: Floats) -> NDArray[np.int64]:
        """Return the worlds whose indicators are closest to the estimated ones; the first of several."""
        rows = self.situation.policy.dataset.unit.rows_per_person
        estimated = (answers @ self.solution.T)[:, self.cuts.size :] / rows
        shown = self.indicators
        distance = (shown**2).sum(axis=1) - 2 * estimated @ shown.T
        return np.asarray(self.firsts[np.argmin(distance, axis=1)])

    def _distinct_indicators(self) -> tuple[Floats, NDArray[np.int64]]:
        """Return the indicators that differ between worlds, and the first world with each: long columns have few."""
        codes = self.situation.codes[:, None]
        shown = codes >= self.cuts if isinstance(self.situation.attribute, Numeric) else codes == self.cuts
        firsts = np.sort(np.unique(shown @ (1 << np.arange(self.cuts.size)), return_index=True)[1])
        return shown[firsts].astype(np.float64), firsts


def repeat_query(situation: Situation, *, door: Door = Session) -> Finding:
    """Repeat one query, also in several keys: one answer, one charge. Exact."""
    clock, query = Clock(0), situation.questions()[0]
    loss = whole_budget(situation.policy).part(100)
    options: dict[str, Any] = {loss.unit: loss.amount}
    table = CachedTable(build_table(situation.policy, situation.world(situation.special).units))
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            session = front.open(table)
            answers = [
                session.answer(query, key=f"time {n}" if n % 2 else "", anyway=True, **options) for n in range(AGAIN)
            ]
            spent = session.account.spent
        finally:
            front.close()
    different = len({str(answer.stored) for answer in answers})
    charged = sum((answer.cost.value for answer in answers), Fraction(0))
    ok = different == 1 and spent.value == charged == answers[0].cost.value
    return Finding(
        "answer",
        "the same query again returns the same answer and costs nothing",
        "averaging",
        "the policy; they can query as often as they like",
        f"{AGAIN} times the same query, half of them under new keys: {different} different "
        f"answer{'s' if different > 1 else ''}, charged {spent.say()} in all.",
        "held" if ok else "broken",
        tries=AGAIN,
        seconds=clock.spent,
    )


def _separating_column(situation: Situation) -> str:
    """Return a column in which the person can be alone: any other one with two values."""
    attributes = situation.policy.attributes.items()
    names = [
        name
        for name, attribute in attributes
        if attribute.countable and attribute.size > 1 and name != situation.column
    ]
    return names[0] if names else ""
