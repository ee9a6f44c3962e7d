"""One operator is one class in one file, and its parameters are those that the rest of the product shows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tidegate.operators import BASKET_OPERATORS, OPERATORS, VALUE_OPERATORS
from tidegate.operators.basket_plans import BasketPlan

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidegate"
EXAMPLES = SOURCE / "service" / "openapi_examples.py"
PLANS = (BasketPlan(2, (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)), Fraction(1, 8)),)


def python_files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != EXAMPLES)


def constants(path: Path) -> set[str]:
    """The texts of a file that names an operator, and that are values: not prose, and not names that a module exports."""
    text = path.read_text("utf-8")
    if not any(name in text for name in OPERATORS):
        return set()
    tree = ast.parse(text)
    exported = {
        id(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]
        for name in ast.walk(node.value)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in exported
    }


def test_each_operator_is_named_in_its_own_file_only() -> None:
    by_file = {path: constants(path) for path in python_files()}
    for name, operator in OPERATORS.items():
        named = [path.relative_to(SOURCE) for path, texts in by_file.items() if name in texts]
        assert named == [Path(*operator.__module__.split(".")[1:]).with_suffix(".py")]


@pytest.mark.parametrize("name", [name for name in VALUE_OPERATORS if "-" in name])
def test_value_operators_are_named_in_one_file(name: str) -> None:
    assert len([path for path in python_files() if name in path.read_text("utf-8")]) == 1


@pytest.mark.parametrize("path", sorted((SOURCE / "operators").glob("*.py")), ids=lambda path: path.stem)
def test_operators_import_only_the_standard_library_at_module_level(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "tidegate"}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= allowed
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in allowed


def test_all_operators_draw_without_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
from fractions import Fraction
from tidegate.operators import VALUE_OPERATORS
from tidegate.operators.exact_draws import SeededBytes
for operator in VALUE_OPERATORS.values():
    parameter = operator.parameters[0]
    built = operator.from_parameters(9, Fraction(1), {parameter.name: Fraction(parameter.example)})
    assert built.accepts(built.sample(3, SeededBytes("some"))) and built.interval() != 0 and built.gamma != 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(SOURCE.parent)})


@pytest.mark.parametrize("name", OPERATORS)
def test_examples_of_parameters_are_within_their_bounds_and_build_the_operator(name: str) -> None:
    operator = OPERATORS[name]
    stated = {
        parameter.name: Fraction(parameter.example or 2) for parameter in operator.parameters if not parameter.optional
    }
    if name in VALUE_OPERATORS:
        stated = dict([next(iter(stated.items()))])
    for parameter in operator.parameters:
        least, most = parameter.bounds(20, Fraction(1))
        assert parameter.text
        assert least <= Fraction(parameter.example or 2) <= most or parameter.kind == "probability"
        assert parameter.below in ("", *(other.name for other in operator.parameters))
    built = operator.from_parameters(20, Fraction(1), stated, PLANS)
    assert built.name == name
    assert built.recipe()["draw"]


def test_adviser_searches_the_first_parameter_from_weak_to_strong() -> None:
    for operator in VALUE_OPERATORS.values():
        weak, strong = operator.parameters[0].search or (Fraction(0), Fraction(0))
        first, last = (
            operator.from_parameters(9, Fraction(1), {operator.parameters[0].name: value}) for value in (weak, strong)
        )
        if operator.unlimited:
            assert (first.interval() or 0) < (last.interval() or 0)
        else:
            assert first.epsilon > last.epsilon


def test_plan_for_one_size_is_built_from_the_shown_examples() -> None:
    for operator in BASKET_OPERATORS.values():
        examples = {parameter.name: parameter.shown for parameter in operator.plan_parameters if not parameter.optional}
        exact = {
            name: [Fraction(str(part)) for part in value] if isinstance(value, list) else Fraction(str(value))
            for name, value in examples.items()
        }
        size = len(examples["keep"]) - 1 if operator.takes_plans else 5
        plan = operator.size_plan(size, exact)
        assert (plan.size, sum(plan.keep)) == (size, 1)


def test_table_in_the_docs_has_the_parameters_of_every_value_operator() -> None:
    rows = {
        match[1]: line
        for line in reversed((ROOT / "docs" / "collect.md").read_text("utf-8").splitlines())  # the first table counts
        if (match := re.match(r"\| `([a-z-]+)` \|", line)) and match[1] in VALUE_OPERATORS
    }
    assert set(rows) == set(VALUE_OPERATORS)
    for name, operator in VALUE_OPERATORS.items():
        _, _, parameters, _, loss, _ = rows[name].split("|")
        assert re.findall(r"`(\w+)`", parameters) == [parameter.name for parameter in operator.parameters]
        assert ("unlimited" in loss) == operator.unlimited
