"""The interface of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.arrays import Ints
from tidegate.release.plan import Plan


@dataclass(frozen=True)
class Reading:
    """A measure and its critical value: the promise holds while value < critical.

    `target` is None if the test is about all targets together; `critical` is infinite if there are too few records to test.
    """

    target: int | None
    value: float
    critical: float


class Test:
    """One test of one plan. The compiled loop decides by the same rule; `holds` decides near-ties."""

    __test__ = False  # for pytest: this class is not a test case
    name: ClassVar[str]
    index: ClassVar[int]  # its number in the compiled loop
    measure: ClassVar[str]  # its name in charts
    sees: ClassVar[str]
    blind: ClassVar[str]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def arrays(self) -> dict[str, Any]:
        """Return the critical values as the compiled loop reads them."""
        raise NotImplementedError

    def holds(self, counts: Ints, target: int) -> bool:
        """Return, by exact arithmetic, whether the counts pass, given that only `target` changed since they last passed."""
        raise NotImplementedError

    def readings(self, counts: Ints) -> list[Reading]:
        """Return the measures of the counts, for display."""
        raise NotImplementedError
