"""The reader of forest/1 draws exactly the rows that forest/1 drew from the same diary.

first_diaries.json was written by the last version that learned by forest/1: public facts, diaries and drawn rows.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthesize.forest.surveys import NoRows, silent

from tidegate.errors import Unsupported
from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary, Loss, Step
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.first import FEWEST, Forest1, make_plan, merge_cells
from tidegate.synthesize.model import Learnt

CASES = json.loads((Path(__file__).parent / "first_diaries.json").read_text("utf-8"))
KINDS = {"spikes", "margin", "choice", "pair"}


def read_columns(contents: list[dict[str, Any]]) -> tuple[Column, ...]:
    def starts(content: dict[str, Any]) -> tuple[int, ...]:
        return tuple(range(content["size"])) if content["starts"] == "all" else tuple(content["starts"])

    return tuple(Column(**{**content, "starts": starts(content)}) for content in contents)


def rebuild(name: str, *, forget: int = 0) -> tuple[Learnt, Diary]:
    """Return the model of a stored diary, without its last steps."""
    content = CASES[name]
    known = Facts(read_columns(content["columns"]), content["rows"], content["reach"], content["target"])
    steps = [Step.from_dict(step) for step in content["steps"]]
    diary = Diary(Fraction(content["epsilon"]), steps[: len(steps) - forget])
    return Forest1().learn(known, NoRows(), diary, bits=SeededBits(1), progress=silent), diary


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CASES)
def test_old_diary_gives_the_rows_that_it_gave_before(name: str) -> None:
    model, diary = rebuild(name)
    for seed, rows in CASES[name]["drawn"].items():
        assert model.draw(len(rows), seed=int(seed)).tolist() == rows
    assert len(diary.steps) == len(CASES[name]["steps"])
    assert diary.spent == sum((step.loss for step in diary.steps), Loss.of_pure(Fraction(0)))


def test_stored_diaries_cover_every_step_of_forest_1() -> None:
    names = {name: [step["name"] for step in case["steps"]] for name, case in CASES.items()}
    assert {step.split()[0] for steps in names.values() for step in steps} == KINDS
    spikes = next(s for s in CASES["spikes and added pairs"]["steps"] if s["name"] == "spikes of gain")
    assert len(spikes["value"]) > 0
    merged = CASES["merged cells"]
    (counted,) = [step["value"] for step in merged["steps"] if step["name"] == "margin of pay"]
    assert len(counted) < len(merged["columns"][0]["starts"])
    tree = len(CASES["spikes and added pairs"]["columns"]) - 1
    assert sum(step.startswith("pair") for step in names["spikes and added pairs"]) > tree  # pairs were added


@pytest.mark.parametrize("name", ["spikes and added pairs", "one column"])
def test_incomplete_diary_is_refused_without_reading_rows(name: str) -> None:
    with pytest.raises((ValueError, Unsupported), match=r"complete diaries|learned before"):
        rebuild(name, forget=1)


def test_changed_step_is_refused() -> None:
    content = CASES["one column"]
    (step,) = content["steps"]
    known = Facts(read_columns(content["columns"]), content["rows"])
    diary = Diary(Fraction(2), [Step.from_dict(step)])
    with pytest.raises(ValueError, match="The diary contains"):
        Forest1().learn(known, NoRows(), diary, bits=SeededBits(1), progress=silent)


def test_new_table_is_refused_before_a_row_is_read() -> None:
    known = Facts((Column("a", 2, (0, 1)),), 10)
    with pytest.raises(Unsupported, match="forest/2"):
        Forest1().learn(known, NoRows(), Diary(Fraction(1)), bits=SeededBits(1), progress=silent)


# ---- merged cells: forest/1 merged cells where the noise would exceed their counts, by public facts alone

WIDE = Column("pay", 10_000, (0, 1, *range(50, 10_000, 50)))  # 0 is an atom
SHORT = Column("age", 80, tuple(range(80)))
TOWNS = Column("town", 300, tuple(range(300)), ordered=False)


def merge_columns(rows: int, epsilon: str, columns: tuple[Column, ...] = (WIDE, SHORT, TOWNS)) -> tuple[Column, ...]:
    facts = Facts(columns, rows)
    return merge_cells(columns, facts, make_plan(facts, Fraction(epsilon)))


def test_many_rows_keep_all_cells() -> None:
    assert merge_columns(1_000_000, "1") == (WIDE, SHORT, TOWNS)


def test_few_rows_merge_wide_cells_but_not_single_codes() -> None:
    pay, age, town = merge_columns(2_000, "0.25")
    assert (age, town) == (SHORT, TOWNS)
    assert pay.starts[:2] == (0, 1)  # the atom
    assert len(pay.starts) <= 2 * FEWEST


@given(
    st.integers(1, 10**6), st.sampled_from(["0.001", "0.25", "4"]), st.sets(st.integers(1, 499), min_size=1), st.data()
)
def test_merged_cells_are_unions_of_public_cells(rows: int, epsilon: str, cuts: set[int], data: st.DataObject) -> None:
    column = Column("x", 500, (0, *sorted(cuts)), missing=data.draw(st.booleans()))
    (after,) = merge_columns(rows, epsilon, (column,))
    singles = {start for start, end in zip(column.starts, column.ends, strict=False) if end - start == 1}
    assert set(after.starts) <= set(column.starts)
    assert singles <= set(after.starts)
    assert all(end in after.ends for start, end in zip(column.starts, column.ends, strict=False) if start in singles)


def test_drawn_rows_are_within_the_columns() -> None:
    for name, content in CASES.items():
        drawn = rebuild(name)[0].draw(200, seed=9)
        limits = np.array([column.size + column.missing for column in read_columns(content["columns"])])
        assert ((drawn >= 0) & (drawn < limits)).all()
