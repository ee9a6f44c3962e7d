"""Recovered supports are unbiased and as far off as they say."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from claims.probabilities import SEED
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.collect.baskets import recovery, transitions
from tidegate.errors import Unsupported
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.cut_and_paste import cut_and_paste, cut_and_paste_keep
from tidegate.operators.mask import mask
from tidegate.operators.select_a_size import select_a_size
from tidegate.risk.baskets import challenging

FACTS = golden("baskets")
PARTIALS = [Fraction(90, 100), Fraction(6, 100), Fraction(3, 100), Fraction(1, 100)]
ITEMS, BASKETS = 16, 20_000
SIZES = (1, 2, 3, 5, 7)
OPERATORS: dict[str, SetOperator] = {
    "select-a-size": select_a_size(
        [
            SizePlan.rounded(
                size, [Fraction(1 if j < size else size + 4, 2 * size + 4) for j in range(size + 1)], "0.15"
            )
            for size in SIZES
        ],
        vocabulary_size=ITEMS,
    ),
    "cut-and-paste": cut_and_paste(6, "0.1", SIZES, vocabulary_size=ITEMS),
    "flip": mask("0.8", vocabulary_size=ITEMS),
    "asymmetric flip": mask("0.7", "0.1", vocabulary_size=ITEMS),
}
Bools = NDArray[np.bool_]


@paper(FACTS["paper"])
def test_variance_and_covariance_are_the_published_ones() -> None:
    phi, rho = transitions.moments(cut_and_paste_keep(5, 3, Fraction(1, 5)), 3), Fraction(1, 5)
    assert [
        float(support) for support in challenging([1, Fraction(1, 20), Fraction(1, 50), Fraction(1, 100)])
    ] == pytest.approx(FACTS["challenging_s"], abs=1e-12)
    seen = transitions.matrix(phi, rho, 3) @ np.array(PARTIALS, dtype=float)
    np.testing.assert_allclose(seen, FACTS["s_prime_expected"], atol=1e-12)
    facts = FACTS["var_support"]
    ours = recovery.support_variance(phi, rho, PARTIALS)
    assert math.sqrt(ours / facts["N"]) == pytest.approx(facts["sd"], abs=1e-12)
    np.testing.assert_allclose(
        recovery.covariance(phi, rho, [float(share) for share in PARTIALS]), FACTS["cov_sest_times_N"], atol=1e-8
    )


@pytest.mark.parametrize("table", ["cut_and_paste_breach_50", "optimal_breach_50_epsilon_6"])
@pytest.mark.parametrize("size", range(1, 11))
def test_standard_errors_equal_earlier_measurements(table: str, size: int) -> None:
    row = FACTS[table][str(size)]
    keep = row.get("pj") or cut_and_paste_keep(size, row["K"], Fraction(row["rho"]).limit_denominator(100))
    phi = transitions.moments([float(probability) for probability in keep], 3)
    for k, expected in enumerate(row["sd_sqrtN"], 1):
        target = challenging(FACTS["interest"][: k + 1])
        assert math.sqrt(recovery.support_variance(phi, row["rho"], target)) == pytest.approx(expected, rel=1e-9)


shares = st.lists(st.integers(0, 30), min_size=2, max_size=4).filter(any)


@given(shares, st.integers(1, 9), st.integers(1, 9))
def test_both_variance_formulas_and_the_unbiased_estimate_agree(parts: list[int], stays: int, inserted: int) -> None:
    partials = [Fraction(part, sum(parts)) for part in parts]
    items, insert = len(parts) - 1, Fraction(inserted, 10)
    phi = transitions.moments(cut_and_paste_keep(4, items + stays % 3, insert), items)
    seen = transitions.transition(phi, insert, items)
    weights = transitions.support_weights(phi, insert, items)
    expected = [sum(row[i] * partials[i] for i in range(items + 1)) for row in seen]
    assert sum(w * s for w, s in zip(weights, expected, strict=True)) == partials[-1]
    by_moments = recovery.support_variance(phi, insert, partials)
    assert by_moments == sum((w * w - w) * s for w, s in zip(weights, expected, strict=True))
    matrix = recovery.covariance(phi, insert, [float(share) for share in partials])
    assert matrix[-1, -1] == pytest.approx(float(by_moments), rel=1e-6, abs=1e-9)


def true_baskets(rng: np.random.Generator) -> Bools:
    """Baskets of the sizes above; the first items are frequent, and go together."""
    sizes = rng.choice(SIZES, BASKETS)
    taste = np.log(1 / np.arange(1, ITEMS + 1)) + 0.8 * np.eye(ITEMS)[0]
    scores = taste + rng.gumbel(size=(BASKETS, ITEMS)) + rng.normal(size=(BASKETS, 1)) * (np.arange(ITEMS) < 5)
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return np.asarray(ranks < sizes[:, None])


def randomize(truth: Bools, operator: SetOperator, rng: np.random.Generator) -> Bools:
    """By the definition, basket by basket in arrays: which ones are kept, and a coin for every other item."""
    sizes = truth.sum(axis=1)
    order = np.argsort(np.argsort(np.where(truth, rng.random(truth.shape), 2.0), axis=1), axis=1)
    kept_counts = np.zeros(len(truth), dtype=int)
    insert = np.zeros(len(truth))
    for size in np.unique(sizes):
        plan = operator.plan(int(size))
        group = sizes == size
        kept_counts[group] = rng.choice(size + 1, group.sum(), p=[float(probability) for probability in plan.keep])
        insert[group] = float(plan.insert)
    stays = truth & (order < kept_counts[:, None])
    return np.asarray(stays | (~truth & (rng.random(truth.shape) < insert[:, None])))


def counts(reports: Bools, sizes: NDArray[np.int64], itemsets: list[tuple[int, ...]]) -> dict[int, NDArray[np.float64]]:
    counts_by_size = {}
    for size in np.unique(sizes):
        group = reports[sizes == size]
        seen = [np.bincount(group[:, list(itemset)].sum(axis=1), minlength=len(itemset) + 1) for itemset in itemsets]
        counts_by_size[int(size)] = np.array(seen, dtype=float)
    return counts_by_size


ROUNDS = {1: 30, 2: 55, 3: 90}


def disjoint(k: int) -> list[tuple[int, ...]]:
    """Itemsets without common items: their errors hardly go together."""
    return [tuple(range(first, ITEMS, ITEMS // k))[:k] for first in range(ITEMS // k)]


def z_scores(
    operator: SetOperator, k: int, *, taken_for: SetOperator | None = None, smallest: int = 0
) -> NDArray[np.float64]:
    """(estimate - truth) / standard error, over rounds of new reports; the server may take the operator for another one."""
    name = next(name for name, known in OPERATORS.items() if known is operator)
    sizes, real, rounds = rounds_of_reports(name, k)
    total = int((sizes >= smallest).sum())
    estimates = [recovery.recover(taken_for or operator, seen, total=total) for seen in rounds]
    return np.array([(recovered.estimate - real) / recovered.standard_error for recovered in estimates])


@cache
def rounds_of_reports(
    name: str, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[dict[int, NDArray[np.float64]]]]:
    """Return the sizes of the baskets, the true supports, and the counts of each round: the same for every server."""
    operator, rng = OPERATORS[name], np.random.default_rng([k, *SEED.encode()])
    truth = true_baskets(rng)
    sizes, itemsets = truth.sum(axis=1), disjoint(k)
    real = np.array([truth[:, list(itemset)].all(axis=1).mean() for itemset in itemsets])
    rounds = [counts(randomize(truth, operator, rng), sizes, itemsets) for _ in range(ROUNDS[k])]
    if operator.flip is not None:  # a flip does not reveal the size
        rounds = [{max(SIZES): np.sum(list(seen.values()), axis=0)} for seen in rounds]
    return sizes, real, rounds


def fits(scores: NDArray[np.float64]) -> bool:
    """Mean 0 and standard deviation 1, six deviations wide, all together and the mean of every itemset for itself.

    Of normal scores wrong less than once in 1e7 (alpha is 1e-6).
    """
    rounds, count = len(scores), scores.size
    centered = abs(scores.mean()) < 6 / math.sqrt(count) and abs(scores.mean(axis=0)).max() < 6 / math.sqrt(rounds)
    return bool(centered and abs(scores.std() - 1) < 6 / math.sqrt(2 * count))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", OPERATORS)
def test_estimation_errors_match_the_stated_errors(name: str, k: int) -> None:
    scores = z_scores(OPERATORS[name], k)
    assert scores.size >= 400
    assert fits(scores), (scores.mean(), scores.std())
    assert not fits(scores / math.sqrt(2)), "a variance of twice the size is caught"
    assert not fits(scores * math.sqrt(2)), "a variance of half the size is caught"


def mixed_up(operator: SetOperator) -> SetOperator:
    """The size of each basket taken for the next one, for those of several items."""
    moved = {size: operator.plan(other) for size, other in zip((2, 3, 5, 7), (3, 5, 7, 5), strict=True)}
    plans = {size: SizePlan(size, _stretch(plan, size), plan.insert) for size, plan in moved.items()}
    return SetOperator(ITEMS, {1: operator.plan(1), **plans})


def _stretch(plan: SizePlan, size: int) -> tuple[Fraction, ...]:
    keep = [*plan.keep, *[Fraction(0)] * size][: size + 1]
    keep[-1] += 1 - sum(keep)
    return tuple(keep)


def more_inserted(operator: SetOperator) -> SetOperator:
    plans = {size: SizePlan(size, plan.keep, plan.insert + Fraction(1, 8)) for size, plan in operator.plans.items()}
    return SetOperator(ITEMS, plans)


def reversed_moments(operator: SetOperator) -> SetOperator:
    """phi of the items dropped in the place of those kept."""
    return SetOperator(
        ITEMS, {size: SizePlan(size, plan.keep[::-1], plan.insert) for size, plan in operator.plans.items()}
    )


@pytest.mark.one_in(7)
@pytest.mark.parametrize("fault", [mixed_up, more_inserted, reversed_moments])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", ["select-a-size", "cut-and-paste"])
def test_server_that_uses_the_wrong_operator_is_detected(
    name: str, k: int, fault: Callable[[SetOperator], SetOperator]
) -> None:
    assert not fits(z_scores(OPERATORS[name], k, taken_for=fault(OPERATORS[name])))


@pytest.mark.parametrize("k", [2, 3])
def test_normalization_without_small_baskets_is_detected(k: int) -> None:
    assert not fits(z_scores(OPERATORS["cut-and-paste"], k, smallest=k))


def test_subset_counts_equal_partial_counts() -> None:
    rng = np.random.default_rng(5)
    operator = OPERATORS["cut-and-paste"]
    truth = true_baskets(rng)
    reports, sizes, itemset = randomize(truth, operator, rng), truth.sum(axis=1), (0, 2, 5)
    partial = counts(reports, sizes, [itemset])
    subsets = {}
    for size in partial:
        group = reports[sizes == size]
        sums = [sum(group[:, list(subset)].all(axis=1).sum() for subset in combinations(itemset, i)) for i in range(4)]
        subsets[size] = np.array([sums])
        np.testing.assert_array_equal(recovery.partial_counts(subsets[size]), partial[size])
    ours, other = recovery.recover(operator, partial), recovery.recover_subsets(operator, subsets)
    np.testing.assert_allclose(ours.estimate, other.estimate, rtol=1e-12)
    np.testing.assert_allclose(ours.variance, other.variance, rtol=1e-12)


def test_sizes_below_the_itemset_add_exactly_zero_and_count_in_the_total() -> None:
    operator = OPERATORS["cut-and-paste"]
    seen = {3: np.array([40.0, 30, 20, 10])}
    alone = recovery.recover(operator, seen)
    for small in (np.array([100.0, 0, 0, 0]), np.array([0.0, 50, 0, 50])):
        both = recovery.recover(operator, {**seen, 2: small})
        assert both.estimate == alone.estimate / 2
        assert both.variance == alone.variance / 4
    assert recovery.recover(operator, seen, total=200).estimate == alone.estimate / 2


def test_partial_supports_of_one_size_add_up_and_end_in_the_support() -> None:
    operator = OPERATORS["cut-and-paste"]
    seen = np.array([5_000.0, 3_000, 1_500, 500])
    partials = recovery.recover_partials(operator, 5, seen)
    support = recovery.recover(operator, {5: seen})
    assert partials.estimate.sum() == pytest.approx(1)
    assert partials.estimate[-1] == pytest.approx(float(support.estimate))
    assert partials.covariance[-1, -1] == pytest.approx(float(support.variance))
    assert partials.covariance.sum() == pytest.approx(0, abs=1e-9)


def test_raw_values_are_stored_and_displayed_values_are_projected() -> None:
    supports = recovery.Supports(np.array([-0.01, 0.5, 1.2]), np.array([1e-4, 0, -1e-9]))
    assert supports.estimate.tolist() == [-0.01, 0.5, 1.2]
    assert supports.shown.tolist() == [0, 0.5, 1]
    assert supports.standard_error.tolist() == [0.01, 0, 0]


itemsets = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(lambda items: tuple(sorted(items)))


@given(st.dictionaries(itemsets, st.floats(-0.5, 1.5), min_size=1, max_size=12))
def test_projected_supports_are_shares_that_decrease_with_every_item(supports: dict[tuple[int, ...], float]) -> None:
    shown = recovery.project(supports)
    assert all(0 <= value <= 1 for value in shown.values())
    pairs = [(a, b) for a in shown for b in shown if set(a) < set(b)]
    assert all(shown[a] >= shown[b] for a, b in pairs)
    fine = all(supports[a] >= supports[b] for a, b in pairs) and all(0 <= value <= 1 for value in supports.values())
    assert not fine or shown == supports


def test_unrecoverable_support_is_refused() -> None:
    operator = cut_and_paste(1, "0.1", [3], vocabulary_size=9)
    with pytest.raises(Unsupported, match="2 items cannot be recovered"):
        recovery.recover(operator, {3: [1.0, 2, 3]})
    with pytest.raises(Unsupported, match="There is no plan for"):
        recovery.recover(operator, {4: [1.0, 2, 3]})
    with pytest.raises(Unsupported, match="No report was counted"):
        recovery.recover(operator, {3: [0.0, 0]})
    with pytest.raises(Unsupported, match="k \\+ 1 counts"):
        recovery.recover(operator, {3: [1.0, 2], 2: [1.0, 2, 3]})
