""" "sequential/1": one regression a column on at most three columns before it.

Linear for numbers, logistic and multinomial for categories. It is for tables that a few regressions describe; where the
family is wrong, it stays at the family's own distance from the data, whatever epsilon is.
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
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.parametric import candidates as near
from tidegate.synthesize.mechanisms.parametric.candidates import Chooser
from tidegate.synthesize.mechanisms.parametric.levels import LevelsFit, Tables, noisy_counts, shares_from
from tidegate.synthesize.mechanisms.parametric.linear import LinearFit
from tidegate.synthesize.mechanisms.parametric.plan import (
    MOST_FEATURES,
    MOST_PARENTS,
    Plan,
    is_number,
    levels_of,
    plan,
)
from tidegate.synthesize.mechanisms.parametric.private import Private
from tidegate.synthesize.mechanisms.parametric.scores import misfit_scale
from tidegate.synthesize.mechanisms.parametric.states import PARTS, Levels, Number, Regressions, State
from tidegate.synthesize.model import Progress, Rows, Stage

SEED = 2018  # of candidates: public, the year of the paper


@dataclass(frozen=True)
class Sequential:
    """A normal, logistic or multinomial regression for every column, chosen in rounds by the exact exponential mechanism.

    Guarantee:
        Every number that it takes from the rows is a round of the diary: a choice among public candidates by total
        variation of residual cells, or a count with discrete Laplace noise. No float decides a probability.

    Reference:
        Snoke & Slavkovic 2018, Algorithm 2; rounds and total variation are ours.
    """

    parents: Mapping[str, Sequence[str]] | None = None  # by column; None: all of the first, chosen for the others
    seed: int = SEED
    many: int = near.MANY  # candidates of the rounds of a margin
    some: int = near.SOME  # and of a block's
    name: ClassVar[str] = "sequential/1"
    exact: ClassVar[bool] = True

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        return plan(facts, epsilon=epsilon, split=split, parents=self.parents).stages()

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Regressions:
        made = plan(facts, epsilon=diary.epsilon, split=split, parents=self.parents)
        return Learning(made, Chooser(diary, facts.reach, bits), self, rows).run(progress)


class Learning:
    """The story of one synthesis. The rows are read when the first round that is not yet written needs them."""

    def __init__(self, plan: Plan, chooser: Chooser, model: Sequential, rows: Rows) -> None:
        self.plan, self.chooser, self.model, self.facts = plan, chooser, model, plan.facts
        self.private = Private(plan.facts, rows, model.seed)
        self.margins: list[State] = []
        self.states: list[State] = []

    def run(self, progress: Progress) -> Regressions:
        columns = self.facts.columns
        for place, column in enumerate(columns):
            self.margins.append(self._margin(place, column))
            progress("margins", place + 1, len(columns))
        for place in range(len(columns)):
            given = self.plan.parents[place]
            self._learn(place, given if given is not None else self._chosen_parents(place))
            progress("blocks", place + 1, len(columns))
        return Regressions(tuple(self.states))

    def _margin(self, place: int, column: Column) -> State:
        """A column on its own."""
        loss = self.plan.loss("margins", Fraction(1, len(self.facts.columns)))
        if not is_number(column):
            counts = partial(self.private.levels, place)
            own = shares_from(noisy_counts(self.chooser, f"{column.name}: counts", counts, loss, of=levels_of(column)))
            return Levels(column, (), own, np.log(own)[:, None])
        missing = 0
        if column.missing:
            rare = partial(self.private.missing, place)
            noisy = noisy_counts(self.chooser, f"{column.name}: missing", rare, loss / 10, of=1)
            missing, loss = int(np.clip(noisy[0], 0, self.facts.rows)), loss * Fraction(9, 10)
        centre, scale = _location(self._linear(place, missing, ()).margin(loss))
        return Number(column, (), centre, scale, np.array([centre]), scale, missing, self.facts.rows)

    def _learn(self, place: int, parents: tuple[int, ...]) -> None:
        """A column given its parents."""
        margin = self.margins[place]
        learn = self._number if isinstance(margin, Number) else self._levels
        state = learn(place, margin, parents)  # type: ignore[arg-type]
        self.states.append(state)
        self.private.learnt(state)

    def _linear(self, place: int, missing: int, parents: tuple[int, ...]) -> LinearFit:
        chosen = [self.states[p] for p in parents]
        return LinearFit(
            column=self.facts.columns[place],
            chooser=self.chooser,
            rows=self.facts.rows - missing,
            shares=self.private.shares,
            seed=(self.model.seed, 2, place),
            parts=np.array([state.parts() for state in chosen]),
            features=1 + min(sum(state.wide for state in chosen), MOST_FEATURES),
            many=self.model.many,
            some=self.model.some,
            ordered=partial(self.private.ordered, place),
            seen=partial(self.private.seen, place, parents),
        )

    def _number(self, place: int, margin: Number, parents: tuple[int, ...]) -> State:
        fit = self._linear(place, margin.missing, parents)
        found = near.whole(np.array([margin.centre, np.log(margin.scale)]))
        radius = fit.after_margin(self.plan.loss("margins", Fraction(1, len(self.facts.columns))))
        if fit.features > 1:
            start = self.plan.loss("starts", Fraction(1, self.plan.dependent))
            found, radius = fit.start(found, start), fit.after_start(radius, start)
        chosen = near.real(fit.block(found, radius, self.plan.loss("blocks", self.plan.block(place))))
        weights, spread = chosen[:-1], float(np.exp(chosen[-1]))
        own = (margin.centre, margin.scale) if parents else (float(weights[0]), spread)
        return Number(margin.column, parents, *own, weights, spread, margin.missing, self.facts.rows)

    def _levels(self, place: int, margin: Levels, parents: tuple[int, ...]) -> State:
        if not parents:
            return margin
        made = self.private.artificial(parents)
        fit = LevelsFit(
            margin.column, self.chooser, self.facts.rows, self.private.shares, (self.model.seed, 3, place),
            self.model.some // 2,
            Tables(partial(self.private.by_parents, place, parents), *made),
        )  # fmt: skip
        start = self.plan.loss("starts", Fraction(1, self.plan.dependent))
        block = self.plan.loss("blocks", self.plan.block(place))
        return Levels(margin.column, parents, margin.shares, fit.fit(margin.shares, start, block))

    def _chosen_parents(self, place: int) -> tuple[int, ...]:
        """The columns before that are furthest from independent of it, as far as their margins tell."""
        loss = self.plan.loss("parents", Fraction(1, self.plan.unknown * MOST_PARENTS))
        most = misfit_scale(parts=PARTS * PARTS, shares=self.private.shares).sensitivity
        found: list[int] = []
        for number in range(MOST_PARENTS):
            left = np.array([[p] for p in range(place) if p not in found])
            chosen = self.chooser.choose(
                f"{self.facts.columns[place].name}: parent {number + 1}",
                loss,
                partial(np.copy, left),
                lambda tried: np.array([-self._dependence(place, int(p)) for p in tried[:, 0]]),
                sensitivity=most,
            )
            found.append(int(chosen[0]))
        return tuple(sorted(found))

    def _dependence(self, one: int, other: int) -> int:
        """How far the cells of two columns are from independent, if their margins are what was learnt."""
        table = self.private.table(one, other, self.margins[one], self.margins[other])
        expected = np.outer(self.margins[one].parts(), self.margins[other].parts())
        rows = self.facts.rows * self.private.shares
        return int(np.abs(PARTS * PARTS * table - rows * expected).sum())


def _location(written: Ints) -> tuple[float, float]:
    centre, scale = near.real(written)
    return float(centre), float(np.exp(scale))
