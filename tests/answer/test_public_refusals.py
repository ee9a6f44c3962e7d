"""Requests with a public problem fail before the charge; none fails afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.answer import Query, count, histogram, max, mean, median, regression, std, sum, variance
from tidegate.errors import TidegateError
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Grid, Integer, Key, Loss, Policy, Unit
from tidegate.policy.predicates import col
from tidegate.session import Session

WHOLE = Integer(-(2**63), 2**63 - 1)
COLUMNS: dict[str, Any] = {
    "wide": Integer(0, 10**8),
    "wider": Integer(0, 10**9),
    "widest": Integer(0, 10**13),
    "whole": WHOLE,
    "far": Integer(10**30, 10**30 + 5),
    "far_int": Integer(2**62, 2**62 + 10),
    "fine": Grid(0, 1, "1e-20"),
    "tiny": Grid(0, "1e-320", "1e-321"),
    "large": Grid("1e400", "2e400", "1e399"),
    "town": Category(tuple(f"t{n}" for n in range(9000))),
    "street": Category(tuple(f"s{n}" for n in range(9000))),
    "small": Integer(0, 10),
}


def table_of(rows: int = 6) -> pa.Table:
    numbers = {name: pa.array(range(rows), pa.int64()) for name in ("wide", "wider", "widest", "whole", "small")}
    numbers |= {"far": pa.array([float(n) for n in range(rows)]), "far_int": pa.array([2**62 + n for n in range(rows)])}
    numbers |= {name: pa.array([0.5] * rows) for name in ("fine", "tiny", "large")}
    texts = {"town": [f"t{n}" for n in range(rows)], "street": [f"s{n}" for n in range(rows)]}
    return pa.table({"person": [f"p{n}" for n in range(rows)], **numbers, **texts})


def session_of(folder: Path, columns: list[str], *, unit: Unit | None = None, epsilon: str = "5") -> Session:
    attributes = {"person": Key(), **{name: COLUMNS[name] for name in columns}}
    policy = Policy(Dataset("people", unit=unit or EachRow()), attributes, None, Loss(epsilon))
    return Session(policy, table=table_of(), folder=folder)


REFUSED: dict[str, tuple[Query, list[str]]] = {
    "cells of two columns": (count().by("town", "street"), ["town", "street"]),
    "cells of a wide column": (count().by("wide"), ["wide"]),
    "a histogram of a wide column": (histogram("wider"), ["wider"]),
    "a median over 10^8 values": (median("wide"), ["wide"]),
    "the highest of 10^9 values": (max("wider"), ["wider"]),
    "a median by groups": (median("small").by("town", "street"), ["small", "town", "street"]),
    "a mean of the full 64-bit range": (mean("whole"), ["whole"]),
    "a sum of the full 64-bit range": (sum("whole"), ["whole"]),
    "a condition on the full 64-bit range": (count().where(col("whole") >= 0), ["whole"]),
    "groups of the full 64-bit range": (count().by("whole"), ["whole"]),
    "bounds beyond every integer": (mean("far"), ["far"]),
    "squares beyond 38 digits": (variance("far_int"), ["far_int"]),
    "products beyond 38 digits": (regression("widest ~ wider + whole"), ["widest", "wider", "whole"]),
    "squares of a wide range": (std("widest"), ["widest"]),
    "a step that is too fine": (count().where(col("fine") >= "0.5"), ["fine"]),
    "a step below floating point": (mean("tiny"), ["tiny"]),
    "bounds above floating point": (mean("large"), ["large"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_query_with_a_public_problem_is_refused_before_the_charge(tmp_path: Path, case: str) -> None:
    query, columns = REFUSED[case]
    with session_of(tmp_path, columns) as session:
        with pytest.raises(TidegateError):
            session.answer(query, epsilon="1")
        assert not session.account.spent, "it was charged, then refused"
        with pytest.raises(TidegateError):
            session.preview(query, epsilon="1")


def test_widest_column_of_a_regression_decides_whether_its_sums_fit(tmp_path: Path) -> None:
    with session_of(tmp_path, ["widest", "small"]) as session:
        for formula in ("widest ~ small", "small ~ widest"):
            with pytest.raises(TidegateError, match="more than 38 digits"):
                session.preview(regression(formula), epsilon="1")


@pytest.mark.parametrize("method", ["k-norm", "functional"])
def test_regression_over_a_range_of_a_billion_is_answered_or_refused_at_no_cost(tmp_path: Path, method: Any) -> None:
    query = regression("wider ~ small", method=method)
    with session_of(tmp_path, ["wider", "small"]) as session:
        for epsilon in ("1", "0.001"):
            before = session.account.spent
            try:
                answer = session.answer(query, epsilon=epsilon)
            except TidegateError:
                assert session.account.spent == before
            else:
                assert np.isfinite(answer.values).all()


def test_rows_of_a_person_are_bounded_with_columns_that_every_engine_supports(tmp_path: Path) -> None:
    with session_of(tmp_path, ["small", "whole"], unit=EachPerson("person", 2)) as session:
        with pytest.raises(TidegateError, match="whole"):
            session.answer(count(), epsilon="1")
        assert not session.account.spent


def test_largest_allowed_universe_is_answered(tmp_path: Path) -> None:
    attributes = {"wide": Integer(0, 2**53 - 1)}
    policy = Policy(Dataset("people"), attributes, None, Loss(5))
    table = pa.table({"wide": pa.array([0, 2**53 - 1, 2**60, -5])})
    with Session(policy, table=table, folder=tmp_path) as session:
        assert session.answer(count().where(col("wide") >= 2**52), epsilon="1").values.ndim == 0
        with pytest.raises(TidegateError):
            session.answer(sum("wide"), epsilon="0.1")  # its noise does not fit
        assert float(session.account.spent) <= 1


def test_query_that_an_engine_cannot_compile_is_refused_before_the_charge(tmp_path: Path) -> None:
    """A plan is tried on an empty table first, so every failure is public."""
    policy = Policy(Dataset("people"), {"small": Integer(0, 10)}, None, Loss(5))
    with Session(policy, table=table_of(), folder=tmp_path) as session:
        session.table._source = session.table._source.rename(other="small")  # the source changed since it was opened
        with pytest.raises(TidegateError):
            session.answer(mean("small"), epsilon="1")
        assert not session.account.spent
