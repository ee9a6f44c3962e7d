"""Equal composition by exact enumeration: no outcome changes what an observer believes. test_hiding_faults.py plants faults.

Tables, choices and sequences of outcomes are enumerated in fractions (`reference/hiding.py`); our own functions are enumerated
through a key whose ranks are planted. Sampled claims have a false-alarm rate of ALPHA each, 3e-6 for the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest
from claims.probabilities import SEED, chance
from reference import hiding as slow
from reference.hiding import WITHHELD, Distribution, bind
from release.hiding_keys import (
    OLD,
    ONES,
    ORDINARY,
    SENSITIVE,
    UNRANKED,
    YOUNG,
    PlantedKey,
    planted,
    population_of,
    posteriors,
)

from tidegate.policy import Hiding
from tidegate.release import selection
from tidegate.release.selection import (
    Population,
    Quotas,
    SelectionKey,
    choose,
    draw_decoys,
    mix_of_table,
    quotas_of,
    reduced_share,
    short_cells,
)

ALPHA, DRAWS = 1e-6, 6_000


# Theorem 1: outcomes do not depend on the table


@pytest.mark.parametrize("strategy", [slow.in_order, slow.from_both_ends])
@pytest.mark.parametrize(("requests", "sequences"), [(3, 42), (6, 180)])
def test_outcomes_have_one_distribution_for_all_tables_that_fit(requests: int, sequences: int, strategy: Any) -> None:
    quotas = quotas_of((Fraction(1, 6), Fraction(1, 3), Fraction(1, 6)), [6], [0], 1)
    assert quotas.by_group == ((1, 2, 1),)
    tables = [counts for counts in slow.compositions(6, 3) if not short(quotas, counts)]
    rule = bind(slow.equal_composition, quotas=(1, 2, 1))
    laws = [slow.outcomes_of_counts(counts, rule, requests, strategy) for counts in tables]
    assert len(tables) == 6
    assert len(laws[0]) == sequences
    assert all(law == laws[0] for law in laws)
    if requests == 3:
        assert laws[0][WITHHELD, WITHHELD, 1] == laws[0][1, 1, WITHHELD] == Fraction(1, 30)


def short(quotas: Quotas, counts: Sequence[int], at_most: Fraction = Fraction(1)) -> bool:
    values = [value for value, number in enumerate(counts) for _ in range(number)]
    return bool(short_cells(quotas, population_of([values], len(counts)), at_most))


@pytest.mark.parametrize("requests", [3, 5])
def test_no_outcome_raises_the_posterior_above_the_prior(requests: int) -> None:
    after = posteriors(bind(slow.equal_composition, quotas=ONES), requests=requests)
    assert {by_name["sensitive"] for by_name in after.values()} == {Fraction(1, 5)}


def test_choices_of_every_rank_order_are_those_of_the_reference() -> None:
    """Our own `choose`, for every table of 5 records and every order of their ranks."""
    quotas = quotas_of((Fraction(1, 5),) * 3, [5], [0], 1)
    assert quotas.by_group == (ONES,)
    names = [f"0.{i}" for i in range(5)]
    keys = [planted("select", order) for order in permutations(names)]
    for counts in slow.compositions(5, 3):
        values = tuple(value for value, number in enumerate(counts) for _ in range(number))
        expected = slow.equal_composition(values, quotas=ONES)
        population = population_of([values], 3)
        assert bool(short_cells(quotas, population, Fraction(1))) == (not expected)
        if expected:
            tally = Counter(frozenset(choose(key, 1, population, quotas)) for key in keys)
            labels = {
                slow.label(values, [names.index(name) for name in chosen]): Fraction(number, len(keys))
                for chosen, number in tally.items()
            }
            assert labels == expected


@pytest.mark.claim
def test_chosen_records_are_uniform_over_all_keys() -> None:
    """Two cells of 4 and 3 records, 2 and 1 chosen: 18 joint choices."""
    population = population_of([[0, 0, 0, 0, 1, 1, 1]], 2)
    quotas = Quotas((Fraction(2, 7), Fraction(1, 7)), (7,), (0,), ((2, 1),))
    drawn = Counter(frozenset(choose(key, 1, population, quotas)) for key in keys("choose"))
    assert len(drawn) == comb(4, 2) * 3
    assert chance(np.array(list(drawn.values())), np.full(18, 1 / 18)) > ALPHA


@pytest.mark.claim
def test_epochs_choose_independently() -> None:
    population = population_of([[0, 0, 0, 0]], 1)
    quotas = Quotas((Fraction(1, 4),), (4,), (0,), ((1,),))
    drawn = Counter(
        tuple(name for epoch in (1, 2) for name in choose(key, epoch, population, quotas)) for key in keys("epochs")
    )
    assert len(drawn) == 16
    assert chance(np.array(list(drawn.values())), np.full(16, 1 / 16)) > ALPHA


def keys(name: str) -> Iterator[SelectionKey]:
    print(f"TIDEGATE_SEED={SEED}")
    return (SelectionKey(f"{SEED}/{name}/{number}".encode(), "claims") for number in range(DRAWS))


# Theorem 3: decoys


@pytest.mark.parametrize(("groups", "sensitive", "among"), [(5, 1, 2), (5, 1, 3), (6, 2, 2), (6, 2, 3)])
def test_posterior_of_every_hidden_group_is_one_over_k(groups: int, sensitive: int, among: int) -> None:
    laws = {named: slow.hidden_sets(groups, named, among) for named in combinations(range(groups), sensitive)}
    after = slow.posteriors_of_groups(laws, groups)
    for hidden, by_group in after.items():
        assert by_group == [Fraction(1, among) if y in hidden else 0 for y in range(groups)]


@pytest.mark.parametrize(("groups", "named", "among"), [(5, (3,), 3), (6, (1, 4), 2)])
def test_decoys_of_every_rank_order_are_those_of_the_reference(groups: int, named: tuple[int, ...], among: int) -> None:
    others = [str(y) for y in range(groups) if y not in named]
    orders = list(permutations(others))
    drawn = Counter(draw_decoys(planted("decoys", order), named, among, range(groups)) for order in orders)
    law = {frozenset(hidden): Fraction(number, len(orders)) for hidden, number in drawn.items()}
    assert law == slow.hidden_sets(groups, named, among)


@pytest.mark.claim
def test_decoys_are_uniform_over_all_keys() -> None:
    drawn = Counter(draw_decoys(key, [1, 4], 2, range(6)) for key in keys("decoys"))
    assert len(drawn) == 6
    assert chance(np.array(list(drawn.values())), np.full(6, 1 / 6)) > ALPHA


# Theorem 4: the mix of a table


@pytest.mark.parametrize("sizes", [(2, 3), (4, 6), (2, 3, 4)])
def test_mix_of_equal_samples_does_not_change_the_odds_of_groups(sizes: tuple[int, ...]) -> None:
    after = slow.posteriors_of_mix(YOUNG, OLD, sizes)
    assert len(after) > 2
    for by_group in after.values():
        assert set(by_group.values()) == {Fraction(1, len(sizes))}


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 4)])
def test_mix_of_every_sample_is_that_of_the_reference(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own `mix_of_table`, for every table and every sample, with a sensitive group at the end."""
    monkeypatch.setattr(selection, "FEWEST", 0)  # tiny samples
    promise = Hiding(reveals="x", about="y", mix="table", margin=0, smallest=1)
    types = [YOUNG] * (len(sizes) - 1) + [OLD]
    samples = [
        [[f"{y}.{i}" for i in sample] for sample in combinations(range(size), min(sizes))]
        for y, size in enumerate(sizes)
    ]
    sampling_keys = [planted("sample", [n for part in parts for n in part]) for parts in product(*samples)]
    law: Distribution = {}
    for groups in product(*(product(range(2), repeat=size) for size in sizes)):
        p = np.prod([types[y][value] for y, group in enumerate(groups) for value in group]) / len(sampling_keys)
        population = population_of(groups, 2)
        mixes = (mix_of_table(key, 1, population, range(len(sizes)), promise) for key in sampling_keys)
        slow.add(law, ((tuple(share / promise.at_most for share in mix), p) for mix in mixes))
    assert law == slow.mixes(types, sizes)


