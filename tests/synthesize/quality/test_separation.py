"""How well tables are distinguished: not at all if they are equal, about as well as chance if the model is right."""

from __future__ import annotations

import numpy as np
import pytest
from synthesize.quality.tables import ATTRIBUTES, fresh, people, resample, unrelated

from tidegate.policy import Category, Integer
from tidegate.risk.cart import pmse_greedy
from tidegate.risk.pmse import null_logistic
from tidegate.synthesize.quality.codes import ABSENT, CodedTable, encode
from tidegate.synthesize.quality.logistic import design, fit_probabilities, independent, logistic_separation
from tidegate.synthesize.quality.separation import rows_to_compare, shuffled_scores, tree_separation

COLUMNS = {name: ATTRIBUTES[name] for name in ("age", "pay", "sex", "town")}


def rows(table: object) -> CodedTable:
    return encode(table, COLUMNS)


def test_table_is_not_distinguished_from_itself() -> None:
    table = rows(people(400, 1))
    for separation in (
        tree_separation(table, [table], shuffles=2),
        logistic_separation(table, [table]),
        logistic_separation(table, [table], pairs=True),
    ):
        assert separation.value == 0


def test_disjoint_tables_are_always_distinguished() -> None:
    here, there = people(300, 1, sex=["f"] * 300), people(150, 2, sex=["m"] * 150)
    for separation in (tree_separation(rows(here), [rows(there)]), logistic_separation(rows(here), [rows(there)])):
        assert separation.most == pytest.approx((1 / 3) * (2 / 3))
        assert separation.value == pytest.approx(separation.most, abs=1e-3)


def test_lost_associations_are_detected_even_if_every_column_agrees() -> None:
    table = people(2000, 3)
    lost = rows(unrelated(table, 4))
    assert logistic_separation(rows(table), [lost]).value < 1e-12  # single columns cannot tell
    assert (logistic_separation(rows(table), [lost], pairs=True).ratio or 0) > 20
    assert (tree_separation(rows(table), [lost]).ratio or 0) > 2
    whole = [coded_table.codes.astype(float) for coded_table in (rows(table), lost)]
    assert (
        pmse_greedy(whole[0], whole[1]) == 0
    )  # a tree over all rows has no first split: hence nine tenths of the rows


@pytest.mark.parametrize(("rows_here", "rows_there"), [(600, 600), pytest.param(600, 300, marks=pytest.mark.long)])
def test_logistic_null_matches_simulation(rows_here: int, rows_there: int) -> None:
    """Rows drawn from the original itself, 600 times. The mean of 600 scaled chi-squares of 6 degrees of freedom has a
    relative standard error of sqrt(2/6/600) = 2.4%, their spread one of 4%. Five of these (a chance below 1e-6), and
    4% and 10% on top because the formula is of large samples.
    """
    table = rows(people(rows_here, 5))
    draw = fresh(f"logistic null {rows_there}")
    separations = []
    for _ in range(600):
        synthetic = table.only(table.names, draw.integers(0, table.rows, rows_there))
        separations.append(logistic_separation(table, [synthetic]))
    ratios = np.array([separation.value / separation.null for separation in separations])
    assert separations[0].parameters - 1 == 6  # age, pay, pay is missing, sex, three towns less one
    assert ratios.mean() == pytest.approx(1, rel=0.16)
    assert ratios.std() == pytest.approx((2 / (separations[0].parameters - 1)) ** 0.5, rel=0.3)
    independent_samples = null_logistic(separations[0].parameters, rows=rows_here, synthetic=rows_there, origin="fresh")
    assert abs(separations[0].null / independent_samples - 1) > 0.3  # the null of two fresh samples would fail here


def test_tree_ratio_averages_one_under_the_null() -> None:
    """Two fresh samples of one population, 40 times: a ratio has a standard deviation of about 0.2, their mean one of 0.03."""
    ratios = []
    for seed in fresh("tree null").integers(0, 2**32, (40, 2)).tolist():
        here, there = rows(people(300, seed[0])), rows(people(300, seed[1]))
        ratios.append(tree_separation(here, [there], shuffles=6).ratio or 0.0)
    assert np.mean(ratios) == pytest.approx(1, abs=0.2)
    worse = tree_separation(rows(people(300, 1)), [rows(people(300, 2, sex=["f"] * 300))], shuffles=6)
    assert (worse.ratio or 0) > 1.5


def test_tree_null_depends_only_on_pooled_rows_and_sizes() -> None:
    here, there = rows(people(200, 1)), rows(people(100, 2))
    swapped = CodedTable(here.attributes, np.vstack([here.codes, there.codes]))
    assert shuffled_scores(here, there, 3) == shuffled_scores(
        swapped.only(here.names, slice(0, 200)), swapped.only(here.names, slice(200, 300)), 3
    )


def test_redundant_columns_are_not_parameters() -> None:
    attributes = {"a": Integer(0, 9), "b": Integer(0, 9), "c": Category(("x", "y"))}
    draw = np.random.default_rng(1)
    a, c = draw.integers(0, 10, 200), draw.integers(0, 2, 200)
    table = CodedTable(attributes, np.column_stack([a, 9 - a, c]))
    assert logistic_separation(table, [table]).parameters == 3


def test_constant_column_is_not_a_parameter() -> None:
    constant = CodedTable({"a": Integer(0, 9)}, np.full((50, 1), 3))
    separation = logistic_separation(constant, [constant])
    assert (separation.value, separation.null, separation.ratio, separation.parameters) == (0, 0, None, 1)


def test_probabilities_equal_newtons_method() -> None:
    from tidegate.synthesize.quality.logistic import fit

    draw = np.random.default_rng(2)
    x = draw.normal(size=(500, 3)) @ draw.normal(size=(3, 3)) + 5
    label = (draw.random(500) < 1 / (1 + np.exp(-(x[:, 0] - 5)))).astype(float)
    matrix, basis = independent(x)
    chance = fit_probabilities(matrix, basis, label, ridge=0)
    full = np.column_stack([np.ones(500), x])
    slow = 1 / (1 + np.exp(-full @ fit(full, label, ridge=0)))
    assert chance == pytest.approx(slow, abs=1e-4)
    assert abs(full.T @ (label - slow)).max() < 1e-6  # the likelihood's slope is 0


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


def test_design_has_a_column_per_number_and_indicators_for_categories() -> None:
    table = encode(people(300, 1), {"pay": ATTRIBUTES["pay"], "town": ATTRIBUTES["town"]})
    assert design(table).shape == (300, 2 + 2)  # pay, pay is missing; three towns less one, none of them missing
    assert design(table, pairs=True).shape == (300, 4 + 4)


def test_bootstrap_is_not_distinguished_beyond_chance() -> None:
    table = people(1500, 8)
    good = tree_separation(rows(table), [rows(resample(table, 1))])
    assert (good.ratio or 0) < 1.2
