"""Release under a hiding promise, slowly: every table, every choice and every sequence of outcomes, in exact fractions.

Written from the specification of equal composition, not from our code. A group is a tuple of values, one per record. A rule
returns the distribution of the labels of its records: the value of a record if it is released, otherwise WITHHELD. Rules
return nothing for a table that does not open. Rules with a fault are at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product
from math import prod
from typing import Any

WITHHELD = "withheld"
Labels = tuple[Any, ...]
Distribution = dict[Any, Fraction]
Rule = Callable[[tuple[int, ...]], Distribution]
Strategy = Callable[[Labels, int], int]  # labels so far, records that are left: the index of the next one among them


def normalize(weights: Mapping[Any, Fraction]) -> Distribution:
    total = sum(weights.values(), Fraction(0))
    return {outcome: weight / total for outcome, weight in weights.items()}


def add(weights: dict[Any, Fraction], outcomes: Iterable[tuple[Any, Fraction]]) -> None:
    for outcome, weight in outcomes:
        if weight:
            weights[outcome] = weights.get(outcome, Fraction(0)) + weight


def count(values: Sequence[Any], kinds: int) -> tuple[int, ...]:
    return tuple(sum(value == x for value in values) for x in range(kinds))


def compositions(size: int, kinds: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to divide `size` records among values."""
    return (counts for counts in product(range(size + 1), repeat=kinds) if sum(counts) == size)


def arrangements(counts: Sequence[int]) -> set[tuple[int, ...]]:
    """Return every order of the values of a group with these counts; all are equally likely."""
    return set(permutations([x for x, number in enumerate(counts) for _ in range(number)]))


def choices(values: Sequence[int], quotas: Sequence[int]) -> Iterator[frozenset[int]]:
    """Yield every set of records with quotas[x] records of each value x; all are equally likely."""
    cells = [[i for i, value in enumerate(values) if value == x] for x in range(len(quotas))]
    for parts in product(*(combinations(cell, quota) for cell, quota in zip(cells, quotas, strict=True))):
        yield frozenset(i for part in parts for i in part)


def label(values: Sequence[int], chosen: Iterable[int]) -> Labels:
    return tuple(value if i in chosen else WITHHELD for i, value in enumerate(values))


def equal_composition(values: tuple[int, ...], *, quotas: Sequence[int]) -> Distribution:
    """The rule: quotas[x] records of each value, chosen uniformly. A table with a short cell does not open."""
    if any(quota > number for quota, number in zip(quotas, count(values, len(quotas)), strict=True)):
        return {}
    every = [label(values, chosen) for chosen in choices(values, quotas)]
    weights: Distribution = {}
    add(weights, ((labels, Fraction(1, len(every))) for labels in every))
    return weights


# Sequences of outcomes


def in_order(labels: Labels, remaining: int) -> int:
    return 0


def from_both_ends(labels: Labels, remaining: int) -> int:
    """Request the last record after a refusal, the first one after a release: it depends on what was seen."""
    return remaining - 1 if labels and labels[-1] == WITHHELD else 0


def outcomes(labels: Labels, requests: int, strategy: Strategy = in_order) -> Labels:
    remaining, seen = list(labels), ()
    for _ in range(requests):
        seen = (*seen, remaining.pop(strategy(seen, len(remaining))))
    return seen


def outcomes_of_counts(counts: Sequence[int], rule: Rule, requests: int, strategy: Strategy = in_order) -> Distribution:
    """Return the distribution of outcomes for a group of which the counts are known, and nothing else."""
    weights: Distribution = {}
    tables = arrangements(counts)
    for values in tables:
        add(weights, ((outcomes(ls, requests, strategy), p / len(tables)) for ls, p in rule(values).items()))
    return weights


def outcomes_of_type(shares: Sequence[Fraction], size: int, rule: Rule, requests: int) -> Distribution:
    """Return the distribution of outcomes for a group of `size` draws from `shares`, if the desk opens."""
    weights: Distribution = {}
    for values in product(range(len(shares)), repeat=size):
        drawn = prod((shares[value] for value in values), start=Fraction(1))
        add(weights, ((outcomes(ls, requests), drawn * p) for ls, p in rule(values).items()))
    return normalize(weights)


