"""The classifier: scikit-learn's contract, and what it learns from randomized records and labels."""

from __future__ import annotations

import numpy as np
import pytest
from collect.trees.samples import columns_of, corners, noisy, same
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from tidegate_papers.simulation.values import BulkBits, sample_many

from tidegate.collect.trees import STRATEGIES, RandomizedTreeClassifier
from tidegate.errors import Unsupported
from tidegate.policy import Category, Integer, Question
from tidegate.policy.collection import operator_for


@pytest.mark.one_in(2)
@parametrize_with_checks([RandomizedTreeClassifier()])
def test_classifier_passes_scikit_learn_checks(estimator: RandomizedTreeClassifier, check: object) -> None:
    """All of them, none exempt. Without columns a report is its value; with columns `fit` takes reports and `predict`
    values, so checks that score on what was fitted would make no sense there."""
    check(estimator)  # type: ignore[operator]


def test_classifier_parameters_can_be_read_and_cloned() -> None:
    tree = RandomizedTreeClassifier(columns=columns_of(0.1, 2), strategy="local")
    again = clone(tree)
    assert again.get_params()["strategy"] == "local"
    assert (again.columns[1].channel.matrix == tree.columns[1].channel.matrix).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("strategy", [*STRATEGIES, "best"])
def test_probabilities_sum_to_one_and_predictions_are_their_largest(strategy: str) -> None:
    values, labels = corners(2_000)
    names = np.array(["different", "same"])
    tree = RandomizedTreeClassifier(columns=columns_of(0.15, 4), strategy=strategy)
    tree.fit(noisy(values, 0.15), names[labels])
    chances = tree.predict_proba(values)
    assert chances.min() >= 0
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (tree.predict(values) == tree.classes_[chances.argmax(axis=1)]).all()


def test_column_without_noise_can_be_combined_with_noisy_ones() -> None:
    values, labels = corners(10_000, attributes=2)
    reports = np.column_stack([values[:, 0], noisy(values, 0.2)[:, 1]])
    tree = RandomizedTreeClassifier(columns=[None, columns_of(0.2, 1)[0]]).fit(reports, labels)
    test_values, known = corners(3_000, attributes=2, seed=9)
    assert tree.score(test_values, known) > 0.93


def randomized_labels(labels: np.ndarray, keep: float) -> tuple[np.ndarray, np.ndarray]:
    flip = np.random.default_rng(4).uniform(size=labels.size) > keep
    return np.where(flip, 1 - labels, labels), np.array([[keep, 1 - keep], [1 - keep, keep]])


@pytest.mark.parametrize("strategy", ["by-class", "joint"])
def test_shares_are_those_of_true_classes_if_labels_are_randomized(strategy: str) -> None:
    values = np.random.default_rng(3).uniform(0, 1, (40_000, 2))
    labels = (values[:, 0] < 0.3).astype(np.int32)
    reported, channel = randomized_labels(labels, 0.7)
    reports, columns = noisy(values, 0.1), columns_of(0.1, 2)
    tree = RandomizedTreeClassifier(columns=columns, label_channel=channel, strategy=strategy).fit(reports, reported)
    blind = RandomizedTreeClassifier(columns=columns, strategy=strategy).fit(reports, reported)  # a planted fault
    at = np.array([[0.1, 0.5], [0.9, 0.5]])
    assert tree.predict_proba(at)[:, 1] == pytest.approx([1, 0], abs=0.08)
    assert blind.predict_proba(at)[:, 1] == pytest.approx([0.7, 0.3], abs=0.08)


def test_three_classes_are_distinguished() -> None:
    values = np.random.default_rng(3).uniform(0, 1, (30_000, 3))
    classes = np.searchsorted([0.3, 0.7], values[:, 1])
    tree = RandomizedTreeClassifier(columns=columns_of(0.2, 3)).fit(noisy(values, 0.2), classes)
    assert tree.score(values, classes) > 0.9


@pytest.mark.one_in(2)
@pytest.mark.parametrize("strategy", ["by-class", "joint", "best"])
def test_operators_can_describe_columns_of_codes(strategy: str) -> None:
    random = np.random.default_rng(7)
    age = operator_for(Question("age", Integer(16, 95), "square-wave", epsilon=3))
    town = operator_for(Question("town", Category(tuple("abcd")), "randomized-response", epsilon=3))
    codes = np.column_stack([random.integers(0, 80, 40_000), random.integers(0, 4, 40_000)])
    classes = (codes[:, 0] < 40) | (codes[:, 1] == 3)
    reports = np.column_stack(
        [sample_many(operator, codes[:, a], BulkBits(f"tree {a}")) for a, operator in enumerate((age, town))]
    )
    tree = RandomizedTreeClassifier(columns=[age, town], strategy=strategy).fit(reports, classes)
    assert tree.score(codes, classes) > 0.9


def test_tree_of_true_values_needs_no_noise() -> None:
    values, labels = corners(3_000)
    from_values = RandomizedTreeClassifier(columns=columns_of(0.3, 4), strategy="original").fit(values, labels)
    other = RandomizedTreeClassifier(columns=[column.without_noise() for column in columns_of(0.3, 4)])
    assert same(from_values.tree_, other.fit(values, labels).tree_)
    assert from_values.score(values, labels) > 0.99


def test_mismatched_input_is_refused() -> None:
    values, labels = corners(200)
    with pytest.raises(Unsupported, match="3 columns"):
        RandomizedTreeClassifier(columns=columns_of(0.1, 3)).fit(values, labels)
    with pytest.raises(Unsupported, match="strategy"):
        RandomizedTreeClassifier(strategy="globl").fit(values, labels)
    with pytest.raises(Unsupported, match="invertible"):
        RandomizedTreeClassifier(label_channel=np.full((2, 2), 0.5)).fit(values, labels)
