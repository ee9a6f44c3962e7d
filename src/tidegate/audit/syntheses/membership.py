"""Attacks on synthetic tables: which of two neighbouring tables was it, who is in, what is his value.

The attacker knows the policy, the method, the seed and every row but the target's, and holds the synthetic table; in
some attacks also the diary of the run, which is what the ledger keeps and as public as the tables. leaks.py looks for
what leaves besides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.audit.bounds import best_event, epsilon_lower_bound, highest, lowest
from tidegate.audit.finding import Finding, judged
from tidegate.audit.leaks import look_for_leaks
from tidegate.audit.syntheses.neighbors import World, attackable, diaries, refused, synthesized, world
from tidegate.audit.syntheses.scores import TABLE_LOOKS, by_example, by_noise, guess, speaks_fully, table_looks
from tidegate.errors import TidegateError
from tidegate.policy import Policy
from tidegate.synthesize.diary import Step
from tidegate.synthesize.mechanisms import is_installed

EPSILON = Fraction(1)  # of each attacked table
MOST_TABLES, MOST_DIARIES = 4_000, 20_000
MOST_WORLDS = 8  # values among which the target's is guessed
OTHERS = ("smooth-histogram/1", "copula/1", "sequential/1", "bppd/1")
KNOWS = "the policy, the method, every row except one, and "


def attack_synthesis(
    policy: Policy,
    *,
    alpha: float,
    seconds: float,
    seed: int,
    epsilon: Fraction = EPSILON,
    model: Any = "auto",
    others: Sequence[Any] | None = None,
) -> list[Finding]:
    """All attacks on synthetic tables of a policy, on tables made from its public lists.

    alpha      the chance with which one finding accuses true code
    epsilon    the loss of each attacked table; `model` and `others` may be models of one's own (planted faults);
               without `others`, all that are installed
    """
    try:
        names = attackable(policy)
    except TidegateError as error:
        return [_not_tried("all of them", error.what)]
    if not names or (policy.identification is None and policy.loss is None):
        why = "no column has two values" if not names else "the policy promises nothing for synthetic tables"
        return [_not_tried("all of them", f"{why}.")]
    found = look_for_leaks(policy, names[:2], epsilon=epsilon, model=model, alpha=alpha, seed=seed)
    one = world(policy, names[:1], epsilon=epsilon, model=model)
    two = world(policy, names[:2], epsilon=epsilon, model=model, related=True)
    found += attack_diaries(one, alpha=alpha, seconds=0.2 * seconds)
    found += attack_diaries(two, alpha=alpha, seconds=0.15 * seconds) if len(names) > 1 else []
    found += attack_tables(one, alpha=alpha, seconds=0.35 * seconds)
    found += attack_attribute(one, alpha=alpha, seconds=0.1 * seconds)
    others = [name for name in OTHERS if is_installed(name)] if others is None else others
    for other in others:
        found += _other(policy, names, other, epsilon, alpha=alpha, seconds=0.2 * seconds / len(others))
    return found


def _other(
    policy: Policy, names: Sequence[str], model: Any, epsilon: Fraction, *, alpha: float, seconds: float
) -> list[Finding]:
    """One more model, on the first column that it takes."""
    why = ""
    for name in names:
        at = world(policy, [name], epsilon=epsilon, model=model)
        if not (why := refused(at)):
            break
    try:
        if not why:
            return attack_diaries(at, alpha=alpha, seconds=seconds)
    except TidegateError as error:  # where the number of rows is noisy, it may come out too small for a model
        why = error.what
    return [_not_tried(f"on {_name(model)}", why)]


# Which of two tables was it


def attack_diaries(at: World, *, alpha: float, seconds: float, most: int = MOST_DIARIES) -> list[Finding]:
    """Neighbours told apart by the diary: what every number in it says for the one and against the other, added up."""
    started = time.monotonic()
    here, there = diaries(at, [[0] * len(at.columns), at.farthest], seconds=seconds, most=most)
    known = [sum(speaks_fully(run, at) for run in runs) for runs in (there, here)]
    fixed = epsilon_lower_bound(known[0], len(there), known[1], len(here), alpha=alpha / 2)
    quarter = len(here) // 4  # what is typical of each side is learnt from draws that prove nothing
    learnt = [_both_scores(runs[quarter:], here[:quarter], there[:quarter], at) for runs in (here, there)]
    chosen, event = best_event(
        learnt[0], learnt[1], alpha=alpha / 2, names=("sum of all counts", "likeness to examples")
    )
    told = (fixed, "evidence of all counts for the far value") if fixed > chosen else (chosen, event)
    return [_told_apart(at, "diary", *told, 2 * len(here), alpha, started)]


def _both_scores(runs: list[list[Step]], here: list[list[Step]], there: list[list[Step]], at: World) -> Floats:
    return np.stack([[by_noise(run, at) for run in runs], by_example(runs, here, there)], axis=1)


def attack_tables(at: World, *, alpha: float, seconds: float, most: int = MOST_TABLES) -> list[Finding]:
    """Neighbours told apart by the synthetic table alone, and membership: is the target's row in?"""
    started = time.monotonic()
    targets = [[0] * len(at.columns), at.farthest]
    here, there = synthesized(at, targets, lambda table: table_looks(table, at), seconds=seconds, most=most)
    out, inside = here.array(), there.array()
    bound, event = best_event(out, inside, alpha=alpha, names=TABLE_LOOKS)
    tries = len(out) + len(inside)
    return [
        _told_apart(at, "table", bound, event, tries, alpha, started),
        _membership(at, out, inside, alpha, started),
    ]


