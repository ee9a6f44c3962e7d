"""Operators on sets of items, under the name by which collecting knows them. They are part of what a policy says."""

from tidegate.policy.setplans import (
    FlipPlans,
    SetOperator,
    SizePlan,
    cut_and_paste,
    cut_and_paste_keep,
    item_flip,
    select_a_size,
    set_operator,
)

__all__ = [
    "FlipPlans",
    "SetOperator",
    "SizePlan",
    "cut_and_paste",
    "cut_and_paste_keep",
    "item_flip",
    "select_a_size",
    "set_operator",
]
