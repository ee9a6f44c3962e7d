"""Codes, margins, pairs and regressions compared with slow or hand-made calculations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from synthesize.quality.tables import ATTRIBUTES, fresh, people, resample, unrelated

from tidegate.errors import SourceUnreadable, UnknownColumn, Unsupported
from tidegate.policy import Category, Dataset, Grid, Integer, Loss, Policy
from tidegate.synthesize.quality.codes import ABSENT, comparable, encode
from tidegate.synthesize.quality.columns import Cells, by_chance, cells_of, margin, public_starts
from tidegate.synthesize.quality.formula import default_formula, parse
from tidegate.synthesize.quality.pairs import bin_codes, cramers_v, pairs_of, rank_correlation
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


def test_bins_are_quantiles_of_the_original_or_its_frequent_values() -> None:
    draw = np.random.default_rng(5)
    codes = np.where(draw.random(16_000) < 0.4, 0, np.floor(draw.lognormal(6, 1, 16_000)).astype(np.int64))
    bins = bin_codes(codes, codes, size=10**7, ordered=True)
    shares = np.bincount(bins) / len(bins)
    assert len(np.unique(bins)) <= 16
    assert shares[bins[codes == 0][0]] == pytest.approx((codes == 0).mean())  # a heap has a bin of its own
    assert all(share < 2 / 16 for share in np.sort(shares)[:-1])
    assert (np.diff(bins[np.argsort(codes, kind="stable")]) >= 0).all()
    listed = np.repeat(np.arange(30), np.arange(30, 0, -1))  # code 0 is the most frequent
    assert bin_codes(np.array([0, 14, 15, 29, 30, ABSENT]), listed, size=30, ordered=False).tolist() == [
        0, 14, 15, 15, 16, ABSENT,
    ]  # fmt: skip


def test_zeros_bounds_and_quartiles_match_numpy() -> None:
    attributes = {"pay": Integer(-5, 10**7, missing="value")}
    draw = np.random.default_rng(6)
    true = np.where(draw.random(4000) < 0.4, 0, np.minimum(draw.lognormal(7, 1, 4000).astype(np.int64), 20_000))
    lost = np.where(true == 0, 7, true)  # planted: the zeros are lost
    whole, other = (encode(pa.table({"pay": values}), attributes) for values in (true, lost))
    comparison = margin(cells_of(attributes)[0], whole, [other])
    by_kind = {value.kind: value for value in comparison.values}
    assert by_kind["zero"].value == "0"
    assert by_kind["zero"].original == pytest.approx((true == 0).mean())
    assert by_kind["zero"].synthetic == 0
    assert (by_kind["lowest"].value, by_kind["highest"].value) == ("0", f"{true.max():,}")
    assert by_kind["highest"].original == by_kind["highest"].synthetic == pytest.approx((true == true.max()).mean())
    quartiles = [f"{value:,}" for value in np.quantile(true, [0.25, 0.5, 0.75], method="inverted_cdf")]
    assert [original for original, _ in comparison.quartiles] == quartiles
    assert comparison.quartiles[0] == ("0", "7")
    assert comparison.distance == 0  # 64 even cells do not show it
    learned = margin(cells_of(attributes, {"pay": (0, 5, 6, 100, 5000)})[0], whole, [other])
    assert learned.distance == pytest.approx((true == 0).mean())


def test_categories_and_empty_columns_have_no_quartiles() -> None:
    attributes = {"n": Integer(0, 3), "c": Category(("a", "b"))}
    table = encode(pa.table({"n": pa.array([None, None], pa.int64()), "c": ["a", "b"]}), attributes)
    for cells in cells_of(attributes):
        assert (margin(cells, table, [table]).values, margin(cells, table, [table]).quartiles) == ((), ())


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
    for pair in pairs_of(table, [table]):
        assert (pair.distance, pair.change, pair.measured) == (0, 0, None)


def test_lost_association_is_reported() -> None:
    table = people(3000, 2)
    pairs = pairs_of(encode(table, COLUMNS), [encode(unrelated(table, 3), COLUMNS)], {frozenset(("sex", "age"))})
    worst = max(pairs, key=lambda pair: pair.distance or 0)
    assert worst.columns == ("age", "pay")
    assert worst.change < -0.2
    assert worst.correlation is not None
    assert worst.correlation[0] > 0.7
    assert abs(worst.correlation[1]) < 0.1
    assert [pair.columns for pair in pairs if pair.measured] == [("age", "sex")]


def test_pairs_match_pandas() -> None:
    """Total variation of a pair of short columns by crosstab, rank correlation by Spearman over rows with both numbers."""
    table, other = people(2000, 4), resample(people(2000, 9), 5)
    pairs = {pair.columns: pair for pair in pairs_of(encode(table, COLUMNS), [encode(other, COLUMNS)])}
    left, right = (
        pd.crosstab(frame["sex"], frame["town"], normalize="all") for frame in (table.to_pandas(), other.to_pandas())
    )
    assert pairs["sex", "town"].distance == pytest.approx((left - right).abs().to_numpy().sum() / 2)
    for side, frame in enumerate((table, other)):
        rounded = frame.to_pandas().assign(pay=lambda rows: np.floor(rows["pay"] * 2 + 0.5) / 2)
        spearman = rounded[["age", "pay"]].corr(method="spearman").iloc[0, 1]
        correlation = pairs["age", "pay"].correlation
        assert correlation is not None
        assert correlation[side] == pytest.approx(spearman)
    assert rank_correlation(np.array([0, 0, 1]), np.array([5, 5, 5])) == 0


def test_swapped_columns_are_visible_in_the_margins_and_pairs() -> None:
    numbers = {"a": Integer(0, 100), "b": Integer(0, 100), "c": Integer(0, 100)}
    draw = np.random.default_rng(1)
    a, b = draw.binomial(100, 0.3, 2000), draw.binomial(100, 0.6, 2000)
    c = np.clip(a + draw.integers(-3, 4, 2000), 0, 100)
    true, swapped = (
        encode(pa.table(dict(zip("abc", columns, strict=True))), numbers) for columns in ((a, b, c), (b, a, c))
    )
    distances = [margin(cells, true, [swapped]).distance or 0 for cells in cells_of(numbers)]
    assert distances[0] > 0.9
    assert distances[1] > 0.9
    assert distances[2] == 0
    pairs = {pair.columns: pair.correlation for pair in pairs_of(true, [swapped])}
    original, synthetic = pairs["a", "c"] or (0, 0)
    assert original > 0.85
    assert abs(synthetic) < 0.1


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
