"""Operators by name, one file each. A new one is a class of the shape in operator.py and a line here.

    additive.py   noise on the grid: uniform.py   gaussian.py   laplace.py
    select_a_size.py   cut_and_paste.py   item_flip.py (MASK): sets of items
    square_wave.py   response.py (GRR)   unary.py (OUE)   subset.py        powers.py   e**x in whole numbers

Their names and parameters in a policy file stand in `policy.collection.OPERATORS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tidegate.collect.mechanisms.cut_and_paste import CutAndPaste
from tidegate.collect.mechanisms.gaussian import GaussianNoise, sigma_for
from tidegate.collect.mechanisms.item_flip import ItemFlip
from tidegate.collect.mechanisms.laplace import LaplaceNoise
from tidegate.collect.mechanisms.operator import Operator, Pure, Report
from tidegate.collect.mechanisms.response import RandomizedResponse
from tidegate.collect.mechanisms.select_a_size import BasketOperator, SelectASize
from tidegate.collect.mechanisms.square_wave import SquareWave
from tidegate.collect.mechanisms.subset import SubsetSelection
from tidegate.collect.mechanisms.unary import Unary
from tidegate.collect.mechanisms.uniform import UniformNoise, half_width_for
from tidegate.policy.collection import Question
from tidegate.policy.setplans import set_operator


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


def _selected(question: Question) -> Operator:
    return SelectASize(set_operator(question))


def _cut_and_pasted(question: Question) -> Operator:
    given = question.parameters
    fixed = int(given["fixed"]) if "fixed" in given else None
    largest = int(given["largest"])
    sizes = range(largest + 1) if fixed is None else [fixed]
    limits = {"fixed": fixed, "most": None if fixed is None else largest}
    return CutAndPaste(question.size, cutoff=int(given["cutoff"]), rho=given["rho"], sizes=sizes, **limits)


def _flipped(question: Question) -> Operator:
    given = question.parameters
    largest = int(given["largest"]) if "largest" in given else None
    return ItemFlip(question.size, keep=given["keep"], insert=given.get("insert"), largest=largest)


OPERATORS: dict[str, Callable[[Question], Operator]] = {
    "uniform-noise": _uniform,
    "gaussian-noise": _gaussian,
    "laplace-noise": _by_epsilon(LaplaceNoise),
    "square-wave": _by_epsilon(SquareWave),
    "randomized-response": _by_epsilon(RandomizedResponse),
    "unary": _by_epsilon(Unary),
    "subset": _by_epsilon(SubsetSelection),
    "select-a-size": _selected,
    "cut-and-paste": _cut_and_pasted,
    "mask": _flipped,
}


def operator_for(question: Question) -> Operator:
    """The operator of a question, with the whole numbers that its parameters come to."""
    return OPERATORS[question.operator](question)


__all__ = [
    "OPERATORS",
    "BasketOperator",
    "CutAndPaste",
    "GaussianNoise",
    "ItemFlip",
    "LaplaceNoise",
    "Operator",
    "Pure",
    "RandomizedResponse",
    "Report",
    "SelectASize",
    "SquareWave",
    "SubsetSelection",
    "Unary",
    "UniformNoise",
    "operator_for",
]
