"""Greedy trees as rpart grows them, slowly: every split tried on the rows themselves, all numbers exact."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Node(NamedTuple):
    leaves: list  # (labeled one, labeled zero), from the left
    own: Fraction  # risk as a leaf
    risk: Fraction  # risk of its leaves
    splits: int
    complexity: Fraction


def risk_of(labels, method):
    ones, size = sum(labels), len(labels)
    return Fraction(min(ones, size - ones)) if method == "class" else Fraction(ones * (size - ones), size)


def impurity(labels):
    """m (1 - p^2 - (1-p)^2)."""
    share = Fraction(sum(labels), len(labels))
    return len(labels) * (1 - share**2 - (1 - share) ** 2)


def best_split(rows, labels, minbucket):
    """(below, above) as numbers of rows, or None."""
    best, split = impurity(labels), None
    for column in range(len(rows[0])):
        values = sorted({row[column] for row in rows})
        for value in values[:-1]:
            below = [i for i, row in enumerate(rows) if row[column] <= value]
            above = [i for i, row in enumerate(rows) if row[column] > value]
            if min(len(below), len(above)) < minbucket:
                continue
            here = impurity([labels[i] for i in below]) + impurity([labels[i] for i in above])
            if here < best:
                best, split = here, (below, above)
    return split


def grow(rows, labels, depth, bound, alpha, minsplit, minbucket, max_depth, method):
    own = risk_of(labels, method)
    leaf = Node([(sum(labels), len(labels) - sum(labels))], own, own, 0, alpha)
    most = min(own, bound)
    if len(rows) < minsplit or depth >= max_depth or most <= alpha:
        return leaf
    sides = best_split(rows, labels, minbucket)
    if sides is None:
        return leaf
    left, right = sorted(sides, key=lambda side: Fraction(sum(labels[i] for i in side), len(side)))

    def child(side, limit):
        return grow(
            [rows[i] for i in side], [labels[i] for i in side], depth + 1, limit, alpha, minsplit, minbucket, max_depth,
            method,
        )  # fmt: skip

    first = child(left, most - alpha)
    gained = max((own - first.risk) / (first.splits + 1), own - first.own)
    second = child(right, min(gained, bound) - alpha)
    children = [first, second]

    def each():
        return (own - sum(s.risk for s in children)) / (sum(s.splits for s in children) + 1)

    order = [0, 1] if second.complexity > first.complexity else [1, 0]  # who would be pruned first
    for index in order:
        if each() <= children[index].complexity:
            break
        children[index] = children[index]._replace(risk=children[index].own, splits=0)
    complexity = each()
    if complexity <= alpha:
        return leaf._replace(complexity=complexity)
    return Node(
        first.leaves + second.leaves,
        own,
        sum(s.risk for s in children),
        sum(s.splits for s in children) + 1,
        complexity,
    )


def leaves(original, synthetic, *, cp, minsplit, minbucket, max_depth, method):
    rows = [*synthetic, *original]
    labels = [1] * len(synthetic) + [0] * len(original)
    root = risk_of(labels, method)
    return grow(rows, labels, 0, root, Fraction(cp) * root, minsplit, minbucket, max_depth, method).leaves
