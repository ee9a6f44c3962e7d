"""Planted faults in equal composition, each detected by the enumeration that finds nothing in the correct rule."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from reference import hiding as slow
from reference.hiding import WITHHELD, Distribution, Rule, bind
from release.hiding_keys import OLD, ONES, ORDINARY, SENSITIVE, YOUNG, largest, planted, population_of, posteriors

from tidegate.policy import Hiding
from tidegate.release import selection
from tidegate.release.selection import SelectionKey, choose, draw_decoys, mix_of_table, quotas_of, short_cells

FAULTS: dict[str, tuple[Rule, dict[str, int], Fraction, Any]] = {
    "first come first served": (
        bind(slow.first_come_first_served, quotas=ONES), {}, Fraction(9, 13), (2, WITHHELD, WITHHELD),
    ),
    "second draw for withheld records": (bind(slow.second_draw, quotas=ONES), {}, Fraction(9, 13), (2, 2, WITHHELD)),
    "quota cut to the table": (
        bind(slow.cut_quotas, quotas=ONES), {"requests": 5}, Fraction(243, 247), (2, *[WITHHELD] * 4),
    ),
    "released ties": (
        bind(slow.ranked, quotas=ONES, ranks=2, releases_ties=True), {}, Fraction(9, 13), (2, 2, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_raises_the_posterior(fault: str) -> None:
    rule, options, expected, outcome = FAULTS[fault]
    after = posteriors(rule, **options)
    assert slow.largest(after, "sensitive")[0] == expected
    assert after[outcome]["sensitive"] == expected


@pytest.mark.parametrize("draws", [1, 2])
def test_second_draw_exceeds_the_bound_of_a_refusal(draws: int) -> None:
    """Where the table can fill the quotas again, outcomes show nothing, but a refused person learns more than promised."""
    at_most, size = Fraction(3, 4), 96
    counts = [[int(share * size) for share in shares] for shares in (ORDINARY, SENSITIVE)]
    left = [row[:] for row in counts]
    for _ in range(draws):
        mix = [at_most * min(column) / size for column in zip(*left, strict=True)]
        for row, quotas in zip(left, quotas_of(tuple(mix), [size] * 2, [0, 1], 1).by_group, strict=True):
            row[:] = [number - quota for number, quota in zip(row, quotas or (), strict=True)]
    refused = [[Fraction(a, b) for a, b in zip(*pair, strict=True)] for pair in zip(left, counts, strict=True)]
    factor = max(max(a / b, b / a) for a, b in zip(*refused, strict=True))
    assert factor == {1: 3, 2: 11}[draws]
    assert (factor > 1 / (1 - at_most)) == (draws == 2)


@pytest.mark.parametrize("part", [Fraction(1), Fraction(3, 4)])
def test_coins_with_own_shares_raise_the_posterior(part: Fraction) -> None:
    mix = [part * min(pair) for pair in zip(ORDINARY, SENSITIVE, strict=True)]
    rule = bind(slow.coins_with_own_shares, mix=mix)
    assert largest(rule, size=6, requests=6) == (Fraction(729, 733), (2,) * 6)


@pytest.mark.parametrize(("sizes", "expected"), [((2, 3), Fraction(27, 28)), ((4, 6), Fraction(6561, 6562))])
def test_mix_of_full_groups_reveals_the_group_at_the_minimum(sizes: tuple[int, ...], expected: Fraction) -> None:
    after = slow.posteriors_of_mix(YOUNG, OLD, sizes, from_full_groups=True)
    assert slow.largest(after, 0)[0] == slow.largest(after, 1)[0] == expected


def test_decoys_drawn_again_reveal_the_sensitive_group() -> None:
    laws = {named: slow.decoys_in_two_epochs(5, named, 2) for named in combinations(range(5), 1)}
    for (early, late), by_group in slow.posteriors_of_groups(laws, 5).items():
        assert max(by_group) == (Fraction(1, 2) if early == late else 1)


def test_decoy_of_similar_size_reveals_the_sensitive_group() -> None:
    sizes = (200, 210, 230, 300, 310)
    laws = {(named,): {slow.nearest_group(sizes, named): Fraction(1)} for named in range(5)}
    after = slow.posteriors_of_groups(laws, 5)
    assert after[frozenset({1, 2})][2] == 1  # the nearest group of group 1 is group 0


@pytest.mark.parametrize(("sizes", "expected"), [((2, 2, 2), Fraction(19, 22)), ((1, 2, 3), Fraction(14, 19))])
def test_decoy_of_similar_values_reveals_the_sensitive_group(sizes: tuple[int, ...], expected: Fraction) -> None:
    laws = {
        (named,): slow.decoy_of_similar_values([OLD if y == named else YOUNG for y in range(3)], sizes, named)
        for named in range(3)
    }
    after = slow.posteriors_of_groups(laws, 3)
    assert max(max(by_group) for by_group in after.values()) == expected


def test_one_label_makes_the_choice_depend_on_the_sample() -> None:
    for one_label in (False, True):
        joint = slow.sampled_and_chosen(4, 2, 1, one_label=one_label)
        both, sampled, chosen = (sum((p for key, p in joint.items() if all(key[i] for i in parts)), Fraction(0))
                                 for parts in ((0, 1), (0,), (1,)))  # fmt: skip
        assert (sampled, chosen) == (Fraction(1, 2), Fraction(1, 4))
        assert (both == sampled * chosen) == (not one_label)


def test_one_label_does_not_show_in_the_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names carry no value, so labels are exchangeable given the mix, even if sample and choice have one order.

    Only the joint distribution of sample and choice shows this fault (previous test); no observer sees it.
    """
    monkeypatch.setattr(selection, "FEWEST", 0)
    promise = Hiding(reveals="x", about="y", mix="table", margin=0, smallest=1)
    orders = [
        [*first, *second] for first in permutations(["0.0", "0.1"]) for second in permutations(["1.0", "1.1", "1.2"])
    ]
    laws: list[Distribution] = []
    for one_label in (True, False):
        law: Distribution = {}
        pairs = [(order, order) for order in orders] if one_label else list(product(orders, orders))
        for groups in product(product(range(2), repeat=2), product(range(2), repeat=3)):
            p = np.prod([(OLD, YOUNG)[y][value] for y, group in enumerate(groups) for value in group]) / len(pairs)
            slow.add(law, ((released(groups, *pair, promise), p) for pair in pairs))
        laws.append(law)
    assert laws[0] == laws[1]
    assert len(laws[0]) > 10


