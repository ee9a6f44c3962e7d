"""A fault is what it says: one change, of code that runs."""

from __future__ import annotations

from typing import Any

import pytest
from mutants.__main__ import drawn
from mutants.faults import Fault, faults, with_fault

KINDS = {
    "a boundary is moved or turned round": ("a < b", ["a <= b", "a >= b"]),
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
    "texts that are joined": "a = 'b' + c",
    "types": "A = B | C",
    "annotations": "def f(a: B | 1) -> D[1]:\n    b: E[2] = c",
    "decorators": "@a(1)\ndef f():\n    b = c",
    "what type checkers read": "if TYPE_CHECKING:\n    from a import b",
    "texts": "'one 1'\na = 'two'\nb = None",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_fault_is_offered_and_no_other(kind: str) -> None:
    source, expected = KINDS[kind]
    assert [fault.after for fault in faults(source, file="a.py")] == expected


@pytest.mark.parametrize("what", NONE)
def test_what_does_not_run_or_has_no_number_is_left_alone(what: str) -> None:
    assert faults(NONE[what], file="a.py") == []


SOURCE = '''
def price(many: int, *, cheap: bool = False) -> float:
    """What some of them cost."""
    if many < 1:
        raise ValueError("none")
    rate = 2 if cheap else 3
    return max(rate * many, 5)  # never less than 5
'''


def behaviour(source: str) -> list[Any]:
    """What a version answers in a few cases, errors too."""
    names: dict[str, Any] = {}
    exec(source, names)
    told: list[Any] = []
    for many, given in [(0, {}), (1, {}), (2, {}), (2, {"cheap": True}), (4, {}), (4, {"cheap": True})]:
        try:
            told.append(names["price"](many, **given))
        except ValueError as error:
            told.append(str(error))
    return told


@pytest.mark.parametrize("fault", faults(SOURCE, file="price.py"), ids=str)
def test_every_fault_of_a_function_changes_what_it_does(fault: Fault) -> None:
    changed = with_fault(SOURCE, fault)
    assert fault.after in changed or "\n" in fault.after  # of a branch the lines are set in
    assert behaviour(changed) != behaviour(SOURCE)


def test_a_fault_is_at_its_place_only() -> None:
    first, _, second, _ = faults("a = 1\nb = 1", file="a.py")
    assert with_fault("a = 1\nb = 1", first) == "a = 2\nb = 1"
    assert with_fault("a = 1\nb = 1", second) == "a = 1\nb = 2"


def test_a_fault_of_a_source_that_has_changed_is_not_planted() -> None:
    fault = faults("a = 1", file="a.py")[0]
    with pytest.raises(ValueError, match=r"the source has changed: no a\.py:1: 1  =>  2"):
        with_fault("a = 3", fault)


def test_a_larger_sample_holds_the_smaller_ones_and_another_seed_draws_others() -> None:
    every = faults("\n".join(f"a = {number}" for number in range(2, 50)), file="a.py")
    small, large = drawn(every, sample=10, seed=1), drawn(every, sample=30, seed=1)
    assert large[:10] == small
    assert len(set(large)) == 30
    assert set(drawn(every, sample=10, seed=2)) != set(small)
