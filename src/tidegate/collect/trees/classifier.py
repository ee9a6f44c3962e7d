"""A scikit-learn classifier that learns from randomized records and classifies true ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tidegate.arrays import Array, Floats, Ints32
from tidegate.collect.trees.columns import Column, column_of, plain_column
from tidegate.collect.trees.grow import Tree
from tidegate.collect.trees.joint import joint
from tidegate.collect.trees.selection import best
from tidegate.collect.trees.strategies import by_class, globally, local, randomized
from tidegate.collect.trees.training import Training
from tidegate.errors import Unsupported, did_you_mean
from tidegate.extras import extra
from tidegate.operators import Operator

with extra("sklearn", "The tree classifier"):
    from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

Described = Column | Operator | None
STRATEGIES: dict[str, Callable[[Training], Tree]] = {
    "randomized": randomized,
    "original": randomized,
    "global": globally,
    "by-class": by_class,
    "local": local,
    "joint": joint,
}


class RandomizedTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision tree. `fit` takes randomized reports, `predict` takes true values.

    Args:
        columns: For each column a Column, an operator (reports and values are codes), or None (no noise).
        label_channel: P(reported class given class), square, in the order of `classes_`; None if classes are not randomized.
        strategy: "best" tries "joint", "by-class" and "local" on halves of the records and uses the one that does best
            there; "global", "randomized" and "original" (given true values) are for comparison.

    Guarantee:
        The same reports give the same tree. It uses reports alone, so it costs no privacy. Without noise every strategy
        gives the tree of the values.

    Reference:
        Agrawal, Srikant 2000 (SIGMOD), except for "joint" and "best".
    """

    def __init__(
        self,
        *,
        columns: Sequence[Described] | None = None,
        label_channel: ArrayLike | None = None,
        strategy: str = "best",
    ) -> None:
        self.columns = columns
        self.label_channel = label_channel
        self.strategy = strategy

    def fit(self, reports: ArrayLike, y: ArrayLike) -> RandomizedTreeClassifier:
        """Learn from randomized records (records, columns) and the class that each reported."""
        if self.strategy not in (*STRATEGIES, "best"):
            raise Unsupported(f'Unknown strategy: "{self.strategy}".', did_you_mean(self.strategy, [*STRATEGIES]))
        rows, target = validate_data(self, reports, y, dtype=np.float64)
        check_classification_targets(target)
        self.classes_, labels = np.unique(target, return_inverse=True)
        self.columns_ = self._columns(rows)
        training = self._training(rows, labels.astype(np.int32))
        if self.strategy == "best" and not training.plain:
            self.strategy_, self.tree_ = best(training)
        else:
            self.strategy_ = "original" if training.plain else self.strategy
            self.tree_ = STRATEGIES[self.strategy_](training)
        return self

    @classmethod
    def from_tree(
        cls, tree: Tree, *, columns: Sequence[Column], classes: Array, strategy: str
    ) -> RandomizedTreeClassifier:
        """Return a fitted classifier with a tree that was learned elsewhere."""
        classifier = cls(columns=columns, strategy=strategy)
        classifier.tree_, classifier.columns_ = tree, tuple(columns)
        classifier.classes_, classifier.strategy_ = classes, strategy
        classifier.n_features_in_ = len(columns)
        return classifier

    def predict(self, values: ArrayLike) -> Array:
        """Return the class of true values."""
        chances = self.predict_proba(values)
        classes: Array = self.classes_[chances.argmax(axis=1)]
        return classes

    def predict_proba(self, values: ArrayLike) -> Floats:
        """Return the shares of the classes in the leaf of each record, in the order of `classes_`."""
        check_is_fitted(self)
        rows = validate_data(self, values, dtype=np.float64, reset=False)
        counts = self.tree_.counts[self.tree_.leaf(self._codes(rows))]
        total = counts.sum(axis=1, keepdims=True)
        even = np.full_like(counts, 1 / counts.shape[1])
        return np.asarray(np.divide(counts, total, out=even, where=total > 0))

    def _codes(self, values: Floats) -> Ints32:
        codes = [column.interval(values[:, a]) for a, column in enumerate(self.columns_)]
        return np.ascontiguousarray(np.array(codes, np.int32).T)

    def _columns(self, rows: Floats) -> tuple[Column, ...]:
        described = [None] * rows.shape[1] if self.columns is None else list(self.columns)
        if len(described) != rows.shape[1]:
            raise Unsupported(f"{len(described)} columns are described, but the records have {rows.shape[1]}.")
        columns = tuple(_column(column, rows[:, a]) for a, column in enumerate(described))
        return tuple(column.without_noise() for column in columns) if self.strategy == "original" else columns

    def _training(self, records: Floats, labels: Ints32) -> Training:
        rows = [column.report(records[:, a]) for a, column in enumerate(self.columns_)]
        return Training(np.array(rows, np.int32), labels, self.columns_, self._unmix())

    def _unmix(self) -> Floats:
        size = len(self.classes_)
        if self.label_channel is None:
            return np.eye(size)
        channel = np.asarray(self.label_channel, np.float64)
        if channel.shape != (size, size) or abs(np.linalg.det(channel)) < 1e-9:
            raise Unsupported(
                f"`label_channel` must be an invertible matrix of {size} by {size} classes.",
                "Its columns are true classes, its rows reported classes.",
            )
        return np.asarray(np.linalg.inv(channel))


def _column(described: Described, reports: Floats) -> Column:
    if described is None:
        return plain_column(reports)
    return described if isinstance(described, Column) else column_of(described)