def released(groups: Any, sample_order: Any, order: Any, promise: Hiding) -> Any:
    """Return the mix and the labels of all records, for planted orders of the sample and of the choice."""
    population = population_of(groups, 2)
    mix = tuple(
        share / promise.at_most
        for share in mix_of_table(planted("sample", sample_order), 1, population, (0, 1), promise)
    )
    quotas = quotas_of(mix, population.sizes, (0, 1), 1)
    if short_cells(quotas, population, Fraction(1)):
        return "closed"
    chosen = choose(planted("select", order), 1, population, quotas)
    return mix, *(
        value if f"{y}.{i}" in chosen else WITHHELD for y, group in enumerate(groups) for i, value in enumerate(group)
    )


def test_sample_choice_and_decoys_have_their_own_labels() -> None:
    labels: list[str] = []

    class RecordingKey(SelectionKey):
        def rank(self, label: Any, epoch: int, name: str) -> bytes:
            labels.append(label)
            return super().rank(label, epoch, name)

    key, population = RecordingKey(bytes(32), "labels"), population_of([[0] * 20 + [1] * 20] * 2, 2)
    promise = Hiding(reveals="x", about="y", mix="table", smallest=1)
    for label, run in (
        ("sample", lambda: mix_of_table(key, 1, population, (0, 1), promise)),
        ("select", lambda: choose(key, 1, population, quotas_of((Fraction(1, 4),) * 2, (40, 40), (0, 1), 1))),
        ("decoys", lambda: draw_decoys(key, [0], 2, range(4))),
    ):
        labels.clear()
        run()
        assert set(labels) == {label}
