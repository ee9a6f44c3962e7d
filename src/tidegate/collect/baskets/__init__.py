"""Sets of items (baskets): randomized as a whole, counted by itemset.

bitsets.py      transposed reports, one bitset for every item; counts by AND and popcount
transitions.py, recovery.py   supports of itemsets from counts      mining.py, rules.py   frequent itemsets and rules
design.py, search.py, baselines.py   the best operator for baskets   measures.py           what a report reveals
"""

from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.cut_and_paste import cut_and_paste
from tidegate.operators.mask import mask
from tidegate.operators.select_a_size import select_a_size

__all__ = ["SetOperator", "SizePlan", "cut_and_paste", "mask", "select_a_size"]