def test_reduced_share_is_the_share_less_its_margin_rounded_down() -> None:
    """Against 60 digits: never above, and below by less than 2**-32."""
    random = np.random.default_rng([3, 7])
    with mpmath.workdps(60):
        for _ in range(400):
            size = int(random.integers(15, 10 ** int(random.integers(2, 7))))
            count, margin = int(random.integers(15, size + 1)), Fraction(int(random.integers(0, 13)), 4)
            share = mpmath.mpf(count) / size
            error = mpmath.mpf(margin.numerator) / margin.denominator * mpmath.sqrt(share * (1 - share) / size)
            computed = reduced_share(count, size, margin)
            exact = max(mpmath.mpf(0), share - error)
            assert 0 <= exact - mpmath.mpf(computed.numerator) / computed.denominator < mpmath.mpf(2) ** -32


def test_fewer_than_15_sampled_records_count_as_none() -> None:
    assert reduced_share(14, 100, Fraction(0)) == 0
    assert reduced_share(15, 100, Fraction(0)) == Fraction(15, 100)
    assert reduced_share(15, 20, Fraction(100)) == 0


# Section 5: what a refusal shows to someone who knows their own value


@pytest.mark.parametrize(("at_most", "size", "factor"), [("1/2", 12, "5/3"), ("3/4", 24, 3), ("9/10", 60, 7)])
def test_refusal_factor_is_below_its_bound(at_most: str, size: int, factor: Any) -> None:
    """Every position of the own rank in its cell is equally likely; quotas are at_most times the smaller share."""
    limit = Fraction(at_most)
    mix = tuple(limit * min(pair) for pair in zip(ORDINARY, SENSITIVE, strict=True))
    (row,) = quotas_of(mix, [size], [0], 1).by_group
    assert row == tuple(share * size for share in mix)

    def refused(share: Fraction, quota: int) -> Fraction:
        positions = range(int(share * size))
        return Fraction(sum(position >= quota for position in positions), len(positions))

    chances = [(refused(p, q), refused(s, q)) for p, s, q in zip(ORDINARY, SENSITIVE, row or (), strict=True)]
    assert max(max(a / b, b / a) for a, b in chances) == Fraction(factor)
    assert Fraction(factor) <= Hiding(reveals="x", about="y", mix="table", at_most=limit).refusal_factor


# Ties


def test_ties_broken_by_hashes_keep_the_posterior() -> None:
    rule = bind(slow.ranked, quotas=ONES, ranks=2, releases_ties=False)
    assert {after["sensitive"] for after in posteriors(rule, size=4).values()} == {Fraction(1, 5)}


def test_equal_ranks_are_ordered_by_name_and_never_exceed_the_quota() -> None:
    key, names = PlantedKey(b"", "ties", {("select", "a"): UNRANKED + 1}), ["c", "a", "d", "b", "e"]
    quotas = Quotas((Fraction(2, 5),), (5,), (0,), ((2,),))
    for order in permutations(names):
        assert choose(key, 1, Population({0: order}, 1, 1), quotas) == {"b", "c"}
