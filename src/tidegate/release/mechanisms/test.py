"""What every test says of itself and can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.arrays import Ints
from tidegate.release.plan import Plan


@dataclass(frozen=True)
class Reading:
    """A measure against its critical value: released is safe while value < critical. `target` is None where the test
    speaks of all targets together; `critical` is infinite where there is too little to be tested."""

    target: int | None
    value: float
    critical: float


class Test:
    """One test of one plan. The compiled loop decides by the same rule; what is too near, `holds` decides."""

    __test__ = False  # for pytest: this is no test of ours
    name: ClassVar[str]
    index: ClassVar[int]  # its place in the compiled loop
    measure: ClassVar[str]  # what a picture calls it
    sees: ClassVar[str]
    blind: ClassVar[str]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def arrays(self) -> dict[str, Any]:
        """The critical values, as the compiled loop reads them."""
        raise NotImplementedError

    def holds(self, counts: Ints, target: int) -> bool:
        """Exactly: whether the counts pass, given that only `target` changed since they last did."""
        raise NotImplementedError

    def readings(self, counts: Ints) -> list[Reading]:
        """Where the counts stand, for people."""
        raise NotImplementedError
