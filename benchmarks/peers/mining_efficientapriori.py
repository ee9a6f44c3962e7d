"""efficient-apriori: over a list of tuples. FILE MIN_SUPPORT"""

import sys

from efficient_apriori import itemsets_from_transactions
from serve import serve

file, least = sys.argv[1], float(sys.argv[2])
with open(file) as lines:
    baskets = [tuple(map(int, line.split())) for line in lines]


def mine():
    itemsets, _ = itemsets_from_transactions(baskets, min_support=least)
    return sum(map(len, itemsets.values()))


serve({"Apriori": mine}, "efficient-apriori")
