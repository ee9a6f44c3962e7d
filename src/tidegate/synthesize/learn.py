"""Learn one table: first the number of rows if it is private, then the model, each through its own diary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import LedgerBroken, Unsupported
from tidegate.noise import Bits, SecureBits, discrete_gaussian, discrete_laplace, scale_for, sigma_for
from tidegate.synthesize.diary import Diary, Step
from tidegate.synthesize.mechanisms import MODELS, model_for
from tidegate.synthesize.model import Fitted, Learnt, Progress, Rows
from tidegate.synthesize.plan import SIZE, Plan
from tidegate.synthesize.private_rows import NoRows
from tidegate.synthesize.progress import silent

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
        The loss of each table is at most the requested limit under replacement of one unit: the two diaries of a table
        are filters whose limits add up to it. The number of rows changes by at most `reach` when one person replaces
        another, so discrete Laplace noise of scale reach / loss suffices for a pure loss, and discrete Gaussian noise with
        sigma**2 = reach**2 / (2 zcdp) = reach**2 / (8 z) for the others.
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
        learnt = plan.model.learn(plan.facts(rows), self.source, diary, bits=self.bits, progress=self.progress)
        return LearnedTable(learnt, rows, (*sizes.steps, *diary.steps))

    def _rows(self, sizes: Diary) -> int:
        if self.plan.size_is_public:
            return self.rows or 0
        self.progress(SIZE, 0, 1)
        noisy = int(sizes.step(SIZE, self.plan.size_loss, self._noisy_size)[0])
        persons = self.plan.policy.dataset.rows
        return max(2, noisy if persons is None else min(noisy, persons * self.plan.reach))

    def _noisy_size(self) -> NDArray[np.int64]:
        loss, reach = self.plan.size_loss, Fraction(self.plan.reach)
        if loss.pure is not None:
            return self.size() + discrete_laplace(scale_for(reach, loss.pure), size=1, bits=self.bits)
        return self.size() + discrete_gaussian(sigma_for(reach**2, loss.zcdp), size=1, bits=self.bits)


def restore(name: str, content: Mapping[str, Any], model: Any = None) -> Fitted:
    """Return the fitted model that a record or a file contains. Nothing is learned or computed again.

    Raises:
        Unsupported: No installed model has this name, or it cannot read the content.
    """
    rebuild = getattr(model_for(name) if model is None and name in MODELS else model, "restore", None)
    if rebuild is None:
        raise Unsupported(
            f'The model "{name}" is not a model of this version of Tidegate.', "Use the version that stored it."
        )
    with suppress(
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError
    ):  # damaged, or of a newer version
        fitted: Fitted = rebuild(content)
        return fitted
    raise Unsupported(
        f'The stored model "{name}" cannot be read: it is damaged, or a newer version of Tidegate stored it.',
        "Use the version that stored it, or a copy that is not damaged.",
    )


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
