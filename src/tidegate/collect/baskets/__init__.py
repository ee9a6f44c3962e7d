"""Sets of items (baskets): randomized as a whole, counted by itemset.

(policy/setplans.py: SizePlan, SetOperator, what is done with a basket of each size, exact)
sizes.py       bringing a basket to one size          bulk.py   many baskets at once
bitsets.py     reports turned on their side, one bitset for every item, in chunks on disk; counts by AND and popcount
"""

from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.cut_and_paste import cut_and_paste
from tidegate.operators.mask import mask
from tidegate.operators.select_a_size import select_a_size

__all__ = ["SetOperator", "SizePlan", "cut_and_paste", "mask", "select_a_size"]
