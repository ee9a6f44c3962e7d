"""Compiled kernels: a greedy tree as in R's rpart, on sorted columns.

A column is a row of words in increasing order; a word is code << 33 | row << 1 | label, so that a scan reads memory
in order and a split moves one array. Codes number the distinct values of a column, so only their order matters.

Reference:
    Breiman et al. 1984; Therneau & Atkinson 1997, "An introduction to recursive partitioning using the RPART
    routines", sections 3 and 4, and the package's bound on the complexity of a growing node (partition.c).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.extras import extra

with extra("synthesize", "Making synthetic tables"):
    from numba import njit

CODE, ROW = 33, 1
CLASS, ANOVA = 0, 1

# A growing node is a row of integers and a row of floats; nodes wait on a stack, one for each depth.
# (A recursive function crashes when numba loads it from its cache: seen with 0.6x.)
START, STOP, ONES, MIDDLE, LEFT_ONES, BEFORE, WAITING_FOR = range(7)
BOUND, RISK, LEFT_OWN, RIGHT_OWN, LEFT_RISK, LEFT_SPLITS, LEFT_COMPLEXITY = range(7)
NOBODY, LEFT, RIGHT = range(3)


@njit(cache=True)
def _risk(ones: int, size: int, method: int) -> float:
    """Return the error of the best constant: rows of the smaller class, or the sum of squares."""
    if method == CLASS:
        return float(min(ones, size - ones))
    return ones * float(size - ones) / size


@njit(cache=True)
def _best_split(words: Ints, start: int, stop: int, ones: int, minbucket: int) -> Any:
    """Return the column, the index and the labels below it of the first split that lowers Gini's impurity most.

    Twice the decrease of impurity is d^2 / (m l r) for d = ones_left m - ones l: d is exact, and 0 only without a decrease.
    """
    size = stop - start
    best, column, index, below = 0.0, -1, 0, 0
    for j in range(words.shape[0]):
        run = words[j]
        if run[start] >> CODE == run[stop - 1] >> CODE:
            continue
        left_ones = 0
        for i in range(start, stop - minbucket):
            word = run[i]
            left_ones += word & 1
            left = i + 1 - start
            if left >= minbucket and word >> CODE != run[i + 1] >> CODE:
                apart = float(left_ones * size - ones * left)
                gain = apart * apart / (float(left) * float(size - left))
                if gain > best:
                    best, column, index, below = gain, j, i + 1, left_ones
    return column, index, below


@njit(cache=True)
def _part(
    words: Ints, column: int, start: int, split_index: int, stop: int, low_first: bool, low: Any, spare: Ints
) -> None:
    """Order every column so that one side of the split comes first, each side still sorted."""
    for i in range(start, stop):
        low[(words[column, i] & 0x1FFFFFFFF) >> ROW] = (i < split_index) == low_first
    for j in range(words.shape[0]):
        run, first, other = words[j], start, 0
        for i in range(start, stop):
            word = run[i]
            side = low[(word & 0x1FFFFFFFF) >> ROW]
            run[first] = word  # never ahead of the read position: the overwritten word was read before
            spare[other] = word
            first += side
            other += 1 - side
        run[first:stop] = spare[:other]


@njit(cache=True)
def _open(
    words: Ints,
    low: Any,
    spare: Ints,
    node: Ints,
    facts: Floats,
    rest: int,
    alpha: float,
    least: Any,
    method: int,
) -> bool:
    """Find the node's split and move its rows to the two sides; False if it stays a leaf. `rest`: remaining depths."""
    minsplit, minbucket = least
    start, stop, ones = node[START], node[STOP], node[ONES]
    size = stop - start
    facts[RISK] = _risk(ones, size, method)
    if size < minsplit or rest == 0 or min(facts[RISK], facts[BOUND]) <= alpha:
        return False
    column, split_index, below = _best_split(words, start, stop, ones, minbucket)
    if column < 0:
        return False
    # The side with the smaller fraction of ones is the left child. The order matters: the left gain bounds the right one.
    low_first = below * (stop - split_index) < (ones - below) * (split_index - start)
    left_size = split_index - start if low_first else stop - split_index
    node[MIDDLE], node[LEFT_ONES] = start + left_size, below if low_first else ones - below
    facts[LEFT_OWN] = _risk(node[LEFT_ONES], left_size, method)
    facts[RIGHT_OWN] = _risk(ones - node[LEFT_ONES], size - left_size, method)
    left_open, right_open = facts[LEFT_OWN] > alpha, facts[RIGHT_OWN] > alpha
    if rest > 1 and max(left_size * left_open, (size - left_size) * right_open) >= minsplit:
        _part(words, column, start, split_index, stop, low_first, low, spare)
    return True


