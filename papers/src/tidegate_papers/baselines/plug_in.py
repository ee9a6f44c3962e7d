""" "plug-in/1": the best fit of sequential regressions, as it is. NOT private: for comparing in arrays, never for a policy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped]

from tidegate.arrays import Floats, Ints
from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate_papers.baselines.regressions import Levels, Number, Regressions, State, features
from tidegate_papers.baselines.rounds import MOST_PARENTS, is_number, levels_of


@dataclass(frozen=True)
class PlugIn:
    """Non-private sequential synthesis: what a mechanism could reach without any noise. Its loss is infinite."""

    name: ClassVar[str] = "plug-in/1"
    exact: ClassVar[bool] = False
    private: ClassVar[bool] = False

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        return (Stage("fit", Fraction(1), "fit every column; NOT private"),)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Regressions:
        """Fit the rows without using the diary: nothing of it may leave the data holder."""
        codes, states = rows.codes(facts.columns), list[State]()
        values = codes.astype(np.float64)
        present = [_present(column, codes[:, j]) for j, column in enumerate(facts.columns)]
        for j, column in enumerate(facts.columns):
            parents = tuple(range(max(0, j - MOST_PARENTS), j))
            inputs = features(
                [states[p] for p in parents], [values[:, p] for p in parents], [present[p] for p in parents], len(codes)
            )
            fit = _number if is_number(column) else _levels
            states.append(fit(column, parents, inputs[:, present[j]], values[present[j], j], len(codes)))
            progress("fit", j + 1, len(facts.columns))
        return Regressions(tuple(states))


def _present(column: Column, codes: Ints) -> NDArray[np.bool_]:
    return np.asarray((codes >= 0) & ((codes < column.size) if is_number(column) else True), np.bool_)


def _number(column: Column, parents: tuple[int, ...], inputs: Floats, values: Floats, rows: int) -> Number:
    weights = np.asarray(np.linalg.lstsq(inputs.T, values, rcond=None)[0], np.float64)
    spread = float(np.sqrt(((values - weights @ inputs) ** 2).mean())) if values.size else 1.0
    center, scale = (float(values.mean()), float(values.std())) if values.size else (0.0, 1.0)
    missing = rows - values.size if column.missing else 0
    return Number(column, parents, center, max(scale, 1e-9), weights, spread, missing, rows)


def _levels(column: Column, parents: tuple[int, ...], inputs: Floats, values: Floats, rows: int) -> Levels:
    levels = levels_of(column)
    counts = np.bincount(values.astype(np.int64), minlength=levels) + 0.5
    shares = counts / counts.sum()
    start = np.zeros((levels, len(inputs)))
    start[:, 0] = np.log(shares)
    if not parents:
        return Levels(column, parents, shares, start)
    chosen = values.astype(np.int64)[None]

    def loss(flat: Floats) -> tuple[float, Floats]:
        mass = Levels(column, parents, shares, flat.reshape(start.shape)).masses(inputs)
        right = np.take_along_axis(mass, chosen, 0)
        slope = mass.copy()
        np.put_along_axis(slope, chosen, right - 1, 0)
        return float(-np.log(np.maximum(right, 1e-300)).sum()), (slope @ inputs.T).ravel()

    fit = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return Levels(column, parents, shares, fit.x.reshape(start.shape))
