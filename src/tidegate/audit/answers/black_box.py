"""ANSWER: the loss that answers prove by themselves, without any knowledge of how they are made.

Two data sets that differ in one unit, as far as the policy's universes allow; many answers about each; the event that tells
them apart best, chosen on one half of the draws and bounded on the other. What it proves must not exceed the price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.answer import Query
from tidegate.answer.mechanisms import mechanism_for
from tidegate.arrays import Floats
from tidegate.audit.answers.ask import Door, FrontDoor, Remembered, Run, draws, event_of, honest, numbers, whole
from tidegate.audit.answers.situations import MOST_CELLS, UNITS
from tidegate.audit.bounds import best_event, clearest
from tidegate.audit.fake_data import Codes, asked_value, categories_of, ceiling_of, copy_of, numbers_of, table_of
from tidegate.audit.finding import Clock, Finding, judged
from tidegate.exact import say
from tidegate.noise import Bits, SeededBits
from tidegate.policy import Policy
from tidegate.policy.predicates import col
from tidegate.session import Session

FIRST, MOST = 2_000, 200_000  # answers about each of the two: at first, and in all
MOST_COLUMNS = 8  # numbers of an answer that are looked at one by one
SLOW = ("quantile", "min", "max", "regression")  # drawn one at a time
FEW = 10  # through the front door, at least
ASKED = Fraction(1)  # the loss of one answer, where the policy allows as much: larger ones are harder to prove
NAMES = ("nearness to one side", *(f"number {n}" for n in range(1, MOST_COLUMNS + 1)))
KNOWS = "everything except the noise; they choose both data sets and see only the answers"


@dataclass(frozen=True)
class Pair:
    """A question and two neighbouring data sets that it is asked about: what the one unit has here and there."""

    query: Query
    here: Codes
    there: Codes
    known: tuple[int, int] = (3, 2)  # units that are the same in both: at the lower end of the column, at the upper


def attack_losses(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = honest, door: Door = Session
) -> list[Finding]:
    """Every mechanism that a policy's columns allow, and a few questions through the front door."""
    if not numbers_of(policy) + categories_of(policy):
        return []
    copied = copy_of(policy, units=UNITS)
    ceiling, asked = ceiling_of(copied), pairs(copied)
    if not asked or not ceiling:
        return []
    clock, epsilon = Clock(seconds), min(ASKED, ceiling.value)
    bits, each = SeededBits(f"{seed}/black box"), alpha / (len(asked) + 1)
    weights = [3 if pair.query.statistic in SLOW else 1 for pair in asked]
    weights.append(sum(weights) // 2 + 1)  # the front door
    found, tables = [], Tables(copied)
    for place, pair in enumerate(asked):
        part = clock.part(weights[place] / sum(weights[place:]))
        found.append(measured(tables, pair, epsilon=epsilon, alpha=each, clock=part, bits=bits, run=run))
    found.append(through_the_door(tables, asked[0], epsilon=epsilon, alpha=each, clock=clock, door=door))
    return [*found, low_bits(tables, asked, epsilon=epsilon, bits=bits, run=run)]


def pairs(policy: Policy) -> list[Pair]:
    """Questions of every mechanism, with the neighbours that they tell apart best."""
    numbers, categories = numbers_of(policy), categories_of(policy)
    found = []
    for column in (numbers + categories)[:1]:
        last = policy.attribute(column).size - 1
        there = ask.count().where(col(column) == asked_value(policy.attribute(column), last))
        found.append(Pair(there, {column: last}, {column: 0}))
    if numbers:
        last = policy.attribute(numbers[0]).size - 1
        found += [Pair(one(numbers[0]), {numbers[0]: last}, {numbers[0]: 0}) for one in (ask.sum, ask.mean)]
        middle = {numbers[0]: last // 2}  # in the middle neither a value nor its square adds anything
        found += [Pair(one(numbers[0]), {numbers[0]: last}, middle) for one in (ask.variance, ask.std)]
        found += _ranked(policy, min(numbers, key=lambda name: policy.attribute(name).size))
    for column in [name for name in numbers + categories if policy.attribute(name).cells <= MOST_CELLS][:1]:
        found.append(Pair(ask.histogram(column), {column: policy.attribute(column).size - 1}, {column: 0}))
    return found + _moving(policy, numbers, categories) + _regressed(policy, numbers)


def _ranked(policy: Policy, column: str) -> list[Pair]:
    """Ranks, of the column with the fewest values. The lowest and the highest are asked for as ranks from an end: one unit
    more or less decides whether that rank is at the end."""
    lowest, highest, last = ask.min(column), ask.max(column), policy.attribute(column).size - 1
    if last >= MOST_CELLS:
        return []
    ranks: Any = mechanism_for(highest)
    event = ranks.event(highest, policy, epsilon=min(ASKED, ceiling_of(policy).value))
    rank = -(-ranks.aim(highest, policy, event) // policy.dataset.unit.rows_per_person)
    inside = min(rank, MOST_CELLS) - 1
    return [
        Pair(ask.median(column), {column: last}, {column: 0}),
        Pair(lowest, {column: 0}, {column: last}, (inside, 1)),
        Pair(highest, {column: last}, {column: 0}, (1, inside)),
    ]


def _moving(policy: Policy, numbers: list[str], categories: list[str]) -> list[Pair]:
    """A unit that leaves one group and enters another."""
    groups = [name for name in categories if policy.attribute(name).size <= MOST_CELLS][:1]
    found = []
    for group in groups:
        last = policy.attribute(group).size - 1
        found.append(Pair(ask.count().by(group), {group: last}, {group: 0}))
        for number in numbers[:1]:
            top = {number: policy.attribute(number).size - 1}
            value = asked_value(policy.attribute(group), last)
            found.append(Pair(ask.mean(number).by(group), {**top, group: last}, {**top, group: 0}))
            found.append(Pair(ask.sum(number).where(col(group) == value), {**top, group: last}, {**top, group: 0}))
    return found


def _regressed(policy: Policy, numbers: list[str]) -> list[Pair]:
    if len(numbers) < 2:
        return []
    last = {name: policy.attribute(name).size - 1 for name in numbers[:2]}
    formula = f"{numbers[0]} ~ {numbers[1]}"
    asked = (ask.regression(formula), ask.regression(formula, method="functional"))
    return [Pair(query, last, dict.fromkeys(last, 0)) for query in asked]


class Tables:
    """The made-up data sets of all pairs on the engine, each opened and counted once."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self._opened = policy, dict[str, Remembered]()

    def of(self, pair: Pair) -> tuple[Remembered, Remembered]:
        """The two neighbours."""
        return self._one(_units(self.policy, pair, pair.here)), self._one(_units(self.policy, pair, pair.there))

    def _one(self, units: tuple[Codes, ...]) -> Remembered:
        if repr(units) not in self._opened:
            self._opened[repr(units)] = Remembered(table_of(self.policy, units))
        return self._opened[repr(units)]


def measured(
    tables: Tables,
    pair: Pair,
    *,
    epsilon: Fraction,
    alpha: float,
    clock: Clock,
    bits: Bits,
    run: Run = honest,
    most: int = MOST,
) -> Finding:
    """The loss that as many answers prove as there is time for."""
    event = event_of(pair.query, tables.policy, epsilon=epsilon)
    drawn: tuple[list[Floats], list[Floats]] = ([], [])
    times, step = 0, FIRST // 20 if pair.query.statistic in SLOW else FIRST
    for table in tables.of(pair):
        draws(pair.query, table, event, times=1, bits=bits, run=run)  # the engine counts once; that is not to be timed
    while times < most:
        pace, step = Clock(0), min(step, most - times)
        for side, table in zip(drawn, tables.of(pair), strict=True):
            side.append(draws(pair.query, table, event, times=step, bits=bits, run=run))
        times, step = times + step, 2 * step
        if 2 * pace.spent > clock.left:
            break
    here, there = (np.concatenate(side) for side in drawn)
    bound, by = best_event(*telling(here, there), alpha=alpha, names=NAMES)
    named: dict[str, Any] = {"bound": bound, "promised": float(event.price), "alpha": alpha, "tries": 2 * times}
    return _finding(pair.query.says(), f"{2 * times:,} answers, without the ledger", by, clock, **named)


def through_the_door(
    tables: Tables,
    pair: Pair,
    *,
    epsilon: Fraction,
    alpha: float,
    clock: Clock,
    door: Door = Session,
    most: int = MOST,
) -> Finding:
    """The same through sessions and the ledger: what is proven must not exceed what the ledger was charged."""
    drawn: tuple[list[Any], list[Any]] = ([], [])
    cost = 0.0
    with TemporaryDirectory() as folder:
        front = FrontDoor(tables.policy, Path(folder), door=door)
        try:
            while len(drawn[1]) < most and (not clock.over or len(drawn[1]) < FEW):
                for side, table in zip(drawn, tables.of(pair), strict=True):
                    (answer,) = front.ask(table, [pair.query], epsilon=epsilon)
                    side.append(numbers(answer.stored)[0])
                    cost = float(answer.cost)
            problems = front.problems()
        finally:
            front.close()
    bound, by = best_event(*telling(np.array(drawn[0]), np.array(drawn[1])), alpha=alpha, names=NAMES)
    named: dict[str, Any] = {"bound": bound, "promised": cost, "alpha": alpha, "tries": 2 * len(drawn[0])}
    how = f"{2 * len(drawn[0]):,} answers through sessions and a ledger that {'does not hold' if problems else 'holds'}"
    asked_so = f"{pair.query.says()}, through the front door"
    return _finding(asked_so, how, by, clock, broken=bool(problems), **named)


def low_bits(tables: Tables, asked: Sequence[Pair], *, epsilon: Fraction, bits: Bits, run: Run = honest) -> Finding:
    """Whether anything but whole numbers leaves. Exact: one number that is not whole breaks it."""
    clock, wrong = Clock(0), []
    for pair in asked:
        table, _ = tables.of(pair)
        event = event_of(pair.query, tables.policy, epsilon=epsilon)
        if not whole(run(mechanism_for(pair.query), pair.query, table, event, bits)):
            wrong.append(pair.query.says())
    return Finding(
        "answer",
        "noise consists of whole numbers: no floating-point bits reveal anything",
        "low bits",
        KNOWS,
        f"{wrong[0]} was released with a number that is not whole."
        if wrong
        else f"All {len(asked)} answers are whole numbers.",
        "broken" if wrong else "held",
        tries=len(asked),
        seconds=clock.spent,
    )


def telling(here: Floats, there: Floats) -> tuple[Floats, Floats]:
    """The columns that differ, and one that puts them together: how much nearer to one side's middle than to the other's.

    The middles and the columns are taken from the first half of the draws, which also chooses the event; so the second
    half knows nothing of them.
    """
    middles = [np.median(side[: len(side) // 2], axis=0) for side in (here, there)]
    apart = np.abs(middles[0] - middles[1])
    moved = np.flatnonzero(apart > 0)
    kept = (
        moved[np.argsort(-apart[moved])][:MOST_COLUMNS] if moved.size else np.arange(min(here.shape[1], MOST_COLUMNS))
    )
    weight = 1 / np.where(apart > 0, apart, np.inf)
    nearer = [(np.abs(side - middles[1]) - np.abs(side - middles[0])) @ weight for side in (here, there)]
    both = [np.column_stack([joint, side[:, kept]]) for joint, side in zip(nearer, (here, there), strict=True)]
    return both[0], both[1]


def _units(policy: Policy, pair: Pair, unit: Codes) -> tuple[Codes, ...]:
    """Units at both ends of the column, and the one that differs."""
    column = pair.query.column or next(iter(pair.here))
    last = policy.attribute(column).size - 1
    low, high = pair.known
    return (*({column: code} for code in (*[0] * low, *[last] * high)), unit)


def _finding(asked: str, how: str, by: str, clock: Clock, *, broken: bool = False, **named: Any) -> Finding:
    price = named["promised"]
    told = f"{how}, prove epsilon {named['bound']:.3g} of the {price:.3g} that they cost" + (
        f" (by {by})" if named["bound"] else ""
    )
    verdict = "broken" if broken else judged(named["bound"], price)
    if verdict == "held" and clearest(named["tries"] // 2, named["tries"] // 2, alpha=named["alpha"]) <= price:
        verdict, told = "not tried", f"Too few answers in the available time to refute anything: {told}"
    promise = f"{asked} costs a loss of at most {say(price, 3)}"
    return Finding("answer", promise, f"black box: {asked}", KNOWS, f"{told}.", verdict, seconds=clock.spent, **named)
