"""pure-ldp: randomized response and optimized unary encoding, one report after the other. VALUES EPSILON REPORTS"""

import sys

from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient
from serve import serve

values, epsilon, reports = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
response, unary = DEClient(epsilon, values), UEClient(epsilon, values, use_oue=True)
true_values = [1 + i % values for i in range(reports)]  # it counts from one
shown = {
    "randomized-response": sum(response.privatise(1) == 0 for _ in range(100_000)) / 100_000,
    "unary": sum(int(unary.privatise(1).sum()) for _ in range(10_000)) / 10_000,
}
serve(
    {
        "randomized-response": lambda: len([response.privatise(value) for value in true_values]),
        "unary": lambda: len([unary.privatise(value) for value in true_values]),
    },
    "pure-ldp",
    shown=shown,
)
