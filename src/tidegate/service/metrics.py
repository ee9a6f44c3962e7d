"""Prometheus metrics: counts and times of requests. Labels are path templates, methods, statuses and error codes."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

TIMES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        about: Any = {"registry": self._registry, "namespace": "tidegate"}
        self._requests = Counter("requests", "Requests by route and status", ["method", "route", "status"], **about)
        self._seconds = Histogram("request_seconds", "Time per request", ["route"], buckets=TIMES, **about)
        self._refusals = Counter("refusals", "Refusals by error code", ["code"], **about)
        self._reports = Counter("reports", "Randomized reports by outcome", ["outcome"], **about)
        for outcome in ("taken", "refused"):  # created now: the time at which a new line appears would be visible
            self._reports.labels(outcome)
        self._at_work = Gauge("jobs_at_work", "Jobs running in this process", **about)
        self._witnesses = Gauge("witness_problems", "Witnesses that are late, refuse or cannot be reached", **about)

    def request(self, method: str, route: str, status: int, seconds: float, refused: str) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if refused:
            self._refusals.labels(refused).inc()

    def reports(self, *, taken: int = 0, refused: int = 0) -> None:
        """Count reports. Accepted ones are counted with their batch: a counter per report would reveal its time."""
        self._reports.labels("taken").inc(taken)
        self._reports.labels("refused").inc(refused)

    def at_work(self, count: int) -> None:
        self._at_work.set(count)

    def witness_problems(self, count: int) -> None:
        self._witnesses.set(count)

    def text(self) -> bytes:
        return bytes(generate_latest(self._registry))
