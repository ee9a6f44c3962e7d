"""How much smaller are the errors of a poll with six questions, if each person is asked as many as the plan says?

    python -m benchmarks poll_plan --full

2,000 simulated employees answer two numbers (their mean), three categories and one choice of at most two of five dishes, with a total
epsilon of 2. Compared: every question to everybody with a sixth of epsilon, and the plan of `plan_poll`. Both use the operator with
the least error at their epsilon. Reports are drawn by the operators' exact client code; the error is the root mean square over runs and
options, in percentage points of a share or of the range of a number. Time is that of one simulated poll.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import SEED, peak_memory, time_task, write_record
from tidegate.collect.adviser import best_question
from tidegate.collect.question_sampling import UnitPlan, plan_poll
from tidegate.collect.reconstruct import shares
from tidegate.operators import ChoiceOperator, Hybrid, Operator, Pure
from tidegate.policy import Category, Integer
from tidegate.policy.attributes import Attribute, Items
from tidegate.policy.collection import Question, operator_for

QUESTION = "How large is the error of each question of a poll, asked by the plan and by splitting epsilon?"
EMPLOYEES, EPSILON = 2_000, Fraction(2)
DISHES = Items(("curry", "pasta", "sushi", "pizza", "tofu"))
SUBJECTS: dict[str, tuple[Attribute, dict[str, Any]]] = {
    "age": (Integer(18, 65), {"mean": True}),
    "hours": (Integer(0, 60), {"mean": True}),
    "satisfied": (Category(("not", "little", "partly", "mostly", "fully")), {}),
    "department": (Category(tuple(f"department {number}" for number in range(8))), {}),
    "commute": (Category(("walk", "bicycle", "bus", "car")), {}),
    "dishes": (DISHES, {"choose": 2}),
}
LIKELY = {
    "satisfied": (0.05, 0.15, 0.3, 0.35, 0.15),
    "department": (0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05),
    "commute": (0.1, 0.2, 0.3, 0.4),
    "dishes": (0.3, 0.25, 0.2, 0.15, 0.1),
}


class FastBytes:
    """Bytes of Python's generator: quick and reproducible, for simulations only."""

    def __init__(self, seed: object) -> None:
        self.take = random.Random(str(seed)).randbytes


def make_question(name: str, epsilon: Fraction) -> Question:
    """Return the question about a subject with the least error at an epsilon."""
    universe, options = SUBJECTS[name]
    return best_question(name, universe, epsilon=epsilon, **options)


def plan() -> UnitPlan:
    """Return the plan of the poll."""
    return plan_poll({name: partial(make_question, name) for name in SUBJECTS}, epsilon=EPSILON, clients=EMPLOYEES)


def simulate_employees(rng: np.random.Generator) -> dict[str, list[int]]:
    """Return the true codes of all employees, by question; that of a set has one bit for each option."""
    dishes = [rng.choice(5, size=rng.integers(0, 3), replace=False, p=LIKELY["dishes"]) for _ in range(EMPLOYEES)]
    codes = {
        "age": np.clip(rng.normal(24, 10, EMPLOYEES).astype(int), 0, 47).tolist(),
        "hours": np.clip(rng.normal(36, 8, EMPLOYEES).astype(int), 0, 60).tolist(),
        "dishes": [sum(1 << int(dish) for dish in chosen) for chosen in dishes],
    }
    for name in ("satisfied", "department", "commute"):
        codes[name] = rng.choice(len(LIKELY[name]), EMPLOYEES, p=LIKELY[name]).tolist()
    return codes


def true_result(name: str, codes: list[int]) -> np.ndarray:
    """Return the mean as a part of the range, or the share of every value or option."""
    universe = SUBJECTS[name][0]
    if isinstance(universe, Integer):
        return np.array([np.mean(codes) / (universe.size - 1)])
    if isinstance(universe, Items):
        return np.array([np.mean([code >> option & 1 for code in codes]) for option in range(5)])
    return np.bincount(codes, minlength=universe.size) / len(codes)


def estimate(operator: Operator, reports: list[Any]) -> np.ndarray:
    """Return the unbiased estimate of the same from reports."""
    if isinstance(operator, Hybrid):
        return np.array([operator.scores()[reports].mean() / (operator.values - 1)])
    counts = np.zeros(operator.report_size, np.int64)
    for report in reports:
        counts[report] += 1  # one code, or a list of codes
    if isinstance(operator, ChoiceOperator):
        supporting, reported = map(np.array, operator.seen(counts.tolist(), len(reports)))
        return np.asarray((supporting / reported - float(operator.q)) / float(operator.p - operator.q))
    assert isinstance(operator, Pure)
    return shares(operator.supports(counts), total=len(reports), support=operator.support()).raw


def simulate_poll(each: int, seed: object) -> dict[str, np.ndarray]:
    """Return the errors of one poll of every question, if each person is asked `each` of them."""
    rng, source = np.random.default_rng(list(str(seed).encode())), FastBytes(seed)
    employees, names = simulate_employees(rng), list(SUBJECTS)
    drawn = np.array([rng.permutation(len(names))[:each] for _ in range(EMPLOYEES)])
    errors = {}
    for index, name in enumerate(names):
        operator = operator_for(make_question(name, EPSILON / each))
        persons = np.flatnonzero((drawn == index).any(axis=1))
        reports = [operator.sample(employees[name][person], source) for person in persons]
        errors[name] = estimate(operator, reports) - true_result(name, employees[name])
    return errors


def errors_of(each: int, runs: int, seed: object = SEED) -> dict[str, float]:
    """Return the root mean square error of each question over some polls."""
    polls = [simulate_poll(each, f"{seed}/{each}/{run}") for run in range(runs)]
    return {name: float(np.sqrt(np.mean([np.mean(poll[name] ** 2) for poll in polls]))) for name in SUBJECTS}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    runs, best = 200 if full else 20, plan()
    planned, split = errors_of(best.each, runs), errors_of(len(SUBJECTS), runs)
    timing = [time_task(lambda: simulate_poll(best.each, SEED))[1] for _ in range(3)]
    yield write_record(
        "poll_plan",
        QUESTION,
        f"six questions, {EMPLOYEES:,} employees, epsilon {EPSILON}",
        size=runs,
        runs={"tidegate": timing},
        peak_mb=peak_memory(),
        each=best.each,
        planned=planned,
        split=split,
        expected=best.errors,
        expected_split=best.split,
        found=_summary(best, planned, split),
    )


def _summary(best: UnitPlan, planned: Mapping[str, float], split: Mapping[str, float]) -> str:
    parts = (f"{name} {100 * planned[name]:.1f} ({100 * split[name]:.1f})" for name in SUBJECTS)
    return f"asking {best.each} of {len(SUBJECTS)}, error in points (split): {', '.join(parts)}"
