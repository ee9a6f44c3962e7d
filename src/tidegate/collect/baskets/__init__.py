"""Sets of items (baskets): randomized as a whole, counted by itemset.

(policy/setplans.py: SizePlan, SetOperator, what is done with a basket of each size, exact)
sizes.py       bringing a basket to one size          bulk.py   many baskets at once
bitsets.py     reports turned on their side, one bitset for every item, in chunks on disk; counts by AND and popcount
"""

from tidegate.policy.setplans import SetOperator, SizePlan, cut_and_paste, item_flip, select_a_size

__all__ = ["SetOperator", "SizePlan", "cut_and_paste", "item_flip", "select_a_size"]
