"""The contract of a model of a table: everything that it learns is in its diary, and its draws are possible rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Model
from tidegate.synthesize.private_rows import ArrayRows
from tidegate.testing.contract import Contract, documented

LIMIT = Loss.of_pure(Fraction(2))


class WatchedRows(ArrayRows):
    """Rows in memory that count how often they are read."""

    def __init__(self, codes: Ints, facts: Facts) -> None:
        super().__init__(codes, facts.columns)
        self.looks = 0

    def _listed(self, column: Column) -> Ints:
        self.looks += 1
        return super()._listed(column)


@dataclass
class Trial:
    """A model on some rows. What it learned from a stream of bits is cached, because learning can take long."""

    model: Model
    facts: Facts
    table: Ints
    seed: str
    limit: Loss
    learnt: dict[str, tuple[Any, Diary]] = field(default_factory=dict)

    def on(self, name: str) -> tuple[Any, Diary]:
        """Return what the model learns from the bits of a name."""
        if name not in self.learnt:
            self.learnt[name] = self.learn(name, Diary(self.limit), WatchedRows(self.table, self.facts))
        return self.learnt[name]

    def learn(self, name: str, diary: Diary, rows: WatchedRows) -> tuple[Any, Diary]:
        bits = SeededBits(f"{self.seed} {name}")
        return self.model.learn(self.facts, rows, diary, bits=bits, progress=_quiet), diary


def check_model(model: Model, facts: Facts, table: Ints, *, limit: Loss = LIMIT, seed: str = "contract") -> Contract:
    """Check the contract of a model on some rows of a table with these facts. No clause is sampled.

    That each step loses what it states cannot be checked from outside: attack it with `tidegate.audit`.

    Args:
        table: The rows as codes, (rows, columns).
        limit: What the model can spend: a pure loss, or z and zcdp for a model that can measure these.
    """
    contract, trial = Contract(f"model {model.name}"), Trial(model, facts, table, seed, limit)
    contract.clause("it is documented, with a reference or a guarantee", documented, model)
    contract.clause("its name has a version", _versioned, model)
    contract.clause("its stages divide the limit without data, and use at most all of it", _stages, trial)
    contract.clause("it spends at most its limit, and only through its diary", _spends, trial)
    contract.clause("its diary alone gives the same model again, without reading rows", _again, trial)
    contract.clause("the same seed draws the same rows, and another seed different ones", _seeds, trial)
    contract.clause("every drawn row is possible", _possible, trial)
    contract.clause("its noise comes from the bits that are passed to it", _noise, trial)
    return contract


def _quiet(stage: str, done: int, of: int) -> None:
    """Ignore progress."""


def _versioned(model: Model) -> str:
    return "" if "/" in model.name else f'"{model.name}" has none'


def _stages(trial: Trial) -> str:
    shares = [stage.share for stage in trial.model.stages(trial.facts, limit=trial.limit)]
    if not shares or min(shares) < 0:
        return "there is no stage, or one with a share below 0"
    return "" if sum(shares) <= 1 else f"they take {float(sum(shares)):.4g} times the limit"


def _spends(trial: Trial) -> str:
    _, diary = trial.on("first")
    if not diary.steps:
        return "its diary is empty: it learned about the rows in another way"
    return f"{diary.spent} of {trial.limit}" if diary.spent.exceeds(trial.limit) else ""


def _again(trial: Trial) -> str:
    learned, diary = trial.on("first")
    unseen = WatchedRows(np.full_like(trial.table, -1), trial.facts)
    again, _ = trial.learn("again", Diary(trial.limit, diary.steps), unseen)
    if (learned.draw(50, seed=1) != again.draw(50, seed=1)).any():
        return "it differs: something was learned outside the diary"
    return f"it read rows {unseen.looks} times" if unseen.looks else ""


def _seeds(trial: Trial) -> str:
    learned, _ = trial.on("first")
    first, again, other = (learned.draw(200, seed=seed) for seed in (1, 1, 2))
    if (first != again).any():
        return "one seed drew two tables"
    return "" if (first != other).any() else "two seeds drew one table"


def _possible(trial: Trial) -> str:
    columns = trial.facts.columns
    drawn = trial.on("first")[0].draw(200, seed=1)
    if drawn.shape != (200, len(columns)):
        return f"its shape is {drawn.shape}"
    for index, column in enumerate(columns):
        highest = column.size if column.missing else column.size - 1
        if drawn[:, index].min() < 0 or drawn[:, index].max() > highest:
            return f'"{column.name}" has codes outside its universe'
    return ""


def _noise(trial: Trial) -> str:
    first, other = ([step.to_dict() for step in trial.on(name)[1].steps] for name in ("first", "other"))
    same = trial.learn("first", Diary(trial.limit), WatchedRows(trial.table, trial.facts))[1]
    if first != [step.to_dict() for step in same.steps]:
        return "the same bits gave two diaries"
    return "" if first != other else "other bits gave the same diary: there is no noise"
