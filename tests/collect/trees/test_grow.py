"""Growing and pruning: what the compiled loops give is what counting one by one gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from collect.trees.samples import nested
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import trees as reference

from tidegate.collect.trees import _kernels as kernels
from tidegate.collect.trees.grow import grow

MIXED = np.array([[0.8, 0.3], [0.2, 0.7]])


def slow(rows: Any, labels: Any, weights: Any, sizes: Any, unmix: Any) -> Any:
    least = min(50.0, max(2.0, sum(weights) / 100))
    return _plain_node(reference.prune(reference.grow(rows, labels, weights, sizes, unmix, least), sizes)[1])


def _plain_node(node: Any) -> Any:
    if len(node) == 1:
        return tuple(np.round(node[0], 6))
    return (node[1], node[2], _plain_node(node[3]), _plain_node(node[4]))


@st.composite
def people(draw: Any) -> Any:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    count, seed = draw(st.integers(1, 60)), draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    rows = np.column_stack([random.integers(0, size, count) for size in sizes])
    predicted = (rows[:, 0] > sizes[0] // 2).astype(np.int32)
    labels = np.where(random.uniform(size=count) < 0.8, predicted, random.integers(0, 2, count)).astype(np.int32)
    weights = random.integers(1, 5, count).astype(float) if draw(st.booleans()) else np.ones(count)
    return sizes, rows, labels, weights, np.linalg.inv(MIXED) if draw(st.booleans()) else np.eye(2)


@given(people())
@settings(max_examples=150)
def test_tree_equals_exhaustive_search_of_splits(case: Any) -> None:
    sizes, rows, labels, weights, unmix = case
    codes = np.ascontiguousarray(rows.T.astype(np.int32))
    tree = grow(codes, labels, sizes=np.array(sizes, np.int32), unmix=unmix, weights=weights)
    assert nested(tree) == slow(rows.tolist(), labels.tolist(), weights.tolist(), sizes, unmix.tolist())


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_records_are_assigned_to_intervals_in_the_order_of_their_reports(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    reports = random.integers(0, 9, count).astype(np.int32)
    ends = count * np.cumsum(random.dirichlet(np.ones(4)))
    ends[-1] = count
    intervals = np.empty(count, np.int32)
    kernels.associated(reports, np.arange(count, dtype=np.int32), ends, 9, intervals)
    assert intervals.tolist() == reference.associate(reports.tolist(), ends.tolist())


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_categories_keep_their_report_while_there_is_room(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    reports = random.integers(0, 4, count).astype(np.int32)
    room = random.multinomial(count, random.dirichlet(np.ones(4))).astype(float)
    assigned = np.empty(count, np.int32)
    kernels.kept(reports, np.arange(count, dtype=np.int32), room, assigned)
    assert assigned.tolist() == reference.keep_reports(reports.tolist(), room.tolist())
    assert np.bincount(assigned, minlength=4).tolist() == room.tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(5))
def test_unpredictable_classes_give_one_leaf(seed: int) -> None:
    random = np.random.default_rng(seed)
    codes, labels = random.integers(0, 50, (5, 4_000)).astype(np.int32), random.integers(0, 2, 4_000).astype(np.int32)
    sizes = np.full(5, 50, np.int32)
    assert grow(codes, labels, sizes=sizes, unmix=np.eye(2)).leaves == 1
    unpruned = reference.grow(
        codes[:, :300].T.tolist(), labels[:300].tolist(), [1.0] * 300, sizes.tolist(), np.eye(2), 2
    )
    assert len(unpruned) > 1  # a planted fault: without pruning the same records are split


def test_boxes_of_the_leaves_partition_all_combinations() -> None:
    random = np.random.default_rng(1)
    codes = random.integers(0, 12, (2, 5_000)).astype(np.int32)
    labels = ((codes[0] < 5) ^ (codes[1] < 7)).astype(np.int32)
    sizes = np.array([12, 12], np.int32)
    tree = grow(codes, labels, sizes=sizes, unmix=np.eye(2))
    everywhere = np.stack(np.meshgrid(np.arange(12), np.arange(12), indexing="ij"), axis=-1).reshape(-1, 2)
    leaf = tree.leaf(everywhere.astype(np.int32))
    for node, box in tree.boxes(sizes).items():
        inside = ((everywhere >= box[:, 0]) & (everywhere < box[:, 1])).all(axis=1)
        assert (inside == (leaf == node)).all()
