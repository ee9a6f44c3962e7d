"""SYNTHESIZE: which of two neighboring tables was used, who is a member, and what the target's value is.

The adversary knows the policy, the method, the seed and every row but the target's, and has the synthetic table; in some
attacks also the diary of the run, which the ledger stores and which is as public as the tables. leaks.py covers other
leaks.
"""

from __future__ import annotations

import time
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np

from tidegate.accounting import Amount, average_identification_after, budget_of
from tidegate.arrays import Floats
from tidegate.audit.bounds import (
    best_distinction,
    best_event,
    distinction_bound,
    epsilon_lower_bound,
    largest_distinction,
    lower_bound,
    upper_bound,
)
from tidegate.audit.finding import Finding, Unit, judge
from tidegate.audit.leaks import look_for_leaks
from tidegate.audit.syntheses.neighbors import World, attackable, diaries, synthesize_tables, world
from tidegate.audit.syntheses.scores import (
    TABLE_LOOKS,
    example_scores,
    guess,
    is_full_evidence,
    noise_score,
    table_looks,
)
from tidegate.errors import TidegateError
from tidegate.policy import Policy
from tidegate.synthesize.diary import Step
from tidegate.synthesize.request import DEFAULT, resolve_request

EPSILON = Fraction(1)  # per attacked table
Z = EPSILON**2 / 8  # and if the policy limits the average loss alone
MOST_TABLES, MOST_DIARIES = 4_000, 20_000
MOST_WORLDS = 8  # candidates for the target's value
KNOWS = "the policy, the method, every row except one, and "


def attack_synthesis(
    policy: Policy,
    *,
    alpha: float,
    seconds: float,
    seed: int,
    epsilon: Fraction = EPSILON,
    model: Any = DEFAULT,
) -> list[Finding]:
    """Run all attacks on synthetic tables of a policy, on tables simulated from its public lists.

    Args:
        alpha: The probability with which one finding accuses correct code.
        epsilon: The loss of each attacked table. If the policy limits the average loss alone, most tables are attacked at Z.
        model: The model to attack; it can be an instance (planted faults).
    """
    try:
        names = attackable(policy)
    except TidegateError as error:
        return [_not_tried("all of them", error.what)]
    if not names or (policy.identification is None and policy.loss is None):
        why = "no column has two values" if not names else "the policy promises nothing for synthetic tables"
        return [_not_tried("all of them", f"{why}.")]
    loss: dict[str, Any] = {"epsilon": epsilon, "z": Z if budget_of(policy).unit == "z" else None, "model": model}
    findings = look_for_leaks(policy, names[:2], **loss, alpha=alpha, seed=seed)
    single, double = world(policy, names[:1], **loss), world(policy, names[:2], **loss, related=True)
    if single.z is not None:  # a pure loss can be requested as well
        pure = world(policy, names[:1], epsilon=epsilon, model=model)
        findings += attack_diaries(pure, alpha=alpha, seconds=0.1 * seconds)
    findings += attack_diaries(single, alpha=alpha, seconds=0.25 * seconds)
    findings += attack_diaries(double, alpha=alpha, seconds=0.2 * seconds) if len(names) > 1 else []
    findings += attack_tables(single, alpha=alpha, seconds=0.4 * seconds)
    findings += attack_attribute(single, alpha=alpha, seconds=0.15 * seconds)
    return findings


# Which of two tables was used


