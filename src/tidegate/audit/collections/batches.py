"""COLLECT, a shuffled batch: whether a later reader can distinguish two answers of one person better than stated.

The adversary knows the answers of all others, and two possible answers of one person. Small batches are enumerated: all multisets of
reports. In a larger one, the likelihood ratio of the multiset is the best test, and its events are counted over simulated batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement, product
from math import comb, exp, inf

import numpy as np

from tidegate.accounting.later_reader import LaterReader, later_reader
from tidegate.arrays import Floats
from tidegate.audit.bounds import lower_bound, upper_bound
from tidegate.audit.collections.value_pairs import ValuePair
from tidegate.audit.finding import Finding, judge
from tidegate.policy.collection import Collection

SMALL, LARGE = 4, 30  # reports of an enumerated batch, and of a simulated one
MOST_BATCHES = 200_000  # multisets that are enumerated
MOST_CLASSES = 2_000
SIMULATED = 100_000
ROUNDING = 1e-9
KNOWS = "the multiset of all reports of a batch, the answers of all others, and two possible answers of one person"


def attack_batches(collection: Collection, pairs: Mapping[str, ValuePair], *, alpha: float, seed: int) -> list[Finding]:
    """Attack the claim about shuffled batches of a collection; empty if there is no claim beyond the local loss."""
    channel = batch_channel(collection, pairs)
    if channel is None:
        return []
    small = later_reader(collection, SMALL)
    large = later_reader(collection, LARGE)
    findings = []
    if small is not None and comb(len(channel) + SMALL - 1, SMALL) <= MOST_BATCHES:
        findings.append(_enumerated(channel, small))
    if large is not None:
        findings.append(_simulated(channel, large, alpha=alpha, seed=seed))
    return findings


def batch_channel(collection: Collection, pairs: Mapping[str, ValuePair]) -> Floats | None:
    """Return the probabilities of classes of whole reports under the two answers; None if they are not known or too many.

    Classes with the same likelihood ratio are merged: only the ratio distinguishes the two answers.
    """
    if set(pairs) != set(collection.questions) or (
        collection.ask is not None and (collection.ask > 1 or collection.together)
    ):
        return None
    channels = [merge(pairs[name].chances) for name in collection.questions]
    if collection.ask == 1:
        return np.concatenate(channels) / len(channels)
    if np.prod([len(channel) for channel in channels]) > MOST_CLASSES:
        return None
    rows = [np.prod(np.array(parts), axis=0) for parts in product(*channels)]
    return merge(np.array(rows))


def merge(chances: Floats) -> Floats:
    """Return the probabilities of reports with equal likelihood ratios together."""
    shown = chances[chances.sum(axis=1) > 0]
    ratios = np.round(shown[:, 0] / shown.sum(axis=1), 12)
    kinds, index = np.unique(ratios, return_inverse=True)
    merged = np.zeros((len(kinds), 2))
    np.add.at(merged, index, shown)
    return merged


def exact_delta(channel: Floats, reports: int, epsilon: float) -> float:
    """Return the exact delta of a batch over all multisets, for the worst of the two answers and of all equal others."""
    worst = 0.0
    for other in (0, 1):
        rest = _multisets(channel[:, other], reports - 1)
        first, second = (_with_one(rest, channel[:, own]) for own in (0, 1))
        for here, there in ((first, second), (second, first)):
            excess = sum(max(0.0, chance - exp(epsilon) * there.get(key, 0.0)) for key, chance in here.items())
            worst = max(worst, excess)
    return worst


Batch = dict[tuple[int, ...], float]  # the probability of each multiset of classes


def _multisets(chances: Floats, reports: int) -> Batch:
    batch: Batch = {}
    for members in combinations_with_replacement(range(len(chances)), reports):
        counts = np.bincount(members, minlength=1) if members else np.zeros(1, int)
        ways, left = 1, reports
        for count in counts:
            ways, left = ways * comb(left, int(count)), left - int(count)
        batch[members] = ways * float(np.prod(chances[list(members)]))
    return batch


def _with_one(batch: Batch, chances: Floats) -> Batch:
    more: Batch = {}
    for members, chance in batch.items():
        for report, own in enumerate(chances):
            key = tuple(sorted((*members, report)))
            more[key] = more.get(key, 0.0) + chance * float(own)
    return more


def _enumerated(channel: Floats, claim: LaterReader) -> Finding:
    delta = exact_delta(channel, claim.reports, claim.epsilon)
    return _finding(
        claim,
        "all small batches",
        bound=delta,
        promised=claim.delta,
        alpha=0.0,
        tries=comb(len(channel) + claim.reports - 1, claim.reports),
        says=f"over all multisets of {claim.reports} reports, delta is {delta:.4g} at epsilon {claim.epsilon:.4g}; {claim.delta:.4g} is stated.",
    )


def _simulated(channel: Floats, claim: LaterReader, *, alpha: float, seed: int) -> Finding:
    """Bound delta by the event that the likelihood ratio exceeds e**epsilon, which is the best one."""
    rng, best = np.random.default_rng(seed), 0.0
    for other in (0, 1):
        own, common = channel[:, 1 - other], channel[:, other] / channel[:, other].sum()
        ratios = np.divide(own, channel[:, other], out=np.full(len(own), inf), where=channel[:, other] > 0)
        shares = []
        for person in (own, common):
            counts = rng.multinomial(claim.reports - 1, common, SIMULATED) + rng.multinomial(
                1, person / person.sum(), SIMULATED
            )
            with np.errstate(invalid="ignore"):
                evidence = np.where(counts > 0, counts * ratios, 0.0).sum(axis=1) / claim.reports
            shares.append(int((evidence > exp(claim.epsilon)).sum()))
        hit = lower_bound(shares[0], SIMULATED, alpha=alpha / 4)
        missed = upper_bound(shares[1], SIMULATED, alpha=alpha / 4)
        best = max(best, hit - exp(claim.epsilon) * missed)
    return _finding(
        claim,
        "simulated batches",
        bound=best,
        promised=claim.delta,
        alpha=alpha,
        tries=4 * SIMULATED,
        says=f"{SIMULATED:,} batches of {claim.reports} reports for each of two answers prove a delta of {best:.4g} or more at epsilon "
        f"{claim.epsilon:.4g}; {claim.delta:.4g} is stated.",
    )


def _finding(
    claim: LaterReader, attack: str, *, bound: float, promised: float, alpha: float, tries: int, says: str
) -> Finding:
    return Finding(
        verb="collect",
        promise=f"a later reader of a batch of {claim.reports} reports learns at most epsilon {claim.epsilon:.4g} with delta "
        f"{claim.delta:.4g} about one of them (local epsilon {float(claim.local):.4g})",
        attack=attack,
        knows=KNOWS,
        unit="probability",
        bound=bound,
        promised=promised,
        alpha=alpha,
        tries=tries,
        verdict=judge(bound - ROUNDING, promised),
        says=says,
    )
