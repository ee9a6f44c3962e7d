"""A synthetic table of generated rows: what a policy allows, before it is published. No row of the source is read.

The rows are drawn from the policy's columns, all related through one hidden number, and are learned under a part of the
budget, with a ledger of their own that is deleted afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import NormalDist, fmean
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.accounting import Amount, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.arrays import Floats
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.extras import late
from tidegate.policy import Attribute, Category, EachPerson, Policy

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = late("pyarrow")

MOST_ROWS = 10_000  # the accuracy of larger tables is better still
USUAL_ROWS = 2_000
MOST_COLUMNS = 30
SHOWN = 8
RELATED = 0.6  # of the hidden number in each column
_turn = Lock()  # one table takes a core for some seconds


def preview_synthesis(policy: Policy, *, rows: int | None = None) -> dict[str, Any]:
    """Return some rows of a synthetic table of generated rows, and how far it is from them.

    Args:
        rows: The assumed number of rows, if the policy does not declare it.

    Raises:
        Unsupported: The policy has no column that can be synthesized, or no budget.
    """
    from tidegate.audit.fake_data import copy_policy  # here and below: models take long to load
    from tidegate.session import open_session
    from tidegate.synthesize.quality.codes import encode
    from tidegate.synthesize.quality.columns import cells_of, margin
    from tidegate.synthesize.quality.pairs import pairs_of

    count = min(policy.dataset.rows or rows or USUAL_ROWS, MOST_ROWS)
    copied = copy_policy(policy, units=count)
    key = policy.dataset.unit.key if isinstance(policy.dataset.unit, EachPerson) else ""
    names = [name for name, attribute in copied.attributes.items() if name != key and attribute.size > 1][:MOST_COLUMNS]
    budget, limit = budget_of(policy), budget_of(copied).ceiling
    if not names or not limit:
        raise Unsupported(
            "A synthetic table of generated rows cannot be shown for this policy.",
            "It needs a column with two values or more, and a promise that does not depend on the number of persons.",
        )
    spent = min(Amount.down(budget.ceiling.value / 2), limit)
    with _turn, TemporaryDirectory(prefix="tidegate") as folder:
        generated = generate_rows(copied, names, key, count)
        ledger = str(Path(folder, "preview.ledger"))
        with open_session(copied, table=generated, ledger=ledger) as session:
            loss: dict[str, Any] = {budget.unit: spent.value}
            synthetic = session.synthesize(**loss, columns=names, rows=count, progress=False)[0].to_arrow()
    attributes = {name: copied.attributes[name] for name in names}
    both = encode(generated, attributes), [encode(synthetic, attributes)]
    margins, pairs = [margin(cells, *both) for cells in cells_of(attributes)], pairs_of(*both)
    return {
        "rows": count,
        "unit": SHORT[budget.unit],
        "cost": str(spent),
        "columns": names,
        "sample": [[_shown(row[name]) for name in names] for row in synthetic.slice(0, SHOWN).to_pylist()],
        "single": _mean(part.distance for part in margins),
        "single_by_chance": _mean(part.expected for part in margins),
        "pairs": _mean(pair.distance for pair in pairs),
        "pairs_by_chance": _mean(pair.expected for pair in pairs),
    }


def generate_rows(policy: Policy, names: list[str], key: str, count: int) -> pa.Table:
    """Return rows that follow from the policy alone: numbers around the middle, categories from frequent to rare."""
    from tidegate.audit.fake_data import table_value

    random = np.random.default_rng(0)
    hidden = random.standard_normal(count)
    columns: dict[str, Any] = {key: [f"person {n}" for n in range(count)]} if key else {}
    for name in names:
        own = RELATED * hidden + (1 - RELATED**2) ** 0.5 * random.standard_normal(count)
        values = _Values(policy.attributes[name])
        columns[name] = [values[code] for code in _codes(policy.attributes[name], own).tolist()]
    for name, attribute in policy.attributes.items():  # those that are not learned
        if name not in columns:
            columns[name] = [table_value(attribute, 0)] * count
    return pa.table(columns)


class _Values(dict[int, Any]):
    """The value of each code, computed when it is needed first."""

    def __init__(self, attribute: Attribute) -> None:
        super().__init__()
        self._attribute = attribute

    def __missing__(self, code: int) -> Any:
        from tidegate.audit.fake_data import table_value

        self[code] = table_value(self._attribute, code)
        return self[code]


def _codes(attribute: Attribute, normal: Floats) -> Any:
    """Return a code for each of some standard normal numbers."""
    if isinstance(attribute, Category):
        shares = 1 / np.arange(1, attribute.size + 1)
        ends = np.cumsum(shares) / shares.sum()
        uniform = np.vectorize(NormalDist().cdf)(normal)
        return np.minimum(np.searchsorted(ends, uniform), attribute.size - 1)
    return np.clip(np.rint((0.5 + normal / 6) * (attribute.size - 1)), 0, attribute.size - 1).astype(np.int64)


def _mean(distances: Iterable[float | None]) -> float | None:
    known = [distance for distance in distances if distance is not None]
    return fmean(known) if known else None


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return say(value) if isinstance(value, int | float) else str(value)
