"""A small promise, tables that hold strange things, and errors that must not repeat them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import TidegateError
from tidegate.ledger import verify
from tidegate.release.result import Refused

PLANTED = ("HIV-positive", "Oncology", "987654", "3.14159")  # private: in the tables, in no message

ATTRIBUTES: dict[str, Any] = {
    "id": tg.Key(),
    "sex": tg.Category(("f", "m")),
    "ward": tg.Category(("A", "B", "C")),
    "age": tg.Integer(0, 99, bins=(20, 40, 60)),
}


def policy_of(name: str = "patients", attributes: dict[str, Any] | None = None, **promises: Any) -> tg.Policy:
    """A policy; a promise that is given as a dict is one about wards, decided by Kullback-Leibler alone."""
    usual = {"tests": "kullback-leibler", "about": "ward", "reveals": "sex", "baseline": (1, 1)}
    named_promises = {
        title: tg.Concealment(**{**usual, **promise}) if isinstance(promise, dict) else promise
        for title, promise in (promises or {"wards": {"releases": ("id", "sex", "ward")}}).items()
    }
    return tg.Policy(tg.Dataset(name), attributes or ATTRIBUTES, concealments=named_promises)


def patients(ids: Sequence[Any], *, sexes: str = "fm", wards: str = "ABC", kind: Any = None) -> pa.Table:
    """One patient for each key; sexes and wards take turns."""
    numbers = range(len(ids))
    return pa.table(
        {
            "id": pa.array(list(ids), kind),
            "sex": [sexes[n % len(sexes)] for n in numbers],
            "ward": [wards[n // 2 % len(wards)] for n in numbers],
            "age": [n % 100 for n in numbers],
        }
    )


@contextmanager
def desk_of(url: Any, table: Any, policy: tg.Policy | None = None, promise: str = "") -> Iterator[Any]:
    """A desk, whose ledger holds when it closes."""
    with tg.open(policy or policy_of(), table=table, ledger=str(url)) as session:
        yield session.release(promise)
        assert verify(*session.ledger.snapshot()).problems == []


@contextmanager
def refuses(kind: type[TidegateError], says: str) -> Iterator[None]:
    """An error of this kind that says this, and nothing private anywhere in it."""
    with pytest.raises(kind, match=says) as refused:
        yield
    error = refused.value
    words = [str(error), repr(error.to_dict()), *traceback.format_exception(error)]
    assert not [value for value in PLANTED for text in words if value in text]
    assert error.what.endswith(".")


def reason(outcome: Any) -> str:
    """Why a request was refused, without anything private."""
    assert isinstance(outcome, Refused)
    assert not [value for value in PLANTED if value in f"{outcome} {outcome!r} {outcome.to_dict()}"]
    return outcome.reason