def posteriors(laws: Mapping[Any, Distribution], prior: Mapping[Any, Fraction]) -> dict[Any, Distribution]:
    """Return the probability of each hypothesis after each outcome."""
    every = dict.fromkeys(outcome for law in laws.values() for outcome in law)
    return {
        outcome: normalize({name: prior[name] * law.get(outcome, Fraction(0)) for name, law in laws.items()})
        for outcome in every
    }


# The mix of a table


def sample_counts(shares: Sequence[Fraction], size: int, sampled: int) -> Distribution:
    """Return the distribution of (counts of the group, counts of a uniform sample of it), for every table and sample."""
    weights: Distribution = {}
    samples = list(combinations(range(size), sampled))
    for values in product(range(len(shares)), repeat=size):
        drawn = prod((shares[value] for value in values), start=Fraction(1)) / len(samples)
        whole = count(values, len(shares))
        add(weights, (((whole, count([values[i] for i in sample], len(shares))), drawn) for sample in samples))
    return weights


def mixes(types: Sequence[Sequence[Fraction]], sizes: Sequence[int], *, from_full_groups: bool = False) -> Distribution:
    """Return the distribution of the mix: the smallest share of each value over the groups, before any margin."""
    sampled = min(sizes)
    weights: Distribution = {}
    parts = []
    for shares, size in zip(types, sizes, strict=True):
        group: Distribution = {}
        for (whole, sample), p in sample_counts(shares, size, sampled).items():
            row = whole if from_full_groups else sample
            add(group, [(tuple(Fraction(number, sum(row)) for number in row), p)])
        parts.append(group)
    for rows in product(*(part.items() for part in parts)):
        mix = tuple(min(column) for column in zip(*(shares for shares, _ in rows), strict=True))
        add(weights, [(mix, prod((p for _, p in rows), start=Fraction(1)))])
    return weights


def posteriors_of_mix(
    ordinary: Sequence[Fraction], sensitive: Sequence[Fraction], sizes: Sequence[int], **options: Any
) -> dict[Any, Distribution]:
    """Return the probability of each group to be the sensitive one after each mix; exactly one group is."""
    groups = range(len(sizes))
    laws = {y: mixes([sensitive if z == y else ordinary for z in groups], sizes, **options) for y in groups}
    return posteriors(laws, dict.fromkeys(groups, Fraction(1, len(sizes))))


# Decoys


def hidden_sets(groups: int, sensitive: tuple[int, ...], among: int) -> Distribution:
    """Return the distribution of the hidden set: the sensitive groups with (among - 1) times as many others."""
    others = [y for y in range(groups) if y not in sensitive]
    drawn = list(combinations(others, (among - 1) * len(sensitive)))
    return {frozenset((*sensitive, *decoys)): Fraction(1, len(drawn)) for decoys in drawn}


def posteriors_of_groups(laws: Mapping[tuple[int, ...], Distribution], groups: int) -> dict[Any, list[Fraction]]:
    """Return for each outcome the probability of each group to be sensitive; every hypothesis was equally likely."""
    after = posteriors(laws, dict.fromkeys(laws, Fraction(1, len(laws))))
    return {
        outcome: [sum((p for named, p in by_name.items() if y in named), Fraction(0)) for y in range(groups)]
        for outcome, by_name in after.items()
    }


# Faults


def first_come_first_served(values: tuple[int, ...], *, quotas: Sequence[int]) -> Distribution:
    """Fault: a quota is used up in the order of requests."""
    if not equal_composition(values, quotas=quotas):
        return {}
    chosen = [i for i, value in enumerate(values) if values[:i].count(value) < quotas[value]]
    return {label(values, chosen): Fraction(1)}


def coins_with_own_shares(values: tuple[int, ...], *, mix: Sequence[Fraction]) -> Distribution:
    """Fault: each record of value x is released with probability mix[x] / (share of x in its own group)."""
    counts = count(values, len(mix))
    weights: Distribution = {(): Fraction(1)}
    for value in values:
        heads = min(Fraction(1), mix[value] * len(values) / counts[value])
        longer: Distribution = {}
        for labels, p in weights.items():
            add(longer, [((*labels, value), p * heads), ((*labels, WITHHELD), p * (1 - heads))])
        weights = longer
    return weights


