"""ANSWER: whether the time of an answer depends on a private value. Not covered by a promise; reported for information."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.audit.answers.ask import Door, FrontDoor
from tidegate.audit.answers.situations import Situation, situations
from tidegate.audit.fake_data import build_table, whole_budget
from tidegate.audit.finding import Clock, Finding
from tidegate.extras import extra
from tidegate.policy import Policy
from tidegate.session import Session

with extra("audit", "The audit"):
    from scipy.special import ndtr  # type: ignore[import-untyped]

FEW, MOST = 8, 400


def attack_timing(policy: Policy, *, alpha: float, seconds: float, seed: int, door: Door = Session) -> list[Finding]:
    """Time answers about two neighboring data sets in turn, from the query to the stored answer."""
    candidates, clock = situations(policy), Clock(seconds)
    if not candidates:
        return []
    durations = time_answers(candidates[0], clock=clock, seed=seed, door=door)
    sides = np.array(durations[0]), np.array(durations[1])
    area, chance = mann_whitney(*sides)
    medians = [1000 * float(np.median(side)) for side in sides]
    says = (
        f"{sides[0].size} answers about each of two neighbors took {medians[0]:.1f} and {medians[1]:.1f} ms (medians); one of "
        f"the first took longer than one of the second in {area:.2f} of all pairs"
        + (f", which is unlikely by chance alone (p = {chance:.1g})." if chance < alpha else f" (p = {chance:.2g}).")
    )
    return [
        Finding(
            "answer",
            "none: the time that an answer takes is not covered",
            "timing",
            "when they asked and when they were answered, on an idle machine",
            says,
            "observed",
            "area",
            area,
            alpha=alpha,
            tries=sum(side.size for side in sides),
            seconds=clock.spent,
        )
    ]


def mann_whitney(here: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of all pairs in which the first is larger (ties count half), and its two-sided p-value.

    Reference:
        Mann & Whitney 1947; the p-value by their normal approximation.
    """
    ordered = np.sort(there)
    below, upto = np.searchsorted(ordered, here, side="left"), np.searchsorted(ordered, here, side="right")
    area = float((below + upto).mean() / (2 * there.size))
    spread = np.sqrt((here.size + there.size + 1) / (12 * here.size * there.size))
    return area, float(2 * ndtr(-abs(area - 0.5) / spread))


def time_answers(
    situation: Situation, *, clock: Clock, seed: int, door: Door = Session
) -> tuple[list[float], list[float]]:
    """Return the seconds that answers took, here and there, in a random order."""
    random, durations = np.random.default_rng([seed, 9]), ([], [])  # type: tuple[np.random.Generator, tuple[list[float], list[float]]]
    other = int(np.argmax(situation.others))
    tables = [build_table(situation.policy, situation.world(index).units) for index in (situation.special, other)]
    query, loss = situation.questions()[0], whole_budget(situation.policy)
    options: dict[str, Any] = {loss.unit: loss.amount}
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            for table in tables:
                front.ask(table, [query], loss=loss)  # the first query of a process includes late imports
            while len(durations[0]) < MOST and (not clock.over or len(durations[0]) < FEW):
                for side in random.permutation(2):
                    session = front.open(tables[side])
                    session.account  # noqa: B018  (opening it is not part of the answer)
                    start = perf_counter()
                    session.answer(query, anyway=True, **options)
                    durations[side].append(perf_counter() - start)
        finally:
            front.close()
    return durations
