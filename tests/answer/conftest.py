"""A small table for the tests of every statistic."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate.policy import (
    Category,
    Dataset,
    EachPerson,
    EachRow,
    Grid,
    Identification,
    Integer,
    Key,
    Loss,
    Policy,
    Unit,
)
from tidegate.session import Session

ATTRIBUTES = {
    "person": Key(),
    "age": Integer(18, 90, (30, 60)),
    "pay": Grid("0.5", "9.5", "0.25", missing="lowest"),
    "sex": Category(("f", "m")),
    "town": Category(("Aby", "Berg", "Ceder"), "value"),
}


def rows(count: int = 300, seed: int = 5) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "person": f"p{draw.randrange(count // 2)}",
            "age": draw.choice([None, *range(15, 95)]),
            "pay": draw.choice([None, *(n / 4 for n in range(45))]),
            "sex": draw.choice("fm"),
            "town": draw.choice(["Aby", "Berg", "Ceder", None, "elsewhere"]),
        }
        for _ in range(count)
    ]


def policy(*, epsilon: str = "2", unit: Unit | None = None, count: int = 300, rho: str | None = None) -> Policy:
    promise = Identification(rho, protect=("age",)) if rho else None
    return Policy(
        Dataset("people", unit=unit or EachRow(), rows=count), ATTRIBUTES, promise, None if rho else Loss(epsilon)
    )


UNITS = {"each row": EachRow(), "each person": EachPerson("person", 2)}


@pytest.fixture
def open_session(tmp_path: Path) -> Callable[..., Session]:
    """A function that opens a session over the small table with its own ledger."""

    def open_with(**options: Any) -> Session:
        return Session(policy(**options), table=pa.Table.from_pylist(rows()), folder=tmp_path)

    return open_with
