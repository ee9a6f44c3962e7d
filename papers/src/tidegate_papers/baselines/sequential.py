""" "sequential/1": one regression per column on at most three columns before it.

Linear for numbers, logistic and multinomial for categories. It is for tables that a few regressions describe. If the family is
wrong, the error stays at the family's distance from the data, whatever epsilon is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise import Bits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate_papers.baselines import rounds as near
from tidegate_papers.baselines.fits import LevelsFit, LinearFit, Tables, noisy_counts, shares_from
from tidegate_papers.baselines.regressions import PARTS, Levels, Number, Private, Regressions, State
from tidegate_papers.baselines.rounds import (
    MOST_FEATURES,
    MOST_PARENTS,
    Chooser,
    Plan,
    is_number,
    levels_of,
    make_plan,
    misfit_scale,
    pure_loss,
)

SEED = 2018  # of candidates: public, the year of the paper


@dataclass(frozen=True)
class Sequential:
    """A normal, logistic or multinomial regression for every column, chosen in rounds by the exact exponential mechanism.

    Guarantee:
        Every number taken from the rows is a round of the diary: a choice among public candidates by the total
        variation of residual cells, or a count with discrete Laplace noise. No float decides a probability.

    Reference:
        Snoke & Slavkovic 2018, Algorithm 2; rounds and total variation are ours.
    """

    parents: Mapping[str, Sequence[str]] | None = (
        None  # by column; None: all columns before, or chosen if these are many
    )
    seed: int = SEED
    many: int = near.MANY  # candidates of a margin's rounds
    some: int = near.SOME  # candidates of a block's rounds
    name: ClassVar[str] = "sequential/1"
    exact: ClassVar[bool] = True

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        return make_plan(facts, epsilon=pure_loss(limit), parents=self.parents).stages()

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Regressions:
        plan = make_plan(facts, epsilon=diary.epsilon, parents=self.parents)
        return Learning(plan, Chooser(diary, facts.reach, bits), self, rows).run(progress)


class Learning:
    """The procedure of one synthesis. The rows are read when the first round that is not yet written needs them."""

    def __init__(self, plan: Plan, chooser: Chooser, model: Sequential, rows: Rows) -> None:
        self.plan, self.chooser, self.model, self.facts = plan, chooser, model, plan.facts
        self.private = Private(plan.facts, rows, model.seed)
        self.margins: list[State] = []
        self.states: list[State] = []

    def run(self, progress: Progress) -> Regressions:
        columns = self.facts.columns
        for index, column in enumerate(columns):
            self.margins.append(self._margin(index, column))
            progress("margins", index + 1, len(columns))
        for index in range(len(columns)):
            parents = self.plan.parents[index]
            self._learn(index, parents if parents is not None else self._choose_parents(index))
            progress("blocks", index + 1, len(columns))
        return Regressions(tuple(self.states))

    def _margin(self, index: int, column: Column) -> State:
        """Learn a column without its parents."""
        loss = self.plan.loss("margins", Fraction(1, len(self.facts.columns)))
        if not is_number(column):
            counts = partial(self.private.levels, index)
            own = shares_from(noisy_counts(self.chooser, f"{column.name}: counts", counts, loss, of=levels_of(column)))
            return Levels(column, (), own, np.log(own)[:, None])
        missing = 0
        if column.missing:
            rare = partial(self.private.missing, index)
            noisy = noisy_counts(self.chooser, f"{column.name}: missing", rare, loss / 10, of=1)
            missing, loss = int(np.clip(noisy[0], 0, self.facts.rows)), loss * Fraction(9, 10)
        center, scale = _location(self._linear(index, missing, ()).margin(loss))
        return Number(column, (), center, scale, np.array([center]), scale, missing, self.facts.rows)

    def _learn(self, index: int, parents: tuple[int, ...]) -> None:
        """Learn a column given its parents."""
        margin = self.margins[index]
        learn = self._number if isinstance(margin, Number) else self._levels
        state = learn(index, margin, parents)  # type: ignore[arg-type]
        self.states.append(state)
        self.private.add_state(state)

    def _linear(self, index: int, missing: int, parents: tuple[int, ...]) -> LinearFit:
        parent_states = [self.states[p] for p in parents]
        return LinearFit(
            column=self.facts.columns[index],
            chooser=self.chooser,
            rows=self.facts.rows - missing,
            shares=self.private.shares,
            seed=(self.model.seed, 2, index),
            parts=np.array([state.parts() for state in parent_states]),
            features=1 + min(sum(state.feature_count for state in parent_states), MOST_FEATURES),
            many=self.model.many,
            some=self.model.some,
            ordered=partial(self.private.ordered, index),
            regression_rows=partial(self.private.regression_rows, index, parents),
        )

    def _number(self, index: int, margin: Number, parents: tuple[int, ...]) -> State:
        fit = self._linear(index, margin.missing, parents)
        parameters = near.whole(np.array([margin.center, np.log(margin.scale)]))
        radius = fit.after_margin(self.plan.loss("margins", Fraction(1, len(self.facts.columns))))
        if fit.features > 1:
            start = self.plan.loss("starts", Fraction(1, self.plan.dependent))
            parameters, radius = fit.start(parameters, start), fit.after_start(radius, start)
        chosen = near.real(fit.block(parameters, radius, self.plan.loss("blocks", self.plan.block(index))))
        weights, spread = chosen[:-1], float(np.exp(chosen[-1]))
        own = (margin.center, margin.scale) if parents else (float(weights[0]), spread)
        return Number(margin.column, parents, *own, weights, spread, margin.missing, self.facts.rows)

    def _levels(self, index: int, margin: Levels, parents: tuple[int, ...]) -> State:
        if not parents:
            return margin
        artificial = self.private.artificial(parents)
        fit = LevelsFit(
            margin.column, self.chooser, self.facts.rows, self.private.shares, (self.model.seed, 3, index),
            self.model.some // 2,
            Tables(partial(self.private.by_parents, index, parents), *artificial),
        )  # fmt: skip
        start = self.plan.loss("starts", Fraction(1, self.plan.dependent))
        block = self.plan.loss("blocks", self.plan.block(index))
        return Levels(margin.column, parents, margin.shares, fit.fit(margin.shares, start, block))

    def _choose_parents(self, index: int) -> tuple[int, ...]:
        """Choose the columns before that are furthest from independent of this one, given their margins."""
        loss = self.plan.loss("parents", Fraction(1, self.plan.unknown * MOST_PARENTS))
        most = misfit_scale(parts=PARTS * PARTS, shares=self.private.shares).sensitivity
        parents: list[int] = []
        for number in range(MOST_PARENTS):
            remaining = np.array([[p] for p in range(index) if p not in parents])
            chosen = self.chooser.choose(
                f"{self.facts.columns[index].name}: parent {number + 1}",
                loss,
                partial(np.copy, remaining),
                lambda tried: np.array([-self._dependence(index, int(p)) for p in tried[:, 0]]),
                sensitivity=most,
            )
            parents.append(int(chosen[0]))
        return tuple(sorted(parents))

    def _dependence(self, left: int, right: int) -> int:
        """Return how far the cells of two columns are from independent, if their margins are the learned ones."""
        table = self.private.table(left, right, self.margins[left], self.margins[right])
        expected = np.outer(self.margins[left].parts(), self.margins[right].parts())
        rows = self.facts.rows * self.private.shares
        return int(np.abs(PARTS * PARTS * table - rows * expected).sum())


def _location(written: Ints) -> tuple[float, float]:
    center, scale = near.real(written)
    return float(center), float(np.exp(scale))
