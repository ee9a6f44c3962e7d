"""Learn one table: first the number of rows if it is private, then the model, each through its own diary.

Stages split epsilon into a million whole parts, so that sums are exact and short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import LedgerBroken, Unsupported
from tidegate.noise import Bits, SecureBits, discrete_laplace, scale_for
from tidegate.synthesize.diary import Diary, Step
from tidegate.synthesize.model import Learnt, Progress, Rows
from tidegate.synthesize.plan import SIZE, Plan
from tidegate.synthesize.private_rows import NoRows

Keep = Callable[[Step], None]


@dataclass(frozen=True)
class LearnedTable:
    """A model learned from its diary, the number of rows it uses, and the diary."""

    learnt: Learnt
    rows: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Learning:
    """A plan with access to the rows. `size` counts the rows with the engine; `rows` is their number if it is public.

    Guarantee:
        The pure loss of each table is at most the requested epsilon under replacement of one unit: the two diaries of
        a table are filters whose limits add up to it. The number of rows changes by at most `reach` when one person
        replaces another, so discrete Laplace noise of scale reach / loss suffices.
    """

    plan: Plan
    source: Rows
    size: Callable[[], int]
    rows: int | None
    bits: Bits
    progress: Progress

    def learn(self, written: Sequence[Step] = (), *, keep: Keep | None = None) -> LearnedTable:
        """Learn one table, continuing after the written steps."""
        plan, size_steps = self.plan, 0 if self.plan.size_is_public else 1
        sizes = Diary(plan.size_loss, written[:size_steps], keep=keep)
        rows = self._rows(sizes)
        diary = Diary(plan.model_loss, written[size_steps:], keep=keep)
        learnt = plan.model.learn(
            plan.facts(rows), self.source, diary, split=plan.split, bits=self.bits, progress=self.progress
        )
        return LearnedTable(learnt, rows, (*sizes.steps, *diary.steps))

    def _rows(self, sizes: Diary) -> int:
        if self.plan.size_is_public:
            return self.rows or 0
        self.progress(SIZE, 0, 1)
        noisy = int(sizes.step(SIZE, self.plan.size_loss, self._noisy_size)[0])
        persons = self.plan.policy.dataset.rows
        return max(2, noisy if persons is None else min(noisy, persons * self.plan.reach))

    def _noisy_size(self) -> NDArray[np.int64]:
        scale = scale_for(Fraction(self.plan.reach), self.plan.size_loss)
        return self.size() + discrete_laplace(scale, size=1, bits=self.bits)


def learn_again(plan: Plan, steps: Sequence[Step], rows: int | None) -> LearnedTable:
    """Return the table of a complete diary, the same as before, without reading a row."""
    learned = None
    with suppress(ValueError):  # the diary is another model's, or another version's
        learned = Learning(plan, NoRows(), lambda: 0, rows, SecureBits(), silent).learn(steps)
    if learned is None or len(learned.steps) != len(steps):
        raise LedgerBroken(
            f'The stored diary does not fit the installed version of "{plan.model.name}".',
            "Use the version that wrote it. Your own model needs a new name when it changes.",
        )
    return learned


def silent(stage: str, done: int, of: int) -> None:
    """Ignore progress."""


PARTS = 1_000_000


def apply_split(parts: Mapping[str, int], split: Mapping[str, Fraction]) -> dict[str, int]:
    """Return the shares that the split sets, with the other shares scaled to the rest."""
    fixed = {name: int(share * PARTS) for name, share in split.items()}
    if set(fixed) - set(parts) or sum(fixed.values()) > PARTS or min(fixed.values(), default=0) < 0:
        raise Unsupported(
            f"The split {', '.join(f'{name} = {share}' for name, share in split.items())} is not possible.",
            f"Set shares of at least 0, at most 1 in total, for some of: {', '.join(parts)}.",
        )
    others = sum(share for name, share in parts.items() if name not in fixed)
    remaining = PARTS - sum(fixed.values())
    return {name: fixed.get(name, remaining * share // max(others, 1)) for name, share in parts.items()}
