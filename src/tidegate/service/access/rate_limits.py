"""How often somebody may come: a bucket for each name that fills at a steady rate."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from tidegate.errors import TooOften

MOST_NAMES = 20_000


class Buckets:
    """`rate` a second in the long run, `burst` at once. Full buckets are forgotten, so that names cost no memory."""

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._turn = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one, or TooOften."""
        with self._turn:
            level, now = self._level(name)
            if level >= 1:
                self._levels[name] = (level - 1, now)
                return
        self._refuse(level)

    def has(self, name: str) -> bool:
        """Whether there is one to take; takes none."""
        with self._turn:
            level, _ = self._level(name)
        return level >= 1

    def _level(self, name: str) -> tuple[float, float]:
        now = self._clock()
        level, at = self._levels.get(name, (self._burst, now))
        if len(self._levels) > MOST_NAMES:
            self._forget(now)
        return min(self._burst, level + (now - at) * self._rate), now

    def _forget(self, now: float) -> None:
        full = self._burst / self._rate
        kept = {name: (level, at) for name, (level, at) in self._levels.items() if now - at < full}
        self._levels = kept if len(kept) <= MOST_NAMES else {}

    def _refuse(self, level: float) -> None:
        seconds = max(1, math.ceil((1 - level) / self._rate))
        raise TooOften("too many requests.", f"Wait {seconds} second{'s' if seconds > 1 else ''}.", seconds=seconds)
