"""How well tables are distinguished: not at all if they are equal, about as well as a bootstrap if the model is right."""

from __future__ import annotations

import numpy as np
import pytest
from synthesize.quality.tables import ATTRIBUTES, people, resample, unrelated

from tidegate.policy import Integer
from tidegate.risk.cart import pmse_greedy
from tidegate.synthesize.quality import separation
from tidegate.synthesize.quality.codes import ABSENT, CodedTable, encode
from tidegate.synthesize.quality.ensemble import area_under_curve, boosted_scores
from tidegate.synthesize.quality.separation import (
    Rows,
    Separation,
    boosted_pmse,
    cart_pmse,
    rows_to_compare,
    separate,
)

COLUMNS = {name: ATTRIBUTES[name] for name in ("age", "pay", "sex", "town")}


def rows(table: object) -> CodedTable:
    return encode(table, COLUMNS)


def separations(original: CodedTable, *synthetic: CodedTable) -> tuple[Separation, ...]:
    return separate(Rows(original, synthetic, (), ()), progress=lambda done, of: None)


def test_table_is_not_distinguished_from_itself() -> None:
    table = rows(people(400, 1))
    assert [separation.value for separation in separations(table, table)] == [0, 0]


def test_disjoint_tables_are_always_distinguished() -> None:
    here, there = people(300, 1, sex=["f"] * 300), people(150, 2, sex=["m"] * 150)
    for result in separations(rows(here), rows(there)):
        assert result.most == pytest.approx((1 / 3) * (2 / 3))
        assert result.value == pytest.approx(result.most, rel=0.03)
        assert result.rows == (300, 150)


def test_lost_associations_are_detected_even_if_every_column_agrees() -> None:
    table = people(2000, 3)
    lost = rows(unrelated(table, 4))
    assert all((result.ratio or 0) > 3 for result in separations(rows(table), lost))
    whole = [coded_table.codes.astype(float) for coded_table in (rows(table), lost)]
    assert (
        pmse_greedy(whole[0], whole[1]) == 0
    )  # a tree over all rows has no first split: hence nine tenths of the rows


@pytest.mark.long
def test_ratio_is_one_for_a_bootstrap_and_two_for_a_fresh_sample() -> None:
    """A bootstrap differs from the original by its own sampling error, a fresh sample also by the original's: twice the
    variance, hence twice the pMSE of a CART, which is scored on its own rows. Boosted trees are scored on other rows and
    come closer to 1. Means of four pairs of tables; single ratios of a CART spread by about 0.1.
    """
    drawn, fresh_samples = [], []
    for seed in range(8, 48, 10):
        table = people(3000, seed)
        drawn.append([result.ratio or 0 for result in separations(rows(table), rows(resample(table, seed)))])
        fresh_samples.append([result.ratio or 0 for result in separations(rows(table), rows(people(3000, seed + 1)))])
    assert np.mean(drawn, axis=0) == pytest.approx([1, 1], abs=0.15)
    boosted, cart = np.mean(fresh_samples, axis=0)
    assert cart == pytest.approx(2, abs=0.25)
    assert 1 < boosted < 2
    broken = separations(rows(people(3000, 8)), rows(people(3000, 9, sex=["f"] * 3000)))
    assert all((result.ratio or 0) > 10 for result in broken)


def test_progress_counts_every_classifier() -> None:
    table, calls = rows(people(100, 1)), []
    separate(Rows(table, (table, table), (), ()), progress=lambda done, of: calls.append((done, of)))
    assert calls == [(n, 10) for n in range(10)]


