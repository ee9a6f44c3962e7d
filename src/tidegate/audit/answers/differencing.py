"""ANSWER: a tracker who knows nobody's value and asks overlapping questions: about all, and about all but one.

Every pair of answers differs by the one person and two noises; least squares over all pairs give his best estimate. And
whoever asks the same question again, to average the noise away, gets the same answer.
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
from tidegate.audit.answers.ask import Door, FrontDoor, Remembered, Run, draws_of, event_of, honest, numbers
from tidegate.audit.answers.sampling import choice_of
from tidegate.audit.answers.situations import Situation, situations
from tidegate.audit.bounds import lowest
from tidegate.audit.fake_data import Imagined, asked_value, ceiling_of, table_of
from tidegate.audit.finding import Clock, Finding, judged
from tidegate.noise import Bits, SeededBits
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import Opposite, Predicate, col
from tidegate.session import Session

MOST_CUTS = 8  # places at which he cuts the column in two
STEP, MOST = 500, 50_000  # persons at a time, and in all
AGAIN, FEW = 30, 3  # times the same question; persons through the front door, at least
KNOWS = "the policy, and a group that contains only the person; no one's value"


def attack_differences(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = honest, door: Door = Session
) -> list[Finding]:
    """The tracker against every protected value that he can single out, and the same question over and over."""
    clock, found = Clock(seconds), []
    able = [one for one in situations(policy) if one.unit == "probability" and _apart(one) and one.codes.size > 2]
    for place, situation in enumerate(able):
        share = clock.part(0.8 / (len(able) - 0.8 * place))
        given: dict[str, Any] = {"alpha": alpha / len(able), "random": np.random.default_rng([seed, 5, place])}
        bits = SeededBits(f"{seed}/tracker/{place}")
        found.append(tracked(situation, clock=share, bits=bits, run=run, door=door, **given))
    some = situations(policy)
    return [*found, asked_again(some[0], door=door)] if some else found


def tracked(
    situation: Situation,
    *,
    alpha: float,
    clock: Clock,
    random: np.random.Generator,
    bits: Bits,
    run: Run = honest,
    door: Door = Session,
    most: int = MOST,
    doors_most: int = MOST,
) -> Finding:
    """How often the value that least squares name is the true one: without the ledger, and through the front door."""
    tracker = Tracker(situation)
    right = times = 0
    while times < most and (clock.left > clock.spent or not times):  # the rest is for the front door
        secrets = choice_of(random.choice, situation.prior, min(STEP, most - times))
        right += int((tracker.named(tracker.drawn(secrets, bits, run)) == secrets).sum())
        times += secrets.size
    doors = _through_the_door(tracker, clock, random, door, doors_most)
    each = [(right, times), (sum(doors), len(doors))]
    bound = max(lowest(hits, many, alpha=alpha / 2) for hits, many in each)
    says = (
        f"{times:,} persons without the ledger and {len(doors)} through the front door, {len(tracker.questions)} overlapping "
        f"queries about each: least squares name the value of {right:,} ({right / times:.3g}) and of {sum(doors)}; "
        f"{situation.promised:.3g} is promised, and a random guess is right with probability {situation.blind:.3g}."
    )
    named: dict[str, Any] = {"bound": bound, "promised": situation.promised, "alpha": alpha, "unit": situation.unit}
    named |= {"tries": times + len(doors), "seconds": clock.spent}
    verdict = judged(bound, situation.promised)
    return Finding("answer", situation.promise, "differencing", KNOWS, says, verdict, **named)


def _through_the_door(tracker: Tracker, clock: Clock, random: np.random.Generator, door: Door, most: int) -> list[bool]:
    """Whether each of some persons was named rightly."""
    situation, found = tracker.situation, list[bool]()
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            while len(found) < most and (not clock.over or len(found) < FEW):
                secret = int(random.choice(situation.prior.size, p=situation.prior))
                found.append(bool(tracker.named(tracker.through(front, secret))[0] == secret))
        finally:
            front.close()
    return found


class Tracker:
    """Asks how many are beyond each of some cuts, with the person and without, and solves for where the person is."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.group = _apart(situation)
        cuts = np.unique(np.linspace(0, situation.attribute.size, MOST_CUTS + 2).astype(int)[1:-1])
        self.cuts = cuts[(cuts > 0) & (cuts < situation.attribute.size)]
        self.questions = [query for cut in self.cuts for query in self._pair(int(cut))]
        self.epsilon = ceiling_of(situation.policy).value / len(self.questions)
        self.events = [event_of(query, situation.policy, epsilon=self.epsilon) for query in self.questions]
        self.solved = np.linalg.pinv(self._design())

    def _pair(self, cut: int) -> tuple[Query, Query]:
        attribute, column = self.situation.attribute, self.situation.column
        others = Opposite(col(self.group) == asked_value(self.situation.policy.attribute(self.group), 1))
        beyond: Predicate = (
            col(column) >= attribute.value(cut)
            if isinstance(attribute, Numeric)
            else col(column) == asked_value(attribute, cut)
        )
        return count().where(beyond), count().where(beyond & others)

    def _design(self) -> Floats:
        """What each question adds up: others beyond a cut (unknown too), and the person where not left out."""
        rows = np.zeros((len(self.questions), 2 * self.cuts.size))
        for place in range(self.cuts.size):
            rows[2 * place, [place, self.cuts.size + place]] = 1.0
            rows[2 * place + 1, place] = 1.0
        return rows

    def world(self, secret: int) -> Imagined:
        known = self.situation.known
        person = {self.situation.column: int(self.situation.codes[secret]), self.group: 1}
        return Imagined(self.situation.policy, (*known, person))

    def drawn(self, secrets: NDArray[np.int64], bits: Bits, run: Run) -> Floats:
        """The answers about some persons: (persons, questions)."""
        some, order = np.unique(secrets, return_inverse=True)
        worlds = [self.world(int(secret)) for secret in some]
        pairs = zip(self.questions, self.events, strict=True)
        asked = [draws_of(query, worlds, event, places=order, bits=bits, run=run) for query, event in pairs]
        return np.hstack(asked)

    def through(self, front: FrontDoor, secret: int) -> Floats:
        table = Remembered(table_of(self.situation.policy, self.world(secret).units))
        answers = front.ask(table, self.questions, epsilon=self.epsilon)
        return np.array([[float(numbers(answer.stored)[0, 0]) for answer in answers]])

    def named(self, answers: Floats) -> NDArray[np.int64]:
        """The worlds whose indicators are nearest to the persons' estimated ones; of several, the first."""
        rows = self.situation.policy.dataset.unit.rows_per_person
        estimated = (answers @ self.solved.T)[:, self.cuts.size :] / rows
        codes = self.situation.codes[:, None]
        shown = codes >= self.cuts if isinstance(self.situation.attribute, Numeric) else codes == self.cuts
        distance = (shown**2).sum(axis=1) - 2 * estimated @ shown.T.astype(np.float64)
        return np.asarray(np.argmin(distance, axis=1))


def asked_again(situation: Situation, *, door: Door = Session) -> Finding:
    """The same question, over and over and in several sessions: one answer, one charge. Exact."""
    clock, query = Clock(0), situation.questions()[0]
    epsilon = ceiling_of(situation.policy).value / 100
    table = Remembered(table_of(situation.policy, situation.world(situation.special).units))
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            session = front.open(table)
            answers = [session.answer(query, epsilon=epsilon, key=f"time {n}" if n % 2 else "") for n in range(AGAIN)]
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


def _apart(situation: Situation) -> str:
    """A column in which the person can be alone: any other one with two values."""
    attributes = situation.policy.attributes.items()
    able = [name for name, one in attributes if one.countable and one.size > 1 and name != situation.column]
    return able[0] if able else ""
