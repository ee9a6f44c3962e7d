"""ANSWER: does the time that an answer takes depend on a private value? Nothing is promised; it is told."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from tidegate.audit.answers.ask import Door, FrontDoor
from tidegate.audit.answers.situations import Situation, situations
from tidegate.audit.fake_data import ceiling_of, table_of
from tidegate.audit.finding import Clock, Finding
from tidegate.extras import extra
from tidegate.policy import Policy
from tidegate.session import Session

with extra("audit", "The audit"):
    from scipy.special import ndtr  # type: ignore[import-untyped]

FEW, MOST = 8, 400


def attack_timing(policy: Policy, *, alpha: float, seconds: float, seed: int, door: Door = Session) -> list[Finding]:
    """Answers about two neighbouring data sets, timed in turn from the question to the stored answer."""
    found, clock = situations(policy), Clock(seconds)
    if not found:
        return []
    taken = timed(found[0], clock=clock, seed=seed, door=door)
    sides = np.array(taken[0]), np.array(taken[1])
    area, chance = told_apart(*sides)
    middle = [1000 * float(np.median(side)) for side in sides]
    says = (
        f"{sides[0].size} answers about each of two neighbors took {middle[0]:.1f} and {middle[1]:.1f} ms (medians); one of "
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


def told_apart(here: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, float]:
    """In which share of all pairs the first is larger (ties count half), and how often chance would be as far from a half.

    Reference:
        Mann & Whitney 1947; the chance by their normal approximation.
    """
    ordered = np.sort(there)
    below, upto = np.searchsorted(ordered, here, side="left"), np.searchsorted(ordered, here, side="right")
    area = float((below + upto).mean() / (2 * there.size))
    spread = np.sqrt((here.size + there.size + 1) / (12 * here.size * there.size))
    return area, float(2 * ndtr(-abs(area - 0.5) / spread))


def timed(situation: Situation, *, clock: Clock, seed: int, door: Door = Session) -> tuple[list[float], list[float]]:
    """Seconds that answers took, here and there, in a random order."""
    random, taken = np.random.default_rng([seed, 9]), ([], [])  # type: tuple[np.random.Generator, tuple[list[float], list[float]]]
    other = int(np.argmax(situation.others))
    tables = [table_of(situation.policy, situation.world(place).units) for place in (situation.special, other)]
    query, epsilon = situation.questions()[0], ceiling_of(situation.policy).value
    with TemporaryDirectory() as folder:
        front = FrontDoor(situation.policy, Path(folder), door=door)
        try:
            for table in tables:
                front.ask(table, [query], epsilon=epsilon)  # the first of a process pays for what is loaded late
            while len(taken[0]) < MOST and (not clock.over or len(taken[0]) < FEW):
                for side in random.permutation(2):
                    session = front.open(tables[side])
                    session.account  # noqa: B018  (opening it is not part of the answer)
                    start = perf_counter()
                    session.answer(query, epsilon=epsilon)
                    taken[side].append(perf_counter() - start)
        finally:
            front.close()
    return taken
