"""Counts with integer noise."""

from __future__ import annotations

from typing import Any

from tidegate.accounting import DiscreteLaplace
from tidegate.answer.request import Count
from tidegate.noise import Bits, discrete_laplace
from tidegate.tables import Table


def noisy_counts(request: Count, table: Table, event: DiscreteLaplace, *, bits: Bits) -> dict[str, Any]:
    """The counts of every cell plus noise, with the cells' names.

    Guarantee  Pure loss event.price for the policy's protected unit. The true counts go nowhere else.
    """
    cells = table.count(request.groups)
    noisy = cells + discrete_laplace(event.scale, size=cells.size, bits=bits).reshape(cells.shape)
    labels = {name: _texts(table.axis(name).labels()) for name in request.groups}
    return {"cells": noisy.tolist(), "labels": labels, "scale": str(event.scale)}


def _texts(labels: list[Any]) -> list[Any]:
    return [label if label is None or isinstance(label, str | int) else str(label) for label in labels]
