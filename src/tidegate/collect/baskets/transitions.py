"""Transition probabilities: how many items of an itemset are seen, given how many are in the basket.

An itemset A of k items meets a basket t of m items in l of them; its report shows l' of them. The chances P[l'][l] depend on
how a plan keeps items only through the *moments*

    phi_i = P(i given items of the basket are all kept) = E[C(j, i)] / C(m, i),    j: how many are kept,

and on `insert`, the chance of every item that is not in the basket. All functions take whole numbers, Fractions or floats;
Fractions stay exact.

The estimate needs no matrix to be inverted. Let y_a be 1 where a is seen and r = insert. A product of (y_a - r) over A has
the expectation 0 unless all of A is in the basket, and then

    c_k = E prod (y_a - r) = sum_i C(k, i) phi_i (-r)^(k - i),

so the last row of the inverse of P is (1 - r)^l' (-r)^(k - l') / c_k, and the determinant of P is c_1 c_2 ... c_k.

Reference:
    Evfimievski, Srikant, Agrawal, Gehrke 2002 (KDD): select-a-size, partial supports, their covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.errors import Unsupported

Number = Any  # Fraction where promises are made, float where speed is: the formulas are the same

NOTHING = Fraction(1, 2**40)  # plans are on a grid of 2**-48: a contrast of 0 can come out as a few steps of it


def moments(keep: Sequence[Number], up_to: int) -> tuple[Number, ...]:
    """Return phi_0 .. phi_up_to of a plan that keeps j items with probability keep[j]; 0 beyond the basket's size."""
    size = len(keep) - 1
    return tuple(
        sum(chance * Fraction(comb(count, i), comb(size, i)) for count, chance in enumerate(keep)) if i <= size else 0
        for i in range(up_to + 1)
    )


def flip_moments(stays: Number, up_to: int) -> tuple[Number, ...]:
    """Return the moments if every item stays independently with one probability: the same for all basket sizes."""
    return tuple(stays**i for i in range(up_to + 1))


def kept_among(phi: Sequence[Number], present: int) -> list[Number]:
    """Return P(q of `present` given items of the basket are kept), q = 0 .. present."""
    return [
        sum((-1) ** (i - q) * comb(present, i) * comb(i, q) * phi[i] for i in range(q, present + 1))
        for q in range(present + 1)
    ]


def transition(phi: Sequence[Number], insert: Number, items: int) -> list[list[Number]]:
    """Return P[seen][present] of an itemset of this many items; every column sums to 1."""
    columns = [_column(kept_among(phi, present), insert, items - present) for present in range(items + 1)]
    return [[column[seen] for column in columns] for seen in range(items + 1)]


def _column(kept_chances: Sequence[Number], insert: Number, missing: int) -> list[Number]:
    inserted = [comb(missing, r) * insert**r * (1 - insert) ** (missing - r) for r in range(missing + 1)]
    total: list[Number] = [0] * (len(kept_chances) + missing)
    for q, chance in enumerate(kept_chances):
        for r, other in enumerate(inserted):
            total[q + r] += chance * other
    return total


def contrast(phi: Sequence[Number], insert: Number, items: int) -> Number:
    """Return c_k, the factor on an itemset's support after the randomization; 0 if nothing remains."""
    return sum(comb(items, i) * phi[i] * (-insert) ** (items - i) for i in range(items + 1))


def visible_contrast(phi: Sequence[Number], insert: Number, items: int) -> Number:
    """Return `contrast`; refuse one that is only the rounding of a plan to its grid."""
    left = contrast(phi, insert, items)
    if abs(left) < NOTHING:
        raise singular(items)
    return left


def support_weights(phi: Sequence[Number], insert: Number, items: int) -> list[Number]:
    """Return the weights of reports that show 0 .. k items of the itemset, so that their mean is the true support.

    Needs:
        A plan with a contrast above its rounding (`visible_contrast`); others are refused.
    """
    left = visible_contrast(phi, insert, items)
    return [(1 - insert) ** seen * (-insert) ** (items - seen) / left for seen in range(items + 1)]


def inverse(phi: Sequence[Number], insert: Number, items: int) -> list[list[Number]]:
    """Return Q = P^-1, which gives all partial supports.

    The visible j-subsets, each weighed by its product over the items of (y_a - insert) / c_j, count the true j-subsets; how
    many baskets hold exactly l of the items follows by inclusion and exclusion. Exact where the numbers are.
    """
    rows = [[_subsets(phi, insert, items, j, seen) for seen in range(items + 1)] for j in range(items + 1)]
    return [
        [sum((-1) ** (j - i) * comb(j, i) * rows[j][seen] for j in range(i, items + 1)) for seen in range(items + 1)]
        for i in range(items + 1)
    ]


def _subsets(phi: Sequence[Number], insert: Number, items: int, j: int, seen: int) -> Number:
    """Return the estimated number of true j-subsets for a report that shows `seen` of the items."""
    weights = support_weights(phi, insert, j)
    return sum(
        comb(seen, q) * comb(items - seen, j - q) * weights[q]
        for q in range(max(0, j + seen - items), min(j, seen) + 1)
    )


def as_floats(phi: Sequence[Number]) -> tuple[float, ...]:
    """Return moments as floats, for fast estimates."""
    return tuple(float(moment) for moment in phi)


def matrix(phi: Sequence[Number], insert: Number, items: int) -> Floats:
    """Return `transition` as an array, computed exactly if the moments are exact and rounded once."""
    return np.array([[float(chance) for chance in row] for row in transition(phi, insert, items)])


def singular(items: int) -> Unsupported:
    """Return the refusal of an estimate that no number of reports allows."""
    return Unsupported(
        f"The support of {items} items cannot be recovered: reports of this operator never show {items} items "
        "of a basket together.",
        f"Use fewer items, or choose an operator that keeps {items} (cut-and-paste: a cutoff of {items} or more).",
        items=items,
    )