def _told_apart(at: World, what: str, bound: float, event: str, tries: int, alpha: float, started: float) -> Finding:
    limit = float(at.epsilon)
    return Finding(
        verb="synthesize",
        promise=f"a table by {_name(at.model)} at epsilon {limit:g} changes no odds about one {_unit(at)} by more than e^{limit:g}",
        attack=f"neighbors by the {what} ({_name(at.model)})",
        knows=f"{KNOWS}the {'synthetic table' if what == 'table' else 'diary of the run'}",
        bound=bound,
        promised=limit,
        alpha=alpha,
        tries=tries,
        seconds=time.monotonic() - started,
        verdict=judged(bound, limit) if _provable(tries, alpha) > limit else "not tried",
        says=_short(_provable(tries, alpha), limit)
        + f"{tries:,} runs on two tables of {at.rows} rows ({' and '.join(column.name for column in at.columns)}) that differ in one {_unit(at)} prove an epsilon of {bound:.4g} or more "
        f"(by the event: {event}); {limit:g} is promised.",
    )


def _membership(at: World, out: Floats, inside: Floats, alpha: float, started: float) -> Finding:
    """His guess is a threshold that he chose on the first half; on the second half it is right more often than wrong."""
    limit = (exp(float(at.epsilon)) - 1) / (exp(float(at.epsilon)) + 1)
    half = min(len(out), len(inside)) // 2
    column, sign, threshold = _best_rule(out[:half], inside[:half])
    said = [(sign * some[half:, column] >= threshold) for some in (inside, out)]
    bound = lowest(int(said[0].sum()), len(said[0]), alpha=alpha / 2) - highest(
        int(said[1].sum()), len(said[1]), alpha=alpha / 2
    )
    seen = float(said[0].mean() - said[1].mean()) if half else 0.0
    return Finding(
        verb="synthesize",
        promise=f"an adversary who sees a table by {_name(at.model)} distinguishes members with an advantage of at most {limit:.3g}",
        attack=f"membership ({_name(at.model)})",
        knows=f"{KNOWS}the synthetic table; the row in question differs from all others",
        unit="probability",
        bound=max(0.0, bound),
        promised=limit,
        alpha=alpha,
        tries=len(out) + len(inside),
        seconds=time.monotonic() - started,
        verdict=judged(bound, limit) if _advantage(half, alpha) > limit else "not tried",
        says=_short(_advantage(half, alpha), limit)
        + f"asked whether a certain {_unit(at)} is in the table, the adversary answers yes {100 * seen:.3g} points more often if it is "
        f"({100 * max(0.0, bound):.3g} are proven; by {TABLE_LOOKS[column]}); epsilon {float(at.epsilon):g} allows {100 * limit:.3g}.",
    )


