"""The published strategies, and joint reconstruction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from collect.trees.samples import columns_of, corners, nested, noisy, same, training
from reference import trees as reference

from tidegate.collect.trees import STRATEGIES, Tree, plain_column
from tidegate.collect.trees.grow import grow
from tidegate.collect.trees.joint import (
    ROOM,
    Chosen,
    axis,
    back,
    brier,
    choose,
    fine_axes,
    forward,
    joint_em,
    joint_of,
    tally,
)
from tidegate.collect.trees.selection import best, leaf_chances, prior_of
from tidegate.collect.trees.strategies import by_class, local
from tidegate.collect.trees.training import Training

PUBLISHED = ("randomized", "global", "by-class", "local")


def accuracy(tree: Tree, values: np.ndarray, labels: np.ndarray, columns: list) -> float:
    codes = np.column_stack([column.interval(values[:, a]) for a, column in enumerate(columns)]).astype(np.int32)
    return float((tree.counts[tree.leaf(codes)].argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("ordered", [True, False])
def test_without_noise_every_strategy_gives_the_plain_tree(name: str, ordered: bool) -> None:
    values, labels = corners(3_000)
    columns = [plain_column(values[:, a], intervals=17) for a in range(4)]
    columns = [type(column)(column.channel, column.value_edges, column.report_edges, ordered) for column in columns]
    data = training(values, labels, columns)
    plain = grow(data.reports, data.labels, sizes=data.sizes, unmix=data.unmix)
    assert plain.leaves > 3
    assert same(STRATEGIES[name](data), plain)


@pytest.mark.parametrize("name", [*PUBLISHED, "joint"])
def test_permuted_classes_permute_the_tree(name: str) -> None:
    values, labels = corners(4_000)
    reports, columns = noisy(values, 0.1), columns_of(0.1, 4)
    tree, other = (STRATEGIES[name](training(reports, y, columns)) for y in (labels, 1 - labels))
    assert tree.leaves > 1
    assert (tree.attribute == other.attribute).all()
    assert (tree.boundary == other.boundary).all()
    assert tree.counts == pytest.approx(other.counts[:, ::-1], abs=1e-6)


def test_best_permutes_with_the_classes_too() -> None:
    values, labels = corners(4_000)
    reports, columns = noisy(values, 0.1), columns_of(0.1, 4)
    (name, tree), (other_name, other) = (best(training(reports, y, columns)) for y in (labels, 1 - labels))
    assert name == other_name
    assert (tree.boundary == other.boundary).all()


@pytest.mark.parametrize("make", [by_class, local, lambda data: best(data)[1]])
def test_the_same_reports_give_the_same_tree(make: Callable[[Training], Tree]) -> None:
    values, labels = corners(3_000)
    data = training(noisy(values, 0.2), labels, columns_of(0.2, 4))
    assert same(make(data), make(data))


def test_split_attribute_keeps_its_association() -> None:
    """Re-reconstructing it (a planted fault) takes records chosen by their reports for a fresh sample, and spreads them
    over the whole range again."""
    values, labels = corners(20_000)
    data = training(noisy(values, 0.15), labels, columns_of(0.15, 4))

    def faulty(data: Training) -> Tree:
        codes = np.empty_like(data.reports)

        def again(records: np.ndarray, above: frozenset[int]) -> None:
            for group in data.by_class(records) if records.size >= 500 else []:
                for attribute in range(len(data.columns)):
                    data.associate(attribute, group, codes[attribute])

        return grow(codes, data.labels, sizes=data.sizes, unmix=data.unmix, associate=again)

    def impossible(tree: Tree) -> int:
        """Count splits outside the node's own box."""
        boxes, count = {0: np.stack([np.zeros_like(data.sizes), data.sizes], axis=1)}, 0
        for node in range(tree.attribute.size):
            a, at = int(tree.attribute[node]), tree.boundary[node]
            if a >= 0:
                count += not boxes[node][a, 0] < at < boxes[node][a, 1]
                for child, side in ((tree.left[node], 1), (tree.right[node], 0)):
                    boxes[int(child)] = boxes[node].copy()
                    boxes[int(child)][a, side] = at
        return count

    assert impossible(local(data)) == 0
    assert impossible(faulty(data)) > 0


def test_joint_em_is_em_with_the_whole_channel() -> None:
    values, labels = corners(500, attributes=2)
    data = training(noisy(values, 0.2), labels, columns_of(0.2, 2, intervals=6))
    axes = [axis(data.columns[0], 0, cells=3), axis(data.columns[1], 1, cells=6)]
    counts = tally(data, axes)
    assert counts.sum(axis=(1, 2)).tolist() == np.bincount(labels).tolist()
    for label in (0, 1):
        three, seven = joint_em(counts[label], axes, steps=(3, 7))
        matrices = [dimension.matrix.tolist() for dimension in axes]
        assert three == pytest.approx(reference.joint_em(counts[label], matrices, 3), abs=1e-8)
        assert seven == pytest.approx(reference.joint_em(counts[label], matrices, 7), abs=1e-8)
        assert seven.sum() == pytest.approx(counts[label].sum())


