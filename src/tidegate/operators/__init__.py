"""Randomizers of one value or of one set of items, one class in one file each.

A new operator is a class with the interface in operator.py (sets: basket.py, choice.py) and a line in the registry below. Its `name` is
stored in policies and ledgers and never changes. Its `parameters` drive policy validation, commands, forms, the HTTP
schema and the adviser. A client device runs all of this without numpy.
"""

from __future__ import annotations

from tidegate.operators.basket import BasketOperator
from tidegate.operators.channel import ChannelSpec, Support
from tidegate.operators.choice import ChoiceOperator
from tidegate.operators.cut_and_paste import CutAndPaste
from tidegate.operators.gaussian import GaussianNoise
from tidegate.operators.hash_response import HashResponse
from tidegate.operators.hybrid import Hybrid
from tidegate.operators.laplace import LaplaceNoise
from tidegate.operators.mask import Mask
from tidegate.operators.one_option import OneOption
from tidegate.operators.operator import Operator, Parameter, Pure, Report
from tidegate.operators.prefix import Prefix
from tidegate.operators.privset import PrivSet
from tidegate.operators.projective_geometry import ProjectiveGeometry
from tidegate.operators.randomized_response import RandomizedResponse
from tidegate.operators.select_a_size import SelectASize
from tidegate.operators.square_wave import SquareWave
from tidegate.operators.subset import SubsetSelection
from tidegate.operators.unary import Unary
from tidegate.operators.uniform import UniformNoise

VALUE_OPERATORS: dict[str, type[Operator]] = {
    operator.name: operator
    for operator in (
        SquareWave,
        LaplaceNoise,
        UniformNoise,
        GaussianNoise,
        Hybrid,
        RandomizedResponse,
        Unary,
        SubsetSelection,
        ProjectiveGeometry,
        HashResponse,
    )
}
BASKET_OPERATORS: dict[str, type[BasketOperator]] = {
    operator.name: operator for operator in (SelectASize, CutAndPaste, Mask)
}
CHOICE_OPERATORS: dict[str, type[ChoiceOperator]] = {operator.name: operator for operator in (PrivSet, OneOption)}
TEXT_OPERATORS: dict[str, type[Operator]] = {Prefix.name: Prefix}
OPERATORS: dict[str, type[Operator]] = {
    **VALUE_OPERATORS,
    **BASKET_OPERATORS,
    **CHOICE_OPERATORS,
    **TEXT_OPERATORS,
}


def parameters_of(*names: str) -> dict[str, Parameter]:
    """Return the parameters by name, of all operators if none is named; the first operator decides a shared one."""
    known: dict[str, Parameter] = {}
    for name in names or OPERATORS:
        for parameter in OPERATORS[name].parameters:
            known.setdefault(parameter.name, parameter)
    return known


__all__ = [
    "BASKET_OPERATORS",
    "CHOICE_OPERATORS",
    "OPERATORS",
    "TEXT_OPERATORS",
    "VALUE_OPERATORS",
    "BasketOperator",
    "ChannelSpec",
    "ChoiceOperator",
    "CutAndPaste",
    "GaussianNoise",
    "HashResponse",
    "Hybrid",
    "LaplaceNoise",
    "Mask",
    "OneOption",
    "Operator",
    "Parameter",
    "Prefix",
    "PrivSet",
    "ProjectiveGeometry",
    "Pure",
    "RandomizedResponse",
    "Report",
    "SelectASize",
    "SquareWave",
    "SubsetSelection",
    "Support",
    "Unary",
    "UniformNoise",
    "parameters_of",
]
