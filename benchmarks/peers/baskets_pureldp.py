"""pure-ldp: optimized unary encoding, one report after the other. ITEMS REPORTS"""

import sys

from pure_ldp.frequency_oracles.unary_encoding import UEClient
from serve import serve

items, reports = int(sys.argv[1]), int(sys.argv[2])
client = UEClient(epsilon=2.0, d=items, use_oue=True)
serve({"UE": lambda: len([client.privatise(1 + i % items) for i in range(reports)])}, "pure-ldp")
