"""Small tables with known differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from claims.probabilities import bits

from tidegate.policy import Attribute, Category, Grid, Integer, Key

ATTRIBUTES: dict[str, Attribute] = {
    "person": Key(),
    "age": Integer(18, 80),
    "pay": Grid("0", "10", "0.5", missing="value"),
    "sex": Category(("f", "m")),
    "town": Category(("Aby", "Berg", "Ceder"), "value"),
}


def fresh(name: str) -> np.random.Generator:
    """Return the generator of a sampled claim: fixed, or fresh with TIDEGATE_SEED=fresh."""
    return np.random.default_rng(int(bits(name).words(1)[0]))


def people(rows: int, seed: int, **columns: Any) -> pa.Table:
    """Return a table where pay rises with age and differs by sex, town is independent, and 10% of pay is missing."""
    draw = np.random.default_rng(seed)
    age, sex = draw.integers(18, 81, rows), draw.integers(0, 2, rows)
    pay = np.clip(age / 10 + sex + draw.normal(0, 1, rows), 0, 10)
    content = {
        "person": [f"p{number}" for number in range(rows)],
        "age": age,
        "pay": pa.array(pay, mask=draw.random(rows) < 0.1),
        "sex": np.where(sex == 1, "m", "f"),
        "town": draw.choice(["Aby", "Berg", "Ceder"], rows, p=[0.5, 0.3, 0.2]),
    }
    return pa.table({**content, **columns})


def resample(table: pa.Table, seed: int) -> pa.Table:
    """Return rows drawn from a table with replacement."""
    return table.take(np.random.default_rng(seed).integers(0, table.num_rows, table.num_rows))


def unrelated(table: pa.Table, seed: int) -> pa.Table:
    """Return a table with every column shuffled by itself: margins agree to the row, associations are lost."""
    draw = np.random.default_rng(seed)
    return pa.table({name: table[name].take(draw.permutation(table.num_rows)) for name in table.column_names})
