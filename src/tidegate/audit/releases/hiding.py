"""RELEASE under hiding promises: whether an observer who knows the rule can name the sensitive group.

The promise is exact, so the result is judged. Simulated data sets go through the rule, and observers try to name the group.
Quotas and the keyed choice are checked again without sampling error, and so are the user's own released records. Answers and
synthetic tables that would show the values of a group must be refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.answer import Query
from tidegate.arrays import Floats, Ints
from tidegate.audit.answers.ask import Door
from tidegate.audit.fake_data import build_table, query_value, simulated_dataset
from tidegate.audit.finding import Clock, Finding
from tidegate.audit.releases.equal_composition import RULE_AWARE, EqualComposition
from tidegate.audit.releases.observers import OBSERVERS, Observation, observe
from tidegate.audit.releases.worlds import draw_world
from tidegate.errors import TidegateError, Unsupported
from tidegate.ledger import Ledger
from tidegate.ledger.release_book import ReleaseBook
from tidegate.ledger.selection_book import SelectionBook
from tidegate.policy import Attribute, Concealment, EachPerson, Key, Loss, Policy
from tidegate.policy.hiding import Hiding, JointHiding
from tidegate.policy.predicates import col
from tidegate.release.plan import Plan
from tidegate.release.selection import FEWEST as RARE
from tidegate.release.selection import (
    Population,
    Quotas,
    SelectionKey,
    choose,
    draw_decoys,
    mix_of_table,
    quotas_of,
    short_cells,
)
from tidegate.session import Session

__all__ = ["EqualComposition", "attack_hiding", "largest_area", "recheck_ledger", "recheck_selection", "run_observers"]

FEWEST, MOST = 30, 400  # simulated data sets for observers
GROUPS, VALUES = 6, 40  # of a simulated data set; a declared mix sets its own number of values
PER_VALUE, LARGEST = 60, 20_000  # records of the smallest simulated group: for each value, and at most
TILT = 3.0  # how much likelier the first half of the values is in a sensitive group
SPARE = 3.5  # standard errors by which simulated counts exceed what a declared mix requires
SEES = "the rule, the sizes of groups, the mix, all requests and refusals, and all released records in order"
Choose = Callable[[SelectionKey, int, Population, Quotas], set[str]]


def attack_hiding(
    policy: Policy,
    *,
    alpha: float,
    seconds: float,
    seed: int,
    address: str = "",
    rule: Callable[..., EqualComposition] = EqualComposition,
    choice: Choose = choose,
    door: Door = Session,
) -> list[Finding]:
    """Attack the hiding promises of a policy, which share one selection. Tests pass a faulty `rule`, `choice` or `door`."""
    joint = policy.hiding
    if joint is None:
        return []
    clock, name = Clock(seconds), ", ".join(policy.hidings)
    findings = []
    simulated = simulate_plan(policy, joint)
    if isinstance(simulated, str):
        findings.append(Finding("release", _promise(name, joint), "observers", SEES, simulated, "not tried"))
    else:
        plan, profile, records = simulated
        findings.append(recheck_selection(name, joint, plan, profile, records, clock.part(0.3), seed, choice=choice))
        findings.append(
            run_observers(name, joint, plan, profile, records, alpha=alpha, clock=clock, seed=seed, rule=rule)
        )
    findings.append(ask_for_composition(name, policy, joint, door=door))
    return findings + recheck_ledger(name, policy, joint, address)


def simulate_plan(policy: Policy, joint: JointHiding) -> tuple[Plan, Floats, int] | str:
    """Return groups of different sizes, a profile of the sensitive one, and the number of records; or why there are none."""
    promise = joint.promise
    named = 1 if promise.among == "all" else promise.among
    groups = min(policy.cells(joint.about), max(GROUPS, 2 * named))
    if groups < max(2, named):
        return f"The policy has {groups} groups, so there is nothing to hide among."
    if isinstance(promise.mix, str):
        values = min(policy.cells(joint.reveals), VALUES)
        required = spare = np.zeros(values)
        size = max(promise.smallest, PER_VALUE * values)
    else:
        values = len(promise.mix)
        required = np.array([float(share / promise.at_most) for share in promise.mix])
        rest = 1 - required.sum()
        if rest <= 0.01:
            return "The mix sums to almost `at_most`, so all groups have nearly the same values where the desk opens."
        size = max(promise.smallest, PER_VALUE * values, ceil((2 * SPARE * np.sqrt(required).sum() / rest) ** 2))
        size = min(size, max(LARGEST, promise.smallest))
        spare = SPARE * np.sqrt(required / size)
    tilt = np.where(np.arange(values) < values / 2, TILT, 1.0)
    free = max(1 - float((required + spare).sum()), 0.01)
    baseline, profile = (required + spare + free * weights / weights.sum() for weights in (np.ones(values), tilt))
    sizes = np.linspace(size, 2 * size, groups).astype(int).tolist()
    shares = tuple(Fraction(size, sum(sizes)) for size in sizes)
    tested = Concealment(reveals=joint.reveals, about=joint.about, tests="kullback-leibler")
    weights = [Fraction(weight) for weight in baseline.tolist()]
    plan = Plan(tested, tuple(weight / sum(weights) for weight in weights), shares)
    return plan, np.asarray(profile / profile.sum()), sum(sizes)


# Observers


def run_observers(
    name: str,
    joint: JointHiding,
    plan: Plan,
    profile: Floats,
    records: int,
    *,
    alpha: float,
    clock: Clock,
    seed: int,
    rule: Callable[..., EqualComposition] = EqualComposition,
) -> Finding:
    """Let observers try to name the sensitive group, some of whom know the rule."""
    promise, spent, desk = joint.promise, Clock(0), rule(joint.promise, seed=seed)
    is_declared = promise.among == "all" and promise.mix != "table"  # then the existence of the group is hidden too
    everyone = {**OBSERVERS, **RULE_AWARE}
    options: dict[str, Any] = {"records": records, "seed": seed, "observers": everyone, "name": name}
    options["same_data_set"] = not is_declared
    observe(plan, profile, worlds=1, control=rule(promise, seed=seed), **options)
    worlds = int(np.clip(clock.remaining / max(spent.spent, 1e-3), FEWEST, MOST))
    seen = observe(plan, profile, worlds=worlds, control=desk, confidence=1 - alpha / len(everyone), **options)
    closed = 1 - sum(desk.opened) / len(desk.opened)
    attack, promised = "observers who know the rule", _promise(name, joint)
    if not seen or closed > 0.5:
        says = f"The desk opened for {sum(desk.opened)} of {len(desk.opened)} simulated data sets, too few to observe."
        return Finding("release", promised, attack, SEES, says, "not tried")
    limit = largest_area(promise, plan.targets, closed)
    best = max(seen, key=_excess)
    says = (
        f"{worlds} simulated data sets of {records:,} records in {plan.targets} groups; {best.released:.0%} were released, and "
        f"{len(desk.opened) - sum(desk.opened)} of {len(desk.opened)} desks did not open. The best of {len(seen)} observers uses "
        f"{best.observer} and ranks the sensitive group above an ordinary one in {best.auc:.2f} of all cases ({best.low:.2f} to "
        f"{best.high:.2f}; at most {limit:.3f} is promised)."
    )
    verdict: Any = "broken" if _excess(best) > limit else "held"
    figures: dict[str, Any] = {"alpha": alpha, "tries": worlds, "seconds": spent.spent}
    return Finding("release", promised, attack, SEES, says, verdict, "area", _excess(best), limit, **figures)


def _excess(observation: Observation) -> float:
    """Return the area that an observer proves: far below 1/2 reveals as much as far above."""
    return max(observation.low, 1 - observation.high)


def largest_area(promise: Hiding, groups: int, closed: float = 0.0) -> float:
    """Return the largest area under the curve that the promise allows for one sensitive group.

    With b, the part of the ordinary groups that is hidden, it is 1 - b / 2. That a desk opened can change the odds of two
    groups by 1 / (1 - closed).
    """
    hidden = Fraction(1) if promise.among == "all" else Fraction(promise.among - 1, groups - 1)
    return float(1 - hidden) + float(hidden) / (2 - closed)


# Exact checks


def ask_for_composition(name: str, policy: Policy, joint: JointHiding, *, door: Door = Session) -> Finding:
    """Ask in many forms for the values of a group. Without the promise they are answered; with it none may make an entry."""
    clock, promise = Clock(0), f"{name}: answers and synthetic tables that combine its columns are refused"
    details: Any = {"attack": "values by group, as answers", "knows": "the policy; they can ask whatever they like"}
    if joint.promise.answers == "allowed":
        says = 'The policy sets answers = "allowed", so nothing is promised about answers.'
        return Finding("release", promise, says=says, verdict="not tried", **details)
    small = _only_hidden_columns(policy, joint)
    with TemporaryDirectory() as folder:
        plain, session = Session(replace(small, hidings={})), door(small)
        for name_of_file, opened in (("plain", plain), ("hidden", session)):
            ledger = Ledger(str(Path(folder) / name_of_file), is_witnessed=False)
            opened.__dict__.update(ledger=ledger, _table=build_table(small, [{}, {}]))
        with plain, session:
            forms = [form for form in forms_of_composition(small, joint) if _outcome(form, plain, 0) == "answered"]
            wrong = [form for form in forms if _outcome(form, session, 1) != "refused"]
            entries = sum(1 for _ in session.ledger.entries()) - 1  # without the first one of every ledger
    says = f"{len(forms)} requests for values by group, which are answered without the promise: " + (
        f"{len(wrong)} were not refused." if wrong else "all were refused before any entry."
    )
    says += f" The ledger has {entries} entries of them." if entries else ""
    details |= {"verdict": "broken" if wrong or entries else "held", "tries": len(forms), "seconds": clock.spent}
    return Finding("release", promise, says=says, **details)


def _only_hidden_columns(policy: Policy, joint: JointHiding) -> Policy:
    """Return a policy of the columns of hiding promises, with a budget that no attack reaches."""
    unit = policy.dataset.unit
    columns: dict[str, Attribute] = {column: policy.attributes[column] for column in (*joint.reveals, *joint.about)}
    key = {unit.key: Key()} if isinstance(unit, EachPerson) else {}
    hidings = {name: replace(promise, releases=()) for name, promise in policy.hidings.items()}
    dataset = simulated_dataset(policy, rows=None)
    return Policy(dataset, {**columns, **key}, loss=Loss(1000), hidings=hidings, version=policy.version)


def forms_of_composition(policy: Policy, joint: JointHiding) -> list[Any]:
    """Return requests that would show the values of a group: queries, SQL, workloads, and a synthetic table ("")."""
    forms: list[Any] = [""]
    for value, group in product(joint.reveals, joint.about):
        is_value, is_group = (col(name) == query_value(policy.attribute(name), 0) for name in (value, group))
        both = ask.count().by(value, group)
        forms += [both, ask.count().by(group).where(is_value), ask.count().by(value).where(is_group)]
        forms += [ask.count().where(is_value & is_group), ask.histogram(value).by(group), ask.distinct(value).by(group)]
        forms += [statistic(value).by(group) for statistic in (ask.sum, ask.mean, ask.median, ask.max)]
        forms += [statistic(group).by(value) for statistic in (ask.mean, ask.median)]
        forms += [Query("regression", value, terms=(group,), method="k-norm"), [ask.count(), both]]
        forms += [ask.count().by(group).where(f'"{value}" IS NOT NULL')]
        forms += [f'SELECT "{value}", "{group}", COUNT(*) FROM "{policy.dataset.name}" GROUP BY "{value}", "{group}"']  # noqa: S608 - parsed by us
    return forms


def _outcome(form: Any, session: Session, verb: int) -> str:
    """Return whether a request is answered or refused for its form, by verb 0 (a preview) or 1."""
    try:
        if form == "":
            (session.preview_synthesis, session.synthesize)[verb](epsilon=1)
        else:
            (session.preview, partial(session.answer, anyway=True))[verb](form, epsilon=1, plan="auto")
    except Unsupported:
        return "refused"
    except TidegateError:
        return "failed"
    return "answered"


def recheck_selection(
    name: str,
    joint: JointHiding,
    plan: Plan,
    profile: Floats,
    records: int,
    clock: Clock,
    seed: int,
    *,
    choice: Choose = choose,
) -> Finding:
    """Open selections over simulated tables by the product's own functions, and compute their quotas again."""
    promise, wrong, sets, opened, number = joint.promise, "", 0, 0, 0
    while not wrong and (not clock.over or not sets):
        random = np.random.default_rng([seed, 19, sets])
        sensitive = int(random.integers(plan.targets))
        world = draw_world(plan, profile, records, sensitive, random)
        key = SelectionKey(random.bytes(32), "audit")
        among = promise.among
        hidden = range(plan.targets) if among == "all" else draw_decoys(key, [sensitive], among, range(plan.targets))
        population = group_by_cell(world.cells, plan)
        mix = mix_of_table(key, 1, population, hidden, promise) if isinstance(promise.mix, str) else promise.mix
        quotas = quotas_of(mix, population.sizes, hidden, promise.smallest)
        sets += 1
        wrong = "" if promise.mix != "table" else differing_mix(key, population, hidden, promise, mix)
        if not short_cells(quotas, population, promise.at_most):
            chosen = choice(key, 1, population, quotas)
            turned = Population(
                {cell: names[::-1] for cell, names in population.cells.items()}, plan.values, plan.targets
            )
            wrong = wrong or first_difference(promise, population, quotas, chosen)
            if choice(key, 1, turned, quotas) != chosen:
                wrong = wrong or "the choice depends on the order of the records"
            opened, number = opened + 1, number + len(chosen)
    says = (
        f"{opened} of {sets} selections over simulated tables opened, and their {number:,} chosen records were counted again: "
        f"{wrong or 'every count equals its quota, in any order'}."
    )
    verdict: Any = "broken" if wrong else "held"
    figures: dict[str, Any] = {"tries": number, "seconds": clock.spent}
    return Finding("release", _promise(name, joint), "quotas, counted again", SEES, says, verdict, **figures)


