"""Rate limits: a token bucket per name, or per network.

Limits per token and of wrong tokens are shared by all processes if the ledger is in Postgres (`SharedBuckets`). Limits per address
are in memory only, on purpose: a database must not know when which address sent a report.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Callable

from tidegate.errors import TooOften
from tidegate.ledger.rate_limits import SharedLimit

MOST_NAMES = 20_000
CLEANED = 60.0  # seconds between two deletions of full buckets


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

    def take_at_once(self, name: str) -> bool:
        """Take one request without waiting for anything, or raise TooOften; return False if only `take` can decide."""
        self.take(name)
        return True

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
        if len(used) > MOST_NAMES:  # those with the most requests left are the least to be limited
            emptiest = sorted(used, key=lambda name: used[name][0])[: MOST_NAMES // 2]
            used = {name: used[name] for name in emptiest}
        self._levels = used

    def _refuse(self, level: float) -> None:
        seconds = max(1, math.ceil((1 - level) / self._rate))
        raise TooOften("Too many requests.", f"Wait {seconds} second{'s' if seconds > 1 else ''}.", seconds=seconds)


class SharedBuckets(Buckets):
    """Buckets that all processes of a service share through the ledger's database.

    A process leases some requests of a bucket at once and takes them without reading anything; a lease ends when the bucket would be
    full again. All processes together allow exactly `rate` and `burst`; a request can use its lease a little later.
    """

    def __init__(self, shared: SharedLimit, rate: float, burst: float, *, lease: int = 1) -> None:
        super().__init__(rate, burst)
        self._shared, self._lease = shared, lease
        self._refused: dict[str, float] = {}  # by name: until when the database does not have to be read again
        self._cleaned = self._clock()

    def take(self, name: str) -> None:
        """Take one request from the lease, or from the bucket, or raise TooOften. It can wait for the database."""
        if self.take_at_once(name):
            return
        grant = self._shared.take(name, self._lease)
        with self._turn:
            now = self._clock()
            if grant.requests:
                leased, _ = self._leased(name, now)
                self._levels[name] = (leased + grant.requests - 1, now)
            else:
                self._refused[name] = now + (1 - grant.level) / self._rate
            self._forget(now)
            is_due, self._cleaned = self._is_due(now)
        if is_due:
            self._shared.forget_full()
        if not grant.requests:
            self._refuse(grant.level)

    def take_at_once(self, name: str) -> bool:
        """Take one request from the lease, if there is one; raise TooOften if the bucket was empty a moment ago."""
        with self._turn:
            now = self._clock()
            leased, at = self._leased(name, now)
            if leased >= 1:
                self._levels[name] = (leased - 1, at)
                return True
            wait = self._refused.get(name, now) - now
        if wait > 0:
            self._refuse(1 - wait * self._rate)
        return False

    def has(self, name: str) -> bool:
        """Return whether a request is available. It can wait for the database."""
        with self._turn:
            now = self._clock()
            if self._leased(name, now)[0] >= 1:
                return True
            if self._refused.get(name, now) > now:
                return False
        return self._shared.level(name) >= 1

    def _leased(self, name: str, now: float) -> tuple[float, float]:
        """Return the requests of a lease, and when it began."""
        leased, at = self._levels.get(name, (0.0, now))
        return (leased, at) if now - at < self._burst / self._rate else (0.0, now)

    def _forget(self, now: float) -> None:
        if len(self._levels) + len(self._refused) > MOST_NAMES:
            self._levels = {name: lease for name, lease in self._levels.items() if self._leased(name, now)[0] >= 1}
            self._refused = {name: until for name, until in self._refused.items() if until > now}
        if len(self._levels) + len(self._refused) > MOST_NAMES:
            self._levels, self._refused = {}, {}  # the database knows them

    def _is_due(self, now: float) -> tuple[bool, float]:
        """Return whether full buckets are to be deleted now, and when they were last."""
        return (True, now) if now - self._cleaned > CLEANED else (False, self._cleaned)


class NetworkBuckets(Buckets):
    """Buckets per network: a person can have many addresses, but they share a prefix."""

    def take(self, name: str) -> None:
        """Take one request from the bucket of an address's network, or raise TooOften."""
        super().take(network_of(name))


def network_of(address: str, *, bits: tuple[int, int] = (24, 48)) -> str:
    """Return the network of an address: the first 24 bits of IPv4, 48 of IPv6; an unknown address is its own network."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    return str(ipaddress.ip_network((number, bits[0] if number.version == 4 else bits[1]), strict=False))


def host_of(address: str) -> str:
    """Return what one host has for itself: an address of IPv4, the first 64 bits of IPv6."""
    return network_of(address, bits=(32, 64))
