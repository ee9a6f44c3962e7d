"""At most k rows per person: a deterministic choice that depends on the person's own rows alone."""

from __future__ import annotations

from typing import Any

import ibis

from tidegate.policy import Category, EachPerson, Numeric, Policy, Text
from tidegate.tables.boundary import KEY_TEXT, Boundary
from tidegate.tables.codes import code
from tidegate.tables.functions import md5

TEXTS: dict[type, Any] = {
    str: lambda column, boundary: boundary.digest(column),
    int: lambda column, boundary: column.cast("string"),
    bool: lambda column, boundary: ibis.cases((column.isnull(), "-"), (column, "1"), else_="0"),  # casts differ
}


def bound_rows(table: Any, policy: Policy, boundary: Boundary, *, with_key_text: bool = False) -> Any:
    """Return the table with at most `at_most` rows per person; rows without a key are left out.

    Guarantee:
        The choice of a person's rows is a function of that person's rows (as codes) and the policy's `choice`:
        another person's rows do not affect it, and every engine chooses the same. Ties are rows of equal codes.
    """
    unit = policy.dataset.unit
    if not isinstance(unit, EachPerson):
        return table
    key = table[KEY_TEXT]
    prefix = (unit.choice or policy.dataset.name) + "|"
    order = md5(_row_text(table, policy, boundary, prefix=prefix) + key)
    ranked = table.mutate(_tg_rank=ibis.row_number().over(group_by=table[unit.key], order_by=order))
    bounded = ranked.filter(ranked[unit.key].notnull() & (ranked._tg_rank < unit.at_most)).drop("_tg_rank")
    return bounded if with_key_text else bounded.drop(KEY_TEXT)


def _row_text(table: Any, policy: Policy, boundary: Boundary, *, prefix: str) -> Any:
    """Return the row's codes as one text, the same on every engine.

    Text values are hashed, so that none can run into the next one.
    """
    text = ibis.literal(prefix)
    for name, attribute in policy.attributes.items():
        column = table[name]
        if isinstance(attribute, Numeric):
            part = code(column, attribute, boundary).cast("string")
        elif isinstance(attribute, Category | Text):
            part = TEXTS[attribute.value_type if isinstance(attribute, Category) else str](column, boundary)
        else:
            continue
        text = text + part.fill_null("-") + "|"
    return text