def group_by_cell(cells: Ints, plan: Plan) -> Population:
    """Return records as a population; each is called by its number."""
    members: dict[int, list[str]] = {}
    for number, cell in enumerate(cells.tolist()):
        members.setdefault(cell, []).append(f"{number:08d}")
    return Population(members, plan.values, plan.targets)


def differing_mix(
    key: SelectionKey, population: Population, hidden: Sequence[int], promise: Hiding, mix: Sequence[Fraction]
) -> str:
    """Return the first share of a mix that differs from that of equal samples, in floating point; empty if there is none."""
    sizes, values = population.sizes, population.values
    size = min(sizes[group] for group in hidden)
    samples = []
    for group in hidden:
        ranks = [
            (key.rank("sample", 1, name), value)
            for value in range(values)
            for name in population.cells.get(group * values + value, ())
        ]
        samples.append(np.bincount([value for _, value in sorted(ranks)[:size]], minlength=values))
    share = np.min(samples, axis=0) / size
    lower = np.maximum(0, share - float(promise.margin) * np.sqrt(share * (1 - share) / size))
    expected = float(promise.at_most) * np.where(np.min(samples, axis=0) < RARE, 0, lower)
    for value, (right, share_of_mix) in enumerate(zip(expected.tolist(), mix, strict=True)):
        if abs(right - float(share_of_mix)) > 1e-6:
            return f"the mix of value {value} is {float(share_of_mix):.6f}, and equal samples give {right:.6f}"
    return ""


