"""Predictions and range queries against calculations by hand, with planted defects."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from synthesize.quality.tables import ATTRIBUTES, people, resample, unrelated

from tidegate.policy import Category, Integer
from tidegate.synthesize.quality import utility
from tidegate.synthesize.quality.codes import CodedTable, comparable, encode
from tidegate.synthesize.quality.utility import Prediction, compare_queries, predict

COLUMNS = comparable(ATTRIBUTES)


def rows(table: pa.Table) -> CodedTable:
    return encode(table, COLUMNS)


def prediction(original: pa.Table, synthetic: pa.Table, target: str) -> Prediction:
    result = predict(rows(original), [rows(synthetic)], target, at_most=10_000, progress=lambda done, of: None)
    assert result is not None
    return result


@pytest.mark.long  # test_separation.py compares with scikit-learn too
def test_auc_equals_scikit_learn_on_the_same_rows() -> None:
    ensemble, metrics = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("sklearn.metrics")
    table, other = people(3000, 1, pay=[1.0] * 3000), people(3000, 2)
    result = prediction(table, other, "sex")
    original, synthetic = rows(table), rows(other)
    order = np.random.default_rng(utility.SEED).permutation(3000)
    test, train = original.codes[order[:600]], original.codes[order[600:]]
    slow = []
    for codes in (train, synthetic.codes):
        learner = ensemble.HistGradientBoostingClassifier(early_stopping=False).fit(codes[:, [0, 1, 3]], codes[:, 2])
        slow.append(metrics.roc_auc_score(test[:, 2], learner.predict_proba(test[:, [0, 1, 3]])[:, 1]))
    assert (result.original, result.synthetic) == (pytest.approx(slow[0], abs=1e-4), pytest.approx(slow[1], abs=1e-4))
    assert result.rows == (2400, 3000, 600)
    assert result.measure == "AUC"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("target", "chance"), [("sex", 0.5), ("pay", 0.0), ("town", 0.5)])
def test_lost_associations_predict_no_better_than_guessing(target: str, chance: float) -> None:
    table = people(4000, 3)
    good, bad = prediction(table, people(4000, 4), target), prediction(table, unrelated(table, 5), target)
    assert bad.synthetic == pytest.approx(chance, abs=0.06)
    assert good.original == bad.original
    if target != "town":  # it is independent of the others
        assert good.original > chance + 0.15
        assert good.synthetic == pytest.approx(good.original, abs=0.05)


def test_numbers_are_scored_by_rank_correlation() -> None:
    table = people(4000, 3)
    result = prediction(table, people(4000, 4), "pay")
    assert result.measure == "rank correlation"
    frame = table.to_pandas().dropna()
    simple = (frame["age"] / 10 + (frame["sex"] == "m")).corr(frame["pay"], method="spearman")
    assert result.original == pytest.approx(simple, abs=0.06)  # the trees learn the true relation


def test_prediction_is_left_out_where_rows_do_not_allow_it() -> None:
    table = people(400, 1)
    nobody = people(400, 1, sex=["f"] * 400)
    options = {"at_most": 1000, "progress": lambda done, of: None}
    assert predict(rows(table), [rows(table.slice(0, 10))], "sex", **options) is None
    assert predict(rows(nobody), [rows(table)], "sex", **options) is None
    only = encode(table, {"age": COLUMNS["age"]})
    assert predict(only, [only], "age", **options) is None


def test_query_error_equals_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query of the fixed seed again, as a filter of data frames."""
    recorded = []
    share = utility._share

    def record(table: CodedTable, ranges: list[tuple[str, bool, np.ndarray]]) -> float:
        recorded.append(ranges)
        return share(table, ranges)

    monkeypatch.setattr(utility, "_share", record)
    table, other = people(1000, 1, town=["Aby", "Berg"] * 500), people(800, 2)
    result = compare_queries(rows(table), [rows(other)])
    assert result is not None
    frames = [pd.DataFrame(rows(side).codes, columns=rows(side).names) for side in (table, other)]
    errors, samplings = [], []
    for ranges in recorded[::2]:
        shares = []
        for frame in frames:
            inside = pd.Series(True, index=frame.index)
            for name, is_range, codes in ranges:
                inside &= frame[name].between(*codes) if is_range else frame[name].isin(codes)
            shares.append(inside.mean())
        errors.append(abs(shares[0] - shares[1]))
        samplings.append(math.sqrt(2 / math.pi * shares[0] * (1 - shares[0]) / 1000))
    assert len(errors) == result.count == 500
    assert result.error == pytest.approx(np.mean(errors))
    assert result.sampling == pytest.approx(np.mean(samplings))


def test_fresh_sample_has_about_the_sampling_error_and_defects_have_more() -> None:
    table = people(4000, 1)
    bootstrap, lost = (compare_queries(rows(table), [rows(side)]) for side in (resample(table, 2), unrelated(table, 3)))
    equal = compare_queries(rows(table), [rows(table)])
    assert bootstrap is not None
    assert lost is not None
    assert equal is not None
    assert equal.error == 0
    assert bootstrap.error == pytest.approx(bootstrap.sampling, rel=0.3)
    assert lost.error > 1.6 * lost.sampling


def test_queries_skip_columns_without_values_and_wide_columns_need_no_memory() -> None:
    attributes = {"n": Integer(0, 10**15), "c": Category(("a", "b"))}
    table = encode(pa.table({"n": [5, 10**15, 7], "c": pa.array([None] * 3, pa.string())}), attributes)
    result = compare_queries(table, [table])
    assert result is not None
    assert result.error == 0
    assert compare_queries(table.only(("c",)), [table.only(("c",))]) is None
