"""A published number beside ours: when they are the same, and what is said where they are not."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from tidegate.reproduce import Found, Published, compare, summary


def published(value: Any, printing: Any, **more: Any) -> Published:
    return Published("x", "Table 1", value, printing, **more)


CASES = {
    "rounded": (published(0.002, "round", decimals=4), 0.0020064, True),
    "rounded the other way": (published(0.002, "round", decimals=4), 0.0020501, False),
    "cut": (published(10.078, "trunc", decimals=4), 10.07809, True),
    "cut, and not rounded": (published(10.0781, "trunc", decimals=4), 10.07809, False),
    "cut from below": (published(-1.2, "trunc", decimals=1), -1.15, True),
    "a fraction": (published("8/3", "exact"), Fraction(8, 3), True),
    "another fraction": (published("3/2", "exact"), Fraction(3), False),
    "no noise is enough": (published("inf", "exact"), math.inf, True),
    "near enough": (published(1.0, "within", tolerance=0.1), 0.95, True),
    "too far": (published(1.0, "within", tolerance=0.1), 0.85, False),
    "all near enough": (published({"a": 1.0, "b": 2.0}, "within", tolerance=0.1), {"a": 1.0, "b": 2.05}, True),
    "one too far": (published({"a": 1.0, "b": 2.0}, "within", tolerance=0.1), {"a": 1.0, "b": 2.2}, False),
    "one missing": (published({"a": 1.0, "b": 2.0}, "within", tolerance=0.1), {"a": 1.0}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_number_is_reproduced_if_it_prints_the_same(case: str) -> None:
    told, ours, same = CASES[case]
    assert compare(told, Found(ours)).status == ("reproduced" if same else "differs")


def test_what_is_not_the_same_is_an_erratum_only_where_a_fault_was_found() -> None:
    told = published("3/2", "exact", note="as printed", erratum="it is 9/3")
    assert compare(told, Found(Fraction(3))).status == "erratum"
    assert compare(told, Found(Fraction(3))).note == "it is 9/3"
    assert compare(told, Found(Fraction(3, 2))).status == "reproduced"  # a declared fault alone makes none
    assert compare(told, Found(Fraction(3, 2), "twice")).note == "as printed; twice"


def test_a_difference_that_nobody_explained_says_so() -> None:
    assert compare(published(1, "exact"), Found(2)).note == "not what the paper prints"


def test_an_item_is_plain_json() -> None:
    item = compare(published({"a": "inf"}, "exact"), Found({"a": math.inf}))
    told = json.loads(json.dumps(item.to_dict(), allow_nan=False))
    assert set(told) == {"id", "where", "published", "ours", "tolerance", "status", "note"}
    assert told["ours"] == {"a": "inf"}


def test_the_summary_counts_in_words() -> None:
    right, wrong = published(1, "exact"), published(1, "exact", erratum="no")
    items = [compare(right, Found(1)), compare(right, Found(1)), compare(wrong, Found(2)), compare(right, Found(2))]
    assert summary(items) == "2 reproduced, 1 erratum, 1 differs"
    assert summary(items + items) == "4 reproduced, 2 errata, 2 differ"
