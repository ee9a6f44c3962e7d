"""pure-ldp: one of a long list by unary encoding, local hashing and RAPPOR, one report after the other. VALUES EPSILON REPORTS"""

import math
import sys

import xxhash
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.rappor import RAPPORClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient
from serve import serve

xxh32 = xxhash.xxh32
xxhash.xxh32 = lambda text, seed: xxh32(
    text.encode(), seed=seed % 2**32
)  # newer versions accept neither text nor long seeds
BLOOM, COHORTS = 128, 8  # bits of a filter with one hash function
values, epsilon, reports = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
true_values = [1 + i % values for i in range(reports)]  # it counts from one
unary, hashing = UEClient(epsilon, values, use_oue=True), LHClient(epsilon, values, use_olh=True)
hashes = [[lambda text, seed=seed: xxhash.xxh32(text, seed=seed).intdigest() % BLOOM] for seed in range(COHORTS)]
rappor = RAPPORClient(2 / (math.exp(epsilon / 2) + 1), BLOOM, hashes, num_of_cohorts=COHORTS)
hashed = [hashing.privatise(value) for value in true_values]


def decode():
    server = LHServer(epsilon, values, use_olh=True)
    for report in hashed:
        server.aggregate(report)
    return len(hashed)


serve(
    {
        "OUE": lambda: len([unary.privatise(value) for value in true_values]),
        "OLH": lambda: len([hashing.privatise(value) for value in true_values]),
        "RAPPOR": lambda: len([rappor.privatise(value) for value in true_values]),
        "OLH, decoding": decode,
    },
    "pure-ldp",
    bytes={
        "OUE": math.ceil(values / 8),
        "OLH": 8 + 1,
        "RAPPOR": BLOOM // 8 + 1,
    },  # a seed and a cell; a filter and a cohort
)
