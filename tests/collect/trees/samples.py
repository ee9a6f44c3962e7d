"""People, reports and trees that the tests of trees share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.collect.reconstruct import GaussianNoise
from tidegate.collect.trees import Column, Tree, noisy_column
from tidegate.collect.trees.training import Training


def corners(count: int, *, attributes: int = 4, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Values in [0, 1]; the class is whether the first two are on the same side of a half: neither predicts it alone."""
    values = np.random.default_rng(seed).uniform(0, 1, (count, attributes))
    return values, ((values[:, 0] < 0.5) == (values[:, 1] < 0.5)).astype(np.int32)


def noisy(values: np.ndarray, sigma: float, *, seed: int = 6) -> np.ndarray:
    return values + np.random.default_rng(seed).normal(0, sigma, values.shape)


def columns_of(sigma: float, attributes: int, intervals: int = 20) -> list[Column]:
    return [noisy_column(GaussianNoise(sigma), 0, 1, intervals=intervals)] * attributes


def training(reports: np.ndarray, labels: np.ndarray, columns: list[Column], unmix: Any = None) -> Training:
    rows = np.array([column.report(reports[:, a]) for a, column in enumerate(columns)], np.int32)
    return Training(
        rows, labels.astype(np.int32), tuple(columns), np.eye(int(labels.max()) + 1) if unmix is None else unmix
    )


def nested(tree: Tree, node: int = 0) -> Any:
    """Attributes and boundaries as tuples; a leaf is its counts."""
    if tree.attribute[node] < 0:
        return tuple(np.round(tree.counts[node], 6))
    sides = (nested(tree, int(child)) for child in (tree.left[node], tree.right[node]))
    return (int(tree.attribute[node]), int(tree.boundary[node]), *sides)


def same(tree: Tree, other: Tree) -> bool:
    return nested(tree) == nested(other)