def attack_diaries(at: World, *, alpha: float, seconds: float, most: int = MOST_DIARIES) -> list[Finding]:
    """Distinguish neighbors by the diary: the evidence of every number in it, added up."""
    started = time.monotonic()
    here, there = diaries(at, [[0] * len(at.columns), at.farthest], seconds=seconds, most=most)
    known = [sum(is_full_evidence(run, at) for run in runs) for runs in (there, here)]
    bound_of, search = (epsilon_lower_bound, best_event) if at.z is None else (distinction_bound, best_distinction)
    fixed = bound_of(known[0], len(there), known[1], len(here), alpha=alpha / 2)
    quarter = len(here) // 4  # each side is learned from draws that are not used to prove anything
    scores = [_both_scores(runs[quarter:], here[:quarter], there[:quarter], at) for runs in (here, there)]
    chosen, event = search(scores[0], scores[1], alpha=alpha / 2, names=("sum of all counts", "likeness to examples"))
    best = (fixed, "evidence of all counts for the far value") if fixed > chosen else (chosen, event)
    return [_neighbor_finding(at, "diary", *best, 2 * len(here), alpha, started)]


def _both_scores(runs: list[list[Step]], here: list[list[Step]], there: list[list[Step]], at: World) -> Floats:
    return np.stack([[noise_score(run, at) for run in runs], example_scores(runs, here, there)], axis=1)


def attack_tables(at: World, *, alpha: float, seconds: float, most: int = MOST_TABLES) -> list[Finding]:
    """Distinguish neighbors by the synthetic table alone, and test membership of the target's row."""
    started = time.monotonic()
    targets = [[0] * len(at.columns), at.farthest]
    here, there = synthesize_tables(at, targets, lambda table: table_looks(table, at), seconds=seconds, most=most)
    out, inside = here.array(), there.array()
    search = best_event if at.z is None else best_distinction
    bound, event = search(out, inside, alpha=alpha, names=TABLE_LOOKS)
    tries = len(out) + len(inside)
    return [
        _neighbor_finding(at, "table", bound, event, tries, alpha, started),
        _membership(at, out, inside, alpha, started),
    ]


