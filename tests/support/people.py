"""Small policies and tables that many tests share."""

from __future__ import annotations

from tidegate.policy import Category, Dataset, EachRow, Identification, Integer, Key, Loss, Policy, Unit


def people_policy(*, rho: str = "0.1", epsilon: str | None = None, unit: Unit | None = None, high: int = 90) -> Policy:
    """Age, sex and a key; identification by age."""
    return Policy(
        Dataset("people", unit=unit or EachRow(), rows=1000),
        {"person": Key(), "age": Integer(17, high), "sex": Category(("f", "m"))},
        Identification(rho, protect=("age",)),
        Loss(epsilon) if epsilon else None,
    )
