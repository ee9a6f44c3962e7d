"""A fault is one change of code that runs."""

from __future__ import annotations

from typing import Any

import pytest
from mutants.__main__ import sample_faults
from mutants.faults import Fault, faults, with_fault

KINDS = {
    "a moved or inverted boundary": ("a < b", ["a <= b", "a >= b"]),
    "each comparison of a chain": ("a <= b == c", ["a < b == c", "a > b == c", "a <= b != c"]),
    "in": ("a in b", ["a not in b"]),
    "is": ("a is not b", ["a is b"]),
    "and, or": ("a and b", ["a or b"]),
    "not": ("not a", ["bool(a)"]),
    "minus": ("-a", ["a"]),
    "plus": ("a + b", ["a - b"]),
    "times": ("a * b", ["a / b"]),
    "shifted": ("a << b", ["a >> b"]),
    "added to": ("a += b", ["a -= b"]),
    "a constant": ("a[2]", ["3", "1"]),
    "a fraction": ("a = 0.5", ["1.5", "-0.5"]),
    "a truth": ("a = True", ["False"]),
    "a call": ("a = min(b, c)", ["max(b, c)"]),
    "a method": ("a = b.any(axis=c)", ["b.all(axis=c)"]),
    "an order": ("a = sorted(b, key=c)", ["list(b)"]),
    "a branch": ("if a:\n    b = c", ["if False:\n    b = c", "if True:\n    b = c"]),
    "a choice": ("a = b if c else d", ["b if False else d", "b if True else d"]),
    "a loop": ("while a:\n    b = c", ["while False:\n    b = c"]),
    "an action": ("a(b)", ["pass"]),
    "a refusal": ("raise a", ["pass"]),
    "a result": ("def f():\n    return a", ["return None"]),
}
NONE = {
    "joined texts": "a = 'b' + c",
    "types": "A = B | C",
    "annotations": "def f(a: B | 1) -> D[1]:\n    b: E[2] = c",
    "decorators": "@a(1)\ndef f():\n    b = c",
    "what type checkers read": "if TYPE_CHECKING:\n    from a import b",
    "texts": "'one 1'\na = 'two'\nb = None",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_fault_is_offered(kind: str) -> None:
    source, expected = KINDS[kind]
    assert [fault.after for fault in faults(source, file="a.py")] == expected


@pytest.mark.parametrize("what", NONE)
def test_code_that_does_not_run_is_not_changed(what: str) -> None:
    assert faults(NONE[what], file="a.py") == []


SOURCE = '''
def price(many: int, *, cheap: bool = False) -> float:
    """What some of them cost."""
    if many < 1:
        raise ValueError("none")
    rate = 2 if cheap else 3
    return max(rate * many, 5)  # never less than 5
'''


def behavior(source: str) -> list[Any]:
    """Return the results of a version in a few cases, errors included."""
    names: dict[str, Any] = {}
    exec(source, names)
    results: list[Any] = []
    for count, options in [(0, {}), (1, {}), (2, {}), (2, {"cheap": True}), (4, {}), (4, {"cheap": True})]:
        try:
            results.append(names["price"](count, **options))
        except ValueError as error:
            results.append(str(error))
    return results


@pytest.mark.parametrize("fault", faults(SOURCE, file="price.py"), ids=str)
def test_every_fault_of_a_function_changes_its_behavior(fault: Fault) -> None:
    changed = with_fault(SOURCE, fault)
    assert fault.after in changed or "\n" in fault.after  # the lines of a branch are indented
    assert behavior(changed) != behavior(SOURCE)


def test_fault_changes_only_its_own_position() -> None:
    first, _, second, _ = faults("a = 1\nb = 1", file="a.py")
    assert with_fault("a = 1\nb = 1", first) == "a = 2\nb = 1"
    assert with_fault("a = 1\nb = 1", second) == "a = 1\nb = 2"


def test_fault_of_a_changed_source_is_not_planted() -> None:
    fault = faults("a = 1", file="a.py")[0]
    with pytest.raises(ValueError, match=r"The source has changed: it has no a\.py:1: 1  =>  2"):
        with_fault("a = 3", fault)


def test_larger_sample_contains_the_smaller_one_and_other_seeds_differ() -> None:
    every = faults("\n".join(f"a = {number}" for number in range(2, 50)), file="a.py")
    small, large = sample_faults(every, sample=10, seed=1), sample_faults(every, sample=30, seed=1)
    assert large[:10] == small
    assert len(set(large)) == 30
    assert set(sample_faults(every, sample=10, seed=2)) != set(small)
