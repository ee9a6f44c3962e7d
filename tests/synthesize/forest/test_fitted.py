"""The stored model: whole numbers in, the same rows out, in chunks of constant size, with or without a condition."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import forest as slow
from synthesize.forest.surveys import LIMITS, SHOP, is_inside, learn_codes, pure, sales

from tidegate.errors import Unsupported
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import sort_by_group, spread_ints
from tidegate.synthesize.mechanisms.forest.pool import UNIT, GroupTable, Stream, draw_pool, whole_weights
from tidegate.synthesize.mechanisms.forest.weights import CHUNK, Fitted

weights = st.lists(st.one_of(st.just(0), st.integers(0, 2**41)), min_size=1, max_size=12)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", params=LIMITS)
def fitted(request: pytest.FixtureRequest) -> Fitted:
    limit = pure(4) if request.param == "pure" else LIMITS[request.param]
    return learn_codes(sales(20_000), SHOP, limit)[0]


# ---- whole numbers


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_whole_weights_are_the_shares_to_within_half_a_unit(shares: list[float]) -> None:
    result = whole_weights(np.array(shares))
    assert (result >= 0).all()
    assert result.any()
    if sum(shares) > 0:
        assert result == pytest.approx(np.array(shares) / sum(shares) * UNIT, abs=0.5 + 1e-3)


@given(weights, st.integers(0, 60), seeds)
def test_spread_equals_the_reference(values: list[int], size: int, seed: int) -> None:
    raw = Stream(str(seed)).raw(size)
    assert spread_ints(np.array(values), raw).tolist() == slow.spread_ints(values, raw.tolist())


@given(weights.filter(any), st.integers(1, 3000), seeds)
def test_each_index_is_drawn_as_often_as_expected_to_within_one(values: list[int], size: int, seed: int) -> None:
    counts = np.bincount(spread_ints(np.array(values), Stream(str(seed)).raw(size)), minlength=len(values))
    for count, value in zip(counts.tolist(), values, strict=True):
        assert abs(count * sum(values) - size * value) < sum(values)  # in whole numbers
        assert value > 0 or count == 0


@given(st.integers(0, 200), seeds)
def test_permutation_has_every_position_once(size: int, seed: int) -> None:
    assert sorted(Stream(str(seed)).permuted(size).tolist()) == list(range(size))


@given(st.lists(st.integers(0, 4), max_size=50))
def test_positions_are_sorted_by_group(groups: list[int]) -> None:
    order, begins = sort_by_group(np.array(groups, np.int64), 5)
    assert order.tolist() == sorted(range(len(groups)), key=lambda n: groups[n])
    assert begins.tolist() == [sum(group < k for group in groups) for k in range(6)]


def test_stream_is_the_same_on_every_machine() -> None:
    """Changing this changes every stored table."""
    assert Stream("forest/2 1 0").raw(2).tolist() == golden_words("forest/2 1 0")


def golden_words(seed: str) -> list[int]:
    """Return two outputs of PCG64 (XSL-RR) for the state that NumPy derives from a digest of the seed."""
    digest = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16])
    state = np.random.PCG64(digest).state["state"]
    value, increment, words = state["state"], state["inc"], []
    for _ in range(2):
        value = (value * 0x2360ED051FC65DA44385DF649FCCF645 + increment) % 2**128
        mixed, turn = (value >> 64) ^ (value % 2**64), value >> 122
        words.append((mixed >> turn | mixed << (-turn % 64)) % 2**64)
    return words


@given(seeds)
def test_pool_follows_margins_and_tables_to_within_one_row_of_each_group(seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels = [np.array([0, 0, 1, 2]), np.array([0, 1, 1])]
    table = generator.integers(0, 50, (3, 2)) + 1
    tree = GroupTable(0, 1, labels[0], labels[1], table.ravel())
    lines = table.sum(axis=1)
    inside = np.array([3, 1])  # of the two cells in the first group
    shares = [np.array([lines[0] * 3, lines[0], 4 * lines[1], 4 * lines[2]]), np.array([5, 1, 2])]
    size = 2000
    cells = draw_pool(shares, [tree], size, Stream(str(seed)))
    assert cells.shape == (2, size)
    first = np.bincount(cells[0], minlength=4)
    assert np.abs(first - size * shares[0] / shares[0].sum()).max() < 1
    assert inside.sum() == 4
    groups = labels[0][cells[0]]
    for group in range(3):
        here = cells[1][groups == group]
        expected = here.size * table[group] / table[group].sum()
        assert np.abs(np.bincount(labels[1][here], minlength=2) - expected).max() < 1
    second = np.bincount(cells[1], minlength=3)
    assert abs(second[1] - (second[1] + second[2]) / 3) < 1  # by the margin inside a group


# ---- storage


@pytest.mark.one_in(3)
def test_model_survives_json_and_draws_the_same_rows(fitted: Fitted) -> None:
    content = json.loads(json.dumps(fitted.to_dict()))
    again = Fitted.from_dict(content)
    assert again.to_dict() == fitted.to_dict() == content
    assert (again.draw(700, seed=5) == fitted.draw(700, seed=5)).all()
    assert again.summary == fitted.summary
    where = {1: np.array([0, 3])}
    both = [np.concatenate(list(model.chunks(300, seed=2, where=where))) for model in (fitted, again)]
    assert (both[0] == both[1]).all()


def test_stored_model_has_whole_numbers_only(fitted: Fitted) -> None:
    def numbers(content: object) -> list[object]:
        if isinstance(content, dict):
            return [number for value in content.values() for number in numbers(value)]
        return [n for value in content for n in numbers(value)] if isinstance(content, list) else [content]

    stored = {name: part for name, part in fitted.to_dict().items() if name != "summary"}
    assert not any(isinstance(number, float) for number in numbers(stored))


@pytest.mark.parametrize("change", ["version", "shares", "trees", "maps"])
def test_damaged_model_is_refused(fitted: Fitted, change: str) -> None:
    content = json.loads(json.dumps(fitted.to_dict()))
    if change == "version":
        content["version"] = 99
    elif change == "shares":
        content["shares"][0] = content["shares"][0][:-1]
    elif change == "trees":
        content["trees"][0]["weights"] = [0] * len(content["trees"][0]["weights"])
    else:
        content["maps"] = [{"column": 2, "by": 1, "values": [99] * 24, "errors": 0}]
    with pytest.raises(ValueError, match=r"version|fit together"):
        Fitted.from_dict(content)


# ---- draws


def test_same_seed_gives_the_same_rows_and_another_seed_others(fitted: Fitted) -> None:
    assert (fitted.draw(500, seed=3) == fitted.draw(500, seed=3)).all()
    assert (fitted.draw(500, seed=3) != fitted.draw(500, seed=4)).any()
    assert fitted.draw(0, seed=3).shape == (0, len(SHOP))


@pytest.mark.one_in(3)
def test_large_draw_comes_in_chunks_of_constant_size(fitted: Fitted) -> None:
    sizes = [len(chunk) for chunk in fitted.chunks(2 * CHUNK + 7, seed=1)]
    assert sizes == [CHUNK, CHUNK, 7]
    chunks = list(fitted.chunks(CHUNK + 500, seed=1))
    assert (np.concatenate(chunks) == fitted.draw(CHUNK + 500, seed=1)).all()
    assert (chunks[0] == next(iter(fitted.chunks(CHUNK, seed=1)))).all()
    assert (chunks[0][:500] != chunks[1]).any()
    assert all(is_inside(chunk, SHOP) for chunk in chunks)


def cell_shares(model: Fitted, codes: np.ndarray, index: int) -> np.ndarray:
    column = model.columns[index]
    return np.bincount(column.cell_of(codes[:, index]), minlength=column.cells) / len(codes)


def test_drawn_margins_are_those_of_the_model(fitted: Fitted) -> None:
    drawn = fitted.draw(50_000, seed=2)
    mapped = {learned.column for learned in fitted.maps}
    for index in set(range(len(SHOP))) - mapped:
        share = fitted.shares[index] / fitted.shares[index].sum()
        assert np.abs(cell_shares(fitted, drawn, index) - share).sum() / 2 < 0.01


def test_mapped_columns_follow_their_map_except_for_errors(fitted: Fitted) -> None:
    if not fitted.maps:
        assert fitted.summary.maps == ()
        return
    drawn = fitted.draw(50_000, seed=2)
    for found_map in fitted.maps:
        cells = [fitted.columns[n].cell_of(drawn[:, n]) for n in (found_map.by, found_map.column)]
        assert (found_map.values[cells[0]] != cells[1]).mean() <= found_map.error + 0.002


# ---- conditions

CONDITIONS = {
    "one code": {1: np.array([0])},
    "a range inside cells": {0: np.arange(100, 2000)},
    "two columns": {0: np.arange(0, 5000), 3: np.array([1, 2, 4])},
    "missing": {0: np.array([SHOP[0].size])},
    "a mapped column": {2: np.array([2])},
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CONDITIONS)
def test_conditional_rows_fit_and_agree_with_the_filtered_draw(fitted: Fitted, name: str) -> None:
    """Shares of 4,000 fitting rows and of the filtered draw differ by chance: 0.06 is six times the usual difference."""
    where = CONDITIONS[name]
    chunks = list(fitted.chunks(4_000, seed=9, where=where))
    drawn = np.concatenate(chunks)
    assert drawn.shape == (4_000, len(SHOP))
    assert is_inside(drawn, SHOP)
    assert all(np.isin(drawn[:, n], codes).all() for n, codes in where.items())
    free = fitted.draw(CHUNK, seed=8)
    fits = np.all([np.isin(free[:, n], codes) for n, codes in where.items()], axis=0)
    assert fitted.share(where) == pytest.approx(fits.mean(), abs=0.01)
    for index in (3, 4):
        expected = cell_shares(fitted, free[fits], index)
        assert np.abs(cell_shares(fitted, drawn, index) - expected).sum() / 2 < 0.06


@pytest.mark.one_in(3)
def test_condition_is_deterministic_and_splits_into_chunks(fitted: Fitted) -> None:
    where = {1: np.array([0, 1])}
    once, again = (np.concatenate(list(fitted.chunks(500, seed=1, where=where))) for _ in range(2))
    assert (once == again).all()
    assert max(len(chunk) for chunk in fitted.chunks(CHUNK + 1, seed=1, where=where)) <= CHUNK


def test_rare_condition_is_refused_with_the_share_of_the_model(fitted: Fitted) -> None:
    with pytest.raises(Unsupported, match="1 row in 10,000"):
        next(fitted.chunks(10, seed=1, where={0: np.array([98_765])}))


def test_condition_without_codes_is_refused(fitted: Fitted) -> None:
    with pytest.raises(Unsupported, match="1 row in 10,000"):
        next(fitted.chunks(10, seed=1, where={1: np.zeros(0, np.int64)}))


def test_codes_outside_a_column_fit_no_row(fitted: Fitted) -> None:
    where = {1: np.array([-5, 0, 99]), 3: np.array([4, 5, 2**53])}
    drawn = np.concatenate(list(fitted.chunks(300, seed=1, where=where)))
    assert (drawn[:, [1, 3]] == [0, 4]).all()


def test_codes_are_drawn_evenly_inside_a_cell() -> None:
    """A chi-square test of 10 codes; correct code fails never, because the seed is fixed."""
    column = Column("x", 10, (0,))
    model, _ = learn_codes(np.zeros((100, 1), np.int64), (column,), pure(1))
    counts = np.bincount(model.draw(50_000, seed=1)[:, 0], minlength=10)
    assert ((counts - 5000) ** 2 / 5000).sum() < 40


def test_stored_model_draws_the_same_rows_in_every_version() -> None:
    """The file was written once. A change of the draws breaks tables in ledgers: it needs a new version, not a new file."""
    stored = json.loads(Path(__file__).with_name("stored_forest.json").read_text("utf-8"))
    model, draws = Fitted.from_dict(stored["model"]), stored["draws"]
    assert model.to_dict() == stored["model"]
    assert model.draw(5, seed=3).tolist() == draws["first"]
    where = {0: np.array([1, 2]), 2: np.arange(0, 300)}
    drawn = {
        "all": model.draw(2_000, seed=3),
        "where": np.concatenate(list(model.chunks(500, seed=4, where=where))),
        "given": model.draw_given({0: np.arange(400) % 5}, seed=6),
    }
    digests = {
        name: hashlib.sha256(np.ascontiguousarray(codes, np.int64).tobytes()).hexdigest()
        for name, codes in drawn.items()
    }
    assert digests == {name: draws[name] for name in drawn}
