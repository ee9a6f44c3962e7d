"""ANSWER: the loss that answers alone prove, without any knowledge of the mechanism.

Takes two data sets that differ in one unit as far as the policy's universes allow, draws many answers about each, and
chooses the event that distinguishes them best on one half of the draws. The other half bounds it. The proven loss must not
exceed the price. Where only an average loss is charged, the event must not name the right data set more often than that allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.accounting import FREE, Price
from tidegate.answer import Query
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.run import plan_request
from tidegate.answer.spending import RequestedLoss
from tidegate.arrays import Floats
from tidegate.audit.answers.ask import (
    CachedTable,
    Door,
    FrontDoor,
    Run,
    draw_answers,
    draw_workload,
    event_of,
    is_whole,
    numbers,
    run_mechanism,
)
from tidegate.audit.answers.situations import MOST_CELLS, UNITS
from tidegate.audit.bounds import (
    best_distinction,
    best_event,
    largest_distinction,
    strongest_bound,
    strongest_distinction,
)
from tidegate.audit.fake_data import (
    Codes,
    build_table,
    category_columns,
    copy_policy,
    numeric_columns,
    query_value,
    summed_columns,
    whole_budget,
)
from tidegate.audit.finding import Clock, Finding, Unit, judge
from tidegate.exact import say
from tidegate.noise import Bits, SeededBits
from tidegate.policy import Policy
from tidegate.policy.predicates import col
from tidegate.session import Session

FIRST, MOST = 2_000, 200_000  # answers about each of the two: in the first step, and in total
MOST_COLUMNS = 8  # numbers of an answer that are examined one by one
RANGES, MOST_COUNTED = 32, 100  # of counts that are answered together: ranges of one column, and cells of a column
SLOW = ("quantile", "min", "max", "regression")  # drawn one at a time
FEW = 10  # minimum through the front door
EPSILON = Fraction(1)  # the loss of one answer if the policy allows it: larger losses are harder to prove
Z = EPSILON**2 / 8  # and on average
NAMES = ("nearness to one side", *(f"number {n}" for n in range(1, MOST_COLUMNS + 1)))
KNOWS = "everything except the noise; they choose both data sets and see only the answers"


@dataclass(frozen=True)
class Pair:
    """A query and two neighboring data sets: the codes of the unit that differs, here and there."""

    query: Query
    here: Codes
    there: Codes
    known: tuple[int, int] = (3, 2)  # units that are equal in both: at the lower end of the column, at the upper end
    together: tuple[Query, ...] = ()  # counts that are answered with it, from one measurement


def attack_losses(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = run_mechanism, door: Door = Session
) -> list[Finding]:
    """Attack every mechanism that a policy's columns allow, and send some queries through the front door."""
    if not numeric_columns(policy) + category_columns(policy):
        return []
    copied = copy_policy(policy, units=UNITS)
    cases = pairs(copied)
    if not cases or not whole_budget(copied).amount:
        return []
    clock, loss = Clock(seconds), loss_of_one(copied)
    workloads = [pair for pair in workload_pairs(copied) if has_strategy(pair, copied, loss=loss)]
    bits, each = SeededBits(f"{seed}/black box"), alpha / (len(cases) + len(workloads) + 1)
    weights = [3 if pair.query.statistic in SLOW else 1 for pair in cases]
    weights += [2] * len(workloads)
    weights.append(sum(weights) // 2 + 1)  # the front door
    findings, tables = [], Tables(copied)
    for index, pair in enumerate(cases):
        part = clock.part(weights[index] / sum(weights[index:]))
        findings.append(measure_loss(tables, pair, loss=loss, alpha=each, clock=part, bits=bits, run=run))
    for index, pair in enumerate(workloads, len(cases)):
        part = clock.part(weights[index] / sum(weights[index:]))
        findings.append(measure_workload(tables, pair, loss=loss, alpha=each, clock=part, bits=bits))
    findings.append(measure_in_sessions(tables, cases[0], loss=loss, alpha=each, clock=clock, door=door))
    return [*findings, low_bits(tables, cases, loss=loss, bits=bits, run=run)]


def loss_of_one(policy: Policy) -> RequestedLoss:
    """Return the loss of one answer."""
    whole = whole_budget(policy)
    return RequestedLoss(min(whole.amount, Z if whole.unit == "z" else EPSILON), whole.unit)


def pairs(policy: Policy) -> list[Pair]:
    """Return queries of every mechanism, each with the neighbors that it distinguishes best."""
    numbers, categories, summed = numeric_columns(policy), category_columns(policy), summed_columns(policy)
    cases = []
    for column in (numbers + categories)[:1]:
        last = policy.attribute(column).size - 1
        there = ask.count().where(col(column) == query_value(policy.attribute(column), last))
        cases.append(Pair(there, {column: last}, {column: 0}))
    for column in summed[:1]:
        last = policy.attribute(column).size - 1
        cases.append(Pair(ask.sum(column), {column: last}, {column: 0}))
        if whole_budget(policy).unit == "z":  # a reference that depends on the row shows between an end and the middle
            cases.append(Pair(ask.sum(column), {column: last}, {column: last // 2}))
    if numbers:
        last = policy.attribute(numbers[0]).size - 1
        cases.append(Pair(ask.mean(numbers[0]), {numbers[0]: last}, {numbers[0]: 0}))
        middle = {numbers[0]: last // 2}  # in the middle neither a value nor its square contributes
        cases += [Pair(statistic(numbers[0]), {numbers[0]: last}, middle) for statistic in (ask.variance, ask.std)]
        cases += _rank_pairs(policy, min(numbers, key=lambda name: policy.attribute(name).size))
    for column in [name for name in numbers + categories if policy.attribute(name).cells <= MOST_CELLS][:1]:
        cases.append(Pair(ask.histogram(column), {column: policy.attribute(column).size - 1}, {column: 0}))
    return cases + _group_pairs(policy, numbers, categories) + _regression_pairs(policy, summed)


def _rank_pairs(policy: Policy, column: str) -> list[Pair]:
    """Return rank queries of the column with the fewest values.

    Minimum and maximum are requested as ranks from an end: one unit more or less decides whether that rank is at the end.
    """
    lowest, highest, last = ask.min(column), ask.max(column), policy.attribute(column).size - 1
    if last >= MOST_CELLS:
        return []
    ranks: Any = mechanism_for(highest)
    event = event_of(highest, policy, loss=loss_of_one(policy))
    rank = -(-ranks.aim(highest, policy, event) // policy.dataset.unit.rows_per_person)
    inside = min(rank, MOST_CELLS) - 1
    return [
        Pair(ask.median(column), {column: last}, {column: 0}),
        Pair(lowest, {column: 0}, {column: last}, (inside, 1)),
        Pair(highest, {column: last}, {column: 0}, (1, inside)),
    ]


def _group_pairs(policy: Policy, numbers: list[str], categories: list[str]) -> list[Pair]:
    """Return queries about a unit that leaves one group and enters another."""
    groups = [name for name in categories if policy.attribute(name).size <= MOST_CELLS][:1]
    cases = []
    for group in groups:
        last = policy.attribute(group).size - 1
        value = query_value(policy.attribute(group), last)
        cases.append(Pair(ask.count().by(group), {group: last}, {group: 0}))
        for number in numbers[:1]:
            top = {number: policy.attribute(number).size - 1}
            cases.append(Pair(ask.mean(number).by(group), {**top, group: last}, {**top, group: 0}))
        for number in summed_columns(policy)[:1]:
            top = {number: policy.attribute(number).size - 1}
            cases.append(Pair(ask.sum(number).where(col(group) == value), {**top, group: last}, {**top, group: 0}))
    return cases


def _regression_pairs(policy: Policy, numbers: list[str]) -> list[Pair]:
    added = numbers[:2]
    if len(added) < 2:
        return []
    last = {name: policy.attribute(name).size - 1 for name in added}
    formula = f"{added[0]} ~ {added[1]}"
    queries = (ask.regression(formula), ask.regression(formula, method="functional"))
    return [Pair(query, last, dict.fromkeys(last, 0)) for query in queries]


def workload_pairs(policy: Policy) -> list[Pair]:
    """Return counts that are asked together: ranges of a numeric column, and tables of two columns with few cells."""
    numbers, categories = numeric_columns(policy), category_columns(policy)
    few = [name for name in numbers + categories if policy.attribute(name).cells <= MOST_COUNTED]
    cases = []
    for column in [name for name in few if name in numbers][:1]:
        attribute, last = policy.attribute(column), policy.attribute(column).size - 1
        ends = dict.fromkeys(np.linspace(0, last, RANGES).astype(int).tolist())
        ranges = [ask.count().where(col(column) <= query_value(attribute, end)) for end in ends]
        cases.append(Pair(ranges[0], {column: last}, {column: 0}, together=tuple(ranges[1:])))
    for first, second in [sorted(few, key=lambda name: policy.attribute(name).cells)[:2]] if len(few) > 1 else []:
        ends_of_both = {name: policy.attribute(name).size - 1 for name in (first, second)}
        tables = (ask.count().by(second), ask.count().by(first, second))
        cases.append(Pair(ask.count().by(first), ends_of_both, dict.fromkeys(ends_of_both, 0), together=tables))
    return cases


def has_strategy(pair: Pair, policy: Policy, *, loss: RequestedLoss) -> bool:
    """Return whether counts are answered from one measurement; otherwise each has noise of its own, like any answer."""
    return plan_request((pair.query, *pair.together), policy, loss=loss, planning="auto").strategy is not None


class Tables:
    """The simulated data sets of all pairs on the engine, each opened and counted once."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self._opened = policy, dict[str, CachedTable]()

    def of(self, pair: Pair) -> tuple[CachedTable, CachedTable]:
        """Return the two neighbors."""
        return self._table(_units(self.policy, pair, pair.here)), self._table(_units(self.policy, pair, pair.there))

    def _table(self, units: tuple[Codes, ...]) -> CachedTable:
        if repr(units) not in self._opened:
            self._opened[repr(units)] = CachedTable(build_table(self.policy, units))
        return self._opened[repr(units)]


def measure_loss(
    tables: Tables,
    pair: Pair,
    *,
    loss: RequestedLoss,
    alpha: float,
    clock: Clock,
    bits: Bits,
    run: Run = run_mechanism,
    most: int = MOST,
) -> Finding:
    """Measure the loss that answers prove, with as many answers as time allows."""
    event = event_of(pair.query, tables.policy, loss=loss)
    drawn: tuple[list[Floats], list[Floats]] = ([], [])
    times, step = 0, FIRST // 20 if pair.query.statistic in SLOW else FIRST
    for table in tables.of(pair):
        draw_answers(pair.query, table, event, times=1, bits=bits, run=run)  # the engine counts once; that is not timed
    while times < most:
        pace, step = Clock(0), min(step, most - times)
        for side, table in zip(drawn, tables.of(pair), strict=True):
            side.append(draw_answers(pair.query, table, event, times=step, bits=bits, run=run))
        times, step = times + step, 2 * step
        if 2 * pace.spent > clock.remaining:
            break
    here, there = (np.concatenate(side) for side in drawn)
    how = f"{2 * times:,} answers, without the ledger"
    return _finding(pair.query.says(), how, here, there, event.price, loss, alpha=alpha, clock=clock)


def measure_workload(
    tables: Tables,
    pair: Pair,
    *,
    loss: RequestedLoss,
    alpha: float,
    clock: Clock,
    bits: Bits,
    draw: Callable[..., Floats] = draw_workload,
    most: int = MOST,
) -> Finding:
    """Measure the loss that counts prove which are answered together (plan="auto"): all of them for one charge."""
    planned = plan_request((pair.query, *pair.together), tables.policy, loss=loss, planning="auto")
    strategy: Any = planned.strategy
    drawn: tuple[list[Floats], list[Floats]] = ([], [])
    times, step = 0, FIRST
    while times < most:
        pace, step = Clock(0), min(step, most - times)
        for side, table in zip(drawn, tables.of(pair), strict=True):
            side.append(draw(strategy, table, times=step, bits=bits))
        times, step = times + step, 2 * step
        if 2 * pace.spent > clock.remaining:
            break
    here, there = (np.concatenate(side) for side in drawn)
    name = f"{len(planned.queries)} queries together ({strategy.name}), first {pair.query.says()}"
    how = f"{2 * times:,} measurements, without the ledger"
    return _finding(name, how, here, there, planned.event.price, loss, alpha=alpha, clock=clock)


def measure_in_sessions(
    tables: Tables,
    pair: Pair,
    *,
    loss: RequestedLoss,
    alpha: float,
    clock: Clock,
    door: Door = Session,
    most: int = MOST,
) -> Finding:
    """Measure the same through sessions: the proven loss must not exceed what the ledger was charged."""
    drawn: tuple[list[Any], list[Any]] = ([], [])
    cost = FREE
    with TemporaryDirectory() as folder:
        front = FrontDoor(tables.policy, Path(folder), door=door)
        try:
            while len(drawn[1]) < most and (not clock.over or len(drawn[1]) < FEW):
                for side, table in zip(drawn, tables.of(pair), strict=True):
                    (answer,) = front.ask(table, [pair.query], loss=loss)
                    side.append(numbers(answer.stored)[0])
                    cost = answer.charge.price
            problems = front.problems()
        finally:
            front.close()
    here, there = np.array(drawn[0]), np.array(drawn[1])
    how = f"{2 * len(drawn[0]):,} answers through sessions and a ledger that {'does not hold' if problems else 'holds'}"
    name = f"{pair.query.says()}, through the front door"
    return _finding(name, how, here, there, cost, loss, alpha=alpha, clock=clock, broken=bool(problems))


def low_bits(
    tables: Tables, cases: Sequence[Pair], *, loss: RequestedLoss, bits: Bits, run: Run = run_mechanism
) -> Finding:
    """Check that only integers are released. Exact: one number that is not an integer breaks it."""
    clock, wrong = Clock(0), []
    for pair in cases:
        table, _ = tables.of(pair)
        event = event_of(pair.query, tables.policy, loss=loss)
        if not is_whole(run(mechanism_for(pair.query), pair.query, table, event, bits)):
            wrong.append(pair.query.says())
    return Finding(
        "answer",
        "noise consists of whole numbers: no floating-point bits reveal anything",
        "low bits",
        KNOWS,
        f"{wrong[0]} was released with a number that is not whole."
        if wrong
        else f"All {len(cases)} answers are whole numbers.",
        "broken" if wrong else "held",
        tries=len(cases),
        seconds=clock.spent,
    )


def distinguishing_columns(here: Floats, there: Floats) -> tuple[Floats, Floats]:
    """Return the columns that differ, and a joint one: how much closer a draw is to one side's median than to the other's.

    Medians and columns are taken from the first half of the draws, which also chooses the event, so the second half is
    independent of them.
    """
    middles = [np.median(side[: len(side) // 2], axis=0) for side in (here, there)]
    apart = np.abs(middles[0] - middles[1])
    moved = np.flatnonzero(apart > 0)
    columns = (
        moved[np.argsort(-apart[moved])][:MOST_COLUMNS] if moved.size else np.arange(min(here.shape[1], MOST_COLUMNS))
    )
    weight = 1 / np.where(apart > 0, apart, np.inf)
    nearer = [(np.abs(side - middles[1]) - np.abs(side - middles[0])) @ weight for side in (here, there)]
    both = [np.column_stack([joint, side[:, columns]]) for joint, side in zip(nearer, (here, there), strict=True)]
    return both[0], both[1]


def _units(policy: Policy, pair: Pair, unit: Codes) -> tuple[Codes, ...]:
    """Return units at both ends of the column, and the one that differs."""
    column = pair.query.column or next(iter(pair.here))
    last = policy.attribute(column).size - 1
    low, high = pair.known
    return (*({column: code} for code in (*[0] * low, *[last] * high)), unit)


def _finding(
    name: str,
    how: str,
    here: Floats,
    there: Floats,
    price: Price,
    loss: RequestedLoss,
    *,
    alpha: float,
    clock: Clock,
    broken: bool = False,
) -> Finding:
    """Compare what the draws prove with what they cost: a loss, or on average how often a data set is named."""
    columns = distinguishing_columns(here, there)
    unit: Unit = "epsilon"
    if loss.unit == "z":
        unit, promised = "probability", largest_distinction(price.z, price.zcdp)
        bound, by = best_distinction(*columns, alpha=alpha, names=NAMES)
        strongest = strongest_distinction(len(here), len(there), alpha=alpha)
        promise = f"{name} costs Z of at most {say(float(price.z), 3)}: it names one of two data sets with at most {promised:.3g}"
        proven = f"name the right data set with probability {bound:.3g} of the {promised:.3g} that they cost"
    else:
        promised = float(price.pure or 0)
        bound, by = best_event(*columns, alpha=alpha, names=NAMES)
        strongest = strongest_bound(len(here), len(there), alpha=alpha)
        promise = f"{name} costs a loss of at most {say(promised, 3)}"
        proven = f"prove epsilon {bound:.3g} of the {promised:.3g} that they cost"
    says = f"{how}, {proven}" + (f" (by {by})" if by != "no event" and bound else "")
    verdict = "broken" if broken else judge(bound, promised)
    if verdict == "held" and strongest <= promised:
        verdict, says = "not tried", f"Too few answers in the available time to refute anything: {says}"
    figures: dict[str, Any] = {"alpha": alpha, "tries": len(here) + len(there), "seconds": clock.spent}
    return Finding(
        "answer", promise, f"black box: {name}", KNOWS, f"{says}.", verdict, unit, bound, promised, **figures
    )
