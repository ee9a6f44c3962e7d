"""The diary of a synthesis: every number that was learnt from the rows, with what it cost, in order.

A model is a function of its diary. It asks for each private number through `Diary.step`, and what follows from the
numbers is post-processing. So the sum of the diary's losses is the loss of everything that the model ever gives out, a run
that was interrupted goes on from what is written, and the same diary gives the same model again without the rows.
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
    """One private output: whole numbers, and the loss at which they were made."""

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
    """Steps that are written, and a purse that cannot be overdrawn.

    Guarantee:
        The losses of all steps, chosen as adaptively as a model likes, add up to at most `epsilon`: a step that would
        exceed it is never made (a pure privacy filter).

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
        """The numbers of a step: those written, else `measure()`, which must have a loss of at most `epsilon`."""
        if epsilon < 0 or self.spent + epsilon > self.epsilon:
            raise ValueError(f'"{name}" would spend more than the diary\'s epsilon')
        if self._read < len(self._written):
            found = self._written[self._read]
            if (found.name, found.epsilon) != (name, epsilon):
                raise ValueError(
                    f'The diary contains "{found.name}" at epsilon {found.epsilon}, but "{name}" at {epsilon} is expected'
                )
        else:
            found = Step(name, epsilon, np.atleast_1d(np.asarray(measure(), np.int64)))
            if self._keep is not None:
                self._keep(found)
            self._written.append(found)
        self._read += 1
        self.spent += epsilon
        return found.value
