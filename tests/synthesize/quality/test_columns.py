"""Codes, margins, pairs and regressions compared with slow or hand-made calculations."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from synthesize.quality.tables import ATTRIBUTES, fresh, people, resample, unrelated

from tidegate.errors import SourceUnreadable, UnknownColumn, Unsupported
from tidegate.policy import Category, Dataset, Grid, Integer, Loss, Policy
from tidegate.synthesize.quality.cells import Cells, cells_of, group_cells, public_starts
from tidegate.synthesize.quality.codes import ABSENT, comparable, encode
from tidegate.synthesize.quality.formula import default_formula, parse
from tidegate.synthesize.quality.margins import by_chance, margin
from tidegate.synthesize.quality.pairs import cramers_v, pairs_of
from tidegate.synthesize.quality.regression import regress
from tidegate.tables import open_table

COLUMNS = comparable(ATTRIBUTES)


def test_codes_match_the_engine() -> None:
    """The engine's histogram equals the histogram of our codes, also for numbers out of bounds and values not listed."""
    attributes = {
        "n": Integer(2, 6, missing="value"),
        "g": Grid("0", "1", "0.25", missing="lowest"),
        "c": Category(("a", "b"), "value"),
    }
    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "n": pa.array(draw.integers(0, 9, 300), mask=draw.random(300) < 0.1),
            "g": pa.array(draw.normal(0.5, 0.5, 300), mask=draw.random(300) < 0.1),
            "c": pa.array(draw.choice(["a", "b", "elsewhere"], 300), mask=draw.random(300) < 0.1),
        }
    )
    engine = open_table(Policy(Dataset("people"), attributes, None, Loss("1")), table)
    ours = encode(table, attributes)
    assert (encode(engine, attributes).codes == ours.codes).all()
    for name in attributes:
        assert (
            np.bincount(ours.column(name), minlength=len(engine.count([name]))).tolist()
            == engine.count([name]).tolist()
        )


def test_missing_is_left_out_if_the_policy_says_so() -> None:
    table = encode(pa.table({"c": ["a", None, "?"]}), {"c": Category(("a", "b"))})
    assert table.column("c").tolist() == [0, ABSENT, ABSENT]
    assert table.absent("c") == pytest.approx(2 / 3)


def test_wrong_type_is_reported_without_a_value() -> None:
    with pytest.raises(SourceUnreadable) as refused:
        encode(pa.table({"age": ["secret"]}), {"age": Integer(0, 9)})
    assert '"age" is declared as integer' in str(refused.value)
    assert "secret" not in str(refused.value)


def test_cells_come_from_the_policy() -> None:
    assert public_starts(Integer(0, 99, (10, 50))) == (0, 10, 50)
    assert public_starts(Integer(0, 9)) == tuple(range(10))
    assert len(public_starts(Integer(0, 10**6))) == 64
    chosen = Cells("n", Integer(0, 9, missing="value"), (0, 4))
    assert chosen.cell_of(np.array([0, 3, 4, 9, 10, ABSENT])).tolist() == [0, 0, 1, 1, 2, ABSENT]
    assert chosen.labels() == ["0 to 3", "4 to 9", "missing"]


def test_groups_have_equal_mass_or_are_the_frequent_values() -> None:
    even = group_cells(Cells("n", Integer(0, 99), tuple(range(100))), np.full(100, 7), most=10)
    assert np.bincount(even).tolist() == [10] * 10
    assert (np.diff(even) >= 0).all()
    listed = Category(tuple(f"v{n}" for n in range(30)), "value")
    mass = np.array([n % 13 for n in range(30)] + [5])
    groups = group_cells(Cells("c", listed, tuple(range(30))), mass, most=5)
    assert np.bincount(groups).tolist() == [1, 1, 1, 1, 26, 1]  # four by themselves, the others, missing
    assert {int(mass[cell]) for cell in np.flatnonzero(groups < 4)} == {12, 11}


def test_margin_distance_matches_a_hand_calculation() -> None:
    original = encode(pa.table({"c": ["a", "a", "b", "b"]}), {"c": Category(("a", "b"))})
    synthetic = encode(pa.table({"c": ["a", "b", "b", "b"]}), {"c": Category(("a", "b"))})
    comparison = margin(cells_of(original.attributes)[0], original, [synthetic, original])
    assert comparison.distance == pytest.approx((1 / 4 + 0) / 2)  # the mean of two tables
    assert comparison.original == (0.5, 0.5)


def test_distance_by_chance_matches_simulation() -> None:
    """2,000 pairs of samples: the standard error of the mean is below 1% of it."""
    draw = fresh("total variation by chance")
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    here, there = draw.multinomial(400, shares, 2000), draw.multinomial(900, shares, 2000)
    shown = np.abs(here / 400 - there / 900).sum(axis=1).mean() / 2
    assert by_chance(400 * shares, 900 * shares) == pytest.approx(shown, rel=0.05)