def first_difference(promise: Hiding, population: Population, quotas: Quotas, chosen: set[str]) -> str:
    """Return the first cell in which the chosen records are not those that the rule allows; empty if there is none."""
    expected = recompute_quotas(quotas.mix, population.sizes, quotas.hidden, promise.smallest)
    for cell, names in population.cells.items():
        group, value = divmod(cell, population.values)
        row, number = expected[group], sum(name in chosen for name in names)
        quota = len(names) if row is None else row[value]
        if number != quota:
            return f"value {value} of group {group} has {number:,} chosen records and a quota of {quota:,}"
        if row is not None and number > promise.at_most * len(names):
            return f"value {value} of group {group} releases more than `at_most` of its records"
    return ""


def recompute_quotas(
    mix: Sequence[Fraction], sizes: Sequence[int], hidden: Sequence[int], smallest: int
) -> list[list[int] | None]:
    """Return the quotas of public numbers, in whole numbers; None for a group that is released in full."""
    rows = [[share.numerator * size // share.denominator for share in mix] for size in sizes]
    return [
        [0] * len(mix) if size < smallest else row if group in hidden else None
        for group, (size, row) in enumerate(zip(sizes, rows, strict=True))
    ]


def recheck_ledger(name: str, policy: Policy, joint: JointHiding, address: str) -> list[Finding]:
    """Compare the user's own released records with quotas computed again, if a selection is open in their ledger."""
    if not address or ("://" not in address and not Path(address).exists()):
        return []
    ledger = Ledger(address, read_only=True)
    try:
        openings = [entry.content() for entry in SelectionBook(ledger, policy).openings()]
        if not openings:
            return []
        with ReleaseBook(ledger, policy).look() as view:
            released = Counter(dict(view.counts()))
    finally:
        ledger.close()
    wrong = find_excess(openings, released)
    says = (
        f"{released.total():,} records were released under this promise so far. Quotas were computed again from the mix and the "
        f"sizes of groups: {wrong or 'no value of a group was released more often'}."
    )
    attack, verdict = "released records, counted again", "broken" if wrong else "held"
    details: Any = {"verdict": verdict, "tries": released.total()}
    return [Finding("release", _promise(name, joint), attack, SEES, says, **details)]


def find_excess(openings: Sequence[Mapping[str, Any]], released: Mapping[str, int]) -> str:
    """Return the first contradiction between the openings in a ledger and its released records; empty if there is none.

    Args:
        released: The number of released records by "cell,epoch".
    """
    first: dict[int, Mapping[str, Any]] = {}
    for body in openings:
        mix = [Fraction(share) for share in body["mix"]]
        rows = recompute_quotas(mix, body["sizes"], body["hidden"], body["smallest"])
        if rows != body["quotas"]:
            return f"the quotas of selection {body['epoch']} are not those of its mix"
        if body["hidden"] != openings[0]["hidden"]:
            return f"selection {body['epoch']} hides other groups than the first"
        first.setdefault(body["epoch"], {**body, "rows": rows})  # later entries of an epoch only lower its quotas
    for name, count in released.items():
        cell, epoch = map(int, name.split(","))
        if epoch not in first:
            return f"records of selection {epoch} were released, and it is not open"
        group, value = divmod(cell, len(first[epoch]["mix"]))
        row = first[epoch]["rows"][group]
        quota = first[epoch]["sizes"][group] if row is None else row[value]
        if count > quota:
            return f"value {value} of group {group} was released {count:,} times with a quota of {quota:,}"
    return ""


def _promise(name: str, joint: JointHiding) -> str:
    among = joint.promise.among
    if among == "all":
        return f"{name}: no group becomes more likely than another to be the sensitive one"
    return f"{name}: each of the hidden groups is the sensitive one with probability 1/{among}"
