"""The best tree of depth two over all pairs of columns, with public thresholds, in the columns' own coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from tidegate.arrays import Floats, Octets
from tidegate_papers.baselines._score_kernels import best_depth2, count_pairs, threshold_places
from tidegate_papers.baselines.rounds import Scale
from tidegate_papers.baselines.scores import fraction_bits, squares_sensitivity

Measure = Literal["pmse", "variation"]
LARGEST = 256


def depth2_score(original: Octets, synthetic: Octets, *, bins: int, measure: Measure = "pmse") -> int:
    """Return the maximum over trees of depth two of sum floor(2^p a^2 / m) ("pmse") or of sum |a N - ns m| ("variation").

    The first split is any threshold of any column, and each side is then split by any threshold of any column. Leaves can be
    empty, so smaller trees are included.

    Guarantee:
        Replacing one original row changes it by at most `depth2_scale(...).sensitivity`.

    Needs:
        Codes (columns, rows) of both tables by the same thresholds (`threshold_codes`), which must come from public facts,
        theta or the synthetic table; never from the original or the pooled rows.

    Reference:
        Snoke & Slavkovic 2018, Section 3.2 (optimal instead of greedy trees); `tidegate.risk.pmse.sensitivity`.
    """
    if max(int(codes.max(initial=0)) for codes in (original, synthetic)) >= bins:
        raise ValueError(f"Codes must be below {bins}.")
    a, b = count_pairs(synthetic, bins), count_pairs(original, bins)
    places = fraction_bits(synthetic.shape[1]) if measure == "pmse" else -1
    return int(best_depth2(a, b, places))


def depth2_scale(*, rows: int, synthetic: int, measure: Measure = "pmse") -> Scale:
    """Return the scale of the score: score / denominator - constant is N x pMSE or N x pMAE of the best tree.

    One row changes |a N - ns m| by ns in the leaf that it leaves and in the one that it enters: N pMAE by 2 ns / N.
    """
    total = rows + synthetic
    if measure == "variation":
        return Scale("N x pMAE", denominator=total, sensitivity=2 * synthetic)
    return Scale(
        "N x pMSE",
        denominator=2 ** fraction_bits(synthetic),
        sensitivity=squares_sensitivity(synthetic),
        constant=Fraction(synthetic * synthetic, total),
    )


def threshold_codes(rows: Floats, thresholds: Sequence[Floats]) -> Octets:
    """Count the thresholds of its column below each value: (columns, rows). A missing value (nan) is above none."""
    longest = max(len(cuts) for cuts in thresholds)
    if longest >= LARGEST:
        raise ValueError(f"A column has {longest} thresholds; the limit is {LARGEST - 1}.")
    padded = np.full((len(thresholds), longest), np.inf)
    for index, cuts in enumerate(thresholds):
        padded[index, : len(cuts)] = np.sort(cuts)
    return np.asarray(threshold_places(np.ascontiguousarray(rows, np.float64), padded), np.uint8)