def test_cramers_v_matches_a_hand_calculation_and_corrects_for_chance() -> None:
    assert cramers_v([[50, 0], [0, 50]]) == 1
    assert cramers_v([[25, 25], [25, 25]]) == 0
    assert cramers_v([[5, 5, 0]]) == 0  # one row: nothing to associate
    table = np.array([[30, 10], [10, 30]])
    phi = 0.25 - 1 / 79  # chi-square 20 over 80 rows, less what chance adds
    assert cramers_v(table) == pytest.approx(math.sqrt(phi / (2 - 1 / 79 - 1)))
    draw = np.random.default_rng(3)
    chance = [cramers_v(draw.multinomial(200, np.full(30, 1 / 30)).reshape(5, 6)) for _ in range(400)]
    assert np.mean(chance) < 0.06  # uncorrected it would be about .16


def test_table_equals_itself_in_every_pair() -> None:
    table = encode(people(300, 1), COLUMNS)
    for pair in pairs_of(cells_of(COLUMNS), table, [table]):
        assert (pair.distance, pair.change) == (0, 0)


def test_lost_association_is_reported() -> None:
    table = people(3000, 2)
    pairs = pairs_of(cells_of(COLUMNS), encode(table, COLUMNS), [encode(unrelated(table, 3), COLUMNS)])
    worst = max(pairs, key=lambda pair: pair.distance or 0)
    assert worst.columns == ("age", "pay")
    assert worst.change < -0.2
    assert worst.correlation is not None
    assert worst.correlation[0] > 0.7
    assert abs(worst.correlation[1]) < 0.1


def test_least_squares_equal_numpy() -> None:
    table = encode(people(500, 4), COLUMNS)
    regression = regress(parse("pay ~ age + sex", COLUMNS), table, [table])
    there = table.column("pay") < ATTRIBUTES["pay"].size
    x = np.column_stack([np.ones(500), table.column("age") + 18, table.column("sex")])[there]
    y = table.column("pay")[there] * 0.5
    slow, rest, *_ = np.linalg.lstsq(x, y, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * rest[0] / (len(y) - 3))
    for coefficient, value, error in zip(regression.coefficients, slow, errors, strict=True):
        assert coefficient.original is not None
        assert (coefficient.original.value, coefficient.original.error) == (pytest.approx(value), pytest.approx(error))
    assert [coefficient.name for coefficient in regression.coefficients] == ["intercept", "age", "sex = m"]


def test_best_overlap_of_one_table_is_085() -> None:
    table = encode(people(2000, 4), COLUMNS)
    regression = regress(parse("pay ~ age + sex", COLUMNS), table, [table])
    assert regression.overlap == pytest.approx((1 + 1 / math.sqrt(2)) / 2, abs=1e-3)


def test_logistic_coefficient_is_the_log_odds_ratio() -> None:
    table = encode(
        pa.table({"x": list("ffffmmmm"), "y": list("abbbaaab")}), {"x": Category(("f", "m")), "y": Category(("a", "b"))}
    )
    regression = regress(parse("y ~ x", table.attributes), table, [table])
    assert regression.coefficients[1].original is not None
    assert regression.coefficients[1].original.value == pytest.approx(math.log((1 / 3) / 3), abs=1e-5)
    assert regression.coefficients[1].original.variance == pytest.approx(2 * (1 + 1 / 3), rel=1e-4)


def test_coefficient_that_cannot_be_estimated_is_none() -> None:
    table = people(200, 5)
    constant = encode(people(200, 6, sex=["f"] * 200), COLUMNS)
    regression = regress(parse("pay ~ age + sex", COLUMNS), encode(table, COLUMNS), [constant])
    assert regression.coefficients[1].synthetic is not None
    assert regression.coefficients[2].synthetic is None
    assert regression.coefficients[2].overlap is None


def test_bootstrap_reaches_the_same_coefficients() -> None:
    table = people(3000, 7)
    regression = regress(
        parse("pay ~ age + sex + town", COLUMNS), encode(table, COLUMNS), [encode(resample(table, 1), COLUMNS)]
    )
    assert (regression.overlap or 0) > 0.6
    assert abs(regression.coefficients[1].difference or 9) < 5


def test_formulas_are_parsed() -> None:
    odd = {"a+b": Integer(0, 9), "hours-per-week": Integer(0, 9), "pay": Category(("low", "mid", "high"))}
    assert parse("pay[mid] ~ `a+b` + hours-per-week", odd).terms == ("a+b", "hours-per-week")
    assert parse("pay[mid] ~ .", odd).value == "mid"
    assert parse("pay ~ .", odd).value == "high"
    assert str(parse("hours-per-week ~ pay", odd)) == "hours-per-week ~ pay"
    for wrong in ("pay", "pay ~ ", "~ pay", "pay ~ a ~ b", "pay ~ pay", "pay[none] ~ pay"):
        with pytest.raises((Unsupported, UnknownColumn)):
            parse(wrong, odd)
    with pytest.raises(UnknownColumn, match="hours"):
        parse("pay ~ hours", odd)


def test_default_formula_follows_from_public_facts() -> None:
    assert str(default_formula(COLUMNS)) == "sex[m] ~ age + pay + town"
    assert str(default_formula(COLUMNS, "pay")) == "pay ~ age + sex + town"
    assert default_formula({"c": Category(("a",))}) is None
    with pytest.raises(UnknownColumn):
        default_formula(COLUMNS, "nothing")