def second_draw(values: tuple[int, ...], *, quotas: Sequence[int]) -> Distribution:
    """Fault: the withheld records take part in the next selection, with quotas by what is left of the group."""
    weights: Distribution = {}
    for labels, p in equal_composition(values, quotas=quotas).items():
        rest = [i for i, seen in enumerate(labels) if seen == WITHHELD]
        left = tuple(values[i] for i in rest)
        fitting = [min(quota, number) for quota, number in zip(quotas, count(left, len(quotas)), strict=True)]
        for later, q in equal_composition(left, quotas=fitting).items():
            both = list(labels)
            for i, seen in zip(rest, later, strict=True):
                both[i] = seen
            add(weights, [(tuple(both), p * q)])
    return weights


def cut_quotas(values: tuple[int, ...], *, quotas: Sequence[int]) -> Distribution:
    """Fault: a quota that the table cannot fill is lowered, instead of a refusal to open."""
    fitting = [min(quota, number) for quota, number in zip(quotas, count(values, len(quotas)), strict=True)]
    return equal_composition(values, quotas=fitting)


def ranked(values: tuple[int, ...], *, quotas: Sequence[int], ranks: int, releases_ties: bool) -> Distribution:
    """Choose by ranks with few possible values; ties are ordered by hashes, or (fault) all of them are released."""
    if not equal_composition(values, quotas=quotas):
        return {}
    hashes = [tuple(range(len(values)))] if releases_ties else list(permutations(range(len(values))))
    weights: Distribution = {}
    every = list(product(product(range(ranks), repeat=len(values)), hashes))
    for drawn, order in every:
        chosen: set[int] = set()
        for x, quota in enumerate(quotas):
            cell = sorted((drawn[i], order[i], i) for i, value in enumerate(values) if value == x)
            last = cell[quota - 1][0] if quota else -1
            chosen |= {i for rank, _, i in (cell if releases_ties else cell[:quota]) if rank <= last}
        add(weights, [(label(values, chosen), Fraction(1, len(every)))])
    return weights


def decoys_in_two_epochs(groups: int, sensitive: tuple[int, ...], among: int) -> Distribution:
    """Fault: the decoys are drawn again for later records. The outcome is a pair of hidden sets."""
    first = hidden_sets(groups, sensitive, among)
    return {(early, late): p * q for early, p in first.items() for late, q in first.items()}


def nearest_group(amounts: Sequence[Fraction | int], sensitive: int) -> frozenset[int]:
    """Return the hidden set with one decoy: the group whose amount is the nearest."""
    others = (y for y in range(len(amounts)) if y != sensitive)
    return frozenset((sensitive, min(others, key=lambda y: (abs(amounts[y] - amounts[sensitive]), y))))


def decoy_of_similar_values(types: Sequence[Sequence[Fraction]], sizes: Sequence[int], sensitive: int) -> Distribution:
    """Fault: the decoy is the group with the nearest share of value 0. The outcome: the set, and all other groups in full."""
    groups = [product(range(len(shares)), repeat=size) for shares, size in zip(types, sizes, strict=True)]
    weights: Distribution = {}
    for tables in product(*groups):
        p = prod((types[y][value] for y, values in enumerate(tables) for value in values), start=Fraction(1))
        hidden = nearest_group([Fraction(values.count(0), len(values)) for values in tables], sensitive)
        add(weights, [((hidden, tuple(values for y, values in enumerate(tables) if y not in hidden)), p)])
    return weights


def sampled_and_chosen(size: int, sampled: int, quota: int, *, one_label: bool) -> Distribution:
    """Return the distribution of (record 0 is in the sample, record 0 is chosen) in a group of one value.

    Two labels give two independent orders of the records. Fault: one label gives one order for both.
    """
    orders = list(permutations(range(size)))
    weights: Distribution = {}
    for sample_order in orders:
        for order in [sample_order] if one_label else orders:
            pairs = len(orders) if one_label else len(orders) ** 2
            add(weights, [((0 in sample_order[:sampled], 0 in order[:quota]), Fraction(1, pairs))])
    return weights


def largest(after: Mapping[Any, Mapping[Any, Fraction]], name: Any) -> tuple[Fraction, Any]:
    """Return the largest probability of a hypothesis over all outcomes, and that outcome."""
    return max(((by_name[name], outcome) for outcome, by_name in after.items()), key=lambda pair: pair[0])


def bind(rule: Callable[..., Distribution], **options: Any) -> Rule:
    return partial(rule, **options)
