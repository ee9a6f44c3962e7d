"""The diary of a synthesis: every number that was learned from the rows, with its loss, in order.

A model is a function of its diary. It requests each private number through `Diary.step`; everything it computes from these
numbers is post-processing. The losses of the diary therefore bound the loss of everything the model ever releases. An
interrupted run continues from the written steps, and the same diary gives the same model again without the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.arrays import Ints


@dataclass(frozen=True)
class Step:
    """One private output: integers, and the loss of measuring them."""

    name: str
    epsilon: Fraction
    value: Ints

    def to_dict(self) -> dict[str, Any]:
        shape = {"shape": list(self.value.shape)} if self.value.ndim != 1 else {}
        return {"name": self.name, "epsilon": str(self.epsilon), **shape, "value": self.value.ravel().tolist()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Step:
        value = np.asarray(content["value"], np.int64)
        return cls(content["name"], Fraction(content["epsilon"]), value.reshape(content.get("shape", value.shape)))


class Diary:
    """The written steps of one synthesis, with a limit on the sum of their losses.

    Guarantee:
        The losses of all steps, even if chosen adaptively, add up to at most `epsilon`: a step that would exceed it is
        never measured (a pure privacy filter).

    Reference:
        Rogers, Roth, Ullman, Vadhan 2016, arXiv:1605.08294.
    """

    def __init__(
        self, epsilon: Fraction, written: Sequence[Step] = (), *, keep: Callable[[Step], None] | None = None
    ) -> None:
        self.epsilon, self._keep = epsilon, keep
        self._written, self._read = list(written), 0
        self.spent = Fraction(0)

    @property
    def left(self) -> Fraction:
        return self.epsilon - self.spent

    @property
    def steps(self) -> tuple[Step, ...]:
        """Everything written so far."""
        return tuple(self._written)

    def step(self, name: str, epsilon: Fraction, measure: Callable[[], Ints]) -> Ints:
        """Return the numbers of a step: the written ones, else `measure()`, whose loss must be at most `epsilon`."""
        if epsilon < 0 or self.spent + epsilon > self.epsilon:
            raise ValueError(f'"{name}" would spend more than the diary\'s epsilon')
        if self._read < len(self._written):
            step = self._written[self._read]
            if (step.name, step.epsilon) != (name, epsilon):
                raise ValueError(
                    f'The diary contains "{step.name}" at epsilon {step.epsilon}, but "{name}" at {epsilon} is expected'
                )
        else:
            step = Step(name, epsilon, np.atleast_1d(np.asarray(measure(), np.int64)))
            if self._keep is not None:
                self._keep(step)
            self._written.append(step)
        self._read += 1
        self.spent += epsilon
        return step.value
