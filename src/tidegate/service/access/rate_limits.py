"""Rate limits: a token bucket per name, or per network. They are in memory only."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Callable

from tidegate.errors import TooOften

MOST_NAMES = 20_000


class Buckets:
    """Buckets with `rate` requests per second in the long run and `burst` at once. Full buckets are deleted."""

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._turn = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one request from the bucket, or raise TooOften."""
        with self._turn:
            level, now = self._level(name)
            if level >= 1:
                self._levels[name] = (level - 1, now)
                return
        self._refuse(level)

    def has(self, name: str) -> bool:
        """Return whether a request is available, without taking it."""
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
        used = {name: (level, at) for name, (level, at) in self._levels.items() if now - at < full}
        self._levels = used if len(used) <= MOST_NAMES else {}

    def _refuse(self, level: float) -> None:
        seconds = max(1, math.ceil((1 - level) / self._rate))
        raise TooOften("Too many requests.", f"Wait {seconds} second{'s' if seconds > 1 else ''}.", seconds=seconds)


class NetworkBuckets(Buckets):
    """Buckets per network: a person can have many addresses, but they share a prefix."""

    def take(self, name: str) -> None:
        """Take one request from the bucket of an address's network, or raise TooOften."""
        super().take(network_of(name))


def network_of(address: str) -> str:
    """Return the network of an address: the first 24 bits of IPv4, 48 of IPv6; an unknown address is its own network."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    return str(ipaddress.ip_network((number, 24 if number.version == 4 else 48), strict=False))
