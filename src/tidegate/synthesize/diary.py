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
class Loss:
    """A loss in the three units of `accounting.Price`, exact. A pure loss of None is unbounded."""

    pure: Fraction | None
    z: Fraction
    zcdp: Fraction

    @classmethod
    def of_pure(cls, epsilon: Fraction) -> Loss:
        """Return the loss of a step with a pure loss: z epsilon**2 / 8, zcdp epsilon**2 / 2."""
        return cls(epsilon, epsilon**2 / 8, epsilon**2 / 2)

    def __add__(self, other: Loss) -> Loss:
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return Loss(pure, self.z + other.z, self.zcdp + other.zcdp)

    def exceeds(self, limit: Loss) -> bool:
        """Return whether this loss is above a limit: a pure limit if it has one, else both of the others."""
        if limit.pure is not None:
            return self.pure is None or self.pure > limit.pure
        return self.z > limit.z or self.zcdp > limit.zcdp

    def to_dict(self) -> dict[str, str]:
        """Return the loss as JSON; z and zcdp of a pure loss follow from it."""
        if self.pure is not None and self == Loss.of_pure(self.pure):
            return {"epsilon": str(self.pure)}
        pure = {} if self.pure is None else {"epsilon": str(self.pure)}
        return {**pure, "z": str(self.z), "zcdp": str(self.zcdp)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Loss:
        """Return the loss that `to_dict` wrote."""
        if "z" not in content:
            return cls.of_pure(Fraction(content["epsilon"]))
        pure = Fraction(content["epsilon"]) if "epsilon" in content else None
        return cls(pure, Fraction(content["z"]), Fraction(content["zcdp"]))


NOTHING = Loss(Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Step:
    """One private output: integers, and the loss of measuring them (a fraction means a pure loss)."""

    name: str
    loss: Loss
    value: Ints

    def __init__(self, name: str, loss: Fraction | Loss, value: Ints) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "loss", loss if isinstance(loss, Loss) else Loss.of_pure(loss))
        object.__setattr__(self, "value", value)

    @property
    def epsilon(self) -> Fraction:
        """The pure loss; 0 if it is unbounded."""
        return self.loss.pure or Fraction(0)

    def to_dict(self) -> dict[str, Any]:
        shape = {"shape": list(self.value.shape)} if self.value.ndim != 1 else {}
        return {"name": self.name, **self.loss.to_dict(), **shape, "value": self.value.ravel().tolist()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Step:
        value = np.asarray(content["value"], np.int64)
        return cls(content["name"], Loss.from_dict(content), value.reshape(content.get("shape", value.shape)))


class Diary:
    """The written steps of one synthesis, with a limit on the sum of their losses: an epsilon, or z and zcdp.

    Guarantee:
        The losses of all steps, even if chosen adaptively, add up to at most the limit: a step that would exceed it is
        never measured (a privacy filter).

    Reference:
        Rogers, Roth, Ullman, Vadhan 2016, arXiv:1605.08294 (pure losses); Feldman, Zrnic 2021, arXiv:2008.11193 (z and zcdp,
        for every order at once).
    """

    def __init__(
        self, limit: Fraction | Loss, written: Sequence[Step] = (), *, keep: Callable[[Step], None] | None = None
    ) -> None:
        self.limit = limit if isinstance(limit, Loss) else Loss.of_pure(limit)
        self._keep = keep
        self._written, self._read = list(written), 0
        self.spent = NOTHING

    @property
    def epsilon(self) -> Fraction:
        """The pure limit of a model that measures pure losses."""
        if self.limit.pure is None:
            raise ValueError("This model requires a pure loss, but the diary has a limit on z.")
        return self.limit.pure

    @property
    def left(self) -> Fraction:
        """What remains of the pure limit."""
        return self.epsilon - (self.spent.pure or 0)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Everything written so far."""
        return tuple(self._written)

    def step(self, name: str, loss: Fraction | Loss, measure: Callable[[], Ints]) -> Ints:
        """Return the numbers of a step: the written ones, else `measure()`, whose loss must be at most `loss`."""
        stated = loss if isinstance(loss, Loss) else Loss.of_pure(loss)
        total = self.spent + stated
        if min(stated.z, stated.zcdp, stated.pure or 0) < 0 or total.exceeds(self.limit):
            raise ValueError(f'"{name}" would spend more than the diary\'s limit')
        if self._read < len(self._written):
            step = self._written[self._read]
            if (step.name, step.loss) != (name, stated):
                raise ValueError(
                    f'The diary contains "{step.name}" at {step.loss}, but "{name}" at {stated} is expected'
                )
        else:
            step = Step(name, stated, np.atleast_1d(np.asarray(measure(), np.int64)))
            if self._keep is not None:
                self._keep(step)
            self._written.append(step)
        self._read += 1
        self.spent = total
        return step.value
