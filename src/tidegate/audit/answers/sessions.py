"""ANSWER: the informed adversary through the front door: sessions, charges and the ledger, until he is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate.answer import Query
from tidegate.audit.answers.ask import Door, FrontDoor, Remembered, numbers
from tidegate.audit.answers.likelihood import law_of, posterior_odds
from tidegate.audit.answers.situations import Situation
from tidegate.audit.bounds import epsilon_lower_bound
from tidegate.audit.clock import Clock
from tidegate.audit.fake_data import ceiling_of, table_of
from tidegate.audit.finding import Finding, Verdict, judged
from tidegate.errors import TidegateError
from tidegate.policy.predicates import Opposite
from tidegate.session import Session

KNOWS = "the policy, the method, every unit but one, and how likely each value is"
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
            "a made-up data set is counted otherwise than by hand.", "This is a defect; please report it."
        )
    return table


def _says(shown: Shown, bound: str, promised: str, enough: bool) -> str:
    gave = f"{shown.over} of them gave more than the policy allows" if shown.over else "two answers each, then refusals"
    held = f"Their ledger does not hold: {shown.problems[0]}" if shown.problems else "Their ledger holds."
    proves = f"He proves {bound} of {promised}." if enough else "There was time for too few to prove more than that."
    many = f"{2 * len(shown.true):,} made-up data sets were asked for half of what may be spent, four times over"
    return f"{many}: {gave}. {held} {proves}"
