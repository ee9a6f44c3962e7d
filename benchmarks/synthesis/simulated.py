"""Two tables of two columns: the simulation of Snoke and Slavkovic (2018), and one that a linear model does not fit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.synthesis.exchange import PLENTY, Case
from tidegate.policy import Dataset, Grid, Loss, Policy

ROWS = 5_000


def paper(seed: int) -> Case:
    """x1 ~ N(2, sd 10), x2 ~ N(-2.5 + x1 / 2, sd 3); the bounds are four standard deviations."""
    rng = np.random.default_rng(seed)
    x1 = rng.normal(2, 10, ROWS)
    x2 = rng.normal(-2.5 + 0.5 * x1, 3)
    return _case(f"simulation-{seed}", x1, x2, Grid("-38", "42", "0.01"), Grid("-24.8", "21.8", "0.01"))


def misspecified(seed: int) -> Case:
    """x1 from a mixture of two normals, x2 ~ N(x1 squared / 20, sd 1)."""
    rng = np.random.default_rng(seed)
    x1 = np.where(rng.random(ROWS) < 0.5, rng.normal(-6, 2, ROWS), rng.normal(8, 3, ROWS))
    x2 = rng.normal(0.05 * x1**2, 1)
    return _case(f"misspecified-{seed}", x1, x2, Grid("-20", "24", "0.01"), Grid("-5", "25", "0.01"))


def _case(name: str, x1: np.ndarray, x2: np.ndarray, known1: Grid, known2: Grid) -> Case:
    inside = [values.clip(float(known.low), float(known.high)) for values, known in ((x1, known1), (x2, known2))]
    rounded = {f"x{number}": np.round(values, 2) for number, values in enumerate(inside, 1)}
    policy = Policy(Dataset(name, rows=ROWS), {"x1": known1, "x2": known2}, loss=Loss(PLENTY))
    return Case(name, pd.DataFrame(rounded), policy)
