"""How well tables are told apart: nothing where they are the same, about 1 times chance where nothing is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from synthesize.quality.tables import ATTRIBUTES, again, fresh, people, unrelated

from tidegate.policy import Category, Integer
from tidegate.risk.cart import pmse_greedy
from tidegate.risk.pmse import null_logistic
from tidegate.synthesize.quality.codes import ABSENT, CodedTable, encode
from tidegate.synthesize.quality.logistic import design, fit_probabilities, independent, logistic_separation
from tidegate.synthesize.quality.separation import rows_to_compare, shuffled_scores, tree_separation

COLUMNS = {name: ATTRIBUTES[name] for name in ("age", "pay", "sex", "town")}


def rows(table: object) -> CodedTable:
    return encode(table, COLUMNS)


def test_a_table_against_itself_is_never_told_apart() -> None:
    table = rows(people(400, 1))
    for found in (
        tree_separation(table, [table], shuffles=2),
        logistic_separation(table, [table]),
        logistic_separation(table, [table], pairs=True),
    ):
        assert found.value == 0


def test_disjoint_tables_are_always_told_apart() -> None:
    here, there = people(300, 1, sex=["f"] * 300), people(150, 2, sex=["m"] * 150)
    for found in (tree_separation(rows(here), [rows(there)]), logistic_separation(rows(here), [rows(there)])):
        assert found.most == pytest.approx((1 / 3) * (2 / 3))
        assert found.value == pytest.approx(found.most, abs=1e-3)


def test_lost_associations_are_seen_although_every_column_agrees_to_the_row() -> None:
    table = people(2000, 3)
    lost = rows(unrelated(table, 4))
    assert logistic_separation(rows(table), [lost]).value < 1e-12  # single columns cannot tell
    assert (logistic_separation(rows(table), [lost], pairs=True).ratio or 0) > 20
    assert (tree_separation(rows(table), [lost]).ratio or 0) > 2
    whole = [one.codes.astype(float) for one in (rows(table), lost)]
    assert pmse_greedy(whole[0], whole[1]) == 0  # a tree over all rows finds no first split: why ours sees nine tenths


@pytest.mark.parametrize(("rows_here", "rows_there"), [(600, 600), (600, 300)])
def test_the_null_of_logistic_propensities_is_what_simulation_gives(rows_here: int, rows_there: int) -> None:
    """Rows drawn from the original itself, 600 times. The mean of 600 scaled chi-squares of 6 degrees of freedom has a
    relative standard error of sqrt(2/6/600) = 2.4%, their spread one of 4%. Five of these (a chance below 1e-6), and
    4% and 10% on top because the formula is of large samples."""
    table = rows(people(rows_here, 5))
    draw = fresh(f"logistic null {rows_there}")
    found = []
    for _ in range(600):
        made = table.only(table.names, draw.integers(0, table.rows, rows_there))
        found.append(logistic_separation(table, [made]))
    ratios = np.array([one.value / one.null for one in found])
    assert found[0].parameters - 1 == 6  # age, pay, pay is missing, sex, three towns less one
    assert ratios.mean() == pytest.approx(1, rel=0.16)
    assert ratios.std() == pytest.approx((2 / (found[0].parameters - 1)) ** 0.5, rel=0.3)
    independent_samples = null_logistic(found[0].parameters, rows=rows_here, synthetic=rows_there, origin="fresh")
    assert abs(found[0].null / independent_samples - 1) > 0.3  # the null of two fresh samples would fail here


def test_the_null_of_trees_centres_at_one() -> None:
    """Two fresh samples of one population, 40 times: a ratio has a standard deviation of about .2, their mean one of .03."""
    ratios = []
    for seed in fresh("tree null").integers(0, 2**32, (40, 2)).tolist():
        here, there = rows(people(300, seed[0])), rows(people(300, seed[1]))
        ratios.append(tree_separation(here, [there], shuffles=6).ratio or 0.0)
    assert np.mean(ratios) == pytest.approx(1, abs=0.2)
    worse = tree_separation(rows(people(300, 1)), [rows(people(300, 2, sex=["f"] * 300))], shuffles=6)
    assert (worse.ratio or 0) > 1.5


def test_the_null_depends_on_the_pooled_rows_and_sizes_and_not_on_which_table_a_row_is_in() -> None:
    here, there = rows(people(200, 1)), rows(people(100, 2))
    swapped = CodedTable(here.attributes, np.vstack([here.codes, there.codes]))
    assert shuffled_scores(here, there, 3) == shuffled_scores(
        swapped.only(here.names, slice(0, 200)), swapped.only(here.names, slice(200, 300)), 3
    )


def test_columns_that_repeat_others_are_no_parameters() -> None:
    attributes = {"a": Integer(0, 9), "b": Integer(0, 9), "c": Category(("x", "y"))}
    draw = np.random.default_rng(1)
    a, c = draw.integers(0, 10, 200), draw.integers(0, 2, 200)
    table = CodedTable(attributes, np.column_stack([a, 9 - a, c]))
    assert logistic_separation(table, [table]).parameters == 3


def test_a_column_of_one_value_is_no_column() -> None:
    constant = CodedTable({"a": Integer(0, 9)}, np.full((50, 1), 3))
    found = logistic_separation(constant, [constant])
    assert (found.value, found.null, found.ratio, found.parameters) == (0, 0, None, 1)


def test_probabilities_are_those_of_newtons_steps() -> None:
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


def test_only_whole_rows_are_looked_at_and_empty_columns_leave_first() -> None:
    attributes = {"a": Integer(0, 9), "b": Integer(0, 9), "c": Integer(0, 9)}
    codes = np.zeros((10, 3), np.int64)
    codes[:9, 1], codes[:2, 2] = ABSENT, ABSENT
    seen = rows_to_compare(CodedTable(attributes, codes), [CodedTable(attributes, np.zeros((10, 3), np.int64))])
    assert seen.without == ("b",)
    assert seen.incomplete == (2, 0)
    assert seen.original.rows == 8


def test_the_same_places_are_sampled_from_tables_of_equal_length() -> None:
    table = rows(people(500, 1, pay=[1.0] * 500))
    seen = rows_to_compare(table, [table], at_most=100)
    assert seen.original.rows == 100
    assert (seen.original.codes == seen.synthetic[0].codes).all()


def test_a_design_has_a_column_for_every_number_and_indicators_for_the_rest() -> None:
    table = encode(people(300, 1), {"pay": ATTRIBUTES["pay"], "town": ATTRIBUTES["town"]})
    assert design(table).shape == (300, 2 + 2)  # pay, pay is missing; three towns less one, none of them missing
    assert design(table, pairs=True).shape == (300, 4 + 4)


def test_shuffled_rows_of_a_good_table_lie_at_or_below_chance() -> None:
    table = people(1500, 8)
    good = tree_separation(rows(table), [rows(again(table, 1))])
    assert (good.ratio or 0) < 1.2
