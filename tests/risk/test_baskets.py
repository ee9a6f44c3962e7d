"""Breaches and local losses of randomized baskets equal the enumeration of all baskets and reports, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from reference import transitions as reference

from tidegate.risk import baskets

FACTS = golden("baskets")
HALF = Fraction(1, 2)
TENTHS = [Fraction(1, 10), Fraction(3, 10), Fraction(4, 10), Fraction(2, 10)]
THREE_TENTHS = Fraction(3, 10)


def cut_and_paste(row: dict[str, object]) -> tuple[list[Fraction], Fraction]:
    return [Fraction(str(item)).limit_denominator(10**12) for item in row["keep"]], Fraction(str(row["rho"]))  # type: ignore[attr-defined]


@paper(FACTS["paper"])
@pytest.mark.parametrize("name", "ABCD")
def test_local_losses_match_published_operators(name: str) -> None:
    row = FACTS["cut_and_paste"][name]
    loss = baskets.local_loss(*cut_and_paste(row))
    assert [loss.epsilon, loss.epsilon_one_replaced] == pytest.approx(row["epsilon"], abs=1e-9)


@paper(FACTS["paper"])
def test_mask_loses_twice_the_log_odds_per_item() -> None:
    facts, stays = FACTS["mask_eps"], Fraction(9, 10)
    keep = [math.comb(5, j) * stays**j * (1 - stays) ** (5 - j) for j in range(6)]
    loss = baskets.local_loss(keep, 1 - stays)
    assert loss.epsilon == pytest.approx(facts["m_subset_pair_m5"], abs=1e-9)
    assert loss.epsilon_one_replaced == pytest.approx(2 * facts["one_item_addremove"], abs=1e-9)


@pytest.mark.parametrize(
    ("items", "keep", "insert"),
    [
        (6, TENTHS, THREE_TENTHS),
        (6, [Fraction(1, 4), Fraction(1, 4), HALF], Fraction(1, 5)),
        (5, [Fraction(1, 16), Fraction(1, 4), Fraction(3, 16), HALF], Fraction(2, 7)),  # fewer than two baskets' items
        (5, [Fraction(3, 8), Fraction(1, 8), Fraction(1, 8), Fraction(1, 8), Fraction(1, 4)], Fraction(1, 3)),
        (4, [Fraction(1, 8), Fraction(7, 8)], Fraction(1, 9)),
    ],
)
def test_local_losses_equal_the_enumeration(items: int, keep: list[Fraction], insert: Fraction) -> None:
    loss = baskets.local_loss(keep, insert, vocabulary=items)
    assert (loss.any_two, loss.one_replaced) == reference.ratios(items, len(keep) - 1, keep, insert)
    assert baskets.local_loss(keep, insert).any_two >= loss.any_two


def test_enumerated_example_is_exact() -> None:
    facts = FACTS["bruteforce_n6_m3"]
    loss = baskets.local_loss(TENTHS, THREE_TENTHS, vocabulary=6)
    assert (loss.epsilon, loss.epsilon_one_replaced) == pytest.approx((facts["eps"], facts["eps_item"]), abs=1e-9)


def exchangeable(items: int, size: int, weights: list[int]) -> dict[reference.Basket, Fraction]:
    """Return a prior of baskets that depends on the first three items only through their number."""
    known = reference.baskets(items, size)
    weighed = {item: Fraction(weights[len(item & {0, 1, 2})]) for item in known}
    return {item: weight / sum(weighed.values()) for item, weight in weighed.items()}


def partial_supports(prior: dict[reference.Basket, Fraction], k: int) -> list[Fraction]:
    itemset = set(range(k))
    return [sum((w for item, w in prior.items() if len(item & itemset) == i), Fraction(0)) for i in range(k + 1)]


@pytest.mark.parametrize(
    ("items", "size", "keep"), [(6, 3, TENTHS), (5, 3, TENTHS[::-1]), (6, 4, [*TENTHS[:3], 0, TENTHS[3]])]
)
def test_posteriors_of_seen_unseen_and_mixed_looks_equal_the_enumeration(
    items: int, size: int, keep: list[Fraction]
) -> None:
    prior = exchangeable(items, size, [5, 2, 3, 7])
    supports = [partial_supports(prior, k) for k in range(4)]
    looked = 0
    for look in baskets.looks(3):
        both, total = baskets.look_rows(size, THREE_TENTHS, supports[look.items], look)
        ours = sum(a * b for a, b in zip(keep, both, strict=True)) / sum(
            a * b for a, b in zip(keep, total, strict=True)
        )
        visible, absent = frozenset(range(look.seen)), frozenset(range(look.seen, look.items))
        about = 0 if look.about == "seen" else look.items - 1
        assert ours == reference.posterior(prior, items, keep, THREE_TENTHS, visible, absent, about)
        looked += 1
    assert looked == 12


@paper(FACTS["paper"])
def test_challenging_itemset_has_the_published_posterior() -> None:
    keep, rho = cut_and_paste(FACTS["cut_and_paste"]["A"])
    partial = baskets.challenging([1, Fraction(5, 100), Fraction(2, 100), Fraction(1, 100)])
    assert [float(item) for item in partial] == pytest.approx(FACTS["challenging_s"], abs=1e-12)
    both, total = baskets.look_rows(5, rho, partial, baskets.Look(3, 3, "seen"))
    after = sum(a * b for a, b in zip(keep, both, strict=True)) / sum(a * b for a, b in zip(keep, total, strict=True))
    assert float(after) == pytest.approx(FACTS["breach_posterior"], abs=1e-12)


def test_gaps_reveal_a_basket_that_is_dropped_entirely() -> None:
    """One-sided breaches rate this operator as perfect: it shows no true item, but every gap in the report is a true item."""
    keep, insert = [Fraction(1), Fraction(0), Fraction(0)], Fraction(58, 100)
    maximum = [Fraction(1), Fraction(1, 10), Fraction(1, 20)]
    results = baskets.breaches(keep, insert, baskets.from_maximum(maximum))
    seen = [item for item in results if item.look.seen == item.look.items]
    assert max(item.after for item in seen) == 0
    risk = baskets.basket_risk(keep, insert, level=HALF / 4, maximum=maximum)
    assert risk.worst.look == baskets.Look(2, 0, "not seen")
    assert not risk.holds
    assert risk.loss.epsilon == math.inf


def test_larger_itemsets_can_breach_first() -> None:
    """Looks at 1 to 3 items pass and a look at five does not, so every k up to the size must be checked."""
    maximum = baskets.extend_maximum([Fraction(1), Fraction(1, 10), Fraction(2, 100), Fraction(1, 100)], 5)
    keep = [Fraction(1, 8), 0, 0, 0, 0, Fraction(7, 8)]
    results = baskets.breaches(keep, Fraction(7, 20), baskets.from_maximum(maximum))
    assert max(item.after for item in results if item.look.items <= 3) <= HALF < max(item.after for item in results)


def test_items_above_the_level_are_exempted() -> None:
    priors = {"bread": Fraction(6, 10), "milk": HALF, "figs": Fraction(1, 100)}
    assert baskets.exempted(priors, level=HALF) == ("bread",)
    keep = [Fraction(1, 5), Fraction(4, 5)]
    risk = baskets.basket_risk(keep, Fraction(4, 10), level=HALF, maximum=[1, Fraction(1, 100)], priors=priors)
    assert risk.holds
    assert risk.exempted == ("bread",)


plans = st.integers(1, 4).flatmap(lambda m: st.lists(st.integers(1, 40), min_size=m + 1, max_size=m + 1))


@given(plans, st.integers(1, 19))
def test_posterior_odds_change_by_at_most_the_loss(parts: list[int], inserted: int) -> None:
    keep = [Fraction(part, sum(parts)) for part in parts]
    maximum = [Fraction(1, 3**j) for j in range(len(keep))]
    loss = baskets.local_loss(keep, Fraction(inserted, 20)).any_two
    for breach in baskets.breaches(keep, Fraction(inserted, 20), baskets.from_maximum(maximum)):
        assert breach.after / (1 - breach.after) <= loss * breach.before / (1 - breach.before)


@given(plans, st.integers(1, 19))
def test_complement_of_a_report_reveals_the_same(parts: list[int], inserted: int) -> None:
    keep = [Fraction(part, sum(parts)) for part in parts]
    supports = baskets.from_maximum([Fraction(1, 3**j) for j in range(len(keep))])
    insert = Fraction(inserted, 20)
    assert baskets.local_loss(keep, insert) == baskets.local_loss(keep[::-1], 1 - insert)
    breach, complement = (baskets.worst_breach(k, r, supports) for k, r in ((keep, insert), (keep[::-1], 1 - insert)))
    assert breach.after == complement.after


def test_binomial_plan_reveals_nothing() -> None:
    insert = Fraction(2, 5)
    keep = [math.comb(4, j) * insert**j * (1 - insert) ** (4 - j) for j in range(5)]
    assert baskets.local_loss(keep, insert) == baskets.LocalLoss(1, 1)
    supports = baskets.from_maximum([Fraction(1, 5**j) for j in range(5)])
    assert all(item.after == item.before for item in baskets.breaches(keep, insert, supports))


@pytest.mark.parametrize(("keep", "insert"), [([0, 1], 0), ([1, 0], 1), ([1, 1, 0], HALF)])
def test_report_that_excludes_a_basket_has_unlimited_loss(keep: list[int], insert: Fraction) -> None:
    total = sum(keep)
    assert baskets.local_loss([Fraction(item, total) for item in keep], insert).epsilon == math.inf


@pytest.mark.parametrize(
    ("keep", "insert", "items"), [([1, 0], 0, None), ([0, 1], 1, None), ([1], HALF, None), ([0, 0, 1], HALF, 2)]
)
def test_constant_report_loses_nothing(keep: list[int], insert: Fraction, items: int | None) -> None:
    assert baskets.local_loss(keep, insert, vocabulary=items).epsilon == 0
