"""multi-freq-ldpy: randomized response, optimized unary encoding, subset selection; its clients are compiled by numba and
create one report each. VALUES EPSILON REPORTS"""

import sys

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from serve import serve

values, epsilon, reports = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
true_values = [i % values for i in range(reports)]
shown = {
    "randomized-response": sum(GRR_Client(0, values, epsilon) == 0 for _ in range(100_000)) / 100_000,
    "unary": sum(int(UE_Client(0, values, epsilon, True).sum()) for _ in range(10_000)) / 10_000,
    "subset": sum(len(SS_Client(0, values, epsilon)) for _ in range(10_000)) / 10_000,
}
serve(
    {
        "randomized-response": lambda: len([GRR_Client(value, values, epsilon) for value in true_values]),
        "unary": lambda: len([UE_Client(value, values, epsilon, True) for value in true_values]),
        "subset": lambda: len([SS_Client(value, values, epsilon) for value in true_values]),
    },
    "multi-freq-ldpy",
    shown=shown,
)
