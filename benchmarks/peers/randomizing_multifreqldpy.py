"""multi-freq-ldpy: randomized response, optimised unary encoding, subset selection; its clients are compiled by numba and
make one report each. VALUES EPSILON REPORTS"""

import sys

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from serve import serve

values, epsilon, many = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
given = [i % values for i in range(many)]
shown = {
    "randomized-response": sum(GRR_Client(0, values, epsilon) == 0 for _ in range(100_000)) / 100_000,
    "unary": sum(int(UE_Client(0, values, epsilon, True).sum()) for _ in range(10_000)) / 10_000,
    "subset": sum(len(SS_Client(0, values, epsilon)) for _ in range(10_000)) / 10_000,
}
serve(
    {
        "randomized-response": lambda: len([GRR_Client(one, values, epsilon) for one in given]),
        "unary": lambda: len([UE_Client(one, values, epsilon, True) for one in given]),
        "subset": lambda: len([SS_Client(one, values, epsilon) for one in given]),
    },
    "multi-freq-ldpy",
    shown=shown,
)
