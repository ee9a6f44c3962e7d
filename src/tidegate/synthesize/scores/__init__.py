"""How far original rows are from a model: whole numbers with a public denominator, each with the most one row can change.

Small is good. All evaluators work on partitions that do not depend on the original rows, so that the proofs of
`tidegate.risk.pmse` hold, and all return exact integers, so that an exact sampler can use them:

    exponential_choice(-scores, scale.rate(epsilon), bits=bits)

scale.py        what a whole number means: denominator, sensitivity, public constant
variation.py    total variation on cells (the default: linear in the misfit)
grid.py         pMSE on cells, synthetic mass equal or counted, class weight 1 or 2
dyadic.py       pMSE of the best dyadic tree on a grid, with a penalty per split
depth2.py       pMSE or total variation of the best tree of depth two, over all pairs of columns, public thresholds
rosenblatt.py   rows -> residuals under theta, in whose cells a sequential model's mass is known exactly

Greedy trees are no scores: see `tidegate.risk.cart`.
"""

from tidegate.synthesize.scores.depth2 import depth2_scale, depth2_score, threshold_codes
from tidegate.synthesize.scores.dyadic import dyadic_scale, dyadic_score
from tidegate.synthesize.scores.grid import grid_scale, grid_score
from tidegate.synthesize.scores.rosenblatt import (
    code_shares,
    interval_shares,
    pair_tables,
    sequential_codes,
    sequential_scale,
    sequential_scores,
    spread_tables,
)
from tidegate.synthesize.scores.scale import Scale, fraction_bits
from tidegate.synthesize.scores.variation import misfit_scale, misfit_score, variation_scale, variation_score

__all__ = [
    "Scale",
    "code_shares",
    "depth2_scale",
    "depth2_score",
    "dyadic_scale",
    "dyadic_score",
    "fraction_bits",
    "grid_scale",
    "grid_score",
    "interval_shares",
    "misfit_scale",
    "misfit_score",
    "pair_tables",
    "sequential_codes",
    "sequential_scale",
    "sequential_scores",
    "spread_tables",
    "threshold_codes",
    "variation_scale",
    "variation_score",
]