def test_boosted_trees_equal_scikit_learn() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    draw = np.random.default_rng(2)
    codes = draw.integers(0, 60, (3000, 6))
    label = (((codes[:, 0] > 30) ^ (codes[:, 1] > 20)) | (draw.random(3000) < 0.2)).astype(float)
    train, test = codes[:2000], codes[2000:]
    for trees, leaves in ((100, 31), (50, 8)):
        settings = {"max_iter": trees, "max_leaf_nodes": leaves, "early_stopping": False}
        with threadpoolctl.threadpool_limits(1):  # its threads wait for each other in loops
            classifier = ensemble.HistGradientBoostingClassifier(**settings).fit(train, label[:2000])
        ours = boosted_scores(train, label[:2000], test, is_binary=True, trees=trees, leaves=leaves)
        assert ours == pytest.approx(classifier.predict_proba(test)[:, 1], abs=1e-6)
        number = codes[:, 0] * codes[:, 1] / 100.0
        with threadpoolctl.threadpool_limits(1):
            regressor = ensemble.HistGradientBoostingRegressor(**settings).fit(train, number[:2000])
        ours = boosted_scores(train, number[:2000], test, is_binary=False, trees=trees, leaves=leaves)
        assert ours == pytest.approx(regressor.predict(test), abs=1e-5)


def test_wide_columns_are_binned_at_quantiles() -> None:
    draw = np.random.default_rng(3)
    codes = np.floor(draw.lognormal(10, 2, (4000, 1))).astype(np.int64)
    scores = boosted_scores(codes, (codes[:, 0] > np.median(codes)).astype(float), codes, is_binary=True)
    assert area_under_curve(codes[:, 0] > np.median(codes), scores) == pytest.approx(1, abs=1e-3)
    assert boosted_scores(codes, np.ones(4000), codes[:3], is_binary=True).tolist() == [1, 1, 1]


def test_area_under_the_curve_counts_ordered_pairs() -> None:
    draw = np.random.default_rng(4)
    outcome, scores = draw.random(60) < 0.4, draw.integers(0, 9, 60).astype(float)
    ones, zeros = scores[outcome], scores[~outcome]
    pairs = [(a > b) + (a == b) / 2 for a in ones for b in zeros]
    assert area_under_curve(outcome, scores) == pytest.approx(np.mean(pairs))
    assert area_under_curve(np.ones(3, bool), np.zeros(3)) is None


def test_cart_equals_scikit_learn() -> None:
    tree = pytest.importorskip("sklearn.tree")
    table, other = rows(people(4000, 1)), rows(people(4000, 2, sex=["f", "f", "m", "f"] * 1000))
    codes = np.vstack([table.codes, other.codes])
    label = np.repeat([0, 1], 4000)
    grown = tree.DecisionTreeClassifier(min_samples_leaf=100, min_samples_split=200, max_depth=30).fit(codes, label)
    slow = float(((grown.predict_proba(codes)[:, 1] - 0.5) ** 2).mean())
    assert separation._tree_pmse(table.codes, other.codes, 100) == pytest.approx(
        slow, rel=0.02
    )  # ties are broken otherwise
    assert cart_pmse(table, other) == pytest.approx(slow, rel=0.2)


def test_boosted_pmse_matches_a_hand_made_cross_validation() -> None:
    table, other = rows(people(300, 1)), rows(resample(people(200, 2), 1))
    codes, label = np.vstack([table.codes, other.codes]), np.repeat([0.0, 1.0], [300, 200])
    first = np.concatenate([separation._halves(300), separation._halves(200)])
    assert first[:300].sum() == 150
    squares = 0.0
    for test in (first, ~first):
        chances = boosted_scores(codes[~test], label[~test], codes[test], is_binary=True, trees=50, leaves=8)
        squares += float(((chances - 0.4) ** 2).sum())
    assert boosted_pmse(table, other) == pytest.approx(squares / 500)


def test_only_complete_rows_are_compared_and_sparse_columns_are_dropped() -> None:
    attributes = {"a": Integer(0, 9), "b": Integer(0, 9), "c": Integer(0, 9)}
    codes = np.zeros((10, 3), np.int64)
    codes[:9, 1], codes[:2, 2] = ABSENT, ABSENT
    seen = rows_to_compare(CodedTable(attributes, codes), [CodedTable(attributes, np.zeros((10, 3), np.int64))])
    assert seen.without == ("b",)
    assert seen.incomplete == (2, 0)
    assert seen.original.rows == 8


def test_tables_of_equal_length_are_sampled_at_the_same_rows() -> None:
    table = rows(people(500, 1, pay=[1.0] * 500))
    seen = rows_to_compare(table, [table], at_most=100)
    assert seen.original.rows == 100
    assert (seen.original.codes == seen.synthetic[0].codes).all()