def _provable(tries: int, alpha: float) -> float:
    """The highest loss that so many runs could prove: an event that always shows on one side and never on the other."""
    half = tries // 4
    return epsilon_lower_bound(half, half, 0, half, alpha=alpha)


def _advantage(half: int, alpha: float) -> float:
    return lowest(half, half, alpha=alpha / 2) - highest(0, half, alpha=alpha / 2)


def _short(provable: float, limit: float) -> str:
    """Said before anything else where the time was too short for an attack that could refute the promise."""
    return "" if provable > limit else "too few runs in the available time to refute anything: "


def _best_rule(out: Floats, inside: Floats) -> tuple[int, float, float]:
    best = (-1.0, 0, 1.0, 0.0)
    for column in range(out.shape[1]):
        for sign in (1.0, -1.0):
            for threshold in np.unique(sign * np.concatenate([out[:, column], inside[:, column]])):
                gain = float(
                    (sign * inside[:, column] >= threshold).mean() - (sign * out[:, column] >= threshold).mean()
                )
                best = max(best, (gain, column, sign, float(threshold)))
    return best[1:]


# What is his value


def attack_attribute(at: World, *, alpha: float, seconds: float, most: int = MOST_DIARIES) -> list[Finding]:
    """The target's value guessed among several: the one that the diary speaks most for, all being equally likely."""
    started = time.monotonic()
    column = at.columns[0]
    codes = sorted({round(code) for code in np.linspace(0, column.size - 1, MOST_WORLDS)})
    cells = [int(column.cell_of(np.array([code]))[0]) for code in codes]
    worlds = [code for place, code in enumerate(codes) if cells[place] not in cells[:place]]
    runs = diaries(at, [[code] for code in worlds], seconds=seconds, most=most)
    right = sum(guess(run, worlds, at) == code for code, some in zip(worlds, runs, strict=True) for run in some)
    tries, limit = sum(map(len, runs)), 1 / (1 + (len(worlds) - 1) * exp(-float(at.epsilon)))
    bound = lowest(right, tries, alpha=alpha)
    found = Finding(
        verb="synthesize",
        promise=f"among {len(worlds)} equally likely values, the missing one is identified with probability at most {limit:.3g}",
        attack=f"attribute ({_name(at.model)})",
        knows=f'{KNOWS}the diary of the run; {len(worlds)} values that the target\'s "{column.name}" may have',
        unit="probability",
        bound=bound,
        promised=limit,
        alpha=alpha,
        tries=tries,
        seconds=time.monotonic() - started,
        verdict=judged(bound, limit),
        says=f'the adversary names the target\'s "{column.name}" among {len(worlds)} values and is right in {right / max(tries, 1):.3g} of '
        f"{tries:,} runs ({bound:.3g} or more is proven; a random guess has {1 / len(worlds):.3g}, and epsilon {float(at.epsilon):g} allows {limit:.3g}).",
    )
    return [found]


def _not_tried(what: str, why: str) -> Finding:
    return Finding(
        verb="synthesize",
        promise="a synthetic table changes no odds about one protected unit by more than e^epsilon",
        attack=f"attacks on synthetic tables: {what}",
        knows=f"{KNOWS}the synthetic table",
        verdict="not tried",
        says=why,
    )


def _unit(at: World) -> str:
    return "row" if at.reach == 1 and "person" not in str(at.policy.dataset.unit.to_value()) else "person"


def _name(model: Any) -> str:
    return model if isinstance(model, str) and model != "auto" else getattr(model, "name", "the default model")
