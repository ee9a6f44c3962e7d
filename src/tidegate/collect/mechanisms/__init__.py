"""Operators by name, one file each. A new one is a class of the shape in operator.py and a line here.

    additive.py   noise on the grid: uniform.py   gaussian.py   laplace.py
    square_wave.py   response.py (GRR)   unary.py (OUE)   subset.py        powers.py   e**x in whole numbers

Their names and parameters in a policy file stand in `policy.collection.OPERATORS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tidegate.collect.mechanisms.gaussian import GaussianNoise, sigma_for
from tidegate.collect.mechanisms.laplace import LaplaceNoise
from tidegate.collect.mechanisms.operator import Operator, Pure, Report
from tidegate.collect.mechanisms.response import RandomizedResponse
from tidegate.collect.mechanisms.square_wave import SquareWave
from tidegate.collect.mechanisms.subset import SubsetSelection
from tidegate.collect.mechanisms.unary import Unary
from tidegate.collect.mechanisms.uniform import UniformNoise, half_width_for
from tidegate.policy.collection import Question


def _uniform(question: Question) -> Operator:
    given = question.parameters
    if "privacy" in given:
        return UniformNoise(question.size, half_width=half_width_for(question.size, given["privacy"]))
    return UniformNoise(question.size, half_width=math.ceil(given["half_width"] / question.step))


def _gaussian(question: Question) -> Operator:
    given = question.parameters
    if "privacy" in given:
        return GaussianNoise(question.size, sigma=sigma_for(question.size, given["privacy"]))
    return GaussianNoise(question.size, sigma=given["sigma"] / question.step)


def _by_epsilon(kind: Callable[..., Operator]) -> Callable[[Question], Operator]:
    return lambda question: kind(question.size, **question.parameters)


OPERATORS: dict[str, Callable[[Question], Operator]] = {
    "uniform-noise": _uniform,
    "gaussian-noise": _gaussian,
    "laplace-noise": _by_epsilon(LaplaceNoise),
    "square-wave": _by_epsilon(SquareWave),
    "randomized-response": _by_epsilon(RandomizedResponse),
    "unary": _by_epsilon(Unary),
    "subset": _by_epsilon(SubsetSelection),
}


def operator_for(question: Question) -> Operator:
    """The operator of a question, with the whole numbers that its parameters come to."""
    return OPERATORS[question.operator](question)


__all__ = [
    "OPERATORS",
    "GaussianNoise",
    "LaplaceNoise",
    "Operator",
    "Pure",
    "RandomizedResponse",
    "Report",
    "SquareWave",
    "SubsetSelection",
    "Unary",
    "UniformNoise",
    "operator_for",
]
