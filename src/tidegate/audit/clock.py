"""How long an attack may take."""

from __future__ import annotations

from time import monotonic


class Clock:
    """Runs from the moment that it is made. Attacks look at it between draws and stop when it is over."""

    def __init__(self, seconds: float) -> None:
        self._start, self._seconds = monotonic(), seconds

    @property
    def spent(self) -> float:
        return monotonic() - self._start

    @property
    def left(self) -> float:
        return max(0.0, self._seconds - self.spent)

    @property
    def over(self) -> bool:
        return self.left == 0

    def part(self, share: float) -> Clock:
        """A clock for a share of what is left."""
        return Clock(self.left * share)
