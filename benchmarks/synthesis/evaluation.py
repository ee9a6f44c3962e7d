"""How similar a synthetic table is to the true rows: the same measures for all programs, on codes.

gb             pMSE of boosted trees, two folds, 6,000 true and 6,000 synthetic rows; 0 is best, .25 worst
CART           pMSE over the leaves of one tree, at least 100 rows in a leaf, up to 20,000 rows of each kind
tv1, tv2, tv3  mean total variation of tables of one, two and three columns, on 16 bins of equal true mass
corr           mean absolute error of the correlations of numbers
q              mean absolute error of the share of rows in 500 random ranges of one to three columns
auc            boosted trees trained on synthetic rows, tested on held-out true rows
fd             share of rows that break a true functional dependency (mean over the dependencies)
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # type: ignore[import-untyped]
from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]

from benchmarks.synthesis.tables import Table
from tidegate.arrays import Ints
from tidegate.policy import Category

MEASURES = ("gb", "CART", "tv1", "tv2", "tv3", "corr", "q", "auc", "fd")
SAMPLE, TREE_SAMPLE, LEAF, BINS, TRIPLES, RANGES = 6_000, 20_000, 100, 16, 300, 500


def evaluate(table: Table, synthetic: Ints, *, seed: int = 0) -> dict[str, float]:
    """Return every measure of one synthetic table (codes, rows by columns)."""
    true = table.train
    return {
        "gb": boosted_pmse(true, synthetic, seed=seed),
        "CART": tree_pmse(true, synthetic, seed=seed),
        **variations(table, true, synthetic),
        "corr": correlation_error(table, true, synthetic),
        "q": range_error(true, synthetic),
        "auc": auc(table, synthetic),
        **({"fd": broken(table, synthetic)} if table.functions else {}),
    }


def boosted_pmse(true: Ints, synthetic: Ints, *, seed: int) -> float:
    """Return the mean squared distance from 1/2 of the probabilities that boosted trees give to rows of the other fold.

    50 trees of 8 leaves: with these a bootstrap of the true rows scores about .002.
    """
    rows, labels = _mixture(true, synthetic, SAMPLE, seed)
    boosted = HistGradientBoostingClassifier(max_leaf_nodes=8, max_iter=50, random_state=0)
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    chances = cross_val_predict(boosted, rows, labels, cv=folds, method="predict_proba")[:, 1]
    return float(np.mean((chances - 0.5) ** 2))


def tree_pmse(true: Ints, synthetic: Ints, *, seed: int) -> float:
    rows, labels = _mixture(true, synthetic, TREE_SAMPLE, seed)
    tree = DecisionTreeClassifier(min_samples_leaf=LEAF, random_state=0).fit(rows, labels)
    return float(np.mean((tree.predict_proba(rows)[:, 1] - 0.5) ** 2))


def _mixture(true: Ints, synthetic: Ints, size: int, seed: int) -> tuple[Ints, Ints]:
    """Return equally many true and synthetic rows, at most `size` of each, and their labels."""
    rng, count = np.random.default_rng(seed), min(size, len(true), len(synthetic))
    picked = [rows[rng.choice(len(rows), count, replace=False)] for rows in (true, synthetic)]
    return np.vstack(picked), np.repeat([0, 1], count)


def variations(table: Table, true: Ints, synthetic: Ints) -> dict[str, float]:
    """Return tv1, tv2 and tv3: means over all columns, all pairs, and all or 300 fixed triples."""
    bins = [quantile_bins(table, true, index) for index in range(true.shape[1])]
    binned = [
        [np.searchsorted(cuts, rows[:, index], side="right") for index, cuts in enumerate(bins)]
        for rows in (true, synthetic)
    ]
    means = {}
    for way in (1, 2, 3):
        chosen = list(combinations(range(len(bins)), way))
        if way == 3 and len(chosen) > TRIPLES:
            picked = np.random.default_rng(42).choice(len(chosen), TRIPLES, replace=False)
            chosen = [chosen[index] for index in picked]
        shapes = [[len(bins[index]) + 1 for index in columns] for columns in chosen]
        pairs = zip(chosen, shapes, strict=True)
        means[f"tv{way}"] = float(
            np.mean([_variation(binned[0], binned[1], columns, shape) for columns, shape in pairs])
        )
    return means


def quantile_bins(table: Table, true: Ints, index: int) -> Ints:
    """Return the first codes of all bins but the first: 16 of equal true mass, one for missing; one per value if fewer."""
    attribute = list(table.known.values())[index]
    if attribute.size <= BINS:
        return np.arange(1, attribute.size + 1)
    present = true[true[:, index] < attribute.size, index]
    cuts = np.quantile(present, np.arange(1, BINS) / BINS, method="higher")
    return np.unique(np.append(cuts, attribute.size).astype(np.int64))


def _variation(true: list[Ints], synthetic: list[Ints], columns: tuple[int, ...], shape: list[int]) -> float:
    cells = [np.ravel_multi_index([rows[index] for index in columns], shape) for rows in (true, synthetic)]
    shares = [np.bincount(codes, minlength=int(np.prod(shape))) / len(codes) for codes in cells]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def correlation_error(table: Table, true: Ints, synthetic: Ints) -> float:
    """Return the mean error over all pairs of numbers; rows without a value are left out, a constant has correlation 0."""
    numbers = [n for n, attribute in enumerate(table.known.values()) if not isinstance(attribute, Category)]
    sizes = [attribute.size for attribute in table.known.values()]
    errors = []
    for i, j in combinations(numbers, 2):
        both = [rows[(rows[:, i] < sizes[i]) & (rows[:, j] < sizes[j])] for rows in (true, synthetic)]
        errors.append(abs(_correlation(both[0][:, [i, j]]) - _correlation(both[1][:, [i, j]])))
    return float(np.mean(errors))


def _correlation(rows: Ints) -> float:
    if len(rows) < 2 or np.any(rows.max(axis=0) == rows.min(axis=0)):
        return 0.0
    return float(np.asarray(np.corrcoef(rows.T))[0, 1])


def range_error(true: Ints, synthetic: Ints) -> float:
    """Return the mean error of 500 ranges. Their ends are the codes of two random true rows."""
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(RANGES):
        columns = rng.choice(true.shape[1], rng.integers(1, 4), replace=False)
        ends = np.sort(true[np.ix_(rng.integers(len(true), size=2), columns)], axis=0)
        shares = [
            np.mean(np.all((rows[:, columns] >= ends[0]) & (rows[:, columns] <= ends[1]), axis=1))
            for rows in (true, synthetic)
        ]
        errors.append(abs(shares[0] - shares[1]))
    return float(np.mean(errors))


def auc(table: Table, synthetic: Ints) -> float:
    """Return the AUC on held-out rows: the target is the last value of a list, or above the true median."""
    index = list(table.known).index(table.target)
    attribute = table.known[table.target]
    limit = attribute.size - 2 if isinstance(attribute, Category) else np.median(table.train[:, index])
    labels, truth = synthetic[:, index] > limit, table.test[:, index] > limit
    if labels.all() or not labels.any():
        return 0.5
    rest = [n for n in range(synthetic.shape[1]) if n != index]
    nominal = [
        isinstance(known, Category) and known.size < 255 for n, known in enumerate(table.known.values()) if n != index
    ]
    boosted = HistGradientBoostingClassifier(random_state=0, categorical_features=nominal)
    boosted.fit(synthetic[:, rest], labels)
    return float(roc_auc_score(truth, boosted.predict_proba(table.test[:, rest])[:, 1]))


def broken(table: Table, synthetic: Ints) -> float:
    """Return the share of rows whose value is not the function's; a value that no true row has breaks it."""
    names, everyone = list(table.known), table.codes
    shares = []
    for origin, column in table.functions:
        i, j = names.index(origin), names.index(column)
        function = np.full(table.known[origin].size + 1, -1)
        function[everyone[:, i]] = everyone[:, j]
        shares.append(np.mean(function[synthetic[:, i]] != synthetic[:, j]))
    return float(np.mean(shares))


def bootstrap(table: Table, *, seed: int) -> Ints:
    """Return true rows drawn with replacement: the best that a synthetic table of this size can look like."""
    train = table.train
    return train[np.random.default_rng(seed).integers(len(train), size=len(train))]