def test_back_is_the_transpose_of_forward() -> None:
    random = np.random.default_rng(3)
    axes = [
        axis(column, a, cells=cells)
        for a, (column, cells) in enumerate(zip(columns_of(0.2, 3), (4, 5, 7), strict=True))
    ]
    masses = random.uniform(size=[dimension.matrix.shape[1] for dimension in axes])
    weights = random.uniform(size=[dimension.matrix.shape[0] for dimension in axes])
    assert (forward(masses, axes) * weights).sum() == pytest.approx((masses * back(weights, axes)).sum())
    assert forward(masses, axes).sum() == pytest.approx(masses.sum())


def test_brier_is_the_mean_squared_error_of_the_shares() -> None:
    shown, actual = np.array([[3.0, 1.0], [1.0, 0.0]]), np.array([[2.0, 0.0], [4.0, 2.0]])
    expected = (2 * (0.25**2 + 0.25**2) + 4 * (0.75**2 + 0.75**2) + 2 * (1 + 1)) / 8
    assert brier(shown, actual) == pytest.approx(expected)


def test_attributes_that_predict_the_class_only_together_are_chosen() -> None:
    values, labels = corners(20_000, attributes=5)
    data = training(noisy(values, 0.25), labels, columns_of(0.25, 5))
    assert choose(data).attributes == (0, 1)


def test_joint_reconstruction_finds_interactions_that_single_attributes_miss() -> None:
    values, labels = corners(20_000)
    columns = columns_of(0.25, 4)
    data = training(noisy(values, 0.25), labels, columns)
    test_values, known = corners(4_000, seed=99)
    name, tree = best(data)
    assert name == "joint"
    assert accuracy(tree, test_values, known, columns) > 0.9
    assert accuracy(tree, test_values, known, columns) > accuracy(by_class(data), test_values, known, columns) + 0.02


def test_more_attributes_than_can_be_joined_leave_the_choice_to_others() -> None:
    """Five attributes, each with a say of its own: three of them are not enough, and the score shows it."""
    values = np.random.default_rng(8).uniform(0, 1, (20_000, 5))
    labels = (values.sum(axis=1) > 2.5).astype(np.int32)
    name, _ = best(training(noisy(values, 0.05), labels, columns_of(0.05, 5)))
    assert name in ("by-class", "local")


def test_leaf_probabilities_are_sums_over_their_cells() -> None:
    values, labels = corners(300, attributes=3)
    data = training(noisy(values, 0.3), labels, columns_of(0.3, 3, intervals=4))
    prior = prior_of(data, Chosen((0, 1), 30, 0.0))
    boxes = np.array([[[0, 2], [1, 4], [2, 3]], [[2, 4], [0, 4], [0, 4]]], np.int32)
    chances = leaf_chances(boxes, [0, 1, 2], data, prior)
    matrices = [prior.axes[0].matrix, prior.axes[1].matrix, data.columns[2].channel.matrix]
    masses = prior.masses[:, :, None] * prior.marginals[2]
    for record in range(0, 300, 25):
        rows = [dimension.joined[data.reports[dimension.attribute, record]] for dimension in prior.axes] + [
            data.reports[2, record]
        ]
        expected = [reference.chance_in_box(rows, box.tolist(), matrices, masses) for box in boxes]
        assert chances[record] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.06, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("attributes", [1, 2, 3])
def test_cells_stay_fine_enough_for_any_noise(sigma: float, attributes: int) -> None:
    """Wide noise has many kinds of reports; coarser cells must make room, but not all of it."""
    values, labels = corners(100, attributes=3)
    data = training(noisy(values, sigma), labels, columns_of(sigma, 3, intervals=100))
    axes = fine_axes(data, range(attributes))
    assert np.prod([dimension.matrix.shape[0] for dimension in axes]) <= ROOM
    assert min(dimension.matrix.shape[1] for dimension in axes) >= 12


def test_joint_tree_splits_only_on_intervals_of_its_attributes() -> None:
    values, labels = corners(5_000)
    data = training(noisy(values, 0.1), labels, columns_of(0.1, 4, intervals=100))
    tree = joint_of(data, Chosen((0, 1), 100, 0.0))
    assert tree.used == [0, 1]
    assert any(abs(int(b) - 50) <= 2 for b, a in zip(tree.boundary, tree.attribute, strict=True) if a >= 0)
    assert nested(tree) == nested(joint_of(data, Chosen((0, 1), 100, 0.0)))
