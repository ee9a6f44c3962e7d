"""Whole answers on every engine: with so much loss that the noise vanishes they are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from reference.tables import ReferenceTable
from tables.conftest import EACH_ROW, POLICIES, rows

from tidegate.answer import count, histogram, mean, median, std, sum
from tidegate.answer.run import answer
from tidegate.answer.spending import RequestedLoss
from tidegate.ledger import Ledger
from tidegate.noise import SeededBits
from tidegate.policy import Loss, Policy
from tidegate.policy.predicates import col
from tidegate.tables import Table

ASKED = (
    count().where(col("age") >= 30).by("town"),
    histogram("age"),
    sum("big"),
    mean("pay").by("sex"),
    std("age").where(col("member") == True),  # noqa: E712
    median("age").by("sex"),
)


@pytest.mark.parametrize(
    "unit", [pytest.param(EACH_ROW, marks=pytest.mark.every_run), *(unit for unit in POLICIES if unit != EACH_ROW)]
)
def test_every_engine_gives_the_same_answers(on_engine: Callable[[Policy], Table], unit: str, tmp_path: Path) -> None:
    policy = replace(POLICIES[unit], loss=Loss(10**12))
    answers = [
        answer(
            ASKED,
            policy,
            source,
            Ledger(str(tmp_path / f"{name}.ledger")),
            loss=RequestedLoss(Fraction(10**11)),
            bits=SeededBits(1),
        )
        for name, source in (
            ("engine", lambda _: on_engine(policy)),
            ("twin", lambda _: ReferenceTable(policy, rows())),
        )
    ]
    for here, there in zip(*answers, strict=True):
        assert here.values.tolist() == there.values.tolist()