@njit(cache=True)
def _close(facts: Floats, right_risk: float, right_splits: float, right_complexity: float) -> Any:
    """Return risk, splits and complexity of a node with grown children; children pruned before it count as pruned."""
    risk, left_risk, left_splits, left_complexity = (
        facts[RISK],
        facts[LEFT_RISK],
        facts[LEFT_SPLITS],
        facts[LEFT_COMPLEXITY],
    )
    each = (risk - left_risk - right_risk) / (left_splits + right_splits + 1)
    if right_complexity > left_complexity:
        if each > left_complexity:
            left_risk, left_splits = facts[LEFT_OWN], 0.0
            each = (risk - left_risk - right_risk) / (left_splits + right_splits + 1)
            if each > right_complexity:
                right_risk, right_splits = facts[RIGHT_OWN], 0.0
    elif each > right_complexity:
        right_risk, right_splits = facts[RIGHT_OWN], 0.0
        each = (risk - left_risk - right_risk) / (left_splits + right_splits + 1)
        if each > left_complexity:
            left_risk, left_splits = facts[LEFT_OWN], 0.0
    complexity = (risk - left_risk - right_risk) / (left_splits + right_splits + 1)
    return left_risk + right_risk, left_splits + right_splits + 1, complexity


@njit(cache=True)
def grow_leaves(words: Ints, ones: int, cp: float, minsplit: int, minbucket: int, max_depth: int, method: int) -> Ints:
    """Return the rows with labels one and zero in each leaf, from the left: (leaves, 2). `words` is overwritten."""
    size = words.shape[1]
    deepest = min(max_depth, size)
    nodes, facts = np.zeros((deepest + 1, 7), np.int64), np.zeros((deepest + 1, 7))
    leaves, leaf_count = np.zeros((size + 1, 2), np.int64), 0
    low, spare, least = np.zeros(size, np.uint8), np.empty(size, np.int64), (minsplit, minbucket)
    nodes[0, STOP], nodes[0, ONES], facts[0, BOUND] = size, ones, _risk(ones, size, method)
    alpha, depth = cp * facts[0, BOUND], 0
    risk, splits, complexity = 0.0, 0.0, 0.0  # of the last grown node
    while depth >= 0:
        node, fact = nodes[depth], facts[depth]
        if node[WAITING_FOR] == NOBODY:
            node[BEFORE] = leaf_count
            if _open(words, low, spare, node, fact, deepest - depth, alpha, least, method):
                node[WAITING_FOR] = LEFT
                depth += 1
                nodes[depth, START], nodes[depth, STOP], nodes[depth, ONES] = node[START], node[MIDDLE], node[LEFT_ONES]
                nodes[depth, WAITING_FOR], facts[depth, BOUND] = NOBODY, min(fact[RISK], fact[BOUND]) - alpha
                continue
            risk, splits, complexity = fact[RISK], 0.0, alpha
        elif node[WAITING_FOR] == LEFT:
            fact[LEFT_RISK], fact[LEFT_SPLITS], fact[LEFT_COMPLEXITY] = risk, splits, complexity
            gained = min(max((fact[RISK] - risk) / (splits + 1), fact[RISK] - fact[LEFT_OWN]), fact[BOUND])
            node[WAITING_FOR] = RIGHT
            depth += 1
            nodes[depth, START], nodes[depth, STOP] = node[MIDDLE], node[STOP]
            nodes[depth, ONES] = node[ONES] - node[LEFT_ONES]
            nodes[depth, WAITING_FOR], facts[depth, BOUND] = NOBODY, gained - alpha
            continue
        else:
            risk, splits, complexity = _close(fact, risk, splits, complexity)
            if complexity <= alpha:  # no split was worth it: the node becomes a leaf
                risk, splits = fact[RISK], 0.0
        if splits == 0:
            leaves[node[BEFORE], 0], leaves[node[BEFORE], 1] = node[ONES], node[STOP] - node[START] - node[ONES]
            leaf_count = node[BEFORE] + 1
        depth -= 1
    return leaves[:leaf_count].copy()