def _neighbor_finding(
    at: World, what: str, bound: float, event: str, tries: int, alpha: float, started: float
) -> Finding:
    name, unit, limit = _model_name(at.model), _unit(at), float(at.epsilon)
    promise = f"a table by {name} at epsilon {limit:g} changes no odds about one {unit} by more than e^{limit:g}"
    bound_unit: Unit = "epsilon"
    proven, strongest = f"an epsilon of {bound:.4g} or more", _provable(tries, alpha)
    if at.z is not None:
        bound_unit, limit, strongest = "probability", _largest_success(at), (1 + _advantage(tries // 4, alpha)) / 2
        promise = f"a table by {name} at {_loss(at)} names one of two tables that differ in one {unit} with probability at most {limit:.3g}"
        proven = f"that the right one is named with probability {bound:.4g} or more"
    return Finding(
        verb="synthesize",
        promise=promise,
        attack=f"neighbors by the {what} ({name}{'' if at.z is None else ', at Z'})",
        knows=f"{KNOWS}the {'synthetic table' if what == 'table' else 'diary of the run'}",
        unit=bound_unit,
        bound=bound,
        promised=limit,
        alpha=alpha,
        tries=tries,
        seconds=time.monotonic() - started,
        verdict=judge(bound, limit) if strongest > limit else "not tried",
        says=_short(strongest, limit)
        + f"{tries:,} runs on two tables of {at.rows} rows ({' and '.join(column.name for column in at.columns)}) that differ in one {unit} prove {proven} "
        f"(by the event: {event}); {limit:.4g} is promised.",
    )


def _largest_success(at: World) -> float:
    """Return how often the right one of two tables can be named."""
    limit = resolve_request(at.policy, **at.loss, model=at.model).limit
    if limit.pure is not None:
        return 1 / (1 + exp(-float(limit.pure)))
    return largest_distinction(Amount.up(limit.z), Amount.up(limit.zcdp))


def _loss(at: World) -> str:
    return f"epsilon {float(at.epsilon):g}" if at.z is None else f"Z {float(at.z):g}"


def _membership(at: World, out: Floats, inside: Floats, alpha: float, started: float) -> Finding:
    """Choose a threshold on the first half of the draws; count right and wrong guesses on the second half."""
    limit = 2 * _largest_success(at) - 1
    half = min(len(out), len(inside)) // 2
    column, sign, threshold = _best_rule(out[:half], inside[:half])
    guesses = [(sign * some[half:, column] >= threshold) for some in (inside, out)]
    bound = lower_bound(int(guesses[0].sum()), len(guesses[0]), alpha=alpha / 2) - upper_bound(
        int(guesses[1].sum()), len(guesses[1]), alpha=alpha / 2
    )
    advantage = float(guesses[0].mean() - guesses[1].mean()) if half else 0.0
    return Finding(
        verb="synthesize",
        promise=f"an adversary who sees a table by {_model_name(at.model)} distinguishes members with an advantage of at most {limit:.3g}",
        attack=f"membership ({_model_name(at.model)})",
        knows=f"{KNOWS}the synthetic table; the row in question differs from all others",
        unit="probability",
        bound=max(0.0, bound),
        promised=limit,
        alpha=alpha,
        tries=len(out) + len(inside),
        seconds=time.monotonic() - started,
        verdict=judge(bound, limit) if _advantage(half, alpha) > limit else "not tried",
        says=_short(_advantage(half, alpha), limit)
        + f"asked whether a certain {_unit(at)} is in the table, the adversary answers yes {100 * advantage:.3g} points more often if it is "
        f"({100 * max(0.0, bound):.3g} are proven; by {TABLE_LOOKS[column]}); {_loss(at)} allows {100 * limit:.3g}.",
    )


def _provable(tries: int, alpha: float) -> float:
    """Return the highest loss that this number of runs can prove.

    It is reached by an event that occurs always on one side and never on the other.
    """
    half = tries // 4
    return epsilon_lower_bound(half, half, 0, half, alpha=alpha)


def _advantage(half: int, alpha: float) -> float:
    return lower_bound(half, half, alpha=alpha / 2) - upper_bound(0, half, alpha=alpha / 2)


def _short(provable: float, limit: float) -> str:
    """Return the prefix of a finding whose time was too short to refute the promise."""
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


# The target's value


def attack_attribute(at: World, *, alpha: float, seconds: float, most: int = MOST_DIARIES) -> list[Finding]:
    """Guess the target's value among several, equally likely ones: the one with the most evidence in the diary."""
    started = time.monotonic()
    column = at.columns[0]
    codes = sorted({round(code) for code in np.linspace(0, column.size - 1, MOST_WORLDS)})
    cells = [int(column.cell_of(np.array([code]))[0]) for code in codes]
    worlds = [code for index, code in enumerate(codes) if cells[index] not in cells[:index]]
    runs = diaries(at, [[code] for code in worlds], seconds=seconds, most=most)
    right = sum(guess(run, worlds, at) == code for code, some in zip(worlds, runs, strict=True) for run in some)
    tries, limit = sum(map(len, runs)), 1 / (1 + (len(worlds) - 1) * exp(-float(at.epsilon)))
    if at.z is not None:
        limit = float(average_identification_after(Amount.up(at.z), Fraction(1, len(worlds))))
    bound = lower_bound(right, tries, alpha=alpha)
    finding = Finding(
        verb="synthesize",
        promise=f"among {len(worlds)} equally likely values, the missing one is identified with probability at most {limit:.3g}",
        attack=f"attribute ({_model_name(at.model)})",
        knows=f'{KNOWS}the diary of the run; {len(worlds)} values that the target\'s "{column.name}" may have',
        unit="probability",
        bound=bound,
        promised=limit,
        alpha=alpha,
        tries=tries,
        seconds=time.monotonic() - started,
        verdict=judge(bound, limit),
        says=f'the adversary names the target\'s "{column.name}" among {len(worlds)} values and is right in {right / max(tries, 1):.3g} of '
        f"{tries:,} runs ({bound:.3g} or more is proven; a random guess has {1 / len(worlds):.3g}, and {_loss(at)} allows {limit:.3g}).",
    )
    return [finding]


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


def _model_name(model: Any) -> str:
    return model if isinstance(model, str) else str(model.name)
