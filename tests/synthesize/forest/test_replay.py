"""The model is a function of its diary: it asks the same whatever the rows, is rebuilt without them, and continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from synthesize.forest.surveys import (
    COLUMNS,
    SHOP,
    Stopped,
    Watched,
    by_z,
    interrupt_after,
    learn,
    pairwise,
    people,
    pure,
    sales,
)

from tidegate.errors import LedgerBroken
from tidegate.synthesize.diary import Diary, Loss, Step
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.weights import Fitted
from tidegate.synthesize.private_rows import ArrayRows, NoRows

ROWS = 10_000
Z = Fraction(1, 4)
RUNS: dict[str, tuple[tuple[Column, ...], Callable[[int, int], np.ndarray], Loss]] = {
    "pure with spikes": (COLUMNS, people, pure(6)),
    "pure with levels and maps": (SHOP, sales, pure(8)),
    "z": (SHOP, sales, by_z(Z)),
    "pairwise z": (SHOP, sales, pairwise(Z)),
}
KINDS = {
    "pure with spikes": {"spikes", "margin", "choice", "test", "pair"},
    "pure with levels and maps": {"level", "margin", "choice", "test", "map", "pair"},
    "z": {"level", "margin", "choice", "test", "map", "pair"},
    "pairwise z": {"level", "margin", "choice", "test", "map", "pair"},
}


class Run:
    """One complete run, with its facts and its rows."""

    def __init__(self, name: str) -> None:
        self.columns, make, self.limit = RUNS[name]
        self.name, self.facts, self.codes = name, Facts(self.columns, ROWS), make(ROWS, 1)
        diary = Diary(self.limit)
        self.fitted = learn(self.facts, ArrayRows(self.codes, self.columns), diary)
        self.steps = list(diary.steps)

    def again(self, rows: Any, steps: list[Step], *, seed: object = "other", **more: Any) -> tuple[Fitted, Diary]:
        diary = Diary(self.limit, steps, **more)
        return learn(self.facts, rows, diary, seed=seed), diary


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    return Run(request.param)


@pytest.mark.one_in(2)
def test_run_has_every_kind_of_step(run: Run) -> None:
    assert {step.name.split()[0] for step in run.steps} == KINDS[run.name]


@pytest.mark.one_in(2)
def test_complete_diary_rebuilds_the_same_model_without_rows(run: Run) -> None:
    again, diary = run.again(NoRows(), run.steps)
    assert again.to_dict() == run.fitted.to_dict()
    assert (again.draw(500, seed=3) == run.fitted.draw(500, seed=3)).all()
    assert diary.spent == run.fitted.summary.spent


@pytest.mark.one_in(2)
def test_diary_survives_json(run: Run) -> None:
    copied = [Step.from_dict(json.loads(json.dumps(step.to_dict()))) for step in run.steps]
    assert run.again(NoRows(), copied)[0].to_dict() == run.fitted.to_dict()


def test_diary_that_lacks_a_step_does_not_invent_it(run: Run) -> None:
    with pytest.raises(LedgerBroken):
        run.again(NoRows(), run.steps[:-1])


def stops(run: Run) -> list[int]:
    """Return every kind of step at least once, and every tenth one."""
    names = [step.name.split()[0] for step in run.steps]
    firsts = {names.index(name) + 1 for name in names}
    return sorted(firsts | set(range(1, len(names) + 1, 10)) | {len(names)})


@pytest.mark.one_in(4)
def test_run_interrupted_at_any_step_continues_to_the_same_model(run: Run) -> None:
    """What was written stays, and the diary of the continued run rebuilds its model without rows."""
    for stop in stops(run):
        written: list[Step] = []
        with pytest.raises(Stopped):
            run.again(ArrayRows(run.codes, run.columns), [], seed=1, keep=interrupt_after(stop, written))
        assert [step.to_dict() for step in written] == [step.to_dict() for step in run.steps[:stop]]
        resumed, diary = run.again(ArrayRows(run.codes, run.columns), written, seed=stop)
        assert diary.steps[:stop] == tuple(written)
        assert not diary.spent.exceeds(run.limit)
        assert run.again(NoRows(), list(diary.steps))[0].to_dict() == resumed.to_dict()
    assert resumed.to_dict() == run.fitted.to_dict()  # nothing was left to measure


def swapped(run: Run) -> np.ndarray:
    """Return other rows within the same columns: shuffled columns, reversed codes."""
    generator = np.random.default_rng(9)
    reversed_codes = np.array([column.size - 1 for column in run.columns]) - run.codes
    return np.column_stack([generator.permutation(column) for column in np.maximum(reversed_codes, 0).T])


@pytest.mark.one_in(2)
def test_questions_depend_on_the_diary_and_public_facts_only(run: Run) -> None:
    """After every written prefix, two different tables are asked the same, at the same loss."""
    for stop in (0, *stops(run)[:-1]):
        questions = []
        for codes in (run.codes, swapped(run)):
            rows, written = Watched(codes, run.columns), []
            diary = Diary(run.limit, run.steps[:stop], keep=interrupt_after(1, written))
            with pytest.raises(Stopped):
                learn(run.facts, rows, diary)
            (step,) = written
            questions.append((rows.asked, step.name, step.loss, step.value.shape))
        if run.steps[stop].name.startswith("spikes"):
            questions = [part[:3] for part in questions]  # its value is a list of codes
        assert questions[0] == questions[1], run.steps[stop].name


def test_question_that_depends_on_the_rows_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the heavy cells of a level are chosen by the true counts."""
    run = Run("z")
    right = Watched.margin

    def margin(self: Watched, column: Column) -> np.ndarray:
        counts = right(self, column)
        keep = tuple(start for start, count in zip(column.starts, counts, strict=False) if count % 2 or start == 0)
        right(self, Column(column.name, column.size, keep))  # asks again, by what it saw
        return counts

    monkeypatch.setattr(Watched, "margin", margin)
    with pytest.raises(AssertionError):
        test_questions_depend_on_the_diary_and_public_facts_only(run)


def test_diary_of_another_run_is_refused(run: Run) -> None:
    with pytest.raises(ValueError, match="The diary contains"):
        run.again(NoRows(), run.steps[1:])
