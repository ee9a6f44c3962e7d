"""A small table of people for tests of the story, and policies over it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.policy import (
    Attribute,
    Category,
    Dataset,
    EachRow,
    Follows,
    Grid,
    Identification,
    Integer,
    Items,
    Key,
    Loss,
    Policy,
    Shape,
    Shapes,
    Unit,
)
from tidegate.session import Session

ATTRIBUTES: dict[str, Attribute] = {
    "person": Key(),
    "age": Integer(18, 90, missing="value"),
    "pay": Grid("0.5", "9.5", "0.25"),
    "gain": Integer(0, 99_999),
    "town": Category(("Aby", "Berg", "Ceder"), "value"),
    "zip": Integer(1, 9),
    "basket": Items(("milk", "bread")),
}
SHAPES = Shapes(
    {"gain": Shape("log", 12, atoms=(0, 99_999), heaped=True)},
    {"zip": Follows("town", {"Aby": 1, "Berg": 5, "Ceder": 9})},
)


def people(count: int = 400, seed: int = 5) -> pa.Table:
    draw = random.Random(seed)
    rows = [
        {
            "person": f"p{draw.randrange(count // 2)}",
            "age": draw.choice([None, *range(15, 95)]),
            "pay": draw.choice([None, draw.uniform(0, 10)]),
            "gain": draw.choice([0, 0, draw.randrange(99_999)]),
            "town": draw.choice(["Aby", "Berg", "Ceder", None, "elsewhere"]),
            "zip": draw.randrange(1, 10),
            "basket": "milk",
        }
        for _ in range(count)
    ]
    kinds = {"person": pa.string(), "age": pa.int64(), "pay": pa.float64(), "gain": pa.int64(), "town": pa.string()}
    return pa.Table.from_pylist(rows, schema=pa.schema({**kinds, "zip": pa.int64(), "basket": pa.string()}))


def policy(*, epsilon: str | None = "4", unit: Unit | None = None, rows: int | None = 400, rho: str = "") -> Policy:
    promise = Identification(rho, protect=("age",)) if rho else None
    loss = Loss(epsilon) if epsilon and not rho else None
    return Policy(Dataset("people", unit=unit or EachRow(), rows=rows), ATTRIBUTES, promise, loss, synthesis=SHAPES)


def open_session(folder: Path, table: Any = None, *, ledger: str = "", **options: Any) -> Session:
    return Session(policy(**options), table=people() if table is None else table, folder=folder, ledger=ledger)
