"""One table learnt: the number of rows where it is not public, then the model, each through a diary of its own.

Epsilon in whole parts: stages share a million of them, so that sums are exact and short.
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
    """A model that has seen its diary, the number of rows that it knows of, and the diary."""

    learnt: Learnt
    rows: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Learning:
    """A plan at work. `size` counts the rows, for the engine; `rows` is their number where it is public.

    Guarantee:
        Pure loss of at most the wanted epsilon for each table under replacement of one unit: the two diaries of a
        table are filters whose limits add up to it. The number of rows moves by at most `reach` when one person is
        replaced by another, so discrete Laplace noise of scale reach / loss gives it.
    """

    plan: Plan
    source: Rows
    size: Callable[[], int]
    rows: int | None
    bits: Bits
    progress: Progress

    def learn(self, written: Sequence[Step] = (), *, keep: Keep | None = None) -> LearnedTable:
        """One table, from the steps that are written onwards."""
        plan, first = self.plan, 0 if self.plan.size_is_public else 1
        sizes = Diary(plan.size_loss, written[:first], keep=keep)
        rows = self._rows(sizes)
        diary = Diary(plan.model_loss, written[first:], keep=keep)
        given = {"split": plan.split, "bits": self.bits, "progress": self.progress}
        learnt = plan.model.learn(plan.facts(rows), self.source, diary, **given)  # type: ignore[arg-type]
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
    """The table of a diary that is complete: the same as it was, and no row is read."""
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
    """Progress that nobody looks at."""


PARTS = 1_000_000


def overruled(parts: Mapping[str, int], split: Mapping[str, Fraction]) -> dict[str, int]:
    """The shares that were set, and the others scaled to what these leave."""
    given = {name: int(share * PARTS) for name, share in split.items()}
    if set(given) - set(parts) or sum(given.values()) > PARTS or min(given.values(), default=0) < 0:
        raise Unsupported(
            f"The split {', '.join(f'{name} = {share}' for name, share in split.items())} is not possible.",
            f"Set shares of at least 0, at most 1 in total, for some of: {', '.join(parts)}.",
        )
    others = sum(share for name, share in parts.items() if name not in given)
    left = PARTS - sum(given.values())
    return {name: given.get(name, left * share // max(others, 1)) for name, share in parts.items()}
