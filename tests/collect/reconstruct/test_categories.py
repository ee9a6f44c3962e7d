"""Categories: unbiased exactly, errors exactly, and the nearest distribution."""

from __future__ import annotations

from itertools import combinations, product
from math import exp

import numpy as np
import pytest
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from reference import reconstruct as slow

from tidegate.collect.reconstruct import Support, nearest_distribution, shares

SHARES = np.array([0.5, 0.3, 0.2, 0.0])


def one_report(kind: str, epsilon: float) -> tuple[Support, list[tuple[np.ndarray, np.ndarray]]]:
    """Every report of 4 categories as the categories it supports, with its chance from each value."""
    if kind == "response":
        chances = np.full((4, 4), 1.0) + (exp(epsilon) - 1) * np.eye(4)
        return Support.response(4, epsilon=epsilon), [(np.eye(4)[s], chances[s] / chances[0].sum()) for s in range(4)]
    if kind == "unary":
        keep, lie = 0.5, 1 / (exp(epsilon) + 1)
        outcomes = []
        for bits in product((0, 1), repeat=4):
            on = np.array(bits)
            off = np.where(on, lie, 1 - lie)
            chance = [np.prod(off) / off[x] * (keep if on[x] else 1 - keep) for x in range(4)]
            outcomes.append((on.astype(float), np.array(chance)))
        return Support.unary(epsilon=epsilon), outcomes
    sets = [np.isin(np.arange(4), chosen).astype(float) for chosen in combinations(range(4), 2)]
    weights = np.array([[exp(epsilon) if chosen[x] else 1.0 for x in range(4)] for chosen in sets])
    return Support.subset(4, 2, epsilon=epsilon), list(zip(sets, weights / weights.sum(axis=0), strict=True))


@pytest.mark.parametrize("kind", ["response", "unary", "subset"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_shares_are_unbiased_and_their_covariance_is_exact(kind, epsilon) -> None:
    support, possible = one_report(kind, epsilon)
    chances = np.array([chance @ SHARES for _, chance in possible])
    supported = np.array([on for on, _ in possible])
    assert chances.sum() == pytest.approx(1)
    estimate = shares(1000 * chances @ supported, total=1000, support=support)
    assert estimate.raw == pytest.approx(SHARES, abs=1e-12)
    off = supported - chances @ supported
    covariance = (off * chances[:, None]).T @ off / (1000 * (support.true - support.false) ** 2)
    assert estimate.covariance() == pytest.approx(covariance, abs=1e-12)
    assert estimate.errors == pytest.approx(np.sqrt(np.diag(covariance)), abs=1e-12)


@pytest.mark.parametrize("case", golden("reconstruction")["oue_variance"], ids=lambda case: f"epsilon {case['eps']}")
@paper("Wang et al. 2017: variance of optimized unary encoding for a rare category")
def test_error_of_a_rare_category_is_the_published_one(case) -> None:
    support = Support.unary(epsilon=case["eps"])
    estimate = shares(np.array([support.true, support.false]) * 1e6, total=1e6, support=support)
    assert estimate.errors[1] ** 2 * 1e6 == pytest.approx(case["v"], rel=1e-9)


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=20))
def test_nearest_distribution_equals_the_reference(raw) -> None:
    projected = nearest_distribution(np.array(raw))
    assert projected.sum() == pytest.approx(1)
    assert projected.min() >= 0
    assert projected == pytest.approx(slow.nearest_distribution(raw), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(lambda raw: sum(raw) > 0.1))
def test_nearest_distribution_of_a_distribution_is_itself(raw) -> None:
    known = np.array(raw) / sum(raw)
    assert nearest_distribution(known) == pytest.approx(known, abs=1e-12)


@given(counts=st.lists(st.integers(0, 1000), min_size=3, max_size=9), data=st.data())
def test_permuted_categories_permute_the_shares(counts, data) -> None:
    order = data.draw(st.permutations(range(len(counts))))
    support, total = Support.unary(epsilon=1.0), 1000
    plain = shares(np.array(counts), total=total, support=support)
    mixed = shares(np.array(counts)[order], total=total, support=support)
    assert mixed.raw == pytest.approx(plain.raw[order])
    assert mixed.masses == pytest.approx(plain.masses[order])
