"""Trees, slowly: every split tried by counting records one by one; reconstructions with the whole channel written out."""

from __future__ import annotations

from itertools import product
from math import lgamma, log, log2, pi

import numpy as np
from reference.reconstruct import em_step


def impurity(labels, weights, unmix):
    """n (1 - sum p^2) of the true classes."""
    reported = [sum(w for label, w in zip(labels, weights, strict=True) if label == c) for c in range(len(unmix))]
    true = [max(0.0, sum(u * r for u, r in zip(row, reported, strict=True))) for row in unmix]
    total = sum(true)
    return (total - sum(t * t for t in true) / total if total > 0 else 0.0), true


def grow(rows, labels, weights, sizes, unmix, least):
    """(true counts,) for a leaf, (true counts, attribute, boundary, below, above) for a split; not pruned."""
    here, true = impurity(labels, weights, unmix)
    if sum(weights) < least or len({label for label, w in zip(labels, weights, strict=True) if w > 0}) < 2:
        return (true,)
    best, split = float("inf"), None
    for a, size in enumerate(sizes):
        for boundary in range(1, size):
            below = [i for i, row in enumerate(rows) if row[a] < boundary]
            above = [i for i, row in enumerate(rows) if row[a] >= boundary]
            if not below or not above or all(rows[i][a] != boundary - 1 for i in below):
                continue
            sides = [impurity([labels[i] for i in s], [weights[i] for i in s], unmix)[0] for s in (below, above)]
            if sum(sides) < best * (1 - 1e-12):
                best, split = sum(sides), (a, boundary, below, above)
    if split is None or best >= here * (1 - 1e-12):
        return (true,)
    a, boundary, below, above = split
    children = [
        grow([rows[i] for i in s], [labels[i] for i in s], [weights[i] for i in s], sizes, unmix, least)
        for s in (below, above)
    ]
    return (true, a, boundary, *children)


def bits(true):
    """One bit for "a leaf", and the classes of its records."""
    n, k = sum(true), len(true)
    if n <= 0:
        return 1.0
    spread = sum(t * log2(n / t) for t in true if t > 0)
    return 1 + spread + max(0.0, (k - 1) / 2 * log2(n / 2) + log2(pi) * k / 2 - lgamma(k / 2) / log(2))


def prune(node, sizes):
    """(bits, node) of the cheapest description."""
    if len(node) == 1:
        return bits(node[0]), node
    true, a, boundary, below, above = node
    (left, below), (right, above) = prune(below, sizes), prune(above, sizes)
    split = 1 + log2(len(sizes)) + log2(max(1, sizes[a] - 1)) + left + right
    return (bits(true), (true,)) if bits(true) <= split else (split, (true, a, boundary, below, above))


def associate(reports, ends):
    """Records in the order of their reports; the r-th belongs to the first interval that reaches beyond r + 1/2."""
    order = sorted(range(len(reports)), key=lambda i: reports[i])
    intervals = [0] * len(reports)
    for rank, i in enumerate(order):
        intervals[i] = next(j for j, end in enumerate(ends) if end >= rank + 0.5)
    return intervals


def keep_reports(reports, room):
    """Each record its report while there is room; the others what is left, in order."""
    remaining, assigned = list(room), [None] * len(reports)
    for i, report in enumerate(reports):
        if remaining[report] > 0:
            remaining[report] -= 1
            assigned[i] = report
    rest = [j for j, n in enumerate(remaining) for _ in range(int(n))]
    waiting = [i for i, code in enumerate(assigned) if code is None]
    for i, code in zip(waiting, rest, strict=True):
        assigned[i] = code
    return assigned


def joint_em(counts, matrices, steps):
    """EM with the channel of all combinations written out."""
    reports = list(product(*(range(len(m)) for m in matrices)))
    cells = list(product(*(range(len(m[0])) for m in matrices)))
    whole = [[np.prod([m[s][j] for m, s, j in zip(matrices, r, c, strict=True)]) for c in cells] for r in reports]
    p = np.full(len(cells), 1 / len(cells))
    for _ in range(steps):
        p = em_step([counts[r] for r in reports], whole, p)
    return p.reshape([len(m[0]) for m in matrices]) * counts.sum()


def chance_in_box(report_rows, box, matrices, masses):
    """P(reports | a value in the box), over every combination of intervals in it; masses of all combinations."""
    inside = list(product(*(range(low, high) for low, high in box)))
    total = sum(masses[cell] for cell in inside)
    seen = sum(
        masses[cell] * np.prod([m[s][j] for m, s, j in zip(matrices, report_rows, cell, strict=True)])
        for cell in inside
    )
    return seen / total
