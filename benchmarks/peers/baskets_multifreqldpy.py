"""multi-freq-ldpy: optimized unary encoding, one report after the other. ITEMS REPORTS"""

import sys

from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from serve import serve

items, reports = int(sys.argv[1]), int(sys.argv[2])
serve({"UE": lambda: len([UE_Client(i % items, items, 2.0, True) for i in range(reports)])}, "multi-freq-ldpy")
